//! Tests the forms that a script may have, and the positions of its errors.

use sandbox_protocol::StepState;

use crate::harness::{BOUNDS, RunEnd, by_engine, drive, echo, run, start};

#[track_caller]
fn gives(script: &str, expected: &str) {
    assert_eq!(run(script).value(), expected, "{script}");
}

#[test]
fn body_awaits_and_returns() {
    gives("return 1 + 1", "2");
    gives("const x = await logs.tail({n: 1});\nreturn x.args.n", "1");
    gives("", "");
    gives("return", "");
    gives("#!/usr/bin/env airlock\nreturn 3", "3");
    gives("// only a comment", "");
}

#[test]
fn single_function_is_called_with_input() {
    let mut with_input = start("");
    with_input.input = br#"{"n":20}"#.to_vec();
    for script in [
        "async (input) => input.n + 1",
        "(input) => input.n + 1",
        "input => input.n + 1",
        "async function main(input) { return input.n + 1 }",
        "function main({ n }) { return n + 1 }",
        "(async function (given) { return given.n + 1 });",
        "// what it does\nasync () => {\n  return input.n + 1;\n} // the end",
        "export default async function (input) { return input.n + 1 }",
        "export default (input) => input.n + 1;",
        "export default async (input) => input.n + 1;",
        "const one = 1;\nexport default async ({ n }) => {\n  return n + one\n}",
        "const n = input.n;\nexport default n + 1;",
        "const n = await Promise.resolve(input.n);\nexport default n + 1;",
    ] {
        with_input.script = script.to_owned();
        assert_eq!(drive(&with_input, BOUNDS, echo).value(), "21", "{script}");
    }
}

