//! Tests with compilers that work and compilers that fail. They are scripts in `tests/fakes/tsc`.

use codegen::check::{CheckResult, Surface};
use codegen::stub::StubTable;

use super::*;
use crate::tempdir::TempDir;
use airlock_sandbox::{CheckLimits, Checker};

const SCRIPT: &str = "const all = [\"a\"];\nreturn all.lenght;";

fn fake(name: &str) -> PathBuf {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    tree.join("tests/fakes/tsc").join(name).join("tsc")
}

fn env(path: &str) -> Vec<(String, String)> {
    vec![("PATH".into(), path.into())]
}

fn system_path() -> String {
    std::env::var("PATH").unwrap()
}

/// Sends a request, and checks that it leaves no files behind.
async fn heard(choice: TscChoice, path: &str, wall: Duration) -> TscOutcome {
    let state = TempDir::new();
    let compiler = Compiler {
        wall,
        here: Some(state.path().to_owned()),
        ..Compiler::new(choice, env(path), state.path())
    };
    let table = StubTable::default();
    let surface = Surface::new(&table, &[]);
    let checker = Checker::embedded().unwrap();
    let limits = CheckLimits::default();
    let (checked, _): (CheckResult, _) = checker.check("a.js", SCRIPT, &surface, &limits).await;
    let page = Page::new("a.js", SCRIPT, &checked, &surface).unwrap();
    let heard = compiler.ask(&page, &checked.findings).await;
    let scratch = state.path().join("scratch");
    let left = std::fs::read_dir(scratch).map_or(0, Iterator::count);
    assert_eq!(left, 0, "{heard:?}");
    heard
}

async fn at(name: &str) -> TscOutcome {
    heard(TscChoice::At(fake(name)), &system_path(), WALL).await
}

fn findings(heard: &TscOutcome) -> Vec<(u32, u32, &str)> {
    let TscOutcome::Findings(found) = heard else {
        panic!("{heard:?}")
    };
    let places = found.kept.iter();
    places
        .map(|it| (it.line, it.column, it.code.as_str()))
        .collect()
}

fn check_unheard(heard: &TscOutcome, word: &str) {
    let TscOutcome::Nothing { why } = heard else {
        panic!("{heard:?}")
    };
    assert!(why.contains(word) && !why.contains('/'), "{why}");
}

#[tokio::test]
async fn compiler_errors_are_reported_once_in_script_positions() {
    let heard = at("right").await;
    assert_eq!(findings(&heard), [(2, 10, "ts2551")]);
}

#[tokio::test]
async fn silent_compiler_is_not_an_error() {
    check_unheard(&at("garbage").await, "panic: runtime error");
    check_unheard(&at("huge").await, "longer than 262144 bytes");
    check_unheard(&at("silent").await, "exit status: 3");
    check_unheard(&at("nowhere").await, "cannot be started");
}

#[tokio::test]
async fn hanging_compiler_is_killed_with_children() {
    let wall = Duration::from_millis(300);
    let heard = heard(TscChoice::At(fake("hanging")), &system_path(), wall).await;
    check_unheard(&heard, "longer than 300 ms");
}

#[tokio::test]
async fn only_native_compiler_on_path_is_used() {
    let folder = |name: &str| fake(name).parent().unwrap().display().to_string();
    let path = |names: &[&str]| {
        let mut folders: Vec<_> = names.iter().map(|it| folder(it)).collect();
        folders.push("/usr/bin:/bin".into());
        folders.join(":")
    };
    let on_path = |path: String| async move { heard(TscChoice::OnPath, &path, WALL).await };
    let found = on_path(path(&["old", "right"])).await;
    assert_eq!(findings(&found), [(2, 10, "ts2551")]);
    assert_eq!(on_path(folder("old")).await, TscOutcome::NotAsked);
    assert_eq!(
        on_path("tests/fakes/tsc/right:.".into()).await,
        TscOutcome::NotAsked
    );
    // A configured compiler is used even if it is old.
    let named = heard(TscChoice::At(fake("old")), "", WALL).await;
    assert_eq!(findings(&named), [(1, 1, "ts2322")]);
    let never = heard(TscChoice::Never, &path(&["right"]), WALL).await;
    assert_eq!(never, TscOutcome::NotAsked);
}

#[tokio::test]
async fn project_compiler_is_not_started_unasked() {
    let project = TempDir::new();
    let program = fake("right");
    let place = |folder: &str| {
        let folder = project.path().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::copy(&program, folder.join("tsc")).unwrap();
        folder
    };
    let dependency = place("other/node_modules/.bin");
    let own = place("bin");
    let links = TempDir::new();
    std::os::unix::fs::symlink(own.join("tsc"), links.path().join("tsc")).unwrap();

    let asked = |folder: &Path| {
        let path = format!("{}:/usr/bin:/bin", folder.display());
        let compiler = Compiler {
            here: Some(project.path().join("bin")),
            ..Compiler::new(TscChoice::OnPath, env(&path), project.path())
        };
        async move { compiler.look_around().await.is_some() }
    };
    for folder in [&dependency, &own, links.path()] {
        assert!(!asked(folder).await, "{}", folder.display());
    }
    assert!(asked(&place("of-the-machine")).await);
}

#[test]
fn old_package_is_named_in_message() {
    let package = TempDir::new();
    std::fs::create_dir(package.path().join("bin")).unwrap();
    let program = package.file("bin/tsc", "");
    assert_eq!(package_major(&program), None);
    package.file("package.json", r#"{"name":"typescript","version":"5.9.3"}"#);
    assert_eq!(package_major(&program), Some(5));
}
