//! The tests of test262 for what is replaced here: none fails in the guest's realm that
//! passes in the engine's own, and none fails in both but those that are known to. The engine's
//! own realm has the corrections of the engine as well, which must not break one either.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of this is one test, in several files"
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
use guest_alike::realm::{Realm, Which};
use used::Used;

/// Where the tests of what is replaced are, and of what stands on it.
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

/// Which characters have which property is the matcher's to know, and it is the same matcher.
const LEFT_OUT: &str = "built-ins/RegExp/property-escapes/generated";

/// What a failure says where the guest refuses something on purpose: turning text into code,
/// which these tests do to write down an expression.
const REFUSED: [&str; 2] = ["a script cannot turn text into code", "but got a EvalError"];
/// How many there are, so that one more is noticed.
const REFUSED_TESTS: usize = 37;

/// Those that fail in both, one a line: what the engine has wrong and is not corrected.
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
        let is_worse = !is_refused && case.run_in(Which::Bare).is_ok();
        Some((name, why, is_refused, is_worse))
    });
    let refused = failed
        .iter()
        .filter(|(_, _, is_refused, _)| *is_refused)
        .count();
    let worse: Vec<_> = failed.iter().filter(|(.., is_worse)| *is_worse).collect();
    println!(
        "test262: {} tests; {} pass here, {refused} want text to become code, {} fail in the \
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

/// In the guest's realm. What fails where other tests have been fails only if it does so in a
/// realm of its own too.
fn here(case: &Case, used: &mut Option<Used>) -> Outcome {
    let mut realm = match used.take() {
        Some(used) => used,
        None => Used::new()?,
    };
    let outcome = case.run(realm.realm());
    if outcome.is_ok() {
        if realm.is_as_it_was() {
            *used = Some(realm);
        }
        return Ok(());
    }
    case.run_in(Which::Guest)
}

/// Everything that comes of the paths, each thread with a realm of its own.
fn in_threads<T: Send>(
    paths: &[std::path::PathBuf],
    each: impl Fn(&Path, &mut Option<Used>) -> Option<T> + Sync,
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
    /// In a realm that nothing has run in before. A panic is a failure.
    fn run_in(&self, which: Which) -> Outcome {
        let run = || {
            let mut realm = Realm::new(which)?;
            case::offer(&mut realm);
            self.run(&mut realm)
        };
        std::panic::catch_unwind(run).unwrap_or_else(|_| Err("the engine panics".to_owned()))
    }
}
