//! Tests that replacements behave like the engine's own functions: scripts run here and in the bare
//! engine, and must give the same output.

mod appends;
mod collections;
mod data;
mod moving;

use std::fmt::Write;

use boa_engine::{Context, Source};

use crate::Guest;

/// Returns the result of a script of one expression, or its error.
fn run_script(context: &mut Context, script: &str) -> String {
    let wrapped = format!(
        "(() => {{ try {{ return String(JSON.stringify((() => {{ {script} }})())); }} \
         catch (e) {{ return 'threw ' + e.name; }} }})()"
    );
    match context.eval(Source::from_bytes(&wrapped)) {
        Ok(value) => value.display().to_string(),
        Err(error) => error.to_string(),
    }
}

/// Number of scripts above which a debug build, which is slow, runs only a part. The step has no
/// common factor with the lengths of the lists that the scripts combine.
const ALL: usize = 200;
const STEP: usize = if cfg!(debug_assertions) { 23 } else { 1 };

/// Stack size in bytes: the engine's parser needs more than a test's thread has.
const STACK_BYTES: usize = 64 * 1024 * 1024;

fn check_all(scripts: Vec<String>) {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let different = thread.spawn(move || differences(&scripts)).unwrap();
    let different = different.join().unwrap();
    assert!(different.is_empty(), "{different}");
}

fn differences(scripts: &[String]) -> String {
    let mut ours = Guest::new().unwrap();
    let mut plain = Context::default();
    let mut different = String::new();
    let step = if scripts.len() > ALL { STEP } else { 1 };
    for script in scripts.iter().step_by(step) {
        let (ours, plain) = (
            run_script(ours.context(), script),
            run_script(&mut plain, script),
        );
        // Results are strings. Anything else is the engine's error for an invalid script.
        if ours != plain || !plain.starts_with('"') {
            let _ = writeln!(different, "{script}\n  engine: {plain}\n  here:   {ours}");
        }
    }
    different
}

/// Returns the script with every text in place of `TEXT`, and the same for other placeholders.
fn each(scripts: &[&str], places: &[(&str, &[&str])]) -> Vec<String> {
    let mut made: Vec<String> = scripts.iter().map(|script| (*script).to_owned()).collect();
    for (place, values) in places {
        let fill = |script: &String| -> Vec<String> {
            match script.contains(place) {
                true => values
                    .iter()
                    .map(|value| script.replace(place, value))
                    .collect(),
                false => vec![script.clone()],
            }
        };
        made = made.iter().flat_map(fill).collect();
    }
    made
}

const TEXTS: &[&str] = &[
    "''",
    "'a'",
    "'abcabcabd'",
    "'a,b,,c,'",
    "'aaaaaaaaaaaaaaaaaaaaaaaaab'",
    "'één twee, één'",
    "'x€y€€z'",
    "'😀a😀😀b'",
    "'\\ud83d|\\ude00'",
    "'a\\nb\\r\\nc'",
    "'2024-05-17 and 1999-12-31'",
    "'key=value; k2=v2'",
];

#[test]
fn strings_are_searched_as_the_engine_searches() {
    let scripts = [
        "return TEXT.split(SOUGHT)",
        "return TEXT.split(SOUGHT, AT)",
        "return TEXT.indexOf(SOUGHT)",
        "return TEXT.indexOf(SOUGHT, AT)",
        "return TEXT.lastIndexOf(SOUGHT)",
        "return TEXT.lastIndexOf(SOUGHT, AT)",
        "return TEXT.includes(SOUGHT)",
        "return TEXT.includes(SOUGHT, AT)",
        "return TEXT.replace(SOUGHT, BY)",
        "return TEXT.replaceAll(SOUGHT, BY)",
    ];
    let sought = [
        "''",
        "'a'",
        "','",
        "'ab'",
        "'é'",
        "'€'",
        "'😀'",
        "'\\ud83d'",
        "'aaaaaaaaaab'",
        "undefined",
        "12",
    ];
    let at = [
        "0",
        "1",
        "2",
        "-1",
        "3.7",
        "NaN",
        "Infinity",
        "'2'",
        "null",
        "{valueOf() { return 1 }}",
    ];
    let by = [
        "''",
        "'<$&>'",
        "'$$'",
        "'$`|$\\''",
        "'$1$0$10$'",
        "'$<a>'",
        "'€'",
        "(...all) => JSON.stringify(all)",
        "() => { throw new RangeError() }",
        "() => '$&'",
        "undefined",
        "7",
    ];
    let scripts = each(
        &scripts,
        &[
            ("TEXT", TEXTS),
            ("SOUGHT", &sought),
            ("AT", &at),
            ("BY", &by),
        ],
    );
    check_all(scripts);
}

