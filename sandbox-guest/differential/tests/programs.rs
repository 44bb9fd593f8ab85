//! Runs programs in both realms: programs whose results once differed, and new ones. `cargo xtask
//! differential --minutes N` runs as many as there is time for.

#![expect(clippy::unwrap_used, reason = "a test and its helpers")]

use std::fs;
use std::path::Path;

use guest_differential::compare::{Difference, Pair};
use guest_differential::programs::Program;

/// The first seed; long runs start with other seeds.
const FIRST: u64 = 1;
const PROGRAMS: u64 = 400;

/// Stack size in bytes: the engine's parser needs more than a test's thread has.
const STACK_BYTES: usize = 256 * 1024 * 1024;

#[test]
fn made_up_programs_show_the_same() {
    let differences = on_a_large_stack(|pair| {
        let programs = (FIRST..FIRST + PROGRAMS).map(Program::from_seed);
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
    // Only the guest has timers, and only the guest refuses to compile text.
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
    // The engine's own sort panics on a contradictory comparison; the panic is caught.
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
