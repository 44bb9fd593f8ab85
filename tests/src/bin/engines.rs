//! Generates scripts for a given time, and reports those on which the engines differ.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tests::engines::{Comparison, Difference, GeneratedScript, Pair};

const USAGE: &str = "usage: engines --minutes N [--seed S] | --seed S | --show S | --file FILE";

const REPORT_EVERY: Duration = Duration::from_secs(60);
/// Maximum number of differences of the same kind that are shortened and shown.
const ALIKE_SHOWN_MAX: usize = 2;
/// Folder for the scripts that differ, relative to the working directory.
const FOUND: &str = "target/engines-found";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}

/// Runs the comparison and returns the number of differences.
fn run(words: &[&str]) -> Result<usize, String> {
    let number = |text: &str| text.parse::<u64>().map_err(|why| format!("{text}: {why}"));
    let minutes = |text: &str| Ok::<_, String>(Duration::from_secs(number(text)? * 60));
    match words {
        ["--show", seed] => {
            print!("{}", GeneratedScript::from_seed(number(seed)?).kept());
            Ok(0)
        }
        ["--file", file] => {
            let text = fs::read_to_string(file).map_err(|why| format!("{file}: {why}"))?;
            show(&pair()?, &GeneratedScript::read(&text));
            Ok(0)
        }
        ["--seed", seed] => search(&pair()?, number(seed)?, Duration::ZERO),
        ["--minutes", time] => search(&pair()?, now_seconds() << 20, minutes(time)?),
        ["--minutes", time, "--seed", seed] => search(&pair()?, number(seed)?, minutes(time)?),
        _ => Err(USAGE.to_owned()),
    }
}

fn pair() -> Result<Pair, String> {
    Pair::open().map_err(|why| why.to_string())
}

/// Prints the output of a script on each engine, and the result of the comparison.
fn show(pair: &Pair, made: &GeneratedScript) {
    for sandbox in [&pair.boa, &pair.quickjs] {
        let shown = sandbox.run(&made.script());
        println!(
            "{}\n  {}\n  {:?}",
            sandbox.engine,
            shown.lines.join("\n  "),
            shown.end
        );
    }
    match pair.compare(made) {
        Comparison::Same => println!("the same"),
        Comparison::Open => println!("not compared: a limit, or a known difference"),
        Comparison::Different(difference) => println!("{difference}"),
    }
}

fn now_seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn search(pair: &Pair, first: u64, time: Duration) -> Result<usize, String> {
    let begun = Instant::now();
    let mut reported = begun;
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let (mut scripts, mut open) = (0_u64, 0_u64);
    loop {
        let seed = first + scripts;
        scripts += 1;
        match pair.compare(&GeneratedScript::from_seed(seed)) {
            Comparison::Same => {}
            Comparison::Open => open += 1,
            Comparison::Different(difference) => {
                let times = found.entry(kind(&difference)).or_default();
                *times += 1;
                if *times <= ALIKE_SHOWN_MAX {
                    let difference = pair.shorten(*difference);
                    println!("seed {seed}\n{difference}");
                    keep(seed, &difference)?;
                }
            }
        }
        let is_over = begun.elapsed() >= time;
        if is_over || reported.elapsed() >= REPORT_EVERY {
            reported = Instant::now();
            let minutes = begun.elapsed().as_secs_f64() / 60.0;
            println!(
                "{minutes:.1} min, {scripts} scripts from seed {first}, {open} not compared, {} differences",
                found.len()
            );
            let _ = std::io::stdout().flush();
        }
        if is_over {
            return Ok(found.len());
        }
    }
}

fn keep(seed: u64, difference: &Difference) -> Result<(), String> {
    let write = || {
        fs::create_dir_all(FOUND)?;
        fs::write(
            Path::new(FOUND).join(format!("{seed}.js")),
            difference.made.kept(),
        )
    };
    write().map_err(|why| format!("{FOUND}: {why}"))
}

/// Returns the kind of a difference: the letters of the differing output.
fn kind(difference: &Difference) -> String {
    let shown = format!("{} {}", difference.boa, difference.quickjs);
    let letters = shown
        .chars()
        .filter(|c| c.is_ascii_alphabetic() || *c == '.');
    letters.take(60).collect()
}
