//! Tests that each way to exceed a limit ends the run with that limit, and that the next run is
//! correct.

use std::time::{Duration, Instant};

use airlock_core::effect::{GuestStop, Whereabouts};
use airlock_core::limits::Limit;
use airlock_sandbox::{GuestBounds, StopHandle};
use sandbox_protocol::{CallOutcome, Resume, StepState};

use crate::harness::{
    BOUNDS, NOW_MS, RunEnd, RunResult, SANDBOX, by_engine, drive, echo, run, soon, start,
};

fn short(script: &str) -> RunResult {
    let bounds = GuestBounds {
        cpu_ms_max: 200,
        ..BOUNDS
    };
    over(script, bounds)
}

fn over(script: &str, bounds: GuestBounds) -> RunResult {
    let begun = Instant::now();
    let told = drive(&start(script), bounds, echo);
    assert!(begun.elapsed() < Duration::from_secs(600), "{script}");
    assert_eq!(run("return 1 + 1").value(), "2");
    told
}

#[track_caller]
fn stopped_by(script: &str, limit: Limit) {
    let told = match limit {
        Limit::Cpu => short(script),
        _ => over(script, BOUNDS),
    };
    match told.end {
        RunEnd::Stopped(GuestStop::Limit { limit: found, .. }) if found == limit => {}
        RunEnd::State(StepState::StackExhausted) if limit == Limit::Stack => {}
        other => panic!("{script:.200}: {other:?}"),
    }
}

#[test]
fn endless_loop_hits_cpu_limit() {
    for script in [
        "for (;;) {}",
        "while (true) try { throw 1 } catch {}",
        "try { for (;;) {} } finally { for (;;) {} }",
        "(function l() { Promise.resolve().then(l) })(); await new Promise(() => {})",
        "function f() { for (let i = 0; i < 1e5; i++); } for (;;) f()",
        "/^(a+)+$/.test('a'.repeat(40) + '!')",
        "const t = { then(r) { r(t) } }; await t",
        "return { toJSON() { for (;;) {} } }",
    ] {
        stopped_by(script, Limit::Cpu);
    }
}

/// Returns where a script was when it reached a limit. The second look has little time, so on a
/// busy or slow machine it may find nothing. Then the run is repeated with the next limit.
fn met(script: &str, cpu_ms_max: [u64; 5]) -> Whereabouts {
    let mut looks = cpu_ms_max.into_iter();
    let found = looks.find_map(|cpu_ms_max| looked_for(script, cpu_ms_max));
    found.unwrap_or_else(|| panic!("{script}: no position"))
}

fn looked_for(script: &str, cpu_ms_max: u64) -> Option<Whereabouts> {
    let bounds = GuestBounds {
        cpu_ms_max,
        memory_bytes_max: 40 * 1024 * 1024,
        ..BOUNDS
    };
    let mut guest = SANDBOX.guest(bounds, &StopHandle::default());
    let mut turn = guest.start(&start(script));
    while let Ok(step) = &turn
        && matches!(step.state, StepState::Waiting { .. })
    {
        let answers = step.calls.iter().map(|call| CallOutcome {
            ticket: call.ticket,
            outcome: echo(call).unwrap(),
        });
        let outcomes = answers.collect();
        turn = guest.resume(&Resume {
            now_ms: NOW_MS,
            outcomes,
        });
    }
    guest.whereabouts().cloned()
}

#[test]
fn limit_reports_script_position() {
    let place = |script: &str| {
        let met = met(script, [200, 200, 200, 1_000, 4_000]);
        (met.line, met.column)
    };
    assert_eq!(place("let n = 0;\nfor (;;)\n  { n += 1 }"), (3, 5));
    assert_eq!(
        place("const a = [];\nwhile (1) {\n  a.push('x'.repeat(9999) + a.length)\n}"),
        (3, 3)
    );
    assert_eq!(
        place("return await logs.search({})\n  .then(() => { for (;;) Math.max() })"),
        (2, 17)
    );
    let up = "const up = (n) => down(n + 1);\nconst down = (n) => up(n);\nup(1)";
    let deep = met(up, [20_000; 5]);
    assert_eq!(
        deep.doing,
        "`up` of line 1 and `down` of line 2 call each other without end"
    );
    assert_eq!(deep.stack, "    at up (script.js:1:12)");
}

