//! Runs the test262 tests of replaced functions. No test that passes in the engine's own realm may
//! fail in the guest's, and only known tests may fail in both. The engine's own realm also runs
//! with airlock's patches of the engine, which must not break any test either.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "one test in several files"
)]

#[path = "test262/case.rs"]
mod case;
#[path = "test262/package.rs"]
mod package;
#[path = "test262/used.rs"]
mod used;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use case::{Case, Outcome};
use guest_differential::realm::{Realm, RealmKind};
use used::SharedRealm;

/// Folders with the tests of replaced functions, and of functions that use them.
const FOLDERS: [&str; 33] = [
    "annexB/built-ins/RegExp",
    "annexB/built-ins/String/prototype/substr",
    "annexB/built-ins/String/prototype/trimLeft",
    "annexB/built-ins/String/prototype/trimRight",
    "built-ins/Array/from",
    "built-ins/Array/prototype/shift",
    "built-ins/Array/prototype/sort",
    "built-ins/Array/prototype/splice",
    "built-ins/Array/prototype/unshift",
    "built-ins/JSON",
    "built-ins/Map",
    "built-ins/MapIteratorPrototype",
    "built-ins/Math/random",
    "built-ins/RegExp",
    "built-ins/RegExpStringIteratorPrototype",
    "built-ins/Set",
    "built-ins/SetIteratorPrototype",
    "built-ins/String/prototype/includes",
    "built-ins/String/prototype/indexOf",
    "built-ins/String/prototype/lastIndexOf",
    "built-ins/String/prototype/match",
    "built-ins/String/prototype/matchAll",
    "built-ins/String/prototype/replace",
    "built-ins/String/prototype/search",
    "built-ins/String/prototype/slice",
    "built-ins/String/prototype/split",
    "built-ins/String/prototype/substring",
    "built-ins/String/prototype/toLowerCase",
    "built-ins/String/prototype/toUpperCase",
    "built-ins/String/prototype/trim",
    "built-ins/String/prototype/trimEnd",
    "built-ins/String/prototype/trimStart",
    "built-ins/TypedArray/prototype/sort",
];

/// Tests of character properties, which are not run. They test the matcher, which is the same in
/// both realms.
const LEFT_OUT: &str = "built-ins/RegExp/property-escapes/generated";

/// Error messages where the guest intentionally refuses to compile text, which these tests do to
/// create an expression.
const REFUSED: [&str; 2] = ["a script cannot turn text into code", "but got a EvalError"];
/// Number of these tests, so that a change of the number is noticed.
const REFUSED_TESTS: usize = 37;

/// Tests that fail in both realms, one per line, because of uncorrected defects of the engine.
const KNOWN: &str = include_str!("test262/failing.txt");

const STACK_BYTES: usize = 64 * 1024 * 1024;

#[test]
fn nothing_fails_here_that_passes_in_the_engine() {
    let Some(suite) = package::unpacked() else {
        return;
    };
    let suite = suite.join("test");
    let mut paths = Vec::new();
    for folder in FOLDERS {
        case::below(&suite.join(folder), &mut paths);
    }
    let left_out = suite.join(LEFT_OUT);
    paths.retain(|path| !path.starts_with(&left_out));

    let failed = in_threads(&paths, |path, used| {
        let case = Case::read(path);
        let why = here(&case, used).err()?;
        let name = path.strip_prefix(&suite).unwrap().display().to_string();
        let is_refused = REFUSED.iter().any(|refused| why.contains(refused));
        let is_worse = !is_refused && case.run_in(RealmKind::Bare).is_ok();
        Some((name, why, is_refused, is_worse))
    });
    let refused = failed
        .iter()
        .filter(|(_, _, is_refused, _)| *is_refused)
        .count();
    let worse: Vec<_> = failed.iter().filter(|(.., is_worse)| *is_worse).collect();
    println!(
        "test262: {} tests; {} pass here, {refused} compile text to code, {} fail in the \
         bare engine too",
        paths.len(),
        paths.len() - failed.len(),
        failed.len() - refused - worse.len(),
    );
    assert!(worse.is_empty(), "{worse:#?}");
    let mut in_both: Vec<_> = failed
        .iter()
        .filter(|(.., is_refused, is_worse)| !is_refused && !is_worse)
        .map(|(name, ..)| name.as_str())
        .collect();
    in_both.sort_unstable();
    let known: Vec<_> = KNOWN.lines().collect();
    assert_eq!(in_both, known, "tests/test262/failing.txt");
    assert_eq!(refused, REFUSED_TESTS, "{failed:#?}");
}

/// Runs a test in the guest's realm. A failure after other tests in the same realm counts only if
/// the test fails in a separate realm too.
fn here(case: &Case, used: &mut Option<SharedRealm>) -> Outcome {
    let mut realm = match used.take() {
        Some(used) => used,
        None => SharedRealm::new()?,
    };
    let outcome = case.run(realm.realm());
    if outcome.is_ok() {
        if realm.is_as_it_was() {
            *used = Some(realm);
        }
        return Ok(());
    }
    case.run_in(RealmKind::Guest)
}

/// Returns the results of all paths; each thread has a separate realm.
fn in_threads<T: Send>(
    paths: &[std::path::PathBuf],
    each: impl Fn(&Path, &mut Option<SharedRealm>) -> Option<T> + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Vec::new());
    let work = || {
        let mut used = None;
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Some(one) = each(path, &mut used) {
                all.lock().unwrap().push(one);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            thread.spawn_scoped(scope, work).unwrap();
        }
    });
    all.into_inner().unwrap()
}

impl Case {
    /// Runs a test in a new realm. A panic counts as a failure.
    fn run_in(&self, which: RealmKind) -> Outcome {
        let run = || {
            let mut realm = Realm::new(which)?;
            case::offer(&mut realm);
            self.run(&mut realm)
        };
        std::panic::catch_unwind(run).unwrap_or_else(|_| Err("the engine panics".to_owned()))
    }
}