#[test]
fn whole_numbers_are_written_as_the_engine_writes() {
    let scripts = [
        "return (NUMBER).toString(RADIX)",
        "return Object(NUMBER).toString(RADIX)",
    ];
    let number = [
        "0",
        "-0",
        "1",
        "-1",
        "35",
        "-36",
        "255",
        "1e3",
        "2**31",
        "-(2**31)",
        "2**32",
        "2**53 - 1",
        "-(2**53 - 1)",
        "2**53",
        "1e21",
        "0.5",
        "-1.25",
        "NaN",
        "Infinity",
        "10n",
        "'7'",
    ];
    let radix = [
        "2",
        "3",
        "8",
        "10",
        "16",
        "36",
        "36.9",
        "1",
        "37",
        "undefined",
        "null",
        "'16'",
        "NaN",
        "-2",
    ];
    let places: [(&str, &[&str]); 2] = [("NUMBER", &number), ("RADIX", &radix)];
    check_all(each(&scripts, &places));
}

#[test]
fn texts_are_filled_as_the_engine_fills() {
    let scripts = [
        "return TEXT.repeat(COUNT)",
        "return TEXT.padStart(COUNT)",
        "return TEXT.padEnd(COUNT, BY)",
        "return TEXT.padStart(COUNT, BY)",
    ];
    let count = [
        "0",
        "3",
        "2.9",
        "-0.5",
        "-1",
        "NaN",
        "Infinity",
        "'2'",
        "null",
        "undefined",
        "2n",
        "{valueOf() { return 3 }}",
    ];
    let by = ["''", "'xy'", "undefined", "'€'", "null", "Symbol()"];
    let places: [(&str, &[&str]); 3] = [("TEXT", TEXTS), ("COUNT", &count), ("BY", &by)];
    // Padding to an infinite length is omitted: no text is that long.
    let endless = |script: &String| script.contains("pad") && script.contains("Infinity");
    let mut scripts = each(&scripts, &places);
    scripts.retain(|script| !endless(script));
    check_all(scripts);
}

#[test]
fn expressions_match_as_the_engines() {
    let scripts = [
        "const r = RX; const m = r.exec(TEXT); return [m, m && [m.index, m.input, m.groups, Object.keys(m)], r.lastIndex]",
        "const r = RX; r.lastIndex = AT; return [r.test(TEXT), r.lastIndex, r.exec(TEXT), r.lastIndex]",
        "const r = RX; return [TEXT.match(r), r.lastIndex]",
        "const r = RX; return [[...TEXT.matchAll(r)].map(m => [...m, m.index, m.groups]), r.lastIndex]",
        "const r = RX; r.lastIndex = AT; return [TEXT.replace(r, BY), r.lastIndex]",
        "return TEXT.split(RX)",
        "return TEXT.split(RX, AT)",
        "return TEXT.search(RX)",
        "const r = RX, all = []; let m; while ((m = r.exec(TEXT)) && all.length < 9) { all.push(m); if (!m[0]) r.lastIndex++; } return all",
    ];
    let expressions = [
        "/a/",
        "/a/g",
        "/a/y",
        "/a/gy",
        "/(a)(b)?/g",
        "/(?<y>\\d+)-(?<m>\\d+)/",
        "/(?<y>\\d+)-(?<m>\\d+)/g",
        "/(?:)/g",
        "/(?:)/gu",
        "/x*/g",
        "/,/",
        "/(,)/",
        "/[é€]/g",
        "/😀/g",
        "/😀/gu",
        "/^b/gm",
        "/\\r?\\n/g",
        "/./gs",
        "/./gu",
        "/\\//",
        "/B/i",
        "/a/d",
        "/(?<=a)b/g",
        "/$/g",
        "/^/g",
        "/\\b/g",
        "/(\\w+)=(\\w+)/g",
        "new RegExp('')",
        "new RegExp('/', 'g')",
        "new RegExp('\\n')",
        "/[/]/g",
    ];
    let by = [
        "'[$&|$1|$2|$10|$01]'",
        "'$<y>'",
        "'$`$\\''",
        "(...all) => JSON.stringify(all)",
        "''",
    ];
    let at = ["0", "2", "-1", "99", "'1'", "undefined"];
    let scripts = each(
        &scripts,
        &[
            ("TEXT", TEXTS),
            ("RX", &expressions),
            ("BY", &by),
            ("AT", &at),
        ],
    );
    check_all(scripts);
}