#[test]
fn single_expression_is_the_value() {
    gives("(async () => { return await 5 })()", "5");
    gives("1 + 1", "2");
    gives(
        "await logs.tail({n: 2})",
        r#"{"tool":"tail","args":{"n":2}}"#,
    );
    gives("({a: 1})", r#"{"a":1}"#);
}

#[test]
fn two_statements_form_a_body() {
    gives("1; 2", "");
    gives("function f() { return 1 }\nf()", "");
    gives("async () => 1\nreturn 2", "2");
}

#[test]
fn script_cannot_close_its_wrapper() {
    for script in [
        "} return 1; {",
        "})(); (async function () {",
        "})\nconsole.log(1);({",
    ] {
        assert_eq!(run(script).error().name, "SyntaxError", "{script}");
    }
}

#[test]
fn syntax_error_has_place() {
    for (script, line, column) in [
        ("const a = 1;\nconst b = ;\n", 2, 11),
        // Boa: the duplicate name. QuickJS: the token after the name.
        ("let x = 1;\nlet x = 2;", 2, by_engine(5, 7)),
        // Boa: the end of the string. QuickJS: its beginning.
        ("return 'unclosed", 1, by_engine(17, 8)),
        ("const r: number = 3", 1, 8),
        ("with (a) {}", 1, 1),
        ("export default ;", 1, 16),
    ] {
        let told = run(script);
        let error = told.error();
        assert_eq!(error.name, "SyntaxError", "{script}");
        assert_eq!(
            (error.line, error.column),
            (line, column),
            "{script}: {}",
            error.message
        );
    }
}

#[test]
fn thrown_error_has_place_and_frames() {
    let told = run("const a = 1;\nfunction f() {\n  throw new TypeError('no');\n}\nawait 0;\nf();");
    let error = told.error();
    assert_eq!(
        (error.name.as_str(), error.message.as_str()),
        ("TypeError", "no")
    );
    assert_eq!((error.line, error.column), (3, 9), "{}", error.stack);
    assert!(
        error.stack.contains("at f (script.js:3:"),
        "{}",
        error.stack
    );
    assert!(error.stack.contains("script.js:6:"), "{}", error.stack);
}

#[test]
fn places_are_correct_in_every_form() {
    for (script, line) in [
        ("throw new Error('x')", 1),
        ("async () => {\n throw new Error('x')\n}", 2),
        ("export default () => {\n throw new Error('x')\n}", 2),
        (
            "const a = 1;\nexport default await (async () => { throw new Error('x') })()",
            2,
        ),
    ] {
        let told = run(script);
        assert_eq!(told.error().line, line, "{script}: {}", told.error().stack);
    }
}

#[test]
fn missing_property_is_named() {
    for (script, message, line, column) in [
        (
            "const data = await logs.search({});\n\nreturn data.items.map((i) => i.id)",
            "cannot read `map` of `data.items`, which is undefined; `data` has: tool, args",
            3,
            19,
        ),
        (
            "const r = { a: null };\nreturn r.a.b",
            "cannot read `b` of `r.a`, which is null; `r` has: a",
            2,
            12,
        ),
        (
            "const r = {};\nreturn r.list[0].name",
            "cannot read `[0]` of `r.list`, which is undefined; `r` has no members",
            2,
            15,
        ),
        (
            "const r = {};\nr.a.b = 1",
            "cannot read `b` of `r.a`, which is undefined; `r` has no members",
            2,
            5,
        ),
        (
            "const r = {};\nconst { x } = r.nope",
            "cannot take `{ x }` from `r.nope`, which is undefined; `r` has no members",
            2,
            15,
        ),
        (
            "const r = {};\nfor (const x of r.nope) {}",
            "cannot iterate over `r.nope`, which is undefined; `r` has no members",
            2,
            17,
        ),
        (
            "const r = {};\n\nreturn [1].map(() => r.doIt(3))",
            "`r.doIt` is not a function but undefined; `r` has no members",
            3,
            24,
        ),
        (
            "const a = 1;\nreturn a + missing",
            "`missing` is not defined",
            2,
            12,
        ),
        (
            "const a = 1;\nnew Missing()",
            "`Missing` is not defined",
            2,
            5,
        ),
        (
            "async (input) => {\n  return input.x.y\n}",
            "cannot read `x` of `input`, which is undefined",
            2,
            16,
        ),
        (
            "export default async () => {\n  const d = await logs.tail({});\n  return d.rows.length\n}",
            "cannot read `length` of `d.rows`, which is undefined; `d` has: tool, args",
            3,
            17,
        ),
        (
            "try { const o = {}; o.a.b } catch {}\nreturn Promise.all([1, 2].map(async (n) => {\n  const r = await logs.tail({ n });\n  return r.args.q.z\n}))",
            "cannot read `z` of `r.args.q`, which is undefined; `r.args` has: n",
            4,
            19,
        ),
    ] {
        let told = run(script);
        let error = told.error();
        assert_eq!(error.message, message, "{script}");
        assert_eq!((error.line, error.column), (line, column), "{script}");
    }
}

#[test]
fn second_look_repeats_no_call() {
    let told = run("console.log('once');\nconst d = await logs.tail({});\nreturn d.rows.length");
    assert_eq!(
        (told.calls.len(), told.console.as_slice()),
        (1, &["once".to_owned()][..])
    );
    assert_eq!(told.error().line, 3);
}

#[test]
fn stack_property_shows_only_script_frames() {
    let told = run("await 0\ntry {\n null.x\n} catch (e) { return e.stack }");
    assert!(
        told.value().starts_with("\"TypeError: "),
        "{}",
        told.value()
    );
    assert!(!told.value().contains("native"), "{}", told.value());
    gives(
        "const e = new Error('m'); e.stack = 'mine'; return e.stack",
        "\"mine\"",
    );
}

#[test]
fn any_value_can_be_thrown() {
    for (script, message) in [
        ("throw null", "null"),
        ("throw undefined", "undefined"),
        ("throw 'plain text'", "plain text"),
        ("throw {code: 3}", "{ code: 3 }"),
        ("throw new Proxy({}, {})", "[Proxy]"),
        ("throw Symbol('s')", "Symbol(s)"),
    ] {
        assert_eq!(run(script).error().message, message, "{script}");
    }
}

#[test]
fn getters_of_thrown_errors_do_not_run() {
    let told = run("const e = new Error('x');
         for (const name of ['message', 'name', 'stack', 'cause', 'code'])
           Object.defineProperty(e, name, { get() { logs.tail({}); console.log('ran') } });
         throw e");
    assert_eq!(told.error().name, "Error");
    assert!(told.calls.is_empty() && told.console.is_empty());
}

#[test]
fn long_cause_chain_is_truncated() {
    let told =
        run("let e; for (let i = 0; i < 1e4; i++) e = new Error('n' + i, { cause: e }); throw e");
    assert!(told.error().message.len() < 500, "{}", told.error().message);
}

#[test]
fn eval_and_function_constructor_are_unavailable() {
    for script in [
        "eval('1')",
        "(0, eval)('1')",
        "new Function('return 1')()",
        "Function('return 1')",
        "(async () => {}).constructor('return 1')",
        "(function* () {}).constructor('yield 1')",
        "(async function* () {}).constructor('yield 1')",
        "console.log.constructor('return this')()",
        "Reflect.construct(Function, ['return 1'])",
    ] {
        let told = run(&format!(
            "try {{ {script}; return 'ran' }} catch (e) {{ return e.name }}"
        ));
        assert_eq!(told.value(), "\"EvalError\"", "{script}");
    }
    gives(
        "try { setTimeout('1', 0) } catch (e) { return e.name }",
        "\"TypeError\"",
    );
}

#[test]
fn import_is_unavailable() {
    let told = run("try { await import('fs') } catch (e) { return e.message }");
    assert!(told.value().contains("cannot import"), "{}", told.value());
    for script in [
        "import fs from 'fs'\nexport default 1",
        "import 'https://example.org/x.js'",
    ] {
        let told = run(script);
        assert!(
            told.error().message.contains("cannot import"),
            "{}",
            told.error().message
        );
    }
}

#[test]
fn absent_globals_are_undefined() {
    gives(
        "return ['SharedArrayBuffer', 'Atomics', 'ShadowRealm', 'WebAssembly', 'process', 'require', 'fetch', 'Deno', 'Worker']
           .filter((name) => name in globalThis)",
        "[]",
    );
}

#[test]
fn strict_mode_is_always_on() {
    gives(
        "try { undeclared = 1 } catch (e) { return e.name }",
        "\"ReferenceError\"",
    );
    gives(
        "return (function () { return this === undefined })()",
        "true",
    );
}

#[test]
fn unsettled_promise_is_a_deadlock() {
    for script in [
        "await new Promise(() => {})",
        "export default new Promise(() => {})",
    ] {
        assert!(
            matches!(run(script).end, RunEnd::State(StepState::Deadlocked)),
            "{script}"
        );
    }
}
