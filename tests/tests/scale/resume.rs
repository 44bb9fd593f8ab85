//! The time from the start of a process to the first new call of a run that resumes an interrupted
//! one. `cargo xtask bench resume` runs this in release mode with 1,000 and 10,000 recorded calls.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::binary::airlock;
use tests::command::{Home, start};
use tests::patience::{is_measured, wait_until};

/// Number of measurements, of which the best counts, because the machine may be busy.
const TRIES: usize = 3;
/// Makes the calls that are recorded, and then one whose answer does not come before the kill.
const SCRIPT: &str = "for (let n = 0; n < input; n++) await demo.logs_count({service: `s${n}`});
return await demo.slow_echo({ms: 600000, value: 1})";

fn home() -> Home {
    let home = Home::new();
    let config = format!(
        "[servers.demo]\ncommand = {}\nargs = [\"demo-server\"]\nread_only = [\"*\"]\n",
        json!(airlock())
    );
    home.write("airlock.toml", config);
    home
}

fn args<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["run", "--config", "airlock.toml", "--allow", "demo.*"];
    args.extend([
        "--quiet",
        "--no-tsc",
        "--max-calls",
        "20000",
        "--timeout",
        "1h",
    ]);
    args.extend(["--limit", "cpu=1h", "--reads-max-age", "1h"]);
    args.extend(more);
    args
}

/// Returns the newest run, and the time at which its slow call left. Reads only the end of the
/// journal, so that the measured process is not disturbed.
fn slow_call(home: &Home) -> Option<(String, u64)> {
    let path = home.journals().pop()?;
    let mut journal = File::open(&path).ok()?;
    let length = journal.metadata().ok()?.len();
    journal
        .seek(SeekFrom::Start(length.saturating_sub(4_096)))
        .ok()?;
    let mut tail = String::new();
    journal.read_to_string(&mut tail).ok()?;
    let last: Value = serde_json::from_str(tail.lines().last()?).ok()?;
    let is_slow = last["kind"] == "decided" && last["tool"] == "demo.slow_echo";
    let run = path.file_stem()?.to_str()?.to_owned();
    is_slow.then(|| (run, last["at_ms"].as_u64().unwrap_or_default()))
}

/// Runs until the slow call has left, and kills the process. Returns the run, and the time from the
/// start of the process to that call.
fn until_slow_call(home: &Home, args: &[&str], before: &str) -> (String, Duration) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let running = start(&mut home.airlock(args), "");
    wait_until(|| slow_call(home).is_some_and(|(run, _)| run != before));
    let (run, at_ms) = slow_call(home).unwrap();
    running.signal(Signal::KILL);
    let _ = running.wait();
    (run, Duration::from_millis(at_ms).saturating_sub(now))
}

fn first_new_call(recorded: usize, limit: Duration) {
    let home = home();
    let input = recorded.to_string();
    let mut fresh = args(&["-e", SCRIPT, "--input", &input]);
    // Only a run that resumes takes this flag.
    let at = fresh
        .iter()
        .position(|it| *it == "--reads-max-age")
        .unwrap();
    fresh.drain(at..at + 2);
    let (mut run, _) = until_slow_call(&home, &fresh, "");
    let edited = SCRIPT.replace("return await", "const last = await") + "; return last";
    let ways: [(&str, &[&str]); 2] = [
        ("the same script", &[]),
        ("an edited script", &["-e", &edited]),
    ];
    for (way, script) in ways {
        let mut best = Duration::MAX;
        for _ in 0..TRIES {
            let resumed = args(&[&["--resume", &run][..], script].concat());
            let (newest, took) = until_slow_call(&home, &resumed, &run);
            let journal = fs::read_to_string(home.journals().pop().unwrap()).unwrap();
            let decided = journal.matches("\"kind\":\"decided\"").count();
            assert_eq!(decided, 1, "{way}: a recorded call was made again");
            best = best.min(took);
            run = newest;
        }
        println!("| {recorded} | {way} | {} ms |", best.as_millis());
        assert!(
            !is_measured() || best <= limit,
            "{way}: {best:?}; the limit is {limit:?}"
        );
    }
}

#[test]
fn first_new_call_of_resumed_run_comes_soon() {
    println!("| Recorded calls | Resumed with | First new call |");
    println!("| ---: | --- | ---: |");
    if !is_measured() {
        return first_new_call(20, Duration::MAX);
    }
    first_new_call(1_000, Duration::from_millis(100));
    first_new_call(10_000, Duration::from_millis(800));
}
