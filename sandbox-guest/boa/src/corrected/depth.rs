//! Tests of the limit of nested calls, whose error scripts can catch.

use sandbox_protocol::StepState;

use super::{comes_to, run};

#[test]
fn too_many_nested_calls_can_be_caught() {
    for (script, expected) in [
        (
            "function f() { return 1 + f() } try { f() } catch (e) { return [e.name, e instanceof RangeError, e.message] }",
            r#"["RangeError",true,"too many nested calls"]"#,
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
        comes_to(script, expected);
    }
}

#[test]
fn every_kind_of_recursion_can_be_caught() {
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
        comes_to(&whole, "\"RangeError\"");
    }
    for script in [
        "const f = async () => { await f() }; return await f().then(() => 0, (e) => e.name)",
        "const f = async () => { await f() }; return (await Promise.allSettled([f()]))[0].reason.name",
        "const f = () => f(); try { f() } finally { return 'RangeError' }",
    ] {
        comes_to(script, "\"RangeError\"");
    }
}

#[test]
fn recursion_in_default_values_fields_and_modules_can_be_caught() {
    for script in [
        "const f = (a = f()) => a; try { f() } catch (e) { return e.name }",
        "class A { a = new A() } try { new A() } catch (e) { return e.name }",
        "const m = 'go', o = { [m]() { return o[m]() } }; try { o.go() } catch (e) { return e.name }",
        "export default () => { const f = () => f(); try { f() } catch (e) { return e.name } }",
    ] {
        comes_to(script, "\"RangeError\"");
    }
    let long = format!(
        "const text = '{}'; const f = () => f(); try {{ f() }} catch (e) {{ return e.name }}",
        "a".repeat(300 * 1024)
    );
    comes_to(&long, "\"RangeError\"");
}

#[test]
fn async_functions_and_generators_end_at_the_limit() {
    for (script, expected) in [
        (
            "let n = 0; const f = async () => { n++; return f() }; await f().catch(() => 0); return n > 150",
            "true",
        ),
        (
            "let n = 0; async function* g() { n++; yield* g() } try { for await (const x of g()) {} } catch (e) { return [e.name, n > 50] }",
            r#"["RangeError",true]"#,
        ),
        (
            "let ends = 0; for (let i = 0; i < 300; i++) { try { (function f() { f(1, 2, 3) })() } catch { ends++ } } return ends",
            "300",
        ),
    ] {
        comes_to(script, expected);
    }
}

#[test]
fn uncaught_error_of_nested_calls_ends_the_run() {
    for script in [
        "function f() { f() } try { f() } finally { } /* catch */",
        "function f() { f() } try { f() } catch (e) { throw e }",
        "async function f() { await null; g() } function g() { g() } await f() /* catch */",
        "function f() { f() } f()",
        "return [1].map(function f() { return [1].map(f) })",
    ] {
        assert_eq!(run(script), StepState::StackExhausted, "{script}");
    }
    let own = "throw new RangeError('too many nested calls')";
    assert!(matches!(run(own), StepState::Failed(_)));
}
