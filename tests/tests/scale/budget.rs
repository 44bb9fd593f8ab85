//! Tests many runs at once: their total cost, and that other hosts still get their share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tests::patience::{in_one_of_three, wait_until};
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
    ServeProcess::start(PATIENT.into_iter().chain(limits))
}

#[test]
fn runs_that_each_want_256_mib_stay_within_a_budget_and_leave_nothing_behind() {
    let serving = serving(&["runs-memory=1GiB"]);
    // The script writes the memory instead of only reserving it.
    let script = "const one = new Uint8Array(1 << 20).fill(1), all = [];
        for (let n = 0; n < 225; n++) all.push(one.slice());
        return all.length";
    let (most, left) = (AtomicU64::new(0), AtomicU64::new(24));
    thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|| {
                let result = serving.session(&json!({})).run(1, script);
                left.fetch_sub(1, Ordering::SeqCst);
                let report = &result["structuredContent"];
                assert_eq!(report["status"], "done", "{result}");
                let peak = report["usage"]["memory_bytes_peak"].as_u64().unwrap();
                assert!(peak > 225 * MIB && peak <= 256 * MIB, "{peak}");
            });
        }
        wait_until(|| {
            most.fetch_max(serving.resident_bytes().unwrap_or(0), Ordering::SeqCst);
            left.load(Ordering::SeqCst) == 0
        });
    });
    let most = most.into_inner();
    assert!(most < 1_331 * MIB, "{} MiB", most / MIB);
    // Releasing the memory takes seconds, and longer on a busy machine.
    wait_until(|| serving.resident_bytes().is_none_or(|it| it < 100 * MIB));
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
    let before = serving.resident_bytes();
    let script = format!("{}return 1", "a<".repeat(5_000_000));
    let most = AtomicU64::new(0);
    let left = AtomicU64::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let result = serving.session(&json!({})).run(1, &script);
                left.fetch_sub(1, Ordering::SeqCst);
                assert_eq!(result["structuredContent"]["error"]["code"], "limit-source");
            });
        }
        wait_until(|| {
            most.fetch_max(serving.resident_bytes().unwrap_or(0), Ordering::SeqCst);
            left.load(Ordering::SeqCst) == 0
        });
    });
    let more = most.into_inner().saturating_sub(before.unwrap_or(0));
    assert!(more < 400 * MIB, "{} MiB", more / MIB);
}
