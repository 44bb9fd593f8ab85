//! The output that a person sees at the end of a run.

use super::*;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn call(id: u32, outcome: ReportedOutcome, code: Option<Code>, reason: &str) -> ReportedCall {
    ReportedCall {
        id,
        tool: "fs.delete".into(),
        decision: ReportedDecision::Deny,
        reasons: vec![reason.into()],
        outcome,
        code,
        ms: 4,
        reused_from: None,
        warnings: Vec::new(),
    }
}

fn failed(code: Code, calls: Vec<ReportedCall>) -> Report {
    let error = ReportedError {
        name: "ToolError".into(),
        message: "no such ticket".into(),
        code,
        line: Some(3),
        column: Some(7),
        stack: String::new(),
    };
    Report {
        run: "r".into(),
        error: Some(error),
        calls,
        ..Report::empty(Status::Failed, Some(code))
    }
}

#[test]
fn warnings_are_listed_below_their_call() {
    let mut call = call(3, ReportedOutcome::Returned, None, "rule");
    call.warnings = vec!["args.limits: expected `limit`\u{1b}[2J".into()];
    let text = calls(&[call]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(
        lines[1].starts_with("           warning: args.limits: expected `limit`"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn calls_that_are_still_open_are_a_warning() {
    let check = |outcomes: &[ReportedOutcome], expected: Option<&str>| {
        let calls = outcomes.iter().map(|it| call(1, *it, None, "rule"));
        let mut report = failed(Code::ToolFailed, calls.collect());
        report.status = Status::Done;
        let told = open_calls(&report);
        assert_eq!(told.as_ref().map(|it| &*it.what), expected, "{outcomes:?}");
    };
    use ReportedOutcome::{Denied, NotSent, Returned, Unknown};
    check(&[Returned, Denied], None);
    check(&[Returned, NotSent], Some("1 call was not sent"));
    check(&[NotSent, NotSent], Some("2 calls were not sent"));
    check(&[Unknown], Some("the outcome of 1 call is unknown"));
    check(
        &[NotSent, Unknown, Unknown],
        Some("1 call was not sent, and the outcome of 2 calls is unknown"),
    );
}

#[test]
fn string_prints_raw_and_other_values_as_json() {
    assert_eq!(value(&raw(r#""a\nb""#), false), "a\nb\n");
    assert_eq!(
        value(&raw(r#"{"b":1,"a":[]}"#), false),
        "{\n  \"b\": 1,\n  \"a\": []\n}\n"
    );
    assert_eq!(value(&raw("null"), false), "null\n");
    assert_eq!(value(&raw(r#""\u001b[31m""#), true), "\\u{1b}[31m\n");
}

#[test]
fn uncaught_error_shows_place_and_next_step() {
    let report = failed(Code::ToolFailed, Vec::new());
    let problem = ending(&report, "a.js").unwrap();
    assert_eq!(problem.what, "the script failed at a.js:3:7");
    assert_eq!(problem.why, "ToolError: no such ticket");
    assert_eq!(problem.code, "tool-failed");
    let done = Report {
        status: Status::Done,
        ..report
    };
    assert!(ending(&done, "a.js").is_none());
}

#[test]
fn denial_without_rule_prints_sufficient_rule() {
    let next = |reason| {
        let denied = call(1, ReportedOutcome::Denied, Some(Code::Denied), reason);
        ending(&failed(Code::Denied, vec![denied]), "a.js")
            .unwrap()
            .next
    };
    assert_eq!(
        next("no rule matches, and the default is deny"),
        "run it in a terminal or with `--approver later`, and a person is asked; or add --allow 'fs.delete'"
    );
    for reason in [
        "rule --deny 'fs.*'",
        "rule `x` (p/a.cedar:1) forbids: r",
        "no policy rule permits the call",
    ] {
        assert!(next(reason).starts_with("change the rules"), "{reason}");
    }
}

#[test]
fn calls_show_outcomes_and_repeats_collapse() {
    let rule = "rule --deny 'fs.*'";
    let denied = |id| call(id, ReportedOutcome::Denied, Some(Code::Denied), rule);
    let returned = call(1, ReportedOutcome::Returned, None, rule);
    assert_eq!(
        calls(&[returned, denied(2), denied(3)]),
        "        1  fs.delete  returned, 4 ms\n      2…3  fs.delete  denied  rule --deny 'fs.*'\n"
    );
}

#[test]
fn failing_line_is_shown_with_caret() {
    let error = failed(Code::ToolFailed, Vec::new()).error.unwrap();
    let shown = excerpt(&error, "one\ntwo\n\tawait\u{1b} x()\n");
    assert_eq!(
        shown.as_deref(),
        Some("     3 |  await\\u{1b} x()\n       |       ^\n")
    );
    assert_eq!(excerpt(&error, "one line"), None);
}
