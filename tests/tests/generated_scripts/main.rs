//! Sends hostile scripts from the grammar to the broker over HTTP, over stdio and through commands.
//! The broker must not crash, no script may exceed its limits, and a good session must not be
//! delayed.
//!
//! `cargo xtask bench hostile` runs this test on a release build, with 100,000 scripts, and checks
//! the figures against their limits. `cargo test` tries a few hundred scripts, and checks only
//! results that do not depend on the machine.

mod grammar;

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use airlock_sandbox::thread_priority;
use grammar::{SHAPES, Script, Shape, bombs, script};
use serde_json::{Value, json};
use tests::command::Home;
use tests::patience::is_measured;
use tests::process::Process;
use tests::serving::{HttpResponse, ServeProcess, Session};
use tests::stdio_host::StdioHost;

/// CPU limit of each run.
const CPU_MAX: Duration = Duration::from_secs(1);
const MEMORY_MAX: u64 = 256 * MIB;
const LIMITS: [&str; 4] = ["--limit", "cpu=1s", "--limit", "memory=256MiB"];
/// CPU time that the process may use in addition to the limit of one run.
const CPU_BESIDE: Duration = Duration::from_millis(250);
const MEMORY_BESIDE: u64 = 16 * MIB;
const MIB: u64 = 1024 * 1024;

const SCRIPTS_IN_A_TEST: u64 = 400;
/// One in this many scripts is passed to `airlock check`, and another one to `airlock run`.
const COMMANDS_ONE_OF: u64 = 50;

/// Number of sessions that send hostile scripts while a good session measures its times.
const HOSTILE_SESSIONS: usize = 64;
/// Maximum factor by which hostile sessions may slow down a good session.
const LATER_MAX: f64 = 5.0;

fn script_count() -> u64 {
    let given = std::env::var("AIRLOCK_SCRIPTS").ok();
    given.map_or(SCRIPTS_IN_A_TEST, |it| it.parse().expect("a number"))
}

#[test]
fn generated_scripts_end_within_their_limits_and_never_end_the_broker() {
    let count = script_count();
    let half = count / 2;
    let since = Instant::now();
    let (over_http, over_stdio, commands) = thread::scope(|scope| {
        let http = scope.spawn(move || through_http(0..half));
        let stdio = scope.spawn(move || through_stdio(half..count));
        let commands = through_commands(count);
        (http.join(), stdio.join(), commands)
    });
    let over_http = over_http.expect("no failure over HTTP");
    let over_stdio = over_stdio.expect("no failure over stdio");
    println!("{count} scripts in {:.0?}", since.elapsed());
    println!("serve --http: {over_http}");
    println!("serve:        {over_stdio}");
    println!("check, run:   {commands} scripts");
    for worst in [over_http, over_stdio] {
        worst.is_within_limits();
    }
}

/// The highest cost of a single script.
#[derive(Debug, Default)]
struct Worst {
    scripts: u64,
    cpu: (Duration, u64),
    memory_bytes: (u64, u64),
    wall: (Duration, u64),
}

impl Worst {
    /// Sends one script and records the time and memory that the process used for it.
    fn note(&mut self, number: u64, broker: Process, send: impl FnOnce()) {
        broker.forget_peak();
        let since = Instant::now();
        let before = (broker.cpu(), broker.resident_bytes());
        send();
        let after = (broker.cpu(), broker.peak_bytes());
        assert!(after.0.is_some(), "the broker ended at script {number}");
        let cpu = after.0.zip(before.0).map(|(after, before)| after - before);
        let memory = after.1.zip(before.1);
        let memory = memory.map(|(after, before)| after.saturating_sub(before));
        self.scripts += 1;
        self.cpu = self.cpu.max((cpu.unwrap_or_default(), number));
        self.memory_bytes = self.memory_bytes.max((memory.unwrap_or_default(), number));
        self.wall = self.wall.max((since.elapsed(), number));
    }

    fn is_within_limits(&self) {
        let (memory, number) = self.memory_bytes;
        assert!(
            memory <= MEMORY_MAX + MEMORY_BESIDE,
            "script {number} took {memory} bytes"
        );
        let (cpu, number) = self.cpu;
        assert!(
            !is_measured() || cpu <= CPU_MAX + CPU_BESIDE,
            "script {number} took {cpu:?} of processor time"
        );
    }
}

