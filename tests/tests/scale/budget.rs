//! Tests many runs at once: their total cost, and that other hosts still get their share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::patience::{in_one_of_three, is_measured, wait_until};
use tests::serving::{ServeProcess, Session};

const MIB: u64 = 1024 * 1024;

/// Options with which no run reaches its own limits.
const PATIENT: [&str; 10] = [
    "--disclosure",
    "full",
    "--timeout",
    "20m",
    "--limit",
    "cpu=20m",
    "--limit",
    "queue-timeout=20m",
    "--limit",
    "runs-cpu=2",
];

fn serving(limits: &[&str]) -> ServeProcess {
    let limits = limits.iter().flat_map(|it| ["--limit", it]);
    let demo = ["--demo", "--allow", "demo.*"];
    ServeProcess::start(PATIENT.into_iter().chain(demo).chain(limits))
}

/// Returns a script that writes 225 MiB, and then waits. With what the sandbox needs itself, it
/// takes almost 256 MiB.
fn large(wait: &str) -> String {
    format!(
        "const one = new Uint8Array(1 << 20).fill(1), all = [];
        for (let n = 0; n < 225; n++) all.push(one.slice());
        {wait}
        return all.length"
    )
}

/// Runs a script in 24 sessions at once, and returns the reports.
fn in_24_sessions(serving: &ServeProcess, script: &str) -> Vec<Value> {
    thread::scope(|scope| {
        let run = || {
            let result = serving.session(&json!({})).run(1, script);
            result["structuredContent"].clone()
        };
        let runs: Vec<_> = (0..24).map(|_| scope.spawn(run)).collect();
        let reports = runs.into_iter().map(|it| it.join().expect("a report"));
        reports.collect()
    })
}

fn is_large_and_done(report: &Value) -> bool {
    let peak = report["usage"]["memory_bytes_peak"].as_u64().unwrap_or(0);
    report["status"] == "done" && peak > 225 * MIB && peak <= 256 * MIB
}

/// Checks the most memory that the process had, and that it returns to less than 100 MiB within ten
/// seconds, or later on a busy machine.
fn memory_is_returned(serving: &ServeProcess) {
    let process = serving.process();
    let most = process.peak_bytes().unwrap_or(0);
    let since = Instant::now();
    wait_until(|| process.resident_bytes().is_none_or(|it| it < 100 * MIB));
    let (wait, left) = (since.elapsed(), process.resident_bytes().unwrap_or(0));
    println!(
        "at most {} MiB resident; {} MiB after {wait:.1?}",
        most / MIB,
        left / MIB
    );
    assert!(most < 1_331 * MIB, "{} MiB", most / MIB);
    assert!(!is_measured() || wait < Duration::from_secs(10), "{wait:?}");
}

#[test]
fn runs_that_each_want_256_mib_stay_within_a_budget_and_leave_nothing_behind() {
    let serving = serving(&["runs-memory=1GiB"]);
    for report in in_24_sessions(&serving, &large("")) {
        assert!(is_large_and_done(&report), "{report}");
    }
    memory_is_returned(&serving);
}

#[test]
fn runs_that_get_no_memory_in_time_are_refused_and_those_that_fit_are_not() {
    let serving = serving(&["runs-memory=1GiB", "queue-timeout=1s"]);
    // A timer waits in real time once the run has made a call.
    let wait = "await demo.logs_services({}); await new Promise(wake => setTimeout(wake, 6_000));";
    let reports = in_24_sessions(&serving, &large(wait));
    let (done, refused): (Vec<_>, Vec<_>) = reports.iter().partition(|it| is_large_and_done(it));
    println!("{} runs done, {} refused", done.len(), refused.len());
    // Seven eighths of the budget are for growth, which is room for three of these runs. On a busy
    // machine, fewer of them grow in time.
    let fit = if is_measured() { 3 } else { 1 };
    assert!(done.len() >= fit, "{refused:?}");
    assert!(!refused.is_empty());
    for report in refused {
        assert_eq!(report["error"]["code"], "busy", "{report}");
        assert!(report["retry_after_ms"].is_u64(), "{report}");
    }
    memory_is_returned(&serving);
}

#[test]
fn endless_loops_do_not_keep_a_good_session_from_its_answers() {
    let serving = serving(&[]);
    let good = serving.session(&json!({}));
    let numbers = AtomicU64::new(0);
    let next = || numbers.fetch_add(1, Ordering::SeqCst);
    assert_eq!(good.run(next(), "return 1")["isError"], false);
    let alone = median(&good, next);
    // Dropping a response closes its connection, but the run continues.
    let loops: Vec<_> = (0..4)
        .flat_map(|_| {
            let hostile = serving.session(&json!({}));
            let code = json!({"name": "run_script", "arguments": {"code": "for (;;) {}"}});
            (0..16).map(move |id| hostile.begin_without_waiting(id, "tools/call", &code))
        })
        .collect();
    in_one_of_three(|| {
        let beside = median(&good, next);
        assert!(
            beside < 15 * alone + Duration::from_millis(30),
            "{alone:?} alone, {beside:?} beside {} loops",
            loops.len()
        );
    });
}

fn median(session: &Session, next: impl Fn() -> u64) -> Duration {
    let script = "let sum = 0; for (let n = 0; n < 100; n++) sum += n; return sum";
    let mut times: Vec<_> = (0..31)
        .map(|_| {
            let since = Instant::now();
            let result = session.run(next(), script);
            assert_eq!(result["structuredContent"]["value"], 4_950, "{result}");
            since.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// A message of 10 MB is accepted, and its script is refused without further copies.
#[test]
fn scripts_that_are_far_too_long_take_little_memory() {
    let serving = serving(&[]);
    let process = serving.process();
    let before = process.resident_bytes();
    let script = format!("{}return 1", "a<".repeat(5_000_000));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let result = serving.session(&json!({})).run(1, &script);
                assert_eq!(result["structuredContent"]["error"]["code"], "limit-source");
            });
        }
    });
    let most = process.peak_bytes().unwrap_or(0);
    let more = most.saturating_sub(before.unwrap_or(0));
    assert!(more < 400 * MIB, "{} MiB", more / MIB);
}
