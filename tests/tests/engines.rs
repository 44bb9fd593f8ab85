//! Both engines, held against each other: made-up scripts, and those that once told them
//! apart. `cargo xtask engines --minutes N` goes through as many as there is time for.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use airlock::sandbox::DIFFERENCES;
use tests::engine::carries_both;
use tests::engines::{Compared, Difference, Made, Pair};

/// Begins where no long run begins.
const FIRST: u64 = 1;
const SCRIPTS: u64 = 400;

/// Both engines; or `None` after a `SKIP:` line where this build carries only one.
fn pair() -> Option<Pair> {
    if !carries_both() {
        eprintln!(
            "SKIP: this build carries one engine; `cargo xtask engine quickjs` adds the other"
        );
        return None;
    }
    Some(Pair::open().unwrap())
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("engines")
}

fn told(differences: &[Difference]) -> String {
    differences.iter().map(Difference::to_string).collect()
}

fn different(pair: &Pair, made: &Made) -> Option<Difference> {
    match pair.compare(made) {
        Compared::Different(difference) => Some(*difference),
        Compared::Same | Compared::Open => None,
    }
}

#[test]
fn made_up_scripts_show_the_same() {
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
        match pair.compare(&Made::of(seed)) {
            Compared::Same => compared += 1,
            Compared::Open => {}
            Compared::Different(difference) => differences.push(pair.shorten(*difference)),
        }
    }
    assert!(differences.is_empty(), "{}", told(&differences));
    // What is left out is the exception.
    assert!(compared > SCRIPTS * 4 / 5, "{compared} were compared");
}

#[test]
fn scripts_that_once_told_them_apart_do_so_no_more() {
    let Some(pair) = pair() else { return };
    let mut files: Vec<PathBuf> = fs::read_dir(folder().join("found"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        match pair.compare(&Made::read(&text)) {
            Compared::Same => {}
            Compared::Open => panic!("{} is not compared", file.display()),
            Compared::Different(difference) => panic!("{}\n{difference}", file.display()),
        }
    }
}

/// A name that only Boa has, so that it stands for a fault that nobody knows.
#[test]
fn what_differs_is_noticed_and_shortened() {
    let Some(pair) = pair() else { return };
    let text = "const unused = [1, 2, 3];\nlog(unused.map(x => x * 2));\nlog([typeof globalThis['Tempo' + 'ral'], 5]);\nawait shop.find({ query: 'a' });";
    let mut made = Made::read(text);
    made.statements = text.lines().map(str::to_owned).collect();
    let found = different(&pair, &made).expect("they differ");
    let short = pair.shorten(found);
    let statements = short.made.statements.join("\n");
    assert!(statements.contains("'Tempo'+'ral'"), "{statements}");
    assert!(!statements.contains("shop"), "{statements}");
    assert!(!statements.contains("unused"), "{statements}");
}

#[test]
fn a_seed_makes_one_script_and_all_kinds_are_made() {
    let scripts: Vec<String> = (0..600).map(|seed| Made::of(seed).script()).collect();
    for (seed, script) in (0..600).zip(&scripts) {
        assert_eq!(*script, Made::of(seed).script());
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
            "no script says {kind}"
        );
    }
    let distinct: BTreeSet<&String> = scripts.iter().collect();
    assert!(distinct.len() > 580);
}

/// The documents have the same list, in the same words.
#[test]
fn every_known_difference_stands_in_the_documents() {
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