impl fmt::Display for Worst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} scripts; at most {:.0?} of the processor (script {}), {} MiB (script {}), {:.0?} \
             until the answer (script {})",
            self.scripts,
            self.cpu.0,
            self.cpu.1,
            self.memory_bytes.0 / MIB,
            self.memory_bytes.1,
            self.wall.0,
            self.wall.1
        )
    }
}

/// Returns the bombs first, then the scripts with these numbers. With `AIRLOCK_SCRIPT=8444`, returns
/// only script 8444.
fn scripts(numbers: impl Iterator<Item = u64>) -> impl Iterator<Item = (u64, Script)> {
    let only = std::env::var("AIRLOCK_SCRIPT").ok();
    let only: Option<u64> = only.map(|it| it.parse().expect("a number"));
    let bombs = bombs().into_iter().map(|script| (u64::MAX, script));
    let bombs = bombs.filter(move |_| only.is_none());
    let numbers = numbers.filter(move |number| only.is_none_or(|it| it == *number));
    bombs.chain(numbers.map(|number| (number, script(number))))
}

fn through_http(numbers: Range<u64>) -> Worst {
    let serving = ServeProcess::start(serve_arguments());
    let session = serving.session(&json!({}));
    let broker = serving.process();
    let mut worst = Worst::default();
    for (id, (number, script)) in (1..).zip(scripts(numbers)) {
        worst.note(number, broker, || {
            let page = session.begin(id, "tools/call", &run_script(&script.text));
            is_clear(&answer(page, id), number);
        });
    }
    assert!(is_good(&session.run(0, GOOD_SCRIPT)));
    worst
}

fn through_stdio(numbers: Range<u64>) -> Worst {
    let home = Home::new();
    let mut host = StdioHost::start(&mut home.serve(serve_arguments()), &json!({}));
    let broker = Process(host.pid());
    let mut worst = Worst::default();
    for (number, script) in scripts(numbers) {
        worst.note(number, broker, || {
            let id = host.ask("tools/call", &run_script(&script.text));
            let answer = host.wait_for(|it| it["id"] == id && it["method"].is_null());
            is_clear(&answer, number);
        });
    }
    assert!(is_good(
        &host.call("run_script", &json!({"code": GOOD_SCRIPT}))
    ));
    worst
}

/// Passes scripts to `airlock check` and `airlock run`, and returns their number.
fn through_commands(count: u64) -> u64 {
    let home = Home::new();
    let numbers = (0..count).step_by(COMMANDS_ONE_OF as usize);
    let mut read = 0;
    for (number, script) in scripts(numbers) {
        let path = home.write("script.ts", &script.text);
        let path = path.to_str().expect("a UTF-8 path");
        let ended = home.run(["check", path]);
        assert!(
            matches!(ended.code, Some(0 | 20)),
            "`airlock check`, script {number}: {ended:.2000}"
        );
        let ended = home.run([&["run", path], &LIMITS[..]].concat());
        // 0: the script ended; 20: it failed or was not started; 21: it reached a limit.
        assert!(
            matches!(ended.code, Some(0 | 20 | 21)),
            "`airlock run`, script {number}: {ended:.2000}"
        );
        assert!(ended.code == Some(0) || !ended.stderr.is_empty());
        read += 1;
    }
    read
}

#[test]
fn good_session_is_answered_beside_each_class_of_hostile_scripts() {
    // A p99 of 400 answers differed by a factor of two between runs.
    let rounds = if is_measured() { 1_500 } else { 5 };
    let serving = ServeProcess::start(serve_arguments());
    let good = serving.session(&json!({}));
    // The good host does not wait for the hostile ones either, as if it ran on another machine.
    thread_priority::run_soon();
    // The first runs load shared resources, so they are not measured.
    p99(&good, 5);
    let alone = p99(&good, rounds);
    println!("good session alone: p99 {alone:.1?}");
    let mut delayed = Vec::new();
    let only = std::env::var("AIRLOCK_CLASS").unwrap_or_default();
    for class in classes().into_iter().filter(|it| it.name.contains(&only)) {
        let beside = beside(&serving, &good, &class.scripts, rounds);
        let later = beside.as_secs_f64() / alone.as_secs_f64();
        println!("beside {}: p99 {beside:.1?}, {later:.1} times", class.name);
        if is_measured() && later > LATER_MAX {
            delayed.push(class.name);
        }
    }
    assert!(
        delayed.is_empty(),
        "more than {LATER_MAX} times: {delayed:?}"
    );
}

