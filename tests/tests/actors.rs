//! Hostile cases that need an actor outside the script: one that cancels, drops the run, runs the
//! next script, or ends a run exactly at its deadline.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::case_file::CaseFile;
use tests::patience::{at_its_own_pace, wait_until};
use tests::stage::{RunOutcome, Stage};

/// Returns a case with enough time, so that no case reaches a deadline by accident.
fn case(script: &str) -> CaseFile {
    let wide = json!({"run_wall_ms_max": 600_000, "guest_cpu_ms_max": 600_000});
    limited(script, wide)
}

fn limited(script: &str, limits: Value) -> CaseFile {
    CaseFile {
        name: "actor".into(),
        script: script.into(),
        limits: limits.as_object().unwrap().clone(),
        ..CaseFile::default()
    }
}

fn kinds(journal: &str) -> Vec<String> {
    let lines = journal
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .map(|line| line["kind"].as_str().unwrap().to_owned())
        .collect()
}

/// Case ASY-05 of the catalogue.
#[test]
fn cancelled_run_makes_no_further_call() {
    let stage = Stage::new().unwrap();
    let script = "try { await box.slow({ms: 600000}); } catch { await box.write({from: 'catch'}); } finally { await box.write({from: 'finally'}); }";
    let playing = stage.begin(&case(script)).unwrap();
    wait_until(|| stage.log.count() == 1);
    playing.cancel();
    playing.cancel();
    let played = stage.finish(playing).unwrap();
    assert_eq!(
        (&played.report["status"], &played.report["code"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
    assert_eq!(played.report["calls"][0]["outcome"], "unknown");
    assert!(played.wall < Duration::from_secs(300));
    let reached: Vec<_> = stage.log.take().iter().map(|call| call.tool).collect();
    assert_eq!(reached, ["box.slow"]);
    assert_eq!(
        kinds(&played.journal)
            .iter()
            .filter(|kind| *kind == "ended")
            .count(),
        1
    );
    stage.reference().unwrap();
}

#[test]
fn computing_script_is_cancelled_at_once() {
    at_its_own_pace(one_that_computes_is_cancelled);
}

fn one_that_computes_is_cancelled(slower: u32) {
    let stage = Stage::new().unwrap();
    let playing = stage.begin(&case("console.log('on'); for (;;);")).unwrap();
    wait_until(|| fs::read_dir(stage.runs_dir()).is_ok_and(|mut entries| entries.next().is_some()));
    let since = Instant::now();
    playing.cancel();
    let played = stage.finish(playing).unwrap();
    assert_eq!(played.report["status"], "cancelled");
    assert!(
        since.elapsed() < Duration::from_millis(250) * slower,
        "{:?}",
        since.elapsed()
    );
}

/// Case ASY-10 of the catalogue.
#[test]
fn dropped_run_ends() {
    let stage = Stage::new().unwrap();
    drop(
        stage
            .begin(&case("await box.slow({ms: 500000}); await box.write({});"))
            .unwrap(),
    );
    let journal = || {
        let path = fs::read_dir(stage.runs_dir()).ok()?.next()?.ok()?.path();
        fs::read_to_string(path).ok()
    };
    // The run has ended when the last line of the journal is complete.
    let is_over = |text: &String| text.contains("\"ended\"") && text.ends_with('\n');
    wait_until(|| journal().as_ref().is_some_and(is_over));
    assert!(journal().unwrap().contains("\"cancelled\""));
    assert!(stage.log.take().iter().all(|call| call.tool != "box.write"));
}

/// Case ASY-08 of the catalogue.
#[test]
fn run_ending_at_deadline_ends_once() {
    const REPETITIONS: usize = 10_000;
    const AT_ONCE: usize = 10;
    let stage = Stage::new().unwrap();
    let script = "return (await box.slow({ms: 2, value: 1})).value";
    let mut words = BTreeMap::new();
    // Finds a deadline that about half of the runs exceed on this machine at this moment.
    let mut deadline_ms = 8;
    for _ in 0..REPETITIONS / AT_ONCE {
        let limits = json!({"run_wall_ms_max": deadline_ms});
        let begin = |_| stage.begin(&limited(script, limits.clone()));
        let playing: Vec<_> = (0..AT_ONCE).map(begin).collect();
        let mut stopped = 0;
        for playing in playing {
            let played = playing.and_then(|it| stage.finish(it)).unwrap();
            ended_once(&played);
            let word = played.report["status"].as_str().unwrap().to_owned();
            stopped += usize::from(word == "stopped");
            *words.entry(word).or_insert(0) += 1;
        }
        if stopped > AT_ONCE / 2 {
            deadline_ms += 1;
        } else {
            deadline_ms = (deadline_ms - 1).max(1);
        }
    }
    let seen: Vec<_> = words.keys().map(String::as_str).collect();
    assert_eq!(seen, ["done", "stopped"], "{words:?}");
}

/// Checks that the journal contains the end of the run once, and that the report contains the same
/// end.
fn ended_once(played: &RunOutcome) {
    let lines = played.journal.lines();
    let ends: Vec<Value> = lines
        .filter(|line| line.contains("\"ended\""))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(ends.len(), 1, "{}", played.journal);
    assert_eq!(
        (&ends[0]["kind"], &ends[0]["status"], &ends[0]["code"]),
        (
            &json!("ended"),
            &played.report["status"],
            &played.report["code"]
        )
    );
}

/// Case FLO-06 of the catalogue.
#[test]
fn runs_share_no_state() {
    let stage = Stage::new().unwrap();
    let leave = "globalThis.left = 1; Object.prototype.left = 2; Array.prototype.push = () => 'mine'; \
        Symbol.for('left'); Math.left = 3; console.left = 4; JSON.parse = null; \
        try { box.left = 5 } catch {} ; return 1";
    let look = "return [typeof left, ({}).left, [].push.call([], 1), Math.left, console.left, typeof JSON.parse, typeof box.echo]";
    for _ in 0..3 {
        stage
            .begin(&case(leave))
            .and_then(|playing| stage.finish(playing))
            .unwrap();
        let played = stage
            .begin(&case(look))
            .and_then(|playing| stage.finish(playing))
            .unwrap();
        assert_eq!(
            played.report["value"],
            json!(["undefined", null, 1, null, null, "function", "function"]),
            "{}",
            played.report["error"]
        );
    }
}

/// Case MEM-06 of the catalogue.
#[test]
fn memory_of_one_run_is_unreadable_in_next() {
    let stage = Stage::new().unwrap();
    let plant = "const kept = []; for (let i = 0; i < 200; i++) kept.push(new Uint8Array(65536).fill(0xA7)); return kept.length";
    let scan = "let found = 0; for (let i = 0; i < 20; i++) { const b = new Uint8Array(65536); if (b.indexOf(0xA7) >= 0) found++; } return found";
    for _ in 0..8 {
        stage
            .begin(&case(plant))
            .and_then(|playing| stage.finish(playing))
            .unwrap();
        let played = stage
            .begin(&case(scan))
            .and_then(|playing| stage.finish(playing))
            .unwrap();
        assert_eq!(played.report["value"], 0, "{}", played.report["error"]);
    }
}
