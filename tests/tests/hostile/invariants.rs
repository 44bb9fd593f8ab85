//! Checks the invariants that must hold after every run, numbered as in the catalogue of cases, and
//! the expectations of the case.

use std::time::Duration;

use serde_json::Value;
use tests::case_file::CaseFile;
use tests::stage::{CANARY, ReachedCall, RunOutcome, tool_name};

/// Returns how a run ended, in the words of the case files.
pub(crate) fn outcome(report: &Value) -> String {
    let code = report["code"].as_str().unwrap_or_default();
    let word = match (report["status"].as_str().unwrap_or_default(), code) {
        ("done", "") => "ok",
        ("failed", "denied" | "refused" | "unanswered") => "denied",
        ("failed", "deadlock") => "deadlock",
        ("failed" | "stopped", "engine-fault") => "engine_fault",
        ("failed", "internal" | "journal-unwritable") => "host_fault",
        ("failed", _) => "script_error",
        ("cancelled", "cancelled") => "cancelled",
        ("stopped", _) if code.starts_with("limit-") => return code.replacen('-', ":", 1),
        _ => "host_fault",
    };
    word.to_owned()
}

/// Collects all violations, so that one failure shows all of them.
#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<String>);

impl Findings {
    pub(crate) fn require(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.0.push(what());
        }
    }

    pub(crate) fn add(&mut self, other: Result<(), String>) {
        self.0.extend(other.err());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_result(self) -> Result<(), String> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(self.0.join("\n"))
        }
    }
}

/// I10: the run ended as the case file expects.
pub(crate) fn as_expected(findings: &mut Findings, case: &CaseFile, played: &RunOutcome) {
    let report = &played.report;
    let word = outcome(report);
    findings.require(case.expect.contains(&word), || {
        format!(
            "I10: the run ended as `{word}`, expected {:?}; code {}, error {}",
            case.expect, report["code"], report["error"]
        )
    });
    let is_ok = word == "ok";
    if let Some(value) = case.value.as_ref().filter(|_| is_ok) {
        findings.require(&report["value"] == value, || {
            format!("value {}, expected {value}", short(&report["value"]))
        });
    }
    if word == "script_error" || word == "denied" {
        error_as_expected(findings, case, report);
    }
    if let Some(code) = case.code.as_ref().filter(|_| !is_ok) {
        findings.require(report["code"] == **code, || {
            format!("code {}, expected {code}", report["code"])
        });
    }
    let console = console(report);
    for text in &case.console_contains {
        findings.require(console.contains(text), || {
            format!("no `{text}` on the console: {console:.300}")
        });
    }
    if let Some(max) = case.console_bytes_max {
        findings.require(console.len() <= max, || {
            format!("{} console bytes, expected at most {max}", console.len())
        });
    }
    for text in &case.journal_contains {
        findings.require(played.journal.contains(text), || {
            format!("no `{text}` in the journal")
        });
    }
    if let Some(labels) = &case.labels {
        findings.require(
            report["flow"]["labels"] == serde_json::json!(labels),
            || format!("labels {}, expected {labels:?}", report["flow"]["labels"]),
        );
    }
    was_asked(findings, case, played);
    if let Some(outcomes) = &case.outcomes {
        let found: Vec<_> = calls(report)
            .map(|call| call["outcome"].as_str().unwrap_or_default())
            .collect();
        findings.require(&found == outcomes, || {
            format!("outcomes {found:?}, expected {outcomes:?}")
        });
    }
}

/// Checks that the approver got the expected number of questions, with the expected texts.
fn was_asked(findings: &mut Findings, case: &CaseFile, played: &RunOutcome) {
    let shown = &played.shown;
    if let Some(count) = case.asking.questions {
        findings.require(shown.len() == count, || {
            format!("{} questions, expected {count}: {shown:?}", shown.len())
        });
    }
    for text in &case.asking.question_contains {
        let is_there = shown.iter().any(|question| question.contains(text));
        findings.require(is_there, || format!("no `{text}` in a question: {shown:?}"));
    }
}

fn error_as_expected(findings: &mut Findings, case: &CaseFile, report: &Value) {
    let error = &report["error"];
    let text = |key: &str| error[key].as_str().unwrap_or_default();
    findings.require(error.is_object(), || {
        "an uncaught error, but no `error` in the report".into()
    });
    if let Some(name) = &case.error_name {
        findings.require(text("name") == name, || {
            format!("{}, expected {name}: {}", text("name"), text("message"))
        });
    }
    for part in &case.error_contains {
        findings.require(text("message").contains(part), || {
            format!("no `{part}` in `{}`", text("message"))
        });
    }
    if let Some(line) = case.line {
        findings.require(error["line"] == line, || {
            format!("line {}, expected {line}", error["line"])
        });
    }
    if let Some(max) = case.error_bytes_max {
        let size = text("name").len() + text("message").len() + text("stack").len();
        findings.require(size <= max, || {
            format!("an error of {size} bytes, expected at most {max}")
        });
    }
}

/// Returns whether the run reached a time limit that its case does not expect.
pub(crate) fn ran_out_of_time(case: &CaseFile, played: &RunOutcome) -> bool {
    let word = outcome(&played.report);
    matches!(&*word, "limit:time" | "limit:cpu") && !case.expect.contains(&word)
}

