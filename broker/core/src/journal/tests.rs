//! Tests of writing and reading journals, and of how a reader reports damage.

use std::sync::Arc;

use codegen::canonical;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::grants::examples::{claimed, given, voided};
use super::*;
use crate::facts::{Facts, LargeText};
use crate::flow::{Declassification, StartLabels};
use crate::id::GrantId;
use crate::report::ReportedSeverity;
use crate::testing::{args, redact_texts};

fn started() -> Body {
    Body::RunStarted(Box::new(RunStartedEntry {
        run: RunId("r1".into()),
        script_name: "a.js".into(),
        script_digest: Digest::sha256(b"return 1"),
        script: Some("return 1".into()),
        input_digest: Digest::sha256(b""),
        input: Some(String::new()),
        seed: u64::MAX.to_string(),
        limits: Limits::default(),
        rules: vec!["--allow 'fs.*'".into()],
        servers: vec![StartedServer {
            name: ServerName::parse("fs").unwrap(),
            global: "fs".into(),
            target: Some("https://fs.example".into()),
        }],
        tools: vec![StartedTool {
            tool: ToolId::parse("fs.read").unwrap(),
            member: "read".into(),
            flat: String::new(),
            unwrap: false,
            read_only: Some(true),
            description: Digest::sha256(b"d"),
            upstream: Some(Digest::sha256(b"u")),
            repeatable: Some(true),
        }],
        guest_name: "boa".into(),
        guest_digest: Digest::sha256(b"g"),
        findings: vec![ReportedFinding {
            severity: ReportedSeverity::Warning,
            code: "not-awaited".into(),
            line: 1,
            column: 8,
            message: "m".into(),
            suggestion: Some("s".into()),
        }],
        declassified: vec![Declassification {
            counts: true,
            labels: vec![crate::labels::Label::private()],
            by: "Ann".into(),
            at_ms: 5,
        }],
        labels: Some(StartLabels {
            session: [crate::labels::Label::untrusted()].into_iter().collect(),
            input: crate::labels::Labels::default(),
        }),
        program: Some("0.1.0".into()),
        host: Some("h".into()),
        session: Some("s".into()),
        caller: Some("ann".into()),
        command: Some(StartedCommand {
            folder: "/work".into(),
            flags: vec!["--allow".into(), "fs.*".into()],
            left_out: vec!["--server mail=…".into()],
        }),
        chain: Some(ChainPosition {
            root: RunId("r0".into()),
            number: 2,
            predecessor: Predecessor {
                run: RunId("r0".into()),
                head: Digest::sha256(b"h"),
            },
        }),
        same_servers: vec![ServerName::parse("fs").unwrap()],
        masked: false,
    }))
}

