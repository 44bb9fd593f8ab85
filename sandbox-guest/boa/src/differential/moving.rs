//! Compares `unshift`, `splice` and parts of texts with the engine's own.

use super::{ALL, check_all, each};

/// Arrays of every kind, and array-like objects.
const LISTS: &[&str] = &[
    "let a = []",
    "let a = [1]",
    "let a = [1, 2, 3, 4, 5, 6, 7]",
    "let a = [1.5, 2, -0, NaN]",
    "let a = ['a', {b: 1}, [2], null, undefined]",
    "let a = [1, , 3]",
    "let a = [1, 2, 3]; a.length = 6",
    "let a = Object.freeze([1, 2, 3])",
    "let a = Object.seal([1, 2, 3])",
    "let a = Object.preventExtensions([1, 2, 3])",
    "let a = Object.preventExtensions([])",
    "let a = Object.defineProperty([1, 2, 3], 'length', { writable: false })",
    "let a = Object.defineProperty([1, 2, 3], 1, { get() { log.push('get'); return 9 }, set(v) { log.push(v) }, configurable: true })",
    "let a = Object.defineProperty([1, 2, 3], 1, { value: 5, writable: false })",
    "let a = Object.assign([1, 2, 3], { more: 4 })",
    "let a = { length: 2, 0: 'x', 1: 'y' }",
    "let a = { length: 2 ** 53 - 1 }",
    "let a = 'text'",
    "let a = (function () { return arguments })(1, 2, 3)",
    "let a = new Proxy([1, 2, 3], { get(t, k) { log.push('get ' + String(k)); return t[k] }, set(t, k, v) { log.push('set ' + String(k)); t[k] = v; return true }, has(t, k) { log.push('has ' + String(k)); return k in t }, deleteProperty(t, k) { log.push('delete ' + k); return delete t[k] } })",
    "class More extends Array { more() { return this.length } }; let a = More.from([1, 2, 3])",
    "class Plain extends Array { static get [Symbol.species]() { log.push('species'); return Array } }; let a = Plain.from([1, 2, 3])",
    "let a = [1, 2, 3]; a.constructor = { [Symbol.species]: function (n) { log.push(n); this.made = 1 } }",
    "let a = [1, 2, 3]; a.constructor = undefined",
    "let a = [1, 2, 3]; Object.setPrototypeOf(a, null)",
    "let a = [1, 2, 3]; Object.setPrototypeOf(a, Object.create(Array.prototype, { 4: { get() { return 'above' }, set(v) { log.push('above ' + v) } } }))",
    "let a = [1, 2, 3]; Object.setPrototypeOf(a, new Proxy(Array.prototype, { set(t, k, v, r) { log.push('above ' + String(k)); return Reflect.set(t, k, v, r) } }))",
    "let a = [1, 2, 3]; Object.defineProperty(Array.prototype, 4, { configurable: true, set(v) { log.push('array ' + v) } })",
    "let a = [1, 2, 3]; Object.prototype[3] = 'object'",
    "let a = [1, 2, 3]; Array.prototype.constructor = { [Symbol.species]: function (n) { log.push('made ' + n) } }",
    "let a = [1, 2, 3]; Object.defineProperty(Array, Symbol.species, { configurable: true, get() { log.push('asked'); return undefined } })",
];

/// Reports the result of a script for a list, and undoes the script's global changes.
const FRAME: &str = "'use strict'; const log = [], of = Array.prototype, kept = of.constructor, \
    species = Object.getOwnPropertyDescriptor(Array, Symbol.species); LIST; let ends; \
    try { try { ends = USE } catch (e) { ends = 'threw ' + e.name } \
    const all = []; for (const k of Reflect.ownKeys(Object(a))) { const d = Object.getOwnPropertyDescriptor(a, k); \
      all.push(String(k), d.writable, d.enumerable, d.configurable, 'value' in d ? d.value : 'accessor') } \
    return [ends, ends?.constructor?.name, Array.isArray(ends) && ends.length, all, log] } \
    finally { delete of[4]; delete Object.prototype[3]; of.constructor = kept; \
    Object.defineProperty(Array, Symbol.species, species) }";