struct Class {
    name: String,
    scripts: Vec<String>,
}

fn classes() -> Vec<Class> {
    let each_shape = SHAPES.map(|shape| Class {
        name: format!("{shape:?}").to_lowercase(),
        scripts: of_shape(shape),
    });
    let bombs = Class {
        name: "parser bombs".to_owned(),
        scripts: bombs().into_iter().map(|it| it.text).collect(),
    };
    let computing = [
        ("endless loops", "for (;;);"),
        (
            "growing memory",
            "const all = []; for (;;) all.push(new Array(1000).fill(all.length));",
        ),
        ("endless recursion", "const f = () => f() + 1; return f()"),
        (
            "endless failures",
            "for (;;) try { null.a } catch (e) { String(e.stack) }",
        ),
        (
            "floods of calls",
            "await Promise.all(Array.from({length: 5000}, () => demo.logs_query({})))",
        ),
    ];
    let computing = computing.map(|(name, script)| Class {
        name: name.to_owned(),
        scripts: vec![script.to_owned()],
    });
    each_shape
        .into_iter()
        .chain([bombs])
        .chain(computing)
        .collect()
}

fn of_shape(shape: Shape) -> Vec<String> {
    let scripts = (0..).map(script).filter(|it| it.shape == shape);
    scripts.take(200).map(|it| it.text).collect()
}

/// Returns the answer times of a good session while others constantly send hostile scripts.
fn beside(serving: &ServeProcess, good: &Session, scripts: &[String], rounds: usize) -> Duration {
    let is_over = AtomicBool::new(false);
    let sessions = if is_measured() { HOSTILE_SESSIONS } else { 4 };
    thread::scope(|scope| {
        for sender in 0..sessions {
            let session = serving.session(&json!({}));
            let is_over = &is_over;
            scope.spawn(move || {
                // The hostile hosts get low priority, as if they ran on other machines.
                thread_priority::give_way();
                let _ = rustix::process::setpriority_process(None, 19);
                for (id, script) in (1..).zip(scripts.iter().cycle().skip(sender * 3)) {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let page = session.begin(id, "tools/call", &run_script(script));
                    is_clear(&answer(page, id), id);
                }
            });
        }
        // Waits until the senders are active.
        thread::park_timeout(Duration::from_millis(300));
        let p99 = std::panic::catch_unwind(|| p99(good, rounds));
        is_over.store(true, Ordering::Relaxed);
        p99.expect("a result of each good run")
    })
}

const GOOD_SCRIPT: &str = "const { entries } = await demo.logs_query({ level: 'error', limit: 1 }); return entries.length";

fn p99(good: &Session, rounds: usize) -> Duration {
    let mut took: Vec<Duration> = (1..=rounds as u64)
        .map(|id| {
            let since = Instant::now();
            let result = good.run(id, GOOD_SCRIPT);
            assert!(is_good(&result), "{result}");
            since.elapsed()
        })
        .collect();
    took.sort_unstable();
    took[(rounds - 1) * 99 / 100]
}

fn is_good(result: &Value) -> bool {
    result["isError"] != true
}

fn serve_arguments() -> Vec<&'static str> {
    [&["--demo", "--allow", "demo.*"], &LIMITS[..]].concat()
}

fn run_script(code: &str) -> Value {
    json!({"name": "run_script", "arguments": {"code": code}})
}

/// Returns the response to this request, or the error for the HTTP status.
fn answer(mut page: HttpResponse, id: u64) -> Value {
    let status = page.status;
    while let Some(message) = page.next_message() {
        if message["id"] == id && message.get("method").is_none() || status != 200 {
            return message;
        }
    }
    json!({"error": {"message": format!("no answer, status {status}")}, "status": status})
}

/// Checks that the answer to a hostile script is clear and not too long.
fn is_clear(answer: &Value, number: u64) {
    let text = match answer.get("error") {
        Some(error) => error["message"].as_str(),
        None => answer["result"]["content"][0]["text"].as_str(),
    };
    let text = text.unwrap_or_default();
    assert!(
        !text.is_empty() && text.len() < 200_000 && answer["status"].is_null(),
        "script {number}: {answer:.2000}"
    );
}