fn decided(call: u32, decision: Verdict) -> Body {
    let args = args(r#"{"path":"a","n":0.1}"#);
    Body::Decided(Box::new(DecidedEntry {
        call: CallId(call),
        tool: ToolId::parse("fs.read").unwrap(),
        description: Some(Digest::sha256(b"d")),
        args_digest: args.digest(),
        facts: None,
        args: Some(args),
        site: Site { line: 3, column: 7 },
        decision,
        code: (decision == Verdict::Deny).then_some(Code::Denied),
        reasons: vec!["rule --allow 'fs.*'".into()],
        told: None,
        warnings: vec!["args.n: probably not meant".into()],
        grant: Some(GrantUse {
            id: GrantId("1".into()),
            number: 1,
            uses_max: 2,
        }),
        again: Some(earlier()),
        blocked_by: None,
        near: vec![earlier()],
        masked: false,
    }))
}

fn settled(call: u32) -> Body {
    Body::Settled(Box::new(SettledEntry {
        call: CallId(call),
        outcome: ReportedOutcome::Returned,
        code: None,
        why: None,
        payload_digest: Digest::sha256(b"[1234567890]"),
        payload_bytes: 12,
        payload: Some("[1234567890]".into()),
        told: true,
        ms: 5,
        masked: false,
    }))
}

fn earlier() -> CallRef {
    CallRef {
        run: RunId("r0".into()),
        call: CallId(7),
    }
}

fn reused(call: u32) -> Body {
    Body::Reused(Box::new(ReusedEntry {
        call: CallId(call),
        tool: ToolId::parse("fs.read").unwrap(),
        args_digest: Digest::sha256(b"{}"),
        site: Site::default(),
        from: earlier(),
        outcome: ReportedOutcome::Returned,
        code: None,
        stated: true,
        payload_digest: Digest::sha256(b"1"),
    }))
}

fn suspended() -> Body {
    Body::Suspended(SuspendedEntry {
        calls: vec![CallId(1)],
        usage: Usage::default(),
    })
}

fn ended(calls: u32) -> Body {
    Body::Ended(Box::new(EndedEntry {
        status: Status::Done,
        code: None,
        error: None,
        value_digest: None,
        value: None,
        usage: Usage {
            calls,
            ..Usage::default()
        },
        masked: false,
    }))
}

fn asked() -> [Body; 2] {
    let args = args(r#"{"path":"a","n":0.1}"#);
    let (call, shown) = (CallId(1), Digest::sha256(b"s"));
    let asked = AskedEntry {
        prompts: vec!["Really?".into()],
        reads: Labels::worst(),
        effects: Effects {
            claims_read_only: Some(true),
            ..Effects::default()
        },
        outcome_of: None,
        call,
        tool: ToolId::parse("fs.read").unwrap(),
        description: Digest::sha256(b"d"),
        args_digest: args.digest(),
        facts: None,
        args,
        site: Site::default(),
        reasons: Vec::new(),
        shown,
        near: vec![earlier()],
        masked: false,
    };
    let answered = AnsweredEntry {
        call,
        answer: AnswerWord::AllowTool,
        uses_max: Some(3),
        shown,
        ms: 1,
    };
    [Body::Asked(Box::new(asked)), Body::Answered(answered)]
}

fn sealed(bodies: &[Body], redact: Redact) -> Vec<u8> {
    let mut chain = Chain::new(redact);
    let line = |(i, body): (usize, &Body)| {
        chain
            .seal(&Entry {
                at_ms: 1_000 + i as u64,
                body: body.clone(),
            })
            .unwrap()
    };
    bodies
        .iter()
        .enumerate()
        .map(line)
        .collect::<String>()
        .into_bytes()
}

fn journal(bodies: &[Body]) -> Vec<u8> {
    sealed(bodies, Redact::nothing())
}

#[test]
fn entry_size_estimate_matches_line_length() {
    let mut long = settled(1);
    if let Body::Settled(settled) = &mut long {
        settled.payload = Some("\"\n\u{1}é".repeat(10_000));
    }
    for body in [decided(1, Verdict::Allow), long] {
        let said = body.bytes();
        let line = journal(std::slice::from_ref(&body)).len() as u64;
        assert!(line <= said && said <= line + 700, "{said} for {line}");
    }
}

#[test]
fn every_entry_kind_round_trips() {
    let [asked, answered] = asked();
    let resumed = Body::Resumed(ResumedEntry {
        step: 1,
        now_ms: 5,
        calls: vec![CallId(1)],
    });
    let bodies = [
        started(),
        voided(),
        asked,
        answered,
        given(),
        claimed(1),
        decided(1, Verdict::Allow),
        settled(1),
        resumed,
        decided(2, Verdict::Deny),
        reused(3),
        ended(3),
    ];
    let written = journal(&bodies);
    let verified = read(&written).unwrap();
    let texts = written.split(|byte| *byte == b'\n');
    for (line, text) in verified.lines.iter().zip(texts) {
        let place = (line.seq, line.prev);
        let is_usual = super::chain::is_text_of(text, &line.body, place, line.at_ms);
        assert!(is_usual, "read the slow way");
    }
    let read_back: Vec<_> = verified
        .lines
        .iter()
        .map(|line| line.body.clone())
        .collect();
    assert_eq!(read_back, bodies);
    assert!(verified.ended().is_some() && verified.in_doubt.is_empty() && verified.cut.is_none());
}

#[test]
fn suspended_run_has_no_end_and_nothing_follows() {
    let verified = read(&journal(&[started(), suspended()])).unwrap();
    assert_eq!(verified.suspended().unwrap().calls, [CallId(1)]);
    assert!(verified.ended().is_none());
    let more = read(&journal(&[started(), suspended(), ended(0)])).unwrap_err();
    assert!(more.why.contains("must be the last entry"), "{more}");
    let open = [started(), decided(1, Verdict::Allow), suspended()];
    assert!(read(&journal(&open)).is_err(), "a call has no outcome");
}

#[test]
fn reused_call_is_decided_once() {
    let twice = [started(), reused(1), reused(1)];
    let broken = read(&journal(&twice)).unwrap_err();
    assert!(broken.why.contains("already decided"), "{broken}");
    let settles = [started(), reused(1), settled(1)];
    assert!(read(&journal(&settles)).is_err());
}

#[test]
fn masked_content_is_marked() {
    let redact = redact_texts(|text| text.contains('1').then(|| text.replace('1', "*")));
    let bodies = [started(), decided(1, Verdict::Allow), settled(1)];
    let verified = read(&sealed(&bodies, redact)).unwrap();
    assert!(
        verified.started().unwrap().masked,
        "the script contains a 1"
    );
    assert!(!verified.decided(CallId(1)).unwrap().masked);
    let settled = verified.settled(CallId(1)).unwrap();
    assert!(settled.masked && settled.recorded().is_none());
}

#[test]
fn argument_keys_cannot_break_journal() {
    let hostile = [
        r#"{"$serde_json::private::RawValue":"1"}"#,
        r#"{"a":[{"$serde_json::private::RawValue":"{}"}]}"#,
        r#"{"$serde_json::private::RawValue":2}"#,
        r#"{"$serde_json::private::Number":"1"}"#,
        r#"{"kind":"ended","prev":null,"v":2}"#,
        r#"{"\u0000":"\u2028"}"#,
    ];
    for text in hostile {
        let Body::Decided(mut body) = decided(1, Verdict::Deny) else {
            panic!()
        };
        body.args_digest = args(text).digest();
        body.args = Some(args(text));
        let body = Body::Decided(body);
        let verified = read(&journal(&[started(), body.clone()])).unwrap();
        assert_eq!(verified.lines[1].body, body, "{text}");
    }
}

#[test]
fn line_is_canonical_with_version_number_and_previous_digest() {
    let lines = String::from_utf8(journal(&[started(), settled_after_allow()])).unwrap();
    let (first, second) = lines.split_once('\n').unwrap();
    assert!(
        first.starts_with(r#"{"at_ms":1000,"#) && first.contains(r#""prev":null"#),
        "{first}"
    );
    let prev = format!(r#""prev":"{}""#, Digest::sha256(first.as_bytes()));
    assert!(
        second.contains(&prev) && second.contains(r#""seq":1"#),
        "{second}"
    );
    assert!(
        second.contains(r#""args":{"n":0.1,"path":"a"}"#)
            && second.contains(",\"v\":2,\"warnings\":[")
    );
}

/// Journals outlive the program that wrote them, so a change of this format needs a new version.
#[test]
fn format_version_2_is_stable() {
    let lines = String::from_utf8(journal(&[settled(1), ended(0)])).unwrap();
    let (first, second) = lines.split_once('\n').unwrap();
    let digest = Digest::sha256(b"[1234567890]");
    let expected = format!(
        r#"{{"at_ms":1000,"call":1,"code":null,"kind":"settled","ms":5,"outcome":"returned","payload":"[1234567890]","payload_bytes":12,"payload_digest":"{digest}","prev":null,"seq":0,"told":true,"v":2,"why":null}}"#
    );
    assert_eq!(first, expected);
    let prev = Digest::sha256(first.as_bytes());
    let usage = r#"{"calls":0,"calls_not_recorded":0,"guest_ms":0,"memory_bytes_peak":0,"output_bytes":0,"wall_ms":0}"#;
    let expected = format!(
        r#"{{"at_ms":1001,"code":null,"error":null,"kind":"ended","prev":"{prev}","seq":1,"status":"done","usage":{usage},"v":2,"value_digest":null}}"#
    );
    assert_eq!(second, format!("{expected}\n"));
}

/// Empty findings and warnings are omitted, so a journal from before these fields existed still
/// verifies.
#[test]
fn journal_without_findings_still_verifies() {
    let bodies = [started(), decided(1, Verdict::Allow), settled(1), ended(1)];
    let mut of_that_time = bodies.clone();
    for body in &mut of_that_time {
        match body {
            Body::RunStarted(started) => started.findings.clear(),
            Body::Decided(decided) => decided.warnings.clear(),
            _ => {}
        }
    }
    let lines = String::from_utf8(journal(&of_that_time)).unwrap();
    assert!(
        !lines.contains("findings") && !lines.contains("warnings"),
        "{lines}"
    );
    let verified = read(lines.as_bytes()).unwrap();
    let read_back = verified.lines.into_iter().map(|line| line.body);
    assert!(read_back.eq(of_that_time));
    let lines = String::from_utf8(journal(&bodies)).unwrap();
    assert!(
        lines.contains(r#""warnings":["args.n: probably not meant"]"#),
        "{lines}"
    );
}

fn settled_after_allow() -> Body {
    decided(1, Verdict::Allow)
}

#[test]
fn claimed_use_is_in_doubt_until_call_entry() {
    let verified = read(&journal(&[started(), claimed(1), claimed(2)])).unwrap();
    let calls: Vec<_> = verified
        .uses_in_doubt
        .iter()
        .map(|(call, _)| call.0)
        .collect();
    assert_eq!((calls, verified.in_doubt), (vec![1, 2], vec![]));
    let denied = [started(), claimed(1), decided(1, Verdict::Deny)];
    assert!(read(&journal(&denied)).unwrap().uses_in_doubt.is_empty());
    let late = [started(), decided(1, Verdict::Allow), claimed(1)];
    assert!(read(&journal(&late)).is_err());
}

#[test]
fn call_without_outcome_is_in_doubt_and_torn_line_is_cut() {
    let whole = journal(&[
        started(),
        decided(1, Verdict::Allow),
        decided(2, Verdict::Allow),
        settled(1),
    ]);
    let verified = read(&whole).unwrap();
    assert_eq!((verified.in_doubt, verified.cut), (vec![CallId(2)], None));
    let torn = &whole[..whole.len() - 10];
    let verified = read(torn).unwrap();
    assert_eq!(verified.in_doubt, [CallId(1), CallId(2)]);
    assert_eq!(verified.cut.unwrap().after_line, 3);
    assert_eq!(read(b"").unwrap().lines.len(), 0);
}

fn check_broken(bytes: &[u8], line: usize, why: &str) {
    let broken = read(bytes).unwrap_err();
    assert_eq!(broken.line, line, "{broken}");
    assert!(broken.why.contains(why), "{broken}");
}

#[test]
fn first_broken_link_is_named() {
    let bodies = [started(), decided(1, Verdict::Allow), settled(1), ended(1)];
    let text = String::from_utf8(journal(&bodies)).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let join = |lines: &[&str]| format!("{}\n", lines.join("\n")).into_bytes();
    check_broken(
        text.replace("rule --allow", "rule --deny").as_bytes(),
        3,
        "previous line",
    );
    check_broken(
        text.replacen("a.js", "b.js", 1).as_bytes(),
        2,
        "previous line",
    );
    check_broken(
        &join(&[lines[0], lines[2], lines[3]]),
        2,
        "number 2; expected 1",
    );
    check_broken(&join(&[lines[0], lines[0]]), 2, "number 0; expected 1");
    check_broken(&join(&lines[1..]), 1, "");
    check_broken(b"{\"v\":3}\n", 1, "version 3");
    check_broken(b"{\"v\":0}\n", 1, "version 0");
    check_broken(b"\0\0\0\n", 1, "");
    check_broken(
        format!("{}\n", "[".repeat(1_000_000)).as_bytes(),
        1,
        "deeper",
    );
    check_broken(
        text.replacen(",\"v\":2}", ", \"v\":2}", 1).as_bytes(),
        1,
        "canonical",
    );
}

#[test]
fn impossible_entry_order_is_a_broken_link() {
    check_broken(&journal(&[ended(0)]), 1, "must be the first");
    check_broken(&journal(&[started(), started()]), 2, "must be the first");
    check_broken(
        &journal(&[started(), ended(0), decided(1, Verdict::Deny)]),
        3,
        "must be the last",
    );
    check_broken(
        &journal(&[started(), decided(1, Verdict::Deny), settled(1)]),
        3,
        "not allowed",
    );
    let twice = decided(1, Verdict::Allow);
    check_broken(
        &journal(&[started(), twice.clone(), twice]),
        3,
        "already decided",
    );
}

/// Changes one entry before all entries are sealed, so that the chain is intact.
fn check_contradiction(bodies: &[Body], edited: usize, edit: impl Fn(&mut Value), why: &str) {
    let mut bodies = bodies.to_vec();
    let mut value = serde_json::to_value(&bodies[edited]).unwrap();
    edit(&mut value);
    bodies[edited] = serde_json::from_value(value).unwrap();
    check_broken(&journal(&bodies), edited + 1, why);
}

#[test]
fn digest_that_contradicts_recorded_content_is_a_broken_line() {
    let [asked, answered] = asked();
    let bodies = [
        started(),
        asked,
        answered,
        decided(1, Verdict::Allow),
        settled(1),
        ended(1),
    ];
    assert!(read(&journal(&bodies)).unwrap().is_content_checked());
    let other = json!(Digest::sha256(b"other"));
    let cases: [(usize, &str, Value, &str); 13] = [
        (0, "script", json!("return 2"), "digest of the script"),
        (0, "script_digest", other.clone(), "digest of the script"),
        (0, "input", json!("1"), "digest of the input"),
        (1, "args", json!({"path": "b"}), "digest of the arguments"),
        (1, "args_digest", other.clone(), "digest of the arguments"),
        (2, "shown", other.clone(), "another question"),
        (3, "args", json!({}), "digest of the arguments"),
        (3, "tool", json!("fs.write"), "another tool"),
        (4, "payload", json!("[1234567891]"), "digest of the payload"),
        (4, "payload", json!("[]"), "2 bytes; expected 12"),
        (4, "payload", Value::Null, "payload is missing"),
        (4, "payload_bytes", json!(13), "12 bytes; expected 13"),
        (
            5,
            "usage",
            json!(Usage::default()),
            "0 calls; 1 are recorded",
        ),
    ];
    for (at, member, new, why) in cases {
        check_contradiction(&bodies, at, |value| value[member] = new.clone(), why);
    }
    check_broken(
        &journal(&[started(), decided(1, Verdict::Allow), ended(1)]),
        3,
        "call 1 has no outcome",
    );
}

#[test]
fn digest_of_long_text_must_match_arguments() {
    let large = |text: &str| LargeText {
        bytes: text.len() as u64,
        digest: Digest::sha256(text.as_bytes()),
    };
    for (of, is_good) in [("a", true), ("b", false)] {
        let Body::Decided(mut body) = decided(1, Verdict::Deny) else {
            panic!()
        };
        body.facts = Some(Arc::new(Facts {
            large_texts: [("/path".to_owned(), large(of))].into(),
            ..Facts::default()
        }));
        let journal = journal(&[started(), Body::Decided(body)]);
        assert_eq!(read(&journal).is_ok(), is_good, "{of}");
    }
}

#[test]
fn version_1_is_read_and_its_digests_are_not_compared() {
    let mut lines = Vec::new();
    let mut prev: Option<Digest> = None;
    let mut old = settled(1);
    if let Body::Settled(old) = &mut old {
        old.payload = Some("[***]".into());
    }
    for (seq, body) in [started(), decided(1, Verdict::Allow), old, ended(1)]
        .iter()
        .enumerate()
    {
        let mut value = serde_json::to_value(body).unwrap();
        value["v"] = json!(1);
        value["seq"] = json!(seq);
        value["at_ms"] = json!(seq);
        value["prev"] = json!(prev);
        let line = canonical::canonical(&value);
        prev = Some(Digest::sha256(&line));
        lines.extend(line);
        lines.push(b'\n');
    }
    let verified = read(&lines).unwrap();
    assert!(verified.ended().is_some() && !verified.is_content_checked());
    let mixed = String::from_utf8(lines).unwrap();
    let mixed = mixed.replacen("\"v\":1", "\"v\":2", 1);
    check_broken(mixed.as_bytes(), 2, "differs from that of the first");
}

#[test]
fn value_that_differs_from_its_digest_is_refused() {
    let returned = |value: &str| {
        let Body::Ended(mut entry) = ended(0) else {
            panic!("another entry");
        };
        entry.value = Some(value.into());
        entry.value_digest = Some(Digest::sha256(b"1"));
        journal(&[started(), Body::Ended(entry)])
    };
    assert!(read(&returned("1")).is_ok());
    check_broken(&returned("2"), 2, "the digest of the value");
}

#[test]
fn unknown_member_and_text_after_end_are_refused() {
    let whole = journal(&[started(), decided(1, Verdict::Allow), settled(1), ended(1)]);
    let text = String::from_utf8(whole).unwrap();
    let more = text.replacen("\"value_digest\"", "\"valid\":1,\"value_digest\"", 1);
    check_broken(more.as_bytes(), 4, "unknown or missing member");
    check_broken(format!("{text}x").as_bytes(), 5, "must be the last");
}

proptest! {
    #[test]
    fn every_changed_byte_is_detected(at in 0_usize..4_000, flip in 1_u8..=255) {
        let mut bytes = journal(&[started(), decided(1, Verdict::Allow), settled(1), ended(1)]);
        let last_line = bytes[..bytes.len() - 1].iter().rposition(|b| *b == b'\n').unwrap();
        let at = at % bytes.len();
        bytes[at] ^= flip;
        match read(&bytes) {
            Err(_) => {}
            // No line follows the end of the file, so a change in the last line is only detected
            // with the stored digest.
            Ok(verified) => prop_assert!(at > last_line, "{at} {:?}", verified.cut),
        }
    }
}

mod redact;
