//! Compilers that are right, and others, and what comes of asking them. They are
//! scripts in `tests/fakes/tsc`.

use codegen::check::{Checked, Surface};
use codegen::stub::StubTable;

use super::*;
use crate::sandbox::{CheckLimits, Checker};
use crate::scratch::Scratch;

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

/// Asks, and holds that nothing of the question stays behind.
async fn heard(choice: TscChoice, path: &str, wall: Duration) -> Heard {
    let state = Scratch::new();
    let compiler = Compiler {
        wall,
        here: Some(state.path().to_owned()),
        ..Compiler::new(choice, env(path), state.path())
    };
    let table = StubTable::default();
    let surface = Surface::new(&table, &[]);
    let checker = Checker::embedded().unwrap();
    let limits = CheckLimits::default();
    let (checked, _): (Checked, _) = checker.check("a.js", SCRIPT, &surface, &limits).await;
    let page = Page::of("a.js", SCRIPT, &checked, &surface).unwrap();
    let heard = compiler.ask(&page, &checked.findings).await;
    let scratch = state.path().join("scratch");
    let left = std::fs::read_dir(scratch).map_or(0, Iterator::count);
    assert_eq!(left, 0, "{heard:?}");
    heard
}

async fn at(name: &str) -> Heard {
    heard(TscChoice::At(fake(name)), &system_path(), WALL).await
}

fn findings(heard: &Heard) -> Vec<(u32, u32, &str)> {
    let Heard::Findings(found) = heard else {
        panic!("{heard:?}")
    };
    let places = found.kept.iter();
    places
        .map(|it| (it.line, it.column, it.code.as_str()))
        .collect()
}

fn check_unheard(heard: &Heard, word: &str) {
    let Heard::Nothing { why } = heard else {
        panic!("{heard:?}")
    };
    assert!(why.contains(word) && !why.contains('/'), "{why}");
}

#[tokio::test]
async fn what_a_compiler_says_is_heard_once_and_in_the_scripts_own_places() {
    let heard = at("right").await;
    assert_eq!(findings(&heard), [(2, 10, "ts2551")]);
}

#[tokio::test]
async fn a_compiler_that_does_not_answer_is_no_failure() {
    check_unheard(&at("garbage").await, "panic: runtime error");
    check_unheard(&at("huge").await, "longer than 262144 bytes");
    check_unheard(&at("silent").await, "exit status: 3");
    check_unheard(&at("nowhere").await, "cannot be started");
}

#[tokio::test]
async fn a_compiler_that_hangs_is_ended_with_all_that_it_started() {
    let wall = Duration::from_millis(300);
    let heard = heard(TscChoice::At(fake("hanging")), &system_path(), wall).await;
    check_unheard(&heard, "longer than 300 ms");
}

#[tokio::test]
async fn on_the_path_only_a_native_one_is_asked() {
    let folder = |name: &str| fake(name).parent().unwrap().display().to_string();
    let path = |names: &[&str]| {
        let mut folders: Vec<_> = names.iter().map(|it| folder(it)).collect();
        folders.push("/usr/bin:/bin".into());
        folders.join(":")
    };
    let on_path = |path: String| async move { heard(TscChoice::OnPath, &path, WALL).await };
    let found = on_path(path(&["old", "right"])).await;
    assert_eq!(findings(&found), [(2, 10, "ts2551")]);
    assert_eq!(on_path(folder("old")).await, Heard::Nobody);
    assert_eq!(
        on_path("tests/fakes/tsc/right:.".into()).await,
        Heard::Nobody
    );
    // Whoever names it wants it.
    let named = heard(TscChoice::At(fake("old")), "", WALL).await;
    assert_eq!(findings(&named), [(1, 1, "ts2322")]);
    let never = heard(TscChoice::Never, &path(&["right"]), WALL).await;
    assert_eq!(never, Heard::Nobody);
}

#[tokio::test]
async fn one_that_a_project_brings_along_is_not_started_unasked() {
    let project = Scratch::new();
    let program = fake("right");
    let place = |folder: &str| {
        let folder = project.path().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::copy(&program, folder.join("tsc")).unwrap();
        folder
    };
    let dependency = place("other/node_modules/.bin");
    let own = place("bin");
    let links = Scratch::new();
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
fn an_old_package_says_so_itself() {
    let package = Scratch::new();
    std::fs::create_dir(package.path().join("bin")).unwrap();
    let program = package.file("bin/tsc", "");
    assert_eq!(package_major(&program), None);
    package.file("package.json", r#"{"name":"typescript","version":"5.9.3"}"#);
    assert_eq!(package_major(&program), Some(5));
}
