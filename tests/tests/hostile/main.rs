//! Tests hostile scripts: each file in `tests/hostile` is one test. Each script runs alone, with
//! measurements before and after it. Then the scripts run 64 at a time.

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

/// Maximum time until the largest policy folder is refused, in a debug build.
const FOLDER_WALL: Duration = Duration::from_secs(1_200);
/// Maximum number of repetitions of a run that kept too much memory. A leak grows with each
/// repetition; memory that the allocator keeps for the next run does not grow.
const PLAYED_AGAIN_MAX: usize = 16;
const PLANTED: &str = "AIRLOCK_TEST_PLANTED";

fn main() -> ExitCode {
    if std::env::var_os(PLANTED).is_none() {
        return plant();
    }
    // Some tools panic on purpose. Their messages would hide the results.
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        if !text.contains(CANARY) {
            eprintln!("{text}");
        }
    }));
    let mut arguments = Arguments::from_args();
    // Measurements around a run must not include another run.
    arguments.test_threads = Some(1);
    let cases = read_folder(&workspace().join("tests/hostile")).expect("the case files");
    let stage = Arc::new(Stage::new().expect("a broker"));
    // The first runs allocate memory that belongs to no case.
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

/// Starts this program again with credentials in its environment and arguments.
fn plant() -> ExitCode {
    let mut again = Command::new(std::env::current_exe().expect("the path of this test"));
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

/// Checks that no broker starts with a damaged policy folder, and that the error names the fault
/// and its position.
fn start_nothing(case: &CaseFile, attack: Attack, stage: &Stage) -> Result<(), String> {
    let since = Instant::now();
    let said = stage.refusal(attack).map_err(|e| format!("{e:#}"))?;
    let mut findings = Findings::default();
    findings.require(case.expect == ["not_started"], || {
        format!(
            "I10: the run ended as `not_started`, expected {:?}",
            case.expect
        )
    });
    for part in &case.error_contains {
        findings.require(said.contains(part), || {
            format!("no `{part}` in `{said:.600}`")
        });
    }
    findings.require(!said.contains(CANARY), || format!("I7: {said}"));
    findings.require(said.len() < 4_000, || {
        format!("the error has {} bytes", said.len())
    });
    let wall = since.elapsed();
    findings.require(wall < FOLDER_WALL, || format!("I3: {wall:?}"));
    findings.add(stage.reference().map_err(|e| format!("I4: {e:#}")));
    findings.into_result()
}

fn play_alone(case: &CaseFile, stage: &Stage) -> Result<(), String> {
    let mut missed = play_once(case, stage, 1)?;
    // A slow or busy machine may delay a run, or stop it before its attack, so the run is repeated
    // with more time. A run that is late for another reason is late with every factor.
    for slower in SLOWER {
        if missed.is_some() {
            let case = stage.slower(case, slower).map_err(|e| format!("{e:#}"))?;
            missed = play_once(&case, stage, slower)?;
        }
    }
    missed.map_or(Ok(()), Err)
}

/// Plays a case once. Returns the findings about time, and fails on all other findings.
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
                "the same script and seed returned {} and {}",
                played.report["value"], again.report["value"]
            )
        });
        stage.log.take();
    }
    if played.kept.is_err() {
        findings.add(keeps_once(case, stage));
    }
    findings.require(stage.log.count() == 0, || {
        "I9: a tool got a call after the end of the run".into()
    });
    findings.add(stage.reference().map_err(|e| format!("I4: {e:#}")));
    if findings.is_empty() {
        return Ok(of_time.into_result().err());
    }
    findings.add(of_time.into_result());
    findings.into_result().map(|()| None)
}

/// Repeats a run that kept too much memory. If the allocator only keeps freed memory, a later run
/// stays within the limit.
fn keeps_once(case: &CaseFile, stage: &Stage) -> Result<(), String> {
    let mut kept = Ok(());
    for _ in 0..PLAYED_AGAIN_MAX {
        kept = stage.play(case).map_err(|e| format!("{e:#}"))?.kept;
        stage.log.take();
        if kept.is_ok() {
            break;
        }
    }
    kept.map_err(|e| format!("I2/I8: each run keeps more memory: {e}"))
}