/// I3: the run takes at most a quarter of a second longer than its deadline, scaled for a slower
/// machine, and than the calls that it waits for at its end.
pub(crate) fn in_time(findings: &mut Findings, deadline_ms: u64, slower: u32, played: &RunOutcome) {
    let calls = played.report["calls"].as_array().into_iter().flatten();
    let longest_ms = calls.filter_map(|call| call["ms"].as_u64()).max();
    let drain_ms = longest_ms.filter(|ms| *ms > deadline_ms).unwrap_or(0);
    let most = Duration::from_millis(deadline_ms + drain_ms + 250 * u64::from(slower));
    findings.require(played.wall <= most, || {
        format!(
            "I3: {:?} of wall time, deadline {deadline_ms} ms",
            played.wall
        )
    });
}

/// I5: every call that reached a tool was decided and recorded before, and the tools got the
/// expected number of calls.
pub(crate) fn calls_were_recorded(
    findings: &mut Findings,
    case: &CaseFile,
    played: &RunOutcome,
    reached: &[ReachedCall],
) {
    for call in reached
        .iter()
        .filter(|call| call.was_recorded == Some(false))
    {
        findings.require(false, || {
            format!(
                "I5: {} {:.200} was not in the journal when it was sent",
                call.tool,
                call.args.to_string()
            )
        });
    }
    let allowed = lines(played)
        .filter(|line| line["kind"] == "decided" && line["decision"] == "allow")
        .count();
    findings.require(allowed >= reached.len(), || {
        format!(
            "I5: {} calls sent, {allowed} allowed in the journal",
            reached.len()
        )
    });
    for (tool, count) in &case.calls {
        let found = reached.iter().filter(|call| call.tool == tool).count();
        findings.require(found == *count, || {
            format!("{tool} got {found} calls, expected {count}")
        });
    }
    if let Some(args) = &case.args {
        let found: Vec<_> = reached.iter().map(|call| &call.args).collect();
        findings.require(found.iter().copied().eq(args), || {
            format!("arguments {found:?}, expected {args:?}")
        });
    }
}

/// I6: the journal's chain verifies, each decision has reasons, and the journal contains one end,
/// equal to that of the report.
pub(crate) fn journal_is_whole(findings: &mut Findings, case: &CaseFile, played: &RunOutcome) {
    let verified = match airlock::core::journal::read(played.journal.as_bytes()) {
        Ok(verified) => verified,
        Err(broken) => return findings.add(Err(format!("I6: the journal is broken: {broken}"))),
    };
    findings.require(verified.cut.is_none(), || {
        "I6: the journal is incomplete".into()
    });
    findings.require(verified.in_doubt.is_empty(), || {
        format!("I6: in doubt after the end: {:?}", verified.in_doubt)
    });
    findings.require(verified.uses_in_doubt.is_empty(), || {
        format!("I6: uses in doubt: {:?}", verified.uses_in_doubt)
    });
    let lines: Vec<Value> = lines(played).collect();
    for line in lines.iter().filter(|line| line["kind"] == "decided") {
        let reasons = line["reasons"]
            .as_array()
            .is_some_and(|reasons| !reasons.is_empty());
        findings.require(reasons, || {
            format!("I6: {} was decided without reasons", tool_name(line))
        });
    }
    let ends: Vec<_> = lines
        .iter()
        .filter(|line| line["kind"] == "ended")
        .collect();
    findings.require(ends.len() == 1, || {
        format!("{} terminal states in the journal", ends.len())
    });
    if let Some(end) = ends.first() {
        let same = end["status"] == played.report["status"] && end["code"] == played.report["code"];
        findings.require(same, || {
            format!(
                "the journal ends with {} {}, the report with {} {}",
                end["status"], end["code"], played.report["status"], played.report["code"]
            )
        });
    }
    if case.journal_order {
        let ids: Vec<_> = lines
            .iter()
            .filter(|line| line["kind"] == "decided")
            .filter_map(|line| line["call"].as_u64())
            .collect();
        findings.require(ids.is_sorted(), || {
            "decisions are not in the order of the calls".into()
        });
    }
}

/// I7: no planted secret is in the report, the console or the journal.
pub(crate) fn nothing_leaked(findings: &mut Findings, played: &RunOutcome) {
    let report = played.report.to_string();
    for (place, text) in [("report", &report), ("journal", &played.journal)] {
        if let Some(at) = text.find(CANARY) {
            let around: String = text
                .get(at.saturating_sub(80)..)
                .unwrap_or(text)
                .chars()
                .take(160)
                .collect();
            findings.add(Err(format!(
                "I7: a planted credential is in the {place}: …{around}…"
            )));
        }
    }
}

pub(crate) fn console(report: &Value) -> String {
    let lines = report["console"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    lines
        .iter()
        .filter_map(|line| line["text"].as_str())
        .collect()
}

fn calls(report: &Value) -> impl Iterator<Item = &Value> {
    report["calls"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
}

fn lines(played: &RunOutcome) -> impl Iterator<Item = Value> {
    played
        .journal
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(600).collect()
}
