//! Tests written against the specification, for features that are newer than the published
//! conformance suite. Each file names its sections.

#![expect(clippy::unwrap_used, reason = "a test and its helpers")]

use std::fs;
use std::path::Path;

use boa_engine::Source;
use guest_differential::realm::{Realm, RealmKind};

/// Stack size in bytes: the engine's parser needs more than a test's thread has.
const STACK_BYTES: usize = 256 * 1024 * 1024;

/// `same` compares the contents of lists and records; `throws` requires the exact class.
const WORDS: &str = "
    globalThis.failures = [];
    let checks = 0;
    const kind = value => value === null || typeof value !== 'object' ? '' : Array.isArray(value) ? 'list' : 'record';
    const alike = (a, b) => {
        if (Object.is(a, b)) return true;
        if (!kind(a) || kind(a) !== kind(b)) return false;
        const [of_a, of_b] = [Object.keys(a), Object.keys(b)];
        return a.length === b.length && of_a.length === of_b.length
            && of_a.every((key, at) => key === of_b[at] && alike(a[key], b[key]));
    };
    const tell = value => { try { return typeof value + ' ' + String(JSON.stringify(value)) } catch { return typeof value } };
    globalThis.same = (value, expected) => {
        checks += 1;
        if (!alike(value, expected)) failures.push('check ' + checks + ': ' + tell(value) + ' where ' + tell(expected) + ' is right');
    };
    globalThis.throws = (error, run) => {
        checks += 1;
        let ended = 'nothing';
        try { run() } catch (thrown) { ended = thrown?.constructor === error ? '' : String(thrown) }
        if (ended) failures.push('check ' + checks + ': ' + ended + ' where a ' + error.name + ' is right');
    };
    globalThis.told = () => checks + ' checks\\n' + failures.join('\\n');
";

#[test]
fn what_is_younger_than_the_suite_is_as_specified() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/younger");
    let mut wrong = Vec::new();
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let told = thread
            .spawn(move || told_by(&text))
            .unwrap()
            .join()
            .unwrap();
        let (checks, failures) = told.split_once('\n').unwrap_or((&told, ""));
        println!("{}: {checks}", path.display());
        if !failures.is_empty() || !checks.ends_with(" checks") || checks.starts_with("0 ") {
            wrong.push(format!("{}\n{told}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn told_by(text: &str) -> String {
    let mut realm = Realm::new(RealmKind::Guest).unwrap();
    let context = realm.context();
    context.strict(true);
    for script in [WORDS, text, "told()"] {
        match context.eval(Source::from_bytes(script)) {
            Ok(told) if script == "told()" => {
                return told.as_string().unwrap().to_std_string_escaped();
            }
            Ok(_) => {}
            Err(error) => return format!("threw {error}"),
        }
    }
    "the script printed nothing".to_owned()
}
