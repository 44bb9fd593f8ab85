//! Compares both engines on generated scripts, and on the scripts that once differed. `cargo xtask
//! engines --minutes N` compares more generated scripts.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use airlock::sandbox::DIFFERENCES;
use tests::engine::carries_both;
use tests::engines::{Comparison, Difference, GeneratedScript, Pair};

/// The first seed. Long runs begin with other seeds.
const FIRST: u64 = 1;
const SCRIPTS: u64 = 400;

/// Returns both engines, or `None` after a `SKIP:` line if this build contains only one.
fn pair() -> Option<Pair> {
    if !carries_both() {
        eprintln!(
            "SKIP: this build contains one engine; `cargo xtask engine quickjs` adds the other"
        );
        return None;
    }
    Some(Pair::open().unwrap())
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("engines")
}

fn report(differences: &[Difference]) -> String {
    differences.iter().map(Difference::to_string).collect()
}

fn different(pair: &Pair, made: &GeneratedScript) -> Option<Difference> {
    match pair.compare(made) {
        Comparison::Different(difference) => Some(*difference),
        Comparison::Same | Comparison::Open => None,
    }
}

#[test]
fn generated_scripts_behave_the_same() {
    let Some(pair) = pair() else { return };
    let seeds = fs::read_to_string(folder().join("seeds")).unwrap();
    let kept: Vec<u64> = seeds
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.parse().unwrap())
        .collect();
    assert!(!kept.is_empty());
    let (mut compared, mut differences) = (0, Vec::new());
    for seed in kept.into_iter().chain(FIRST..FIRST + SCRIPTS) {
        match pair.compare(&GeneratedScript::from_seed(seed)) {
            Comparison::Same => compared += 1,
            Comparison::Open => {}
            Comparison::Different(difference) => differences.push(pair.shorten(*difference)),
        }
    }
    assert!(differences.is_empty(), "{}", report(&differences));
    // Scripts that are not compared must be the exception.
    assert!(compared > SCRIPTS * 4 / 5, "{compared} were compared");
}

#[test]
fn former_differences_are_gone() {
    let Some(pair) = pair() else { return };
    let mut files: Vec<PathBuf> = fs::read_dir(folder().join("found"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        match pair.compare(&GeneratedScript::read(&text)) {
            Comparison::Same => {}
            Comparison::Open => panic!("{} is not compared", file.display()),
            Comparison::Different(difference) => panic!("{}\n{difference}", file.display()),
        }
    }
}

/// Uses a global that only Boa has, as an example of an unknown difference.
#[test]
fn difference_is_detected_and_shrunk() {
    let Some(pair) = pair() else { return };
    let text = "const unused = [1, 2, 3];\nlog(unused.map(x => x * 2));\nlog([typeof globalThis['Tempo' + 'ral'], 5]);\nawait shop.find({ query: 'a' });";
    let mut made = GeneratedScript::read(text);
    made.statements = text.lines().map(str::to_owned).collect();
    let found = different(&pair, &made).expect("a difference");
    let short = pair.shorten(found);
    let statements = short.made.statements.join("\n");
    assert!(statements.contains("'Tempo'+'ral'"), "{statements}");
    assert!(!statements.contains("shop"), "{statements}");
    assert!(!statements.contains("unused"), "{statements}");
}

#[test]
fn seed_is_deterministic_and_all_productions_occur() {
    let scripts: Vec<String> = (0..600)
        .map(|seed| GeneratedScript::from_seed(seed).script())
        .collect();
    for (seed, script) in (0..600).zip(&scripts) {
        assert_eq!(*script, GeneratedScript::from_seed(seed).script());
    }
    let all = scripts.concat();
    for kind in [
        "await shop.",
        "files.slow",
        "for await",
        "function*",
        "class ",
        "new Proxy",
        "switch (",
        "finally",
        "JSON.parse",
        "new URL(",
        "structuredClone",
        "setTimeout",
        "console.table",
        "Promise.race",
        "matchAll",
        ".toSorted(",
        "crypto.",
        "#p",
        "continue",
        "label",
    ] {
        assert!(
            kind == "label" || all.contains(kind),
            "no script contains {kind}"
        );
    }
    let distinct: BTreeSet<&String> = scripts.iter().collect();
    assert!(distinct.len() > 580);
}

/// The design document contains the list of differences, word for word.
#[test]
fn known_differences_are_documented() {
    let document =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/design/0022-a-second-engine.md");
    let document = fs::read_to_string(document).unwrap();
    for difference in DIFFERENCES {
        let row = format!(
            "| {} | {} | {} | {} |",
            difference.name, difference.boa, difference.quickjs, difference.why
        );
        assert!(
            document.contains(&row),
            "docs/design/0022 lacks the row\n{row}"
        );
    }
}