#[test]
fn second_look_ends_soon_after_deadline() {
    soon(Duration::from_millis(200 + 600), || {
        let bounds = GuestBounds {
            deadline_at_ms: host_now_ms() + 200,
            ..BOUNDS
        };
        drive(&start("for (;;) {}"), bounds, echo);
    });
}

/// The engine and the machine determine which limit comes first.
#[test]
fn endless_array_growth_ends() {
    let end = short("Array.from({ length: 2 ** 31 }, () => {})").end;
    let RunEnd::Stopped(GuestStop::Limit { limit, .. }) = &end else {
        panic!("{end:?}")
    };
    assert!(matches!(limit, Limit::Cpu | Limit::Memory), "{end:?}");
}

#[test]
fn memory_bomb_hits_memory_limit() {
    for script in [
        "const a = []; for (;;) a.push(new Array(1e5).fill(1))",
        "const a = []; for (;;) a.push({ a: 1 })",
        "const a = []; for (let n = 0;; n++) a.push(`text ${n}`.repeat(100))",
        "return 'ab'.padEnd(2 ** 29, 'cd')",
    ] {
        let bounds = GuestBounds {
            cpu_ms_max: 20_000,
            ..BOUNDS
        };
        let told = drive(&start(script), bounds, echo);
        assert!(
            matches!(
                told.end,
                RunEnd::Stopped(GuestStop::Limit {
                    limit: Limit::Memory,
                    ..
                })
            ),
            "{script}: {:?}",
            told.end
        );
    }
    assert_eq!(run("return 1 + 1").value(), "2");
}

/// QuickJS checks the length of a string before it allocates memory, and concatenation allocates
/// none.
#[test]
fn endless_string_growth_ends() {
    for (script, ended) in [
        (
            "let s = 'x'; for (;;) s += s",
            by_engine("Memory", "InternalError"),
        ),
        (
            "let s = 'x'; for (;;) s = s + s",
            by_engine("Memory", "InternalError"),
        ),
        ("return 'x'.repeat(2 ** 30)", "RangeError"),
        ("return 'x'.padStart(2 ** 30)", "RangeError"),
    ] {
        let end = format!("{:?}", over(script, BOUNDS).end);
        assert!(end.contains(ended), "{script}: {end}");
    }
}

#[test]
fn enormous_buffer_throws() {
    assert_eq!(
        run("try { new ArrayBuffer(2 ** 31) } catch (e) { return e.name }").value(),
        "\"RangeError\""
    );
}

#[test]
fn recursion_hits_stack_limit() {
    for script in [
        "function f() { f() } f()",
        "const o = { get x() { return this.x } }; o.x",
        "const p = new Proxy({}, { get(t, k, r) { return r[k] } }); p.x",
        "function f() { [1].map(f) } f()",
        "async function f() { await f() } await f()",
        "const o = { get x() { return `${this.x}` } }; o.x",
        "function f() { return JSON.stringify({ toJSON: f }) } f()",
        "class A { constructor() { new A() } } new A()",
        "function f() { [3, 1, 2].sort(f) } f()",
    ] {
        stopped_by(script, Limit::Stack);
    }
}

/// The script retries at every level, so it computes and creates errors until a limit.
#[test]
fn recursion_catching_its_own_error_ends() {
    let told = short("function f() { try { f() } catch { f() } } f()");
    let RunEnd::Stopped(GuestStop::Limit { limit, .. }) = &told.end else {
        panic!("{:?}", told.end);
    };
    assert!(matches!(limit, Limit::Cpu | Limit::Memory), "{limit:?}");
}

#[test]
fn caught_recursion_is_an_error() {
    for script in [
        "function f() { return 1 + f() } try { f() } catch (e) { return e.name }",
        "const f = (n) => { f(n + 1) }; try { f(0) } catch (e) { return e.name }",
        "class A { constructor() { new A() } } try { new A() } catch (e) { return e.name }",
    ] {
        assert_eq!(run(script).value(), "\"RangeError\"", "{script}");
    }
    stopped_by(
        "function f() { f() } try { f() } catch (e) { throw e }",
        Limit::Stack,
    );
}

#[test]
fn long_promise_chain_is_drained() {
    let told = run(
        "let p = Promise.resolve(0); for (let i = 0; i < 1e4; i++) p = p.then((n) => n + 1); return await p",
    );
    assert_eq!(told.value(), "10000");
}

