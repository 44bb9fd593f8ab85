//! Tests the sandbox against deliberate abuse: infinite recursion through built-ins, memory that
//! runs out anywhere, and ten thousand runs of which many fail. The host must survive, and the next
//! run must be correct.

use airlock_core::effect::GuestStop;
use airlock_core::limits::Limit;
use airlock_sandbox::{GuestBounds, StopHandle};
use sandbox_protocol::{Outcome, StepState};

use crate::harness::{BOUNDS, RunEnd, RunResult, SANDBOX, drive, echo, run, start};

/// Each script defines a function `f` that calls itself through a built-in function.
const REENTRANT: &[(&str, &str)] = &[
    ("call", "function f() { return f() + 1 }"),
    ("apply", "function f() { return f.apply(null, [1]) }"),
    ("bind", "function f() { return f.bind(null)() }"),
    (
        "Reflect.apply",
        "function f() { return Reflect.apply(f, null, []) }",
    ),
    ("new", "function F() { new F() } const f = () => new F()"),
    (
        "Reflect.construct",
        "class A { constructor() { Reflect.construct(A, []) } } const f = () => new A()",
    ),
    ("sort", "function f() { return [2, 1].sort(f) }"),
    ("toSorted", "function f() { return [2, 1].toSorted(f) }"),
    (
        "typed sort",
        "function f() { return new Int8Array([2, 1]).sort(f) }",
    ),
    ("map", "function f() { return [1].map(f) }"),
    ("forEach", "function f() { [1].forEach(f) }"),
    ("filter", "function f() { return [1].filter(f) }"),
    ("reduce", "function f() { return [1, 2].reduce(f) }"),
    ("find", "function f() { return [1].findLast(f) }"),
    ("flatMap", "function f() { return [1].flatMap(f) }"),
    (
        "flat",
        "const a = []; a.push(a); const f = () => a.flat(Infinity)",
    ),
    (
        "Array.from a function",
        "function f() { return Array.from([1], f) }",
    ),
    (
        "Array.from an iterator",
        "const f = () => Array.from({ [Symbol.iterator]: f })",
    ),
    (
        "Array.from lengths",
        "const f = () => Array.from({ get length() { return f() } })",
    ),
    ("spread", "const f = () => [...{ [Symbol.iterator]: f }]"),
    (
        "spread arguments",
        "function f() { return f(...[1, 2, 3]) }",
    ),
    (
        "destructuring",
        "const f = () => { const [a] = { [Symbol.iterator]: f }; return a }",
    ),
    ("defaults", "const f = (a = f()) => a"),
    (
        "species",
        "class A extends Array { static get [Symbol.species]() { return f() } } const f = () => A.from([1]).map((x) => x)",
    ),
    (
        "isConcatSpreadable",
        "const f = () => [].concat({ get [Symbol.isConcatSpreadable]() { return f() } })",
    ),
    (
        "join",
        "const o = { toString() { return [o].join() } }; const f = () => [o].join()",
    ),
    ("toString", "const f = () => String({ toString: f })"),
    ("valueOf", "const f = () => +{ valueOf: f }"),
    (
        "toPrimitive",
        "const f = () => `${{ [Symbol.toPrimitive]: f }}`",
    ),
    ("computed key", "const f = () => ({ [{ toString: f }]: 1 })"),
    ("compare", "const f = () => ({ valueOf: f }) < 1"),
    (
        "instanceof",
        "const f = () => 1 instanceof { [Symbol.hasInstance]: f }",
    ),
    (
        "getter",
        "const o = { get x() { return o.x } }; const f = () => o.x",
    ),
    (
        "setter",
        "const o = { set x(v) { o.x = v } }; const f = () => { o.x = 1 }",
    ),
    (
        "class field",
        "class A { x = new A() } const f = () => new A()",
    ),
    ("static block", "const f = () => class { static { f() } }"),
    (
        "super",
        "class A { m() { return f() } } class B extends A { m() { return super.m() } } const f = () => new B().m()",
    ),
    (
        "proxy get",
        "const p = new Proxy({}, { get: (t, k) => p[k] }); const f = () => p.x",
    ),
    (
        "proxy set",
        "const p = new Proxy({}, { set: () => { p.x = 1; return true } }); const f = () => { p.x = 1 }",
    ),
    (
        "proxy has",
        "const p = new Proxy({}, { has: () => 'x' in p }); const f = () => 'x' in p",
    ),
    (
        "proxy ownKeys",
        "const p = new Proxy({}, { ownKeys: () => Object.keys(p) }); const f = () => Object.keys(p)",
    ),
    (
        "proxy descriptor",
        "const p = new Proxy({}, { getOwnPropertyDescriptor: () => Object.hasOwn(p, 'x') }); const f = () => Object.hasOwn(p, 'x')",
    ),
    (
        "proxy define",
        "const p = new Proxy({}, { defineProperty: () => Reflect.defineProperty(p, 'x', {}) }); const f = () => Reflect.defineProperty(p, 'x', {})",
    ),
    (
        "proxy delete",
        "const p = new Proxy({}, { deleteProperty: () => delete p.x }); const f = () => delete p.x",
    ),
    (
        "proxy prototype",
        "const p = new Proxy({}, { getPrototypeOf: () => Object.getPrototypeOf(p) }); const f = () => Object.getPrototypeOf(p)",
    ),
    (
        "proxy apply",
        "const p = new Proxy(() => {}, { apply: () => p() }); const f = () => p()",
    ),
    (
        "proxy construct",
        "const P = new Proxy(class {}, { construct: () => new P() }); const f = () => new P()",
    ),
    (
        "proxy of proxies",
        "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); const f = () => p.x",
    ),
    (
        "prototypes",
        "let o = {}; for (let i = 0; i < 1e5; i++) o = Object.create(o); const f = () => o.x",
    ),
    ("replace", "const f = () => 'a'.replace('a', f)"),
    ("replaceAll", "const f = () => 'a'.replaceAll(/a/g, f)"),
    (
        "Symbol.replace",
        "const f = () => 'a'.replace({ [Symbol.replace]: f })",
    ),
    (
        "exec",
        "const r = /a/; r.exec = () => r.test('a'); const f = () => r.test('a')",
    ),
    (
        "lastIndex",
        "const r = /a/g; r.lastIndex = { valueOf: () => r.test('a') }; const f = () => r.test('a')",
    ),
    ("tag", "const f = () => f`x${1}`"),
    (
        "String.raw",
        "const f = () => String.raw({ raw: { get length() { return f() } } })",
    ),
    ("JSON.parse", "const f = () => JSON.parse('[1]', f)"),
    (
        "toJSON",
        "const o = { toJSON: () => JSON.stringify(o) }; const f = () => JSON.stringify(o)",
    ),
    (
        "stringify's function",
        "const f = () => JSON.stringify({ a: 1 }, f)",
    ),
    (
        "stringify a depth",
        "let o = {}; for (let i = 0; i < 1e5; i++) o = { o }; const f = () => JSON.stringify(o)",
    ),
    (
        "parse a depth",
        "const f = () => JSON.parse('['.repeat(1e6))",
    ),
    (
        "structuredClone",
        "const o = { get x() { return structuredClone(o) } }; const f = () => structuredClone(o)",
    ),
    (
        "clone a depth",
        "let o = {}; for (let i = 0; i < 1e5; i++) o = { o }; const f = () => structuredClone(o)",
    ),
    (
        "generator",
        "function* g() { yield* g() } const f = () => [...g()]",
    ),
    (
        "generator's return",
        "const o = { [Symbol.iterator]: () => ({ next: () => ({}), return: () => f() }) }; const f = () => { for (const x of o) break; return {} }",
    ),
    (
        "iterator helpers",
        "const f = () => [1].values().map(f).next()",
    ),
    ("Map", "const f = () => new Map([[1, 1]]).forEach(f)"),
    ("Set", "const f = () => new Set({ [Symbol.iterator]: f })"),
    ("groupBy", "const f = () => Object.groupBy([1], f)"),
    (
        "Object.assign",
        "const f = () => Object.assign({}, { get x() { return f() } })",
    ),
    (
        "Object.fromEntries",
        "const f = () => Object.fromEntries({ [Symbol.iterator]: f })",
    ),
    (
        "Object.defineProperties",
        "const f = () => Object.defineProperties({}, { get x() { return f() } })",
    ),
    ("Date", "const f = () => new Date({ valueOf: f })"),
    (
        "Error's cause",
        "const f = () => new Error('', { get cause() { return f() } })",
    ),
    ("async", "async function f() { await f() }"),
    (
        "async to its first await",
        "const f = async () => { f(); await 1 }",
    ),
    (
        "then",
        "const f = () => Promise.resolve({ get then() { return f() } })",
    ),
    ("Promise's function", "const f = () => new Promise(f)"),
    (
        "console",
        "const o = { get x() { console.log(o); return o.x } }; const f = () => o.x",
    ),
    (
        "queueMicrotask at depth",
        "const f = () => { queueMicrotask(f); f() }",
    ),
];