#[test]
fn items_move_as_they_do_in_the_engine() {
    let uses = [
        "of.unshift.call(a)",
        "of.unshift.call(a, 'x')",
        "of.unshift.call(a, 1, 2.5, 3)",
        "of.splice.call(a)",
        "of.splice.call(a, 1)",
        "of.splice.call(a, undefined)",
        "of.splice.call(a, 0, 1)",
        "of.splice.call(a, 1, undefined, 'x')",
        "of.splice.call(a, 1, 1, 'x')",
        "of.splice.call(a, 1, 0, 'x', 'y')",
        "of.splice.call(a, 0, 2, 'x')",
        "of.splice.call(a, -2, 1)",
        "of.splice.call(a, -1, Infinity, 7, 8, 9)",
        "of.splice.call(a, 1, 2)",
        "of.splice.call(a, 99, 1, 'x')",
        "of.splice.call(a, 1.7, '1', 0.5)",
        "of.splice.call(a, { valueOf() { log.push('from'); return 1 } }, { valueOf() { log.push('count'); Reflect.set(a, 'length', 1); return 1 } }, 'z')",
        "of.splice.call(a, NaN, -3, 'n')",
        "of.splice.call(a, 1n)",
    ];
    let mut scripts = each(&[FRAME], &[("LIST", LISTS), ("USE", &uses)]);
    // The engine would need far too long for this many positions.
    scripts.retain(|script| !(script.contains("2 ** 53") && !script.contains("splice.call(a, 99")));
    // All scripts run, even in a debug build.
    for some in scripts.chunks(ALL) {
        check_all(some.to_vec());
    }
}

#[test]
fn many_moves_one_after_the_other_leave_what_they_do_in_the_engine() {
    let items = ["i", "i + 0.5", "'t' + i", "i % 3 ? i : 'x'", "{ i }"];
    check_all(each(
        &["const a = []; let chance = 7; const out = []; \
           for (let i = 0; i < 120; i++) { chance = chance * 16807 % 2147483647; const n = chance % 7; \
             if (n === 0) a.unshift(ITEM); else if (n === 1) a.unshift(ITEM, ITEM, ITEM); \
             else if (n === 2) out.push(a.splice(chance % (a.length + 1), chance % 4)); \
             else if (n === 3) out.push(a.splice(chance % (a.length + 1), chance % 3, ITEM, ITEM)); \
             else if (n === 4) a.push(ITEM); else if (n === 5) out.push(a.shift()); else a.splice(-(chance % 5), 0, ITEM) } \
           return [a, a.length, out]"],
        &[("ITEM", &items)],
    ));
}

#[test]
fn parts_of_texts_are_the_engines() {
    let texts = [
        "''",
        "'abcdef'",
        "' \\n\\u00a0x y\\u2003\\ufeff\\t'",
        "' €\\ud83d '",
        "'abcde '.repeat(300)",
        "' €uro '.repeat(300)",
        "('  ' + 'wide€'.repeat(300)).slice(1)",
        "new String(' object ')",
        "12345",
        "null",
        "{ toString() { return ' sly ' } }",
    ];
    let places = [
        "",
        "0",
        "1",
        "-3",
        "2, 4",
        "4, 2",
        "-4, -1",
        "1, undefined",
        "undefined, 3",
        "NaN, 2",
        "1.9, 700.2",
        "0, Infinity",
        "-Infinity, 5",
        "'2'",
        "2, '3'",
        "{ valueOf() { return 1 } }",
        "1n",
        "600",
        "3, -600",
        "Symbol.iterator",
    ];
    let uses = ["slice", "substring", "substr"];
    check_all(each(
        &["return String.prototype.NAME.call(TEXT, PLACES)"],
        &[("NAME", &uses), ("TEXT", &texts), ("PLACES", &places)],
    ));
    let uses = ["trim", "trimStart", "trimEnd", "trimLeft", "trimRight"];
    check_all(each(
        &["return String.prototype.NAME.call(TEXT)"],
        &[("NAME", &uses), ("TEXT", &texts)],
    ));
}
