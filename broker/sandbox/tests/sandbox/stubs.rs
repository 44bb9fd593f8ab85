//! Tests calls: their arguments, order and outcomes, and that scripts cannot change the stubs.

use sandbox_protocol::{CallTicket, Outcome};

use crate::harness::{BOUNDS, RunResult, drive, echo, failure, run, run_with, start};

#[track_caller]
fn gives(script: &str, expected: &str) {
    assert_eq!(run(script).value(), expected, "{script}");
}

#[test]
fn call_carries_arguments_and_place() {
    let told = run("const a = 1;\nreturn await logs.search({ query: 'x', n: a, none: undefined })");
    let call = &told.calls[0];
    assert_eq!(told.args(), [r#"{"query":"x","n":1}"#]);
    assert_eq!((call.server, call.tool, call.line), (0, 0, 2));
    assert_eq!(
        told.value(),
        r#"{"tool":"search","args":{"query":"x","n":1}}"#
    );
}

#[test]
fn flat_names_call_same_tools() {
    gives(
        "return (await tracker_createIssue({ t: 1 })).tool",
        "\"createIssue\"",
    );
    gives("return typeof globalThis['logs_' + 'tail']", "\"function\"");
}

#[test]
fn language_probes_of_server_objects_are_no_errors() {
    let asked = |name: &str| {
        let name = format!("'{name}'");
        run(&format!(
            "try {{ return String(logs[{name}]) }} catch (e) {{ return e.name }}"
        ))
    };
    for name in codegen::check::ASKED_BY_THE_LANGUAGE {
        assert_eq!(asked(name).value(), "\"undefined\"", "{name}");
    }
    assert_eq!(asked("thenn").value(), "\"TypeError\"");
}

#[test]
fn missing_argument_is_an_empty_object() {
    assert_eq!(run("await logs.tail()").args(), ["{}"]);
    assert_eq!(run("await logs.tail(undefined)").args(), ["{}"]);
}

#[test]
fn non_json_arguments_are_refused_by_path() {
    for (args, path) in [
        ("'text'", "a string"),
        ("5", "not 5"),
        ("null", "not null"),
        ("[1]", "an array"),
        ("{}, {}", "several"),
        ("{ a: [1, NaN] }", "`arguments.a[1]`"),
        ("{ a: { b: Infinity } }", "`arguments.a.b`"),
        ("{ f() {} }", "`arguments.f`"),
        ("{ s: Symbol() }", "`arguments.s`"),
        ("{ n: 2n ** 60n }", "`arguments.n`"),
        (
            "(() => { const o = {}; o.me = { o }; return o })()",
            "`arguments.me.o`",
        ),
        ("{ p: logs.tail({}) }", "`arguments.p`"),
        ("{ s: '\\ud800' }", "`arguments.s`"),
    ] {
        let told = run(&format!(
            "try {{ await logs.search({args}) }} catch (e) {{ return [e.name, e.message, e instanceof TypeError] }}"
        ));
        let value = told.value();
        assert!(
            value.starts_with("[\"TypeError\"") && value.contains(path),
            "{args}: {value}"
        );
        assert!(value.ends_with("true]"), "{value}");
    }
}

#[test]
fn refused_argument_has_call_place() {
    let told = run("const a = 1;\nawait logs.search({ n: NaN })");
    assert_eq!(told.error().line, 2, "{}", told.error().stack);
}

#[test]
fn getters_and_to_json_run_once() {
    let told = run(
        "let n = 0, m = 0;
         await logs.search({ get to() { return n++ ? 'evil@x' : 'boss@corp' },
                             d: { toJSON() { m++; return Object.defineProperty({ k: m }, 'toJSON', { value() { m++ } }) } } });
         return [n, m]",
    );
    assert_eq!(told.args(), [r#"{"to":"boss@corp","d":{"k":1}}"#]);
    assert_eq!(told.value(), "[1,1]");
}

#[test]
fn call_from_getter_is_a_separate_call() {
    let told = run(
        "await logs.search(new Proxy({ a: 1 }, { get(t, k) { if (k === 'a') logs.tail({ k }); return t[k] } }));",
    );
    assert_eq!(told.args(), [r#"{"k":"a"}"#, r#"{"a":1}"#]);
    assert_eq!(
        told.calls
            .iter()
            .map(|call| call.ticket.0)
            .collect::<Vec<_>>(),
        [0, 1]
    );
}

#[test]
fn dates_maps_and_sets_serialise_as_json() {
    let told = run(
        "await logs.search({ d: new Date(0), m: new Map([['k', 1]]), s: new Set([1]), t: new Uint8Array([7]), b: 5n, z: -0, h: [, 1] })",
    );
    assert_eq!(
        told.args(),
        [
            r#"{"d":"1970-01-01T00:00:00.000Z","m":{"k":1},"s":[1],"t":[7],"b":5,"z":0,"h":[null,1]}"#
        ]
    );
}

#[test]
fn oversized_arguments_are_a_tool_error() {
    let told = run(
        "try { await logs.search({ a: 'x'.repeat(2e6) }) } catch (e) { return [e.code, e instanceof ToolError, e.tool] }",
    );
    assert_eq!(told.value(), r#"["limit-payload",true,"logs.search"]"#);
    assert!(told.calls.is_empty());
}

#[test]
fn deeply_nested_arguments_are_a_tool_error() {
    let told = run(
        "let deep = {}; for (let i = 0; i < 300; i++) deep = { deep };
         try { await logs.search(deep) } catch (e) { return [e.code, e instanceof ToolError, e.tool, e.message.includes('256 levels')] }",
    );
    assert_eq!(told.value(), r#"["limit-payload",true,"logs.search",true]"#);
    assert!(told.calls.is_empty());
}

#[test]
fn failure_is_a_tool_error_with_fields() {
    let script = "try { await logs.search({}) } catch (e) {
        return [e instanceof ToolError, e instanceof Error, e.name, e.code, e.tool, e.message, e.retryable,
                e.content[0].text, e.structuredContent, Object.keys(e), String(e), e.stack.split('\\n')[1].trim()] }";
    let told = run_with(script, |_| Some(failure("tool-failed", "it broke")));
    let expected = r#"[true,true,"ToolError","tool-failed","logs.search","it broke",false,"no such index",null,["code","tool","retryable","content","structuredContent"],"ToolError: it broke","at <script> (script.js:1:24)"]"#;
    assert_eq!(told.value(), expected);
}

#[test]
fn uncaught_failure_names_its_call() {
    let told = run_with(
        "const a = 1;\nawait logs.tail({});\nawait logs.search({})",
        |call| {
            Some(if call.ticket.0 == 1 {
                failure("denied", "no")
            } else {
                Outcome::Value(b"1".to_vec())
            })
        },
    );
    let error = told.error();
    assert_eq!(
        (error.name.as_str(), error.code.as_str()),
        ("ToolError", "denied")
    );
    assert_eq!((error.line, error.ticket), (3, Some(CallTicket(1))));
}

#[test]
fn patched_prototypes_cannot_turn_failure_into_success() {
    for tampering in [
        "Object.prototype.isError = false; Object.prototype.code = 'fine'; Object.prototype.get = () => 1; Object.prototype.value = 1",
        "Array.prototype.push = null; Array.prototype[Symbol.iterator] = null; Array.prototype.map = null",
        "ToolError.prototype.code = 1; Error.prototype.name = 'Fine'; Object.defineProperty(ToolError.prototype, 'message', { get() { return 'x' } })",
        "globalThis.ToolError = class {}; JSON.stringify = () => '1'; JSON.parse = () => 1",
        "Object.defineProperty(Object.prototype, 'reject', { set() {} }); Function.prototype.call = null; Reflect.apply = null; Proxy = null",
    ] {
        let script = format!(
            "const T = ToolError; {tampering};\ntry {{ await logs.search({{ a: 1 }}); return 'success' }} catch (e) {{ return [e instanceof T, e.code] }}"
        );
        let told = run_with(&script, |_| Some(failure("tool-failed", "no")));
        assert_eq!(told.value(), r#"[true,"tool-failed"]"#, "{tampering}");
        assert_eq!(told.args(), [r#"{"a":1}"#], "{tampering}");
    }
}

#[test]
fn server_object_is_immutable() {
    for change in [
        "logs.search = () => 1",
        "delete logs.search",
        "Object.defineProperty(logs, 'search', { value: 1 })",
        "Object.setPrototypeOf(logs, {})",
        "logs.fresh = 1",
        "Object.freeze(logs)",
        "logs.search.call = 1",
        "logs.search.x = 1",
    ] {
        let told = run(&format!(
            "try {{ {change}; return 'changed' }} catch (e) {{ return e.name }}"
        ));
        assert_eq!(told.value(), "\"TypeError\"", "{change}");
    }
    gives(
        "Object.prototype.search = 1; return typeof logs.search",
        "\"function\"",
    );
    gives("return Object.getPrototypeOf(logs)", "null");
    gives("return logs.search === logs.search", "true");
}

#[test]
fn server_object_lists_its_tools() {
    gives(
        "return Object.keys(tracker)",
        r#"["createIssue","listIssues"]"#,
    );
    gives(
        "return ['search' in logs, 'nope' in logs, typeof logs.search]",
        r#"[true,false,"function"]"#,
    );
    gives(
        "const { search } = logs; return (await search({})).tool",
        "\"search\"",
    );
    gives(
        "return Object.entries(tracker).map(([name, f]) => name + f.length)",
        r#"["createIssue1","listIssues1"]"#,
    );
}

#[test]
fn server_object_is_not_thenable() {
    gives("return (await logs) === logs", "true");
    gives("return logs.then === undefined", "true");
    gives("return (await logs_then({})).tool", "\"then\"");
}

#[test]
fn unknown_tool_suggests_closest_name() {
    for (member, hint) in [
        ("tracker.create_issue", "did you mean `createIssue`?"),
        ("tracker.listIssue", "did you mean `listIssues`?"),
        ("logs.serach", "did you mean `search`?"),
        ("tracker.zzz", "it has `createIssue`, `listIssues`"),
    ] {
        let told = run(&format!("await {member}({{}})"));
        let error = told.error();
        assert_eq!(error.name, "TypeError");
        assert!(error.message.contains(hint), "{member}: {}", error.message);
    }
}

#[test]
fn promise_all_calls_leave_in_order_and_settle_in_any() {
    let script = "const seen = [];
        const all = await Promise.all([0, 1, 2].map(async (n) => { const r = await logs.search({ n }); seen.push(n); return r }));
        return [all, seen]";
    let mut start = start(script);
    start.script_name = "order.js".to_owned();
    let sandbox = &*crate::harness::SANDBOX;
    let mut guest = sandbox.guest(BOUNDS, &airlock_sandbox::StopHandle::default());
    let step = guest.start(&start).unwrap();
    assert_eq!(step.calls.len(), 3);
    let mut last = None;
    for ticket in [2, 0, 1] {
        let outcome = Outcome::Value(format!("\"r{ticket}\"").into_bytes());
        let outcomes = vec![sandbox_protocol::CallOutcome {
            ticket: CallTicket(ticket),
            outcome,
        }];
        last = Some(
            guest
                .resume(&sandbox_protocol::Resume {
                    now_ms: start.now_ms,
                    outcomes,
                })
                .unwrap(),
        );
    }
    let sandbox_protocol::StepState::Done { value } = last.unwrap().state else {
        panic!("not done")
    };
    assert_eq!(
        String::from_utf8(value).unwrap(),
        r#"[["r0","r1","r2"],[2,0,1]]"#
    );
}

#[test]
fn outcome_without_call_is_ignored() {
    let sandbox = &*crate::harness::SANDBOX;
    let mut guest = sandbox.guest(BOUNDS, &airlock_sandbox::StopHandle::default());
    guest.start(&start("return await logs.search({})")).unwrap();
    let stray = |ticket| sandbox_protocol::CallOutcome {
        ticket: CallTicket(ticket),
        outcome: Outcome::Value(b"1".to_vec()),
    };
    let resume = |outcomes| sandbox_protocol::Resume {
        now_ms: 0,
        outcomes,
    };
    let step = guest
        .resume(&resume(vec![stray(9), stray(u32::MAX)]))
        .unwrap();
    assert_eq!(
        step.state,
        sandbox_protocol::StepState::Waiting { wake_at_ms: None }
    );
    let step = guest.resume(&resume(vec![stray(0), stray(0)])).unwrap();
    assert_eq!(
        step.state,
        sandbox_protocol::StepState::Done {
            value: b"1".to_vec()
        }
    );
}

#[test]
fn calls_open_at_return_are_reported() {
    let told = run("logs.search({ a: 1 }); return 1");
    assert_eq!((told.value().as_str(), told.calls.len()), ("1", 1));
}

#[test]
fn unhandled_rejection_is_a_warning() {
    let told = run("Promise.reject(new Error('lost')); return 1");
    assert_eq!(told.value(), "1");
    assert!(
        told.console[0].contains("never awaited: Error: lost"),
        "{:?}",
        told.console
    );
    assert!(
        run("Promise.reject(1).catch(() => {}); return 1")
            .console
            .is_empty()
    );
}

/// Runs a script in which `logs.search` is also the global `find` and takes two positional values.
fn in_order(script: &str) -> RunResult {
    let mut start = start(script);
    start.stubs[0].tools[0].short = "find".to_owned();
    start.stubs[0].tools[0].order = vec!["query".to_owned(), "limit".to_owned()];
    drive(&start, BOUNDS, echo)
}

#[test]
fn shorthand_tool_takes_positional_values() {
    let told = in_order(
        "await find('a \"b\"', 5);
await logs.search(null); await logs_search([1], undefined);
await find({query: 'c'}); await find(undefined, 2); await find();
return [typeof find, find.name]",
    );
    assert_eq!(told.value(), r#"["function","find"]"#);
    let expected = [
        r#"{"query":"a \"b\"","limit":5}"#,
        r#"{"query":null}"#,
        r#"{"query":[1]}"#,
        r#"{"query":"c"}"#,
        r#"{"limit":2}"#,
        "{}",
    ];
    assert_eq!(told.args(), expected);
    assert_eq!((told.calls[0].line, told.calls[1].line), (1, 2));
}

#[test]
fn positional_values_are_bounded_like_arguments() {
    for (args, expected) in [
        ("'a', 1, 2", "it takes only query, limit"),
        ("[1]", "an array"),
        ("Symbol()", "`query` is a symbol"),
        ("'a', NaN", "`limit`"),
        ("'a'.repeat(2 ** 20)", "larger than 1048576 bytes"),
        (
            "'a'.repeat(2 ** 20 - 20), 'b'.repeat(20)",
            "larger than 1048576 bytes",
        ),
    ] {
        let told = in_order(&format!(
            "try {{ await find({args}) }} catch (e) {{ return e.message }}"
        ));
        assert!(told.value().contains(expected), "{args}: {}", told.value());
    }
    gives("return typeof find", "\"undefined\"");
    let own = in_order("const find = (a) => a; return find(7)");
    assert_eq!(own.value(), "7");
}

#[test]
fn three_hundred_tools_are_available() {
    let mut start =
        start("return [Object.keys(logs).length, (await logs.tool_299({})).x, typeof logs_tool_7]");
    start.stubs.truncate(1);
    start.stubs[0].tools = (0..300)
        .map(|n| sandbox_protocol::ToolStub {
            member: format!("tool_{n}"),
            flat: format!("logs_tool_{n}"),
            short: String::new(),
            order: Vec::new(),
            hidden: false,
        })
        .collect();
    let told = drive(&start, BOUNDS, |call| {
        assert_eq!(call.tool, 299);
        Some(Outcome::Value(br#"{"x":1}"#.to_vec()))
    });
    assert_eq!(told.value(), r#"[300,1,"function"]"#);
    let _ = echo;
}