#[test]
fn deeply_nested_source_is_a_syntax_error() {
    for script in [
        "(".repeat(100_000),
        "[".repeat(100_000),
        format!("{}1{}", "(".repeat(703), ")".repeat(703)),
        format!("{}1", "!".repeat(100_000)),
        format!("{}1", "a=>".repeat(50_000)),
        format!("return {}", "`${".repeat(10_000)),
        "{".repeat(100_000),
    ] {
        assert_eq!(run(&script).error().name, "SyntaxError", "{script:.20}");
    }
}

#[test]
fn deep_source_of_other_kinds_ends() {
    for script in [
        format!("return 1{}", "+1".repeat(200_000)),
        format!("return a{}", ".a".repeat(200_000)),
        format!("{} 1", "if (1) ".repeat(20_000)),
        format!("return a{}", "?1:a".repeat(20_000)),
        format!("return f{}", "()".repeat(100_000)),
        "a:".repeat(20_000),
        format!("{};", "else if(1){}".repeat(10_000)),
        format!("return /{}a{}/", "(".repeat(50_000), ")".repeat(50_000)),
        format!("let {}a{} = 1", "[".repeat(10_000), "]".repeat(10_000)),
        format!("return JSON.parse('{}')", "[".repeat(100_000)),
        "new ".repeat(50_000),
        "return ".to_owned() + &"x = ".repeat(50_000) + "1",
        "return ".to_owned() + &"2 ** ".repeat(50_000) + "1",
    ] {
        match run(&script).end {
            RunEnd::State(StepState::Failed(_))
            | RunEnd::Stopped(_)
            | RunEnd::State(StepState::Done { .. }) => {}
            other => panic!("{script:.20}: {other:?}"),
        }
        assert_eq!(run("return 1 + 1").value(), "2");
    }
}

#[test]
fn ordinary_method_chain_works() {
    let sum = format!("return 0{}", " + 1".repeat(1_000));
    assert_eq!(run(&sum).value(), "1000");
    let nested = format!("return {}1{}", "[".repeat(100), "]".repeat(100));
    assert!(run(&nested).value().starts_with("[[["));
    let ifs = format!(
        "let x = 1; if (x === 0) {{}} {} return x",
        "else if (x === 2) { x = 3; }".repeat(200)
    );
    assert_eq!(run(&ifs).value(), "1");
}

#[test]
fn output_flood_is_kept_counted_and_stopped() {
    let mut start = start("for (;;) console.log('x'.repeat(1e4))");
    start.limits.console_flood_bytes_max = 2_000_000;
    let told = drive(&start, BOUNDS, echo);
    assert!(
        matches!(told.end, RunEnd::State(StepState::OutputFlood)),
        "{:?}",
        told.end
    );
    let kept: usize = told.console.iter().map(|line| line.len() + 1).sum();
    assert_eq!(kept, 262_144, "bytes of all lines with their line breaks");

    start.script = "try { for (;;) console.log('x'.repeat(1e4)) } catch { return 'caught' } finally { return 'finally' }".to_owned();
    assert!(matches!(
        drive(&start, BOUNDS, echo).end,
        RunEnd::State(StepState::OutputFlood)
    ));
}

#[test]
fn no_code_runs_after_output_flood() {
    let flood = "for (;;) console.log('x'.repeat(1e4))";
    for script in [
        format!("new Promise(() => {{ {flood} }}); await logs.tail({{}})"),
        format!("new Promise(() => {{ {flood} }}).catch(() => {{}}); logs.tail({{}})"),
        format!("(async () => {{ {flood} }})().catch(() => {{}}); logs.tail({{}}); for (;;) {{}}"),
        format!("const p = new Promise(() => {{ {flood} }}); while (true) logs.tail({{}})"),
        format!("Promise.try(() => {{ {flood} }}); logs.tail({{}})"),
        format!("await Promise.resolve().then(() => {{ {flood} }}).catch(() => logs.tail({{}}))"),
        format!(
            "setTimeout(() => {{ {flood} }}); await new Promise((r) => setTimeout(r, 9)); logs.tail({{}})"
        ),
        format!(
            "for (const x of {{ [Symbol.iterator]: () => ({{ next: () => ({{ value: 1 }}), return() {{ {flood} }} }}) }}) break; logs.tail({{}})"
        ),
        format!(
            "await Array.fromAsync([1], () => {{ {flood} }}).catch(() => {{}}); logs.tail({{}})"
        ),
    ] {
        let mut start = start(&script);
        start.limits.console_flood_bytes_max = 400_000;
        let told = drive(&start, BOUNDS, echo);
        let RunEnd::State(StepState::OutputFlood) = told.end else {
            panic!("{script}: {:?}", told.end);
        };
        assert_eq!(told.args(), [] as [&str; 0], "{script}");
    }
    assert_eq!(run("return 1 + 1").value(), "2");
}

