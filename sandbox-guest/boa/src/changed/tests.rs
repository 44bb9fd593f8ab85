//! Scripts in the form that they are given and as they were written.

use sandbox_protocol::{GuestLimits, ScriptError, Start, Step, StepState};

mod sums;
mod sweeps;

use super::{changed, spans};
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
    [false, true].map(|as_written| run(script, as_written))
}

fn run(script: &'static str, as_written: bool) -> Step {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let run = move || {
        let mut guest = Guest::new().unwrap();
        guest.takes_scripts_as_written(as_written);
        guest.start(start(script))
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
        let (mut changed, mut as_written) = (end(&changed), end(&as_written));
        assert!(changed.is_err(), "{script}");
        without_place_where_none_was_known(&mut changed, &mut as_written);
        assert_eq!(changed, as_written, "{script}");
    }
}

/// A place where the engine knows none is no worse.
fn without_place_where_none_was_known(
    changed: &mut Result<String, ScriptError>,
    as_written: &mut Result<String, ScriptError>,
) {
    if let (Err(changed), Err(as_written)) = (changed, as_written)
        && as_written.line == 0
    {
        (changed.line, changed.column) = (0, 0);
        as_written.stack.clear();
        changed.stack.clear();
    }
}

#[test]
fn only_what_holds_a_text_is_changed() {
    for script in [
        "let n = 0; n += 1; return n",
        "let total = 0; for (const row of rows) total += row.cents; return total",
        "return 'a += b'",
        "export default async () => { let s = ''; s += 'a'; return s }",
    ] {
        assert!(changed(script).is_none(), "{script}");
    }
    let made = changed("let s = ''; s += 'a' /* airlock_append */; return s").unwrap();
    assert_eq!(
        made.names(),
        [
            "airlock_append_",
            "airlock_depth",
            "airlock_sweep",
            "airlock_items",
            "airlock_list",
        ]
    );
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
        assert_eq!(made.shifts.column(2, now), Some(column), "{word}");
    }
    assert_eq!(made.shifts.column(1, 5), Some(5));
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
fn whatever_calls_itself_can_be_caught() {
    for script in [
        "const f = () => f(); f()",
        "const f = (n) => n + f(n + 1); f(0)",
        "const f = (n) => f?.(n) ?? 0; f(1)",
        "const f = (a) => a.x?.y || f(a) ? 1 : 2; f({})",
        "const f = async (n) => 1 + await f(n); await f(1)",
        "const f = (a) => a = f(a); f()",
        "const f = (a) => /* why */ f(a), g = 1; const h = (a) => h(a); h(1)",
        "const o = { toJSON() { return JSON.stringify(o) } }; JSON.stringify(o)",
        "const f = () => [2, 1].sort(() => f()); f()",
        "let g; const before = () => { g(); return 0 }; g = () => [2, 1].sort(before); g()",
        "const f = (s) => s.replace(/a/, f); f('a')",
        "const f = (s) => 'a-b'.replaceAll('-', f); f('a')",
        "const f = (k, v) => JSON.parse('1', f); f()",
        "const f = () => JSON.stringify({ a: 1 }, f); f()",
        "const f = () => [1].map(f); f()",
        "const f = () => Array.from([1], f); f()",
        "const f = () => [1, 2].reduce(f); f()",
        "class A { constructor() { Reflect.construct(A, []) } } new A()",
        "class A { constructor() { this.a = new this.constructor() } } new A()",
        "class A { } class B extends A { constructor() { super(); new B() } } new B()",
        "class A { m() { return new B().m() } } class B extends A { m() { return super.m() } } new B().m()",
        "const A = class { #m() { return this.#m() } m() { return this.#m() } }; new A().m()",
        "const o = { get x() { return o.x } }; o.x",
        "const o = { set x(v) { o.x = v } }; o.x = 1",
        "const o = {}; Object.defineProperty(o, 'x', { get: () => o.x }); o.x",
        "const o = Object.create(null, { x: { get() { return o.x } } }); o.x",
        "const p = new Proxy({}, { get(t, k) { return p[k] } }); p.x",
        "const p = new Proxy({}, { has(t, k) { return k in p } }); 'a' in p",
        "const p = new Proxy(() => 0, { apply() { return p() } }); p()",
        "const o = () => ({ valueOf() { return o() + 1 } }); o() + 1",
        "const o = () => ({ toString() { return `${o()}` } }); String(o())",
        "const o = () => ({ ['toString']() { return `${o()}` } }); String(o())",
        "const o = () => { const it = {}; it['toString'] = () => `${o()}`; return it }; String(o())",
        "const o = { [Symbol.iterator]() { return [...o] } }; [...o]",
        "const o = { [Symbol.toPrimitive]: () => +o }; +o",
        "function* g() { yield* g() } [...g()]",
        "function* g(it) { for (const x of it) yield x } let it = [1]; for (let i = 0; i < 900; i++) it = g(it); [...it]",
        "const o = { f() { return o['f']() } }; o.f()",
        "const y = (g) => g(g); y(y)",
        "((g) => g(g))((g) => g(g))",
        "let f = () => 0; for (let i = 0; i < 900; i++) { const g = f; f = () => g() + 1 } f()",
        "const all = []; for (let i = 0; i < 900; i++) all.push({ run: () => (all[i + 1] ?? all[0]).run() }); all[0].run()",
        "const f = function () { return f.call(this) }; f()",
        "const f = function (g) { return g.apply(this, [g]) }; f(f)",
        "const f = () => Reflect.apply(f, undefined, []); f()",
        "const f = () => Reflect.apply(Reflect.apply, undefined, [f, undefined, []]); f()",
        "const walk = { down: (n) => step(n) }; const step = (n) => walk.down(n); walk.down(1)",
        "const steps = []; const step = () => steps[0](); steps.push(step); step()",
        "const tag = () => tag`a`; tag`a`",
        "const self = { go: undefined }; const go = () => self.go(); self.go = go; self.go()",
        "const o = { a() { return this.b() }, b() { const { a } = this; return a.call(this) } }; o.a()",
        "const o = { go() { return o?.go?.() } }; o.go()",
    ] {
        let whole = format!("try {{ {script} }} catch (e) {{ return e.name }}");
        caught(whole.leak());
    }
    for script in [
        "const f = async () => { await f() }; return await f().then(() => 0, (e) => e.name)",
        "const f = async () => { await f() }; return (await Promise.allSettled([f()]))[0].reason.name",
        "const f = () => f(); try { f() } finally { return 'RangeError' }",
    ] {
        caught(script);
    }
}