fn bounded(script: &str, bounds: GuestBounds) -> RunResult {
    drive(&start(script), bounds, echo)
}

/// Returns whether a run ended at a limit. Fails if the run waits or the engine failed.
#[track_caller]
fn is_at_a_limit(name: &str, told: &RunResult) -> bool {
    match &told.end {
        RunEnd::State(StepState::Waiting { .. }) => panic!("{name} still waits"),
        RunEnd::State(StepState::StackExhausted) | RunEnd::Stopped(GuestStop::Limit { .. }) => true,
        RunEnd::State(_) => false,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn reentrant_builtins_cannot_overflow_host_stack() {
    let bounds = GuestBounds {
        cpu_ms_max: 300,
        ..BOUNDS
    };
    let mut ended_otherwise = Vec::new();
    for (name, script) in REENTRANT {
        let uncaught = bounded(&format!("{script}\nreturn typeof await f()"), bounds);
        if !is_at_a_limit(name, &uncaught) {
            ended_otherwise.push(name);
        }
        // The script catches the error and continues.
        let caught = format!(
            "{script}\nlet said = 0; try {{ await f() }} catch {{ said = 1 }}\nreturn [1, said].length"
        );
        let told = bounded(&caught, bounds);
        is_at_a_limit(name, &told);
        if let RunEnd::State(StepState::Done { value }) = &told.end {
            assert_eq!(value, b"2", "{name}");
        }
        let next = run("return [3, 1, 2].sort().join()").value();
        assert_eq!(next, "\"1,2,3\"", "after {name}");
    }
    // Some scripts end for another reason, such as a promise that is never settled.
    assert!(ended_otherwise.len() <= 8, "{ended_otherwise:?}");
}

/// Allocates blocks of each size until memory runs out. For each size, another block is the one
/// that does not fit.
#[test]
fn memory_limit_can_hit_any_block_size() {
    let mut ends = 0;
    for bytes in [
        8, 16, 24, 40, 64, 120, 248, 400, 500, 520, 1_000, 4_000, 16_000, 70_000, 1_000_000,
    ] {
        for memory_mib in [8_u64, 10, 13] {
            let bounds = GuestBounds {
                memory_bytes_max: memory_mib * 1024 * 1024,
                ..BOUNDS
            };
            // Strings, objects, typed arrays, and the growing array that holds them.
            let script = format!(
                "const kept = [];
                 for (let i = 0; ; i++) {{
                   const text = String(i).padEnd({bytes}, 'x');
                   kept.push(text + '!', {{ i, text }}, new Uint8Array({bytes}), [text], () => i, new Map([[i, i]]));
                 }}"
            );
            let told = bounded(&script, bounds);
            let is_memory = matches!(
                &told.end,
                RunEnd::Stopped(GuestStop::Limit {
                    limit: Limit::Memory,
                    ..
                })
            );
            assert!(
                is_memory,
                "{bytes} bytes of {memory_mib} MiB: {:?}",
                told.end
            );
            ends += 1;
            assert_eq!(run("return 'abc'.repeat(3).length").value(), "9");
        }
    }
    assert_eq!(ends, 45);
}

/// A result that exceeds the memory ends the run while it is decoded.
#[test]
fn memory_limit_can_hit_while_reading_result() {
    let rows =
        "{\"id\":1,\"name\":\"a text of some length\",\"tags\":[\"a\",\"b\"],\"at\":{\"x\":1.5}},";
    let script = "const text = await logs.search({}); return text.length";
    let mut stopped = 0;
    for count in [1_000, 20_000, 40_000, 60_000, 80_000] {
        let result = format!("[{}0]", rows.repeat(count));
        let bounds = GuestBounds {
            memory_bytes_max: 16 * 1024 * 1024,
            ..BOUNDS
        };
        let told = drive(&start(script), bounds, |_| {
            Some(Outcome::Value(result.clone().into_bytes()))
        });
        match &told.end {
            RunEnd::State(StepState::Done { value }) => {
                assert_eq!(*value, (count + 1).to_string().as_bytes())
            }
            RunEnd::Stopped(GuestStop::Limit {
                limit: Limit::Memory,
                ..
            }) => stopped += 1,
            other => panic!("{count}: {other:?}"),
        }
    }
    assert!((1..5).contains(&stopped), "{stopped}");
    assert_eq!(run("return 1 + 1").value(), "2");
}

/// Each script fails in one way only, no matter which scripts ran before.
const BAD: &[(&str, AbuseEnd)] = &[
    (
        "function f() { return f() + 1 } return f()",
        AbuseEnd::Stack,
    ),
    (
        "return 'x'.repeat(2 ** 29).split('')",
        AbuseEnd::Limit(Limit::Memory),
    ),
    (
        "throw new Error('as it should')",
        AbuseEnd::Failed("Error", "as it should"),
    ),
    ("await new Promise(() => {})", AbuseEnd::Deadlock),
    (
        "const a = []; a.push(a); return a",
        AbuseEnd::Failed("TypeError", "itself"),
    ),
    (
        "let o = {}; for (let i = 0; i < 3e4; i++) o = { o }; return JSON.stringify(o).length",
        AbuseEnd::Limit(Limit::Stack),
    ),
    (
        "return null.member",
        AbuseEnd::Failed("TypeError", "cannot read `member` of null"),
    ),
    ("syntax error (", AbuseEnd::Failed("SyntaxError", "")),
    ("for (;;) {}", AbuseEnd::Limit(Limit::Cpu)),
    (
        "const a = []; for (;;) a.push(new Uint8Array(70_000))",
        AbuseEnd::Limit(Limit::Memory),
    ),
    (
        "return new Array(60_000).fill('a text of some length')",
        AbuseEnd::ValueTooLarge,
    ),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum AbuseEnd {
    Stack,
    Deadlock,
    ValueTooLarge,
    Limit(Limit),
    /// The name of the error, and a part of its message.
    Failed(&'static str, &'static str),
}

impl AbuseEnd {
    fn is_of(self, end: &RunEnd) -> bool {
        match (self, end) {
            (Self::Stack, RunEnd::State(StepState::StackExhausted))
            | (Self::Deadlock, RunEnd::State(StepState::Deadlocked))
            | (Self::ValueTooLarge, RunEnd::State(StepState::ValueTooLarge)) => true,
            (Self::Limit(expected), RunEnd::Stopped(GuestStop::Limit { limit, .. })) => {
                *limit == expected
            }
            (Self::Failed(name, said), RunEnd::State(StepState::Failed(error))) => {
                error.name == name && error.message.contains(said)
            }
            _ => false,
        }
    }
}

#[test]
fn ten_thousand_runs_with_traps_are_each_correct() {
    let tight = GuestBounds {
        memory_bytes_max: 12 * 1024 * 1024,
        ..BOUNDS
    };
    let mut wrong = 0;
    for turn in 0..10_000_u32 {
        if turn % 20 == 7 {
            let (script, ending) = BAD[turn as usize / 20 % BAD.len()];
            // A script that never ends is stopped soon. The others have enough time.
            let cpu_ms_max = match ending {
                AbuseEnd::Limit(Limit::Cpu) => 20,
                _ => tight.cpu_ms_max,
            };
            let told = bounded(
                script,
                GuestBounds {
                    cpu_ms_max,
                    ..tight
                },
            );
            assert!(ending.is_of(&told.end), "{script}: {:?}", told.end);
            wrong += 1;
        } else {
            let mut start = start("return [input, [input].map((x) => x * 2)[0]]");
            start.input = turn.to_string().into_bytes();
            let mut guest = SANDBOX.guest(BOUNDS, &StopHandle::default());
            let step = guest.start(&start).unwrap();
            let StepState::Done { value } = step.state else {
                panic!("turn {turn}: {:?}", step.state)
            };
            assert_eq!(
                String::from_utf8(value).unwrap(),
                format!("[{turn},{}]", turn * 2)
            );
        }
    }
    assert_eq!(wrong, 500);
}