#[test]
fn empty_lines_count_towards_output() {
    let mut start = start("for (;;) console.log('')");
    start.limits.console_bytes_max = 1_000;
    start.limits.console_flood_bytes_max = 20_000;
    let told = drive(&start, BOUNDS, echo);
    assert!(
        matches!(told.end, RunEnd::State(StepState::OutputFlood)),
        "{:?}",
        told.end
    );
    assert_eq!(told.console.len(), 1_000);
}

#[test]
fn output_before_the_end_is_delivered() {
    for script in [
        "for (;;) {}",
        "const a = []; for (;;) a.push(new Array(1e5).fill(1))",
        "const a = []; for (;;) a.push('x'.repeat(1e6 + a.length))",
        "let deep = []; for (let i = 0; i < 1e5; i++) deep = [deep]; JSON.stringify(deep)",
    ] {
        let told = short(&format!("console.log('before');\n{script}"));
        assert!(
            matches!(told.end, RunEnd::Stopped(_)),
            "{script}: {:?}",
            told.end
        );
        assert_eq!(told.console, ["before"], "{script}");
    }
}

#[test]
fn deadline_stops_computing_guest() {
    soon(Duration::from_millis(350), || {
        let mut guest = SANDBOX.guest(BOUNDS, &StopHandle::default());
        guest.stop_at_ms(host_now_ms() + 100);
        let stop = guest.start(&start("for (;;) {}")).unwrap_err();
        assert!(
            matches!(
                stop,
                GuestStop::Limit {
                    limit: Limit::Time,
                    ..
                }
            ),
            "{stop:?}"
        );
    });
}

fn host_now_ms() -> u64 {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    since.as_millis() as u64
}

#[test]
fn stop_handle_stops_computing_guest() {
    soon(Duration::from_millis(300), || {
        let stop = StopHandle::default();
        let mut guest = SANDBOX.guest(BOUNDS, &stop);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                stop.stop();
            });
            let stopped = guest
                .start(&start("try { for (;;) {} } catch { for (;;) {} }"))
                .unwrap_err();
            assert!(matches!(stopped, GuestStop::Interrupted { .. }));
        });
        let mut late = SANDBOX.guest(BOUNDS, &stop);
        let stopped = late.start(&start("return 1")).unwrap_err();
        assert!(matches!(stopped, GuestStop::Interrupted { .. }));
    });
}

#[test]
fn cpu_time_accumulates_over_steps() {
    let bounds = GuestBounds {
        cpu_ms_max: 150,
        ..BOUNDS
    };
    let told = drive(
        &start("for (;;) { for (let i = 0; i < 2e4; i++); await logs.tail({}) }"),
        bounds,
        echo,
    );
    assert!(
        matches!(
            told.end,
            RunEnd::Stopped(GuestStop::Limit {
                limit: Limit::Cpu,
                ..
            })
        ),
        "{:?}",
        told.end
    );
    assert!(told.calls.len() > 1);
    // On a busy machine the thread that stops the guest may run late.
    assert!(
        (150_000..2_000_000).contains(&told.usage.guest_cpu_us),
        "{:?}",
        told.usage
    );
}

#[test]
fn runs_are_isolated() {
    assert_eq!(
        run("globalThis.canary = 'secret'; Array.prototype.x = 1; Symbol.for('c'); return 1")
            .value(),
        "1"
    );
    assert_eq!(
        run("return [typeof canary, [].x, input]").value(),
        "[\"undefined\",null,null]"
    );
}

#[test]
fn sleep_takes_no_host_time() {
    let told = run(
        "for (let i = 0; i < 100; i++) await new Promise((r) => setTimeout(r, 0)); return Date.now()",
    );
    assert_eq!(told.value(), (NOW_MS + 100).to_string());
}
