//! Generates programs for a given time, and reports those whose results in the guest and in the
//! bare engine differ.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use guest_differential::compare::{Difference, Pair};
use guest_differential::programs::Program;

const USAGE: &str = "usage: guest-differential --minutes N [--seed S] | --seed S";

/// Stack size in bytes: the engine's parser needs more than a thread has by default.
const STACK_BYTES: usize = 256 * 1024 * 1024;
/// Maximum time of one program; a slower program is reported and ends the search.
const PROGRAM_SECONDS_MAX: u64 = 120;
const REPORT_EVERY: Duration = Duration::from_secs(60);
/// Maximum number of differences of one kind that are shown.
const ALIKE_SHOWN_MAX: usize = 3;

/// The current program, and the second in which it started.
static RUNS: AtomicU64 = AtomicU64::new(0);
static SINCE: AtomicU64 = AtomicU64::new(0);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().ok();
    let (minutes, seed) = match words.as_slice() {
        ["--minutes", minutes] => (number(minutes), Some(now_seconds() << 20)),
        ["--minutes", minutes, "--seed", seed] => (number(minutes), number(seed)),
        ["--seed", seed] => (Some(0), number(seed)),
        _ => (None, None),
    };
    let (Some(minutes), Some(seed)) = (minutes, seed) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    // A panic of the engine is reported where it is caught.
    std::panic::set_hook(Box::new(|_| {}));
    let search = std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || search(seed, Duration::from_secs(minutes * 60)));
    let found = search.map(|search| {
        while !search.is_finished() {
            std::thread::sleep(Duration::from_millis(200));
            let since = SINCE.load(Ordering::Relaxed);
            if since > 0 && now_seconds() > since + PROGRAM_SECONDS_MAX {
                let seed = RUNS.load(Ordering::Relaxed);
                println!("seed {seed} takes longer than {PROGRAM_SECONDS_MAX} s:");
                println!("{}", Program::from_seed(seed).text());
                std::process::exit(1);
            }
        }
        search.join()
    });
    match found {
        Ok(Ok(Ok(0))) => ExitCode::SUCCESS,
        Ok(Ok(Err(why))) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
        _ => ExitCode::FAILURE,
    }
}

fn now_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// Searches until the time has passed; returns the number of distinct differences.
fn search(first: u64, time: Duration) -> Result<usize, String> {
    let begun = Instant::now();
    let mut reported = begun;
    let mut pair = Pair::default();
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let mut programs = 0_u64;
    let noted = std::env::temp_dir().join("guest-differential.seed");
    let mut noted = File::create(noted).map_err(|why| why.to_string())?;
    loop {
        let seed = first + programs;
        // If the program ends the process, this file contains its seed.
        let _ = noted.rewind().and_then(|()| writeln!(noted, "{seed:020}"));
        programs += 1;
        RUNS.store(seed, Ordering::Relaxed);
        SINCE.store(now_seconds(), Ordering::Relaxed);
        if let Some(difference) = pair.compare(&Program::from_seed(seed))? {
            let difference = pair.shorten(difference)?;
            let times = found.entry(kind(&difference)).or_default();
            *times += 1;
            if *times <= ALIKE_SHOWN_MAX {
                println!("seed {seed}\n{difference}");
            }
        }
        let is_over = begun.elapsed() >= time;
        if is_over || reported.elapsed() >= REPORT_EVERY {
            reported = Instant::now();
            let minutes = begun.elapsed().as_secs_f64() / 60.0;
            println!(
                "{minutes:.1} min, {programs} programs, {} differences",
                found.len()
            );
            let _ = std::io::stdout().flush();
        }
        if is_over {
            return Ok(found.len());
        }
    }
}

/// Roughly classifies a defect: the last statement without its strings and numbers.
fn kind(difference: &Difference) -> String {
    let last = difference.program.statements.last();
    let last = last.map_or("", String::as_str);
    let letters = last
        .chars()
        .filter(|letter| letter.is_ascii_alphabetic() || *letter == '.');
    letters.take(24).collect()
}
