//! The same scripts, 64 at once, good ones among them: nobody's end may harm
//! another's run. Time is shared by 64 here, so deadlines are wider.

use std::sync::Arc;
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use tests::case_file::CaseFile;
use tests::stage::{KEPT_BYTES_MAX, Stage};
use tests::vitals::{Vitals, settled_back};

use crate::invariants::{self, Findings};

const AT_ONCE: usize = 64;
/// Every fourth run is a good one.
const GOOD: usize = 4;
/// How many of the 64 are there at the same moment is the machine's to say, and so is how many
/// memories of the pool and of the allocator a crowd is the first to use; there are only so many.
const ROUNDS_MAX: usize = 6;
/// How much later a deadline is that a run is to meet: 64 runs on two cores.
const WIDER: u64 = 16;
/// The latest deadline that a run is to meet.
const MEETS_MS_MAX: u64 = 60_000;
/// A deadline that no run is to meet.
const NEVER_MS: u64 = 600_000;
/// Much longer than a crowd takes.
const CROWD_WALL: Duration = Duration::from_secs(3_000);

pub(crate) fn trials(cases: &[CaseFile], stage: &Arc<Stage>) -> Vec<Trial> {
    let cases: Vec<_> = cases.iter().filter(|case| is_fit(case)).cloned().collect();
    let stage = Arc::clone(stage);
    vec![Trial::test("crowd::sixty_four_at_once", move || {
        crowd(&cases, &stage).map_err(Failed::from)
    })]
}

/// Scripts whose trick is their own length or a count of calls prove nothing more in a crowd.
fn is_fit(case: &CaseFile) -> bool {
    case.folder.is_none()
        && case.script.len() < 100_000
        && case.name != "asy-03-ten-thousand-at-once"
}

fn crowd(cases: &[CaseFile], stage: &Arc<Stage>) -> Result<(), String> {
    let mut findings = Findings::default();
    // The first fills the pools; each is judged like the others.
    play_round(&mut findings, cases, stage, 0)?;
    let mut kept = Ok(());
    for round in 1..ROUNDS_MAX {
        let before = Vitals::now();
        play_round(&mut findings, cases, stage, round % 2)?;
        kept = settled_back(before, KEPT_BYTES_MAX);
        if kept.is_ok() {
            break;
        }
    }
    findings.add(kept.map_err(|e| format!("I2/I8: each crowd keeps more: {e}")));
    findings.add(stage.reference().map_err(|e| format!("I4: {e:#}")));
    findings.into_result()
}

fn play_round(
    findings: &mut Findings,
    cases: &[CaseFile],
    stage: &Arc<Stage>,
    round: usize,
) -> Result<(), String> {
    let hostile = AT_ONCE - AT_ONCE / GOOD;
    let since = Instant::now();
    let chosen: Vec<_> = (0..hostile)
        .filter_map(|i| cases.get((i * 2 + round) * cases.len() / (hostile * 2)))
        .collect();
    let playing: Vec<_> = chosen
        .iter()
        .map(|case| stage.begin(&wider(case)))
        .collect::<anyhow::Result<_>>()
        .map_err(|e| format!("{e:#}"))?;
    let good: Vec<_> = (0..AT_ONCE / GOOD)
        .map(|_| stage.begin(&stage.reference_case()))
        .collect::<anyhow::Result<_>>()
        .map_err(|e| format!("{e:#}"))?;
    for playing in good {
        let played = stage.finish(playing).map_err(|e| format!("{e:#}"))?;
        findings.add(
            stage
                .is_reference(&played)
                .map_err(|e| format!("a good run among bad ones: {e:#}")),
        );
    }
    for (case, playing) in chosen.iter().zip(playing) {
        let played = stage.finish(playing).map_err(|e| format!("{e:#}"))?;
        let mut own = Findings::default();
        invariants::as_expected(&mut own, &timeless(case), &played);
        invariants::journal_is_whole(&mut own, case, &played);
        invariants::nothing_leaked(&mut own, &played);
        findings.add(own.into_result().map_err(|e| format!("{}: {e}", case.name)));
    }
    findings.require(since.elapsed() < CROWD_WALL, || {
        format!("{:?} for one crowd", since.elapsed())
    });
    Ok(())
}

/// The deadline of a run that is to meet it comes later, and of all others never. What a run
/// computes takes a little longer in a crowd too, and whoever is to compute too much may.
fn wider(case: &CaseFile) -> CaseFile {
    let mut case = case.clone();
    let meets = |word: &str| case.expect.iter().any(|it| it == word);
    let of_case = |limit: &str| case.limits.get(limit).and_then(serde_json::Value::as_u64);
    let wall_ms = match (meets("limit:time"), of_case("run_wall_ms_max")) {
        (false, _) => Some(NEVER_MS),
        (true, Some(ms)) => Some((ms * WIDER).min(MEETS_MS_MAX)),
        (true, None) => None,
    };
    let cpu_ms = (!meets("limit:cpu")).then_some(NEVER_MS);
    for (limit, ms) in [("run_wall_ms_max", wall_ms), ("guest_cpu_ms_max", cpu_ms)] {
        if let Some(ms) = ms {
            case.limits.insert(limit.into(), ms.into());
        }
    }
    case
}

/// Whoever computes among 64 may meet its deadline before its own limit.
fn timeless(case: &CaseFile) -> CaseFile {
    let mut case = case.clone();
    if case.expect.iter().any(|word| word.starts_with("limit:")) {
        case.expect.push("limit:time".into());
        case.console_contains.clear();
        case.outcomes = None;
    }
    case
}
