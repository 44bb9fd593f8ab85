//! Scripts in the form that they are given and as they were written.

use sandbox_protocol::{GuestLimits, ScriptError, Start, Step, StepState};

use super::changed;
use crate::Guest;

/// The engine's parser takes more stack than a test's thread has.
const STACK_BYTES: usize = 64 * 1024 * 1024;

fn start(script: &str) -> Start {
    Start {
        script: script.to_owned(),
        script_name: "script.js".to_owned(),
        stubs: Vec::new(),
        input: Vec::new(),
        seed: 1,
        now_ms: 0,
        limits: GuestLimits {
            console_bytes_max: 1_000_000,
            console_flood_bytes_max: 1_000_000,
            args_bytes_max: 1_000_000,
            value_bytes_max: 10_000_000,
            json_depth_max: 128,
            recursion_max: 200,
        },
    }
}

/// What both forms of a script come to: changed, and as it was written.
fn both(script: &'static str) -> [Step; 2] {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let run = move || {
        [false, true].map(|as_written| {
            let mut guest = Guest::new().unwrap();
            guest.takes_scripts_as_written(as_written);
            guest.start(start(script))
        })
    };
    thread.spawn(run).unwrap().join().unwrap()
}

fn end(step: &Step) -> Result<String, ScriptError> {
    match &step.state {
        StepState::Done { value } => Ok(String::from_utf8_lossy(value).into_owned()),
        StepState::Failed(error) => Err(error.clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn appending_comes_to_what_the_engine_comes_to() {
    for script in [
        "let s = ''; for (let i = 0; i < 3000; i++) s += i; return s",
        "let s = ''; const kept = []; for (let i = 0; i < 3000; i++) { s += 'ab'; if (i % 500 === 0) kept.push(s); } return [s, kept]",
        "let s = 'x'.repeat(2000); const t = s; let u = s; s += 'a'; u += 'b'; return [s, t, u, s === u, s.slice(1990), u.slice(1990)]",
        "let s = 'x'.repeat(2000); s += 'a'; let t = s; s += 'b'; t += 'c'; t += 'd'; s += 'e'; return [s.slice(1998), t.slice(1998)]",
        "let s = 'x'.repeat(2000); s += 'é'; s += '€'; s += 'ü'; s += '😀'; s += s; return [s, s.length]",
        "let s = ''; for (let i = 0; i < 1500; i++) { s += '€'; s += 'a'; } return s",
        "let s = ''; for (let i = 0; i < 12; i++) { s += s || 'ab'; } return s.length + s.slice(-3)",
        "let s = 'a'; let t = 'b'; s += t += 'c'; return [s, t]",
        "let s = 'a'; s += s += s; return s",
        "let s = 'a'; const v = (s += 'b'); return [v, s]",
        "let s = ''; s += null; s += undefined; s += true; s += 1.5; s += -0; s += NaN; s += 10n; const o = {}; const l = [1, [2]]; s += l; s += o; return s",
        "let s = ''; const o = { valueOf() { return 7 }, toString() { return 'no' } }; s += o; return s",
        "let s = ''; const log = []; s += (log.push('right'), { toString() { log.push('text'); return 'x' } }); return [s, log]",
        "let s = ''; const f = () => { s = 'changed'; return '!' }; s += f(); return s",
        "let s = ''; s += ((a) => a + 'z')('y'); s += `t${1 + 1}`; s += 'q' ? 'yes' : 'no'; return s",
        "let s = 5; s = ''; s = 3; s += 4; return s",
        "let s = ''; s = { valueOf: () => 1 }; s += 2; return s",
        "let s = ''; s += await Promise.resolve('later'); return s",
        "let s = ''; const f = async () => { s += await 'in'; }; await f(); s = 'x'; s += (await f(), 'y'); return s",
        "function* g() { let s = ''; s += yield 1; return s } const it = g(); it.next(); return it.next('sent').value",
        "let s = ''; s /* here */ += /* there */ 'a' // end\n; s\n+=\n'b'\nreturn s",
        "let out = ''\nfor (const c of 'abc') out += c\nout += 'd'\nreturn out",
        "const f = function () { let s = ''; s += 'x' + 1; return s }; return [String(f), f.toString(), f()]",
        "class C { m(a) { let s = ''; s += a; s += `${a}`; return s } } return [String(C), C.prototype.m + '', new C().m('p')]",
        "let airlock_append = 'a'; airlock_append += 'b'; return airlock_append",
        "const o = { s: 'a' }; o.s += 'b'; let [t] = ['c']; t += 'd'; return [o, t]",
        "let s = ''; { let s = 1; s += 1; } s += 'x'; return s",
        "let s = ''; return [arguments.length, (s += 'a')]",
        "let s = '', i = 0; while (true) { s += 'ab'; if (++i > 600) break } return s",
        "(async () => { let s = ''; s += 'a'; return s })()",
        "async function main(input) { let s = ''; s += input; return s }",
        "let s = ''; if (true) s += 'a'; else s += 'b'; return s",
        "let s = ''; const add = (x) => s += x; add('p'); add(1); return s",
        "let s = ''; const add = (x) => (s += x, s.length); return add('pq')",
        "let s = ''; label: for (;;) { s += 'a'; break label } return s",
        "'use strict'; let s = ''; s += 'a'; return s",
        "let s = ''; s += -1; s += !0; s += typeof s; s += 1 + 2; s += 'a' + 1 + 2; return s",
        "let s = ''; s += /a/.source; s += [1, 2].map((x) => x * 2); s += new Date(0).getTime(); return s",
    ] {
        let [changed, as_written] = both(script);
        assert!(super::changed(script).is_some(), "{script}");
        assert_eq!(end(&changed), end(&as_written), "{script}");
        assert!(end(&changed).is_ok(), "{script}: {:?}", changed.state);
    }
}

#[test]
fn what_fails_fails_in_the_same_place_with_the_same_words() {
    for script in [
        "let s = '';\ns += 'a'; s += 'b'; null.x;",
        "let s = '';\ns += 'a'; s += f('b');",
        "let s = '';\ns += 'é'; s += 'a' + g(1);\nfunction g() { throw new Error('in g') }",
        "let s = ''; const o = { toString() { throw new RangeError('no text') } };\ns += o;",
        "let s = '';\ns += 'x'; s += (() => { s += 'y'; throw new TypeError('t') })();",
        "let s = '';\nfor (const x of [1]) { s += x; s += `a\n${h(x)} b`; }\nfunction h() { throw new Error('in h') }",
        "const s = '';\ns += 'a';",
        "let s = '';\ns += Symbol();",
        "s += 'a'; let s = '';",
        "let s = ''; s += 'a'\nawait Promise.reject(new Error('later'))",
        "let s = ''; s += 'a'; s +=",
        "let s = ''; s += 'a'; let s = 'b';",
        "let s = ''; s += 'a' }",
    ] {
        let [changed, as_written] = both(script);
        let (mut changed, mut as_written) =
            (end(&changed).unwrap_err(), end(&as_written).unwrap_err());
        // A place where the engine knows none is no worse.
        if as_written.line == 0 {
            (changed.line, changed.column) = (0, 0);
            as_written.stack.clear();
            changed.stack.clear();
        }
        assert_eq!(changed, as_written, "{script}");
    }
}

#[test]
fn only_what_holds_a_text_is_changed() {
    for script in [
        "let n = 0; n += 1; return n",
        "let total = 0; for (const row of rows) total += row.cents; return total",
        "return 'a += b'",
        "let s = ''; s = s + 'a'; return s",
        "export default async () => { let s = ''; s += 'a'; return s }",
    ] {
        assert!(changed(script).is_none(), "{script}");
    }
    let made = changed("let s = ''; s += 'a' /* airlock_append */; return s").unwrap();
    assert_eq!(made.names(), ["airlock_append_", "airlock_depth"]);
    let expected =
        "let s = ''; s =airlock_append_(s, 'a'/*airlock_append_*/) /* airlock_append */; return s";
    assert_eq!(made.text, expected);
}

#[test]
fn columns_are_counted_back() {
    let made = changed("let s = '';\ns += 'a'; f(s); s += 'é'; g(s)").unwrap();
    let line = made.text.lines().nth(1).unwrap();
    for (word, column) in [("f(s)", 11), ("g(s)", 27), ("s =", 1)] {
        let at = line.find(word).unwrap();
        let now = u32::try_from(line[..at].chars().count() + 1).unwrap();
        assert_eq!(made.shifts.column(2, now), column, "{word}");
    }
    assert_eq!(made.shifts.column(1, 5), 5);
}

#[test]
fn calls_that_go_too_deep_are_an_error_that_can_be_caught() {
    for (script, expected) in [
        (
            "function f() { return 1 + f() } try { f() } catch (e) { return [e.name, e instanceof RangeError, e.message] }",
            r#"["RangeError",true,"too many calls within each other"]"#,
        ),
        (
            "let depth = 0; const f = () => { depth++; f(); }; try { f() } catch {} return depth > 150",
            "true",
        ),
        (
            "const even = function (n) { return odd(n + 1) }, odd = (n) => { return even(n + 1) }; try { even(0) } catch (e) { return e.name }",
            "\"RangeError\"",
        ),
        (
            "class Node { walk() { return this.walk() } } try { new Node().walk() } catch (e) { return e.name }",
            "\"RangeError\"",
        ),
        (
            "class A { constructor() { new A() } } try { new A() } catch (e) { return e.name }",
            "\"RangeError\"",
        ),
        (
            "const o = { m() { return o.m() } }; try { o.m() } catch (e) { return e.name }",
            "\"RangeError\"",
        ),
        (
            "const log = []; let n = 0; function f() { const me = n++; try { f() } finally { if (me === 0) log.push('finally') } } try { f() } catch (e) { log.push(e.name) } return log",
            r#"["finally","RangeError"]"#,
        ),
        (
            "function walk(v) { return Array.isArray(v) ? v.map(walk) : v } const a = []; a.push(a); function go(v) { return v.map((x) => go(x)) } try { go(a) } catch (e) { return e.name }",
            "\"RangeError\"",
        ),
        (
            "async function f() { await null; return f2() } async function f2() { return g() } function g() { return g() } return await f().catch((e) => e.name)",
            "\"RangeError\"",
        ),
        (
            "function fact(n) { return n < 2 ? 1 : n * fact(n - 1) } try { return [fact(20), String(fact)] } catch { return 0 }",
            r#"[2432902008176640000,"function fact(n) { return n < 2 ? 1 : n * fact(n - 1) }"]"#,
        ),
        (
            "function f(n) { let s = ''; s += n; if (n) s += f(n - 1); return s } try { return [f(5), f + ''] } catch { return 0 }",
            r#"["543210","function f(n) { let s = ''; s += n; if (n) s += f(n - 1); return s }"]"#,
        ),
    ] {
        let [changed, _] = both(script);
        assert_eq!(end(&changed).as_deref(), Ok(expected), "{script}");
    }
}

#[test]
fn calls_that_go_too_deep_and_are_not_caught_end_the_run() {
    for script in [
        "function f() { f() } try { f() } finally { } /* catch */",
        "function f() { f() } try { f() } catch (e) { throw e }",
        "async function f() { await null; g() } function g() { g() } await f() /* catch */",
    ] {
        let [changed, _] = both(script);
        assert_eq!(changed.state, StepState::StackExhausted, "{script}");
    }
}

#[test]
fn places_in_functions_that_ask_are_those_of_the_script() {
    let script = "function f(n) { if (n) return f(n - 1); throw new Error('at the end') }\ntry { JSON.parse('{') } catch {}\nf(2)";
    let [changed, as_written] = both(script);
    assert_eq!(end(&changed), end(&as_written));
}