#[test]
fn what_a_script_has_changed_is_seen() {
    let watch = |change: &str| {
        [
            "'a1b2'.match(r)", "'a1b2'.replace(r, '<$&>')", "'a1b2'.split(r)", "r.test('a1b2')",
            "[...'a1b2'.matchAll(r)]", "'a1b2'.search(r)", "r.exec('a1b2')",
        ]
        .map(|use_| format!("const log = []; {UNDO} try {{ {change}; return [{use_}, log, r.lastIndex] }} finally {{ undo() }}"))
    };
    let changes = [
        "let r = /\\d/g; r.exec = function (s) { log.push(s); return null }",
        "let r = /\\d/; RegExp.prototype.exec = function (s) { log.push(s); return null }",
        "let r = /\\d/; RegExp.prototype.exec = undefined",
        "let r = /\\d/g; Object.defineProperty(r, 'flags', { get() { log.push('flags'); return 'g' } })",
        "let r = /\\d/g; Object.defineProperty(RegExp.prototype, 'global', { configurable: true, get() { log.push('global'); return false } })",
        "let r = /\\d/g; Object.defineProperty(RegExp.prototype, 'flags', { configurable: true, get() { log.push('flags'); return '' } })",
        "let r = /\\d/g; Object.freeze(r)",
        "let r = /\\d/; Object.freeze(r)",
        "class R extends RegExp { exec(s) { log.push(s); return super.exec(s) } } let r = new R('\\\\d', 'g')",
        "class R extends RegExp { static get [Symbol.species]() { log.push('species'); return RegExp } } let r = new R('\\\\d', 'g')",
        "let r = /\\d/; r.constructor = { [Symbol.species]: function (...a) { log.push('made'); return new RegExp(...a) } }",
        "let r = /\\d/; Object.defineProperty(RegExp, Symbol.species, { configurable: true, get() { log.push('species'); return RegExp } })",
        "let r = /\\d/g; r.lastIndex = { valueOf() { log.push('last'); return 2 } }",
        "let r = /\\d/g; Object.setPrototypeOf(r, Object.create(RegExp.prototype, { exec: { value(s) { log.push(s); return null } } }))",
        "let r = /x/; r.exec(''); r.compile('\\\\d', 'g')",
        "let r = new Proxy(/\\d/g, { get(t, k) { log.push(String(k)); const v = t[k]; return typeof v === 'function' ? v.bind(t) : v } })",
        "let r = { [Symbol.match]: () => 'm', [Symbol.replace]: () => 'r', [Symbol.split]: () => 's' }",
    ];
    let scripts: Vec<String> = changes.iter().flat_map(|change| watch(change)).collect();
    check_all(scripts);
}

/// Code that undoes what a script changes.
const UNDO: &str = "const kept = Object.getOwnPropertyDescriptors(RegExp.prototype), \
    species = Object.getOwnPropertyDescriptor(RegExp, Symbol.species); \
    const undo = () => { Object.defineProperties(RegExp.prototype, kept); \
    Object.defineProperty(RegExp, Symbol.species, species); };";

#[test]
fn replaced_functions_look_like_the_engines() {
    let functions = [
        "String.prototype.split",
        "String.prototype.indexOf",
        "String.prototype.lastIndexOf",
        "String.prototype.includes",
        "String.prototype.replace",
        "String.prototype.replaceAll",
        "String.prototype.repeat",
        "String.prototype.padStart",
        "String.prototype.padEnd",
        "String.prototype.slice",
        "String.prototype.substring",
        "String.prototype.substr",
        "String.prototype.trim",
        "String.prototype.trimStart",
        "String.prototype.trimEnd",
        "String.prototype.trimLeft",
        "String.prototype.trimRight",
        "Array.prototype.unshift",
        "Map.prototype.delete",
        "Map.prototype.clear",
        "Map.prototype.keys",
        "Map.prototype.values",
        "Map.prototype.entries",
        "Map.prototype.forEach",
        "Map.prototype[Symbol.iterator]",
        "Set.prototype.delete",
        "Set.prototype.clear",
        "Set.prototype.keys",
        "Set.prototype.values",
        "Set.prototype.entries",
        "Set.prototype.forEach",
        "Set.prototype[Symbol.iterator]",
        "Object.getPrototypeOf(new Map().keys()).next",
        "Object.getPrototypeOf(new Set().keys()).next",
        "Array.prototype.splice",
        "Function.prototype.toString",
        "RegExp.prototype.exec",
        "RegExp.prototype.test",
        "RegExp.prototype.compile",
        "RegExp.prototype[Symbol.match]",
        "RegExp.prototype[Symbol.replace]",
        "RegExp.prototype[Symbol.split]",
        "Array.prototype.sort",
        "Array.prototype.toSorted",
        "JSON.parse",
        "JSON.stringify",
        "Math.random",
        "Number.prototype.toString",
    ];
    let scripts = [
        "const f = F; return [f.name, f.length, Object.getOwnPropertyNames(f).sort(), 'prototype' in f]",
        "return F.call(null)",
        "return F.call(undefined, 'a')",
        "return F.call(5, 'a')",
        "new (F)()",
    ];
    let mut scripts = each(&scripts, &[("F", &functions)]);
    // Random results differ from run to run.
    scripts
        .retain(|script| !(script.contains("random.call") || script.contains("JSON.parse.call(5")));
    check_all(scripts);
}
