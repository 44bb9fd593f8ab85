//! Programs in both realms: those that once told them apart, and some that nobody has
//! looked at yet. `cargo xtask alike --minutes N` goes through as many as there is time for.

#![expect(clippy::unwrap_used, reason = "a test, and what it uses")]

use std::fs;
use std::path::Path;

use guest_alike::compare::{Difference, Pair};
use guest_alike::programs::Program;

/// Begins where no long run begins.
const FIRST: u64 = 1;
const PROGRAMS: u64 = 400;

/// The engine's parser takes more stack than a test's thread has.
const STACK_BYTES: usize = 256 * 1024 * 1024;

#[test]
fn made_up_programs_show_the_same() {
    let differences = on_a_large_stack(|pair| {
        let programs = (FIRST..FIRST + PROGRAMS).map(Program::of);
        let mut compare = |program| {
            let difference = pair.compare(&program).unwrap()?;
            Some(pair.shorten(difference).unwrap())
        };
        programs.filter_map(&mut compare).collect()
    });
    assert!(differences.is_empty(), "{}", told(&differences));
}

#[test]
fn programs_that_once_told_them_apart_do_so_no_more() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/found");
    let files = fs::read_dir(folder).unwrap();
    let programs: Vec<Program> = files
        .map(|file| Program::read(&fs::read_to_string(file.unwrap().path()).unwrap()))
        .collect();
    assert!(!programs.is_empty());
    let differences = on_a_large_stack(move |pair| {
        let programs = programs.iter();
        programs
            .filter_map(|program| pair.compare(program).unwrap())
            .collect()
    });
    assert!(differences.is_empty(), "{}", told(&differences));
}

#[test]
fn what_differs_is_noticed_and_shortened() {
    // Only the guest has timers, and only it refuses to compile a text.
    let statements = [
        "let a = 1;",
        "attempt(() => a + 1);",
        "log(typeof setTimeout);",
    ];
    let program = Program {
        statements: statements.map(str::to_owned).into(),
        changes_realm: false,
        is_script: false,
    };
    let differences = on_a_large_stack(move |pair| {
        let found = pair.compare(&program).unwrap().unwrap();
        vec![pair.shorten(found).unwrap()]
    });
    let [difference] = differences.as_slice() else {
        panic!("{differences:?}")
    };
    assert_eq!(difference.program.statements, ["log(typeof setTimeout);"]);
    assert_eq!(difference.bare, "'undefined'");
    assert_eq!(difference.guest, "'function'");
}

fn on_a_large_stack(
    work: impl FnOnce(&mut Pair) -> Vec<Difference> + Send + 'static,
) -> Vec<Difference> {
    // Of a comparison that contradicts itself the engine's own sort panics, and is caught.
    std::panic::set_hook(Box::new(|why| {
        let why = why.to_string();
        if !why.contains("total order") {
            eprintln!("{why}");
        }
    }));
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let thread = thread.spawn(|| work(&mut Pair::default())).unwrap();
    thread.join().unwrap()
}

fn told(differences: &[Difference]) -> String {
    differences.iter().map(Difference::to_string).collect()
}