#[track_caller]
fn caught(script: &'static str) {
    let state = run(script, false).state;
    let value = b"\"RangeError\"".to_vec();
    assert_eq!(state, StepState::Done { value }, "{script}");
}

#[test]
fn what_calls_nothing_of_its_own_is_not_asked() {
    for script in [
        "try { return rows.map((r) => r.name.trim().toLowerCase()) } catch {}",
        "try { return rows.filter((r) => r.n > 1).sort((a, b) => a.n - b.n).reduce((s, r) => s + r.n, 0) } catch {}",
        "const of = (line) => { const [a, b] = line.split(','); return { a: Number(a), b } }; try { return of('1,2') } catch {}",
        "const load = async (id) => { try { return await db.get({ id }) } catch (e) { return { id, error: e.message } } }; return await Promise.all([1, 2].map(load))",
        "class Late extends Error { constructor(by) { const s = `${by}`; throw new Error(s) } } try { new Late(1) } catch {}",
        "function a() { return b() + 1 } function b() { return c().length } function c() { return 'x' } try { a() } catch {}",
        "const o = { total: 0, add(n) { this.total += n } }; try { o.add(1) } catch {}",
    ] {
        let asks = changed(script).is_some_and(|changed| changed.asks_for_depth);
        assert!(!asks, "{script}: {:?}", changed(script));
    }
}

#[test]
fn a_call_of_ours_does_not_count() {
    let deepest = [false, true].map(|as_written| {
        let ends = |depth: &u32| {
            let script = format!(
                "let s = '', n = 0; const more = () => {{ s += 'a'; n += 1; if (n < {depth}) more(); }}; more(); return n"
            );
            let step = run(script.leak(), as_written);
            matches!(step.state, StepState::Done { .. })
        };
        (190..210).filter(ends).max()
    });
    assert_eq!(deepest[0], deepest[1]);
}

#[test]
fn a_name_that_is_written_with_escapes_is_a_name() {
    let script = r"let \u0061irlock_append = 'mine', s = ''; s += 'a'; try { f() } catch {} function f() { f() } return airlock\u005fdepth_of + airlock\u005fappend + s; const airlock\u005fdepth = 1, airlock_depth_of = 2";
    let made = changed(script).unwrap();
    assert_eq!(
        made.names(),
        [
            "airlock_append_",
            "airlock_depth__",
            "airlock_sweep",
            "airlock_items",
            "airlock_list",
        ]
    );
    let script =
        r"let \u0061irlock_append = 'mine', s = ''; s += 'a'; return airlock_\u0061ppend + s";
    let [changed, as_written] = both(script);
    assert_eq!(end(&changed).as_deref(), Ok("\"minea\""));
    assert_eq!(end(&changed), end(&as_written));
}

#[test]
fn places_are_found_on_long_lines_and_among_wide_characters() {
    let text = spans::Text::new("aé€😀b\n\nü");
    let offset = |line, column| text.offset(boa_ast::Position::new(line, column));
    let first: Vec<_> = (1..=6).map(|column| offset(1, column)).collect();
    assert_eq!(first, [0, 1, 3, 6, 10, 11].map(Some));
    assert_eq!(
        [offset(2, 1), offset(3, 1), offset(3, 2)],
        [12, 13, 15].map(Some)
    );
    assert_eq!([offset(3, 3), offset(4, 1), offset(9, 9)], [None; 3]);
    for length in [63, 64, 65, 127, 128, 1000] {
        let line = "é".repeat(length);
        let script = format!("{line}\n{line}");
        let text = spans::Text::new(&script);
        let offset = |line, column| text.offset(boa_ast::Position::new(line, column));
        for column in 0..length {
            let number = u32::try_from(column + 1).unwrap();
            assert_eq!(offset(1, number), Some(column * 2));
            assert_eq!(offset(2, number), Some((length + column) * 2 + 1));
        }
        let behind = u32::try_from(length + 1).unwrap();
        assert_eq!(offset(2, behind), Some(script.len()));
    }
}

#[test]
fn columns_are_counted_back_on_every_line() {
    let script =
        "let s = '';\n".to_owned() + &"s += 'é'; f(s); ".repeat(300) + "\n s += `€\n`; f(s)";
    let made = changed(&script).unwrap();
    for (number, (line, own)) in made.text.lines().zip(script.lines()).enumerate() {
        let column = |line: &str, at| u32::try_from(line[..at].chars().count() + 1).unwrap();
        let now = line.match_indices("f(s)").map(|(at, _)| column(line, at));
        let before: Vec<_> = own
            .match_indices("f(s)")
            .map(|(at, _)| column(own, at))
            .collect();
        let line = u32::try_from(number + 1).unwrap();
        let back: Vec<_> = now
            .filter_map(|column| made.shifts.column(line, column))
            .collect();
        assert_eq!(back, before);
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
