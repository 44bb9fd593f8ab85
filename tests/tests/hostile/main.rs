//! Hostile scripts: one file in `tests/hostile`, one test here. Each plays
//! alone, with everything measured around it; then 64 play at once.

mod crowd;
mod invariants;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use invariants::Findings;
use libtest_mimic::{Arguments, Failed, Trial};
use tests::binary::workspace;
use tests::case_file::{Attack, CaseFile, read_folder};
use tests::patience::SLOWER;
use tests::stage::{CANARY, Stage};

/// Within it the largest folder is refused; a debug build reads ten thousand rules in it.
const FOLDER_WALL: Duration = Duration::from_secs(1_200);
/// How often a run that kept more than it may is played again. What is never given back is kept
/// each time; what the allocator keeps for the next run has an end.
const PLAYED_AGAIN_MAX: usize = 16;
const PLANTED: &str = "AIRLOCK_TEST_PLANTED";

fn main() -> ExitCode {
    if std::env::var_os(PLANTED).is_none() {
        return plant();
    }
    // Scripts make tools panic on purpose; what those say would bury the results.
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        if !text.contains(CANARY) {
            eprintln!("{text}");
        }
    }));
    let mut arguments = Arguments::from_args();
    // What is measured around a run must be that run's.
    arguments.test_threads = Some(1);
    let cases = read_folder(&workspace().join("tests/hostile")).expect("the case files");
    let stage = Arc::new(Stage::new().expect("a broker"));
    // What is made once, at the first run, belongs to no case.
    for _ in 0..3 {
        stage.reference().expect("the reference run");
    }
    let mut trials: Vec<_> = cases
        .iter()
        .map(|case| alone(case.clone(), &stage))
        .collect();
    trials.extend(crowd::trials(&cases, &stage));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Starts this program again with credentials in its environment and arguments in reach.
fn plant() -> ExitCode {
    let mut again = Command::new(std::env::current_exe().expect("a test knows where it is"));
    again.args(std::env::args_os().skip(1)).env(PLANTED, "yes");
    for name in [
        "API_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AIRLOCK_SECRET",
        "HOSTILE",
    ] {
        again.env(name, format!("{CANARY}-{}", name.to_lowercase()));
    }
    let error = again.exec();
    eprintln!("{error}");
    ExitCode::FAILURE
}

fn alone(case: CaseFile, stage: &Arc<Stage>) -> Trial {
    let stage = Arc::clone(stage);
    Trial::test(format!("alone::{}", case.name), move || match case.folder {
        Some(attack) => start_nothing(&case, attack, &stage).map_err(Failed::from),
        None => play_alone(&case, &stage).map_err(Failed::from),
    })
}

/// Nobody builds on a folder that was tampered with, and it is said what is wrong and where.
fn start_nothing(case: &CaseFile, attack: Attack, stage: &Stage) -> Result<(), String> {
    let since = Instant::now();
    let said = stage.refusal(attack).map_err(|e| format!("{e:#}"))?;
    let mut findings = Findings::default();
    findings.require(case.expect == ["not_started"], || {
        format!(
            "I10: `not_started` where the case expects {:?}",
            case.expect
        )
    });
    for part in &case.error_contains {
        findings.require(said.contains(part), || {
            format!("`{said:.600}` does not say `{part}`")
        });
    }
    findings.require(!said.contains(CANARY), || format!("I7: {said}"));
    findings.require(said.len() < 4_000, || {
        format!("{} bytes of finding", said.len())
    });
    let wall = since.elapsed();
    findings.require(wall < FOLDER_WALL, || format!("I3: {wall:?}"));
    findings.add(stage.reference().map_err(|e| format!("I4: {e:#}")));
    findings.into_result()
}

fn play_alone(case: &CaseFile, stage: &Stage) -> Result<(), String> {
    let mut missed = play_once(case, stage, 1)?;
    // A run may be late, or be stopped before it came to what it is about, where the machine did
    // not run it for a moment, or is slow; one that is late of itself is so at every pace.
    for slower in SLOWER {
        if missed.is_some() {
            let case = stage.slower(case, slower).map_err(|e| format!("{e:#}"))?;
            missed = play_once(&case, stage, slower)?;
        }
    }
    missed.map_or(Ok(()), Err)
}

/// What was wrong with the time of a run and with nothing else, if anything was.
fn play_once(case: &CaseFile, stage: &Stage, slower: u32) -> Result<Option<String>, String> {
    let mut findings = Findings::default();
    let mut of_time = Findings::default();
    stage.log.take();
    let played = stage.play(case).map_err(|e| format!("{e:#}"))?;
    let reached = stage.log.take();
    let ended = match invariants::ran_out_of_time(case, &played) {
        true => &mut of_time,
        false => &mut findings,
    };
    invariants::as_expected(ended, case, &played);
    let deadline_ms = stage.deadline_ms(case).map_err(|e| format!("{e:#}"))?;
    invariants::in_time(&mut of_time, deadline_ms, slower, &played);
    invariants::calls_were_recorded(&mut findings, case, &played, &reached);
    invariants::journal_is_whole(&mut findings, case, &played);
    invariants::nothing_leaked(&mut findings, &played);
    if case.same_twice {
        let again = stage.play(case).map_err(|e| format!("{e:#}"))?;
        findings.require(again.report["value"] == played.report["value"], || {
            format!(
                "twice the same script and seed: {} and {}",
                played.report["value"], again.report["value"]
            )
        });
        stage.log.take();
    }
    if played.kept.is_err() {
        findings.add(keeps_once(case, stage));
    }
    findings.require(stage.log.count() == 0, || {
        "I9: a tool was reached after the end of the run".into()
    });
    findings.add(stage.reference().map_err(|e| format!("I4: {e:#}")));
    if findings.is_empty() {
        return Ok(of_time.into_result().err());
    }
    findings.add(of_time.into_result());
    findings.into_result().map(|()| None)
}

/// What a run leaves beyond the bound may be the allocator's: freed, and kept for the next run.
/// Then there is a next one that stays within it.
fn keeps_once(case: &CaseFile, stage: &Stage) -> Result<(), String> {
    let mut kept = Ok(());
    for _ in 0..PLAYED_AGAIN_MAX {
        kept = stage.play(case).map_err(|e| format!("{e:#}"))?.kept;
        stage.log.take();
        if kept.is_ok() {
            break;
        }
    }
    kept.map_err(|e| format!("I2/I8: each run keeps more: {e}"))
}
