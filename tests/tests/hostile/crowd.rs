//! Runs the hostile scripts 64 at a time, with good scripts among them. The end of a script must
//! not harm another run. The runs share the processors, so their deadlines are longer.

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
/// Maximum number of rounds until the kept memory must stop growing. A round may use memories of
/// the pool and the allocator for the first time, if more of its runs overlap than before. The
/// number of these memories is limited.
const ROUNDS_MAX: usize = 6;
/// Factor for the deadline of a run that is expected to reach its deadline: 64 runs share two
/// cores.
const WIDER: u64 = 16;
/// Maximum deadline of such a run.
const MEETS_MS_MAX: u64 = 60_000;
/// A deadline that no run reaches.
const NEVER_MS: u64 = 600_000;
/// Maximum time of one round. A round normally takes much less.
const CROWD_WALL: Duration = Duration::from_secs(3_000);

pub(crate) fn trials(cases: &[CaseFile], stage: &Arc<Stage>) -> Vec<Trial> {
    let cases: Vec<_> = cases.iter().filter(|case| is_fit(case)).cloned().collect();
    let stage = Arc::clone(stage);
    vec![Trial::test("crowd::sixty_four_at_once", move || {
        crowd(&cases, &stage).map_err(Failed::from)
    })]
}

/// Returns whether a script can run at the same time as others. Attacks by length or by number of
/// calls only run alone.
fn is_fit(case: &CaseFile) -> bool {
    case.folder.is_none()
        && case.script.len() < 100_000
        && case.name != "asy-03-ten-thousand-at-once"
}

fn crowd(cases: &[CaseFile], stage: &Arc<Stage>) -> Result<(), String> {
    let mut findings = Findings::default();
    // The first round fills the pools, so the memory is measured after it.
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
    findings.add(kept.map_err(|e| format!("I2/I8: each round keeps more memory: {e}")));
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
                .map_err(|e| format!("a good run beside hostile runs: {e:#}")),
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
        format!("one round took {:?}", since.elapsed())
    });
    Ok(())
}

/// Extends the deadline of a run that must reach its deadline, and removes all other deadlines.
/// Extends the limits on computing time, too.
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

/// Also accepts the deadline as the end of a case with a limit, because among 64 runs a computing
/// script may reach its deadline first.
fn timeless(case: &CaseFile) -> CaseFile {
    let mut case = case.clone();
    if case.expect.iter().any(|word| word.starts_with("limit:")) {
        case.expect.push("limit:time".into());
        case.console_contains.clear();
        case.outcomes = None;
    }
    case
}
