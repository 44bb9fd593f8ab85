//! Tests of which texts of an entry are redacted.

use super::*;
use crate::facts::RepeatedText;

#[test]
fn known_secret_never_reaches_a_line() {
    let redact = |secret: &'static str| {
        redact_texts(move |text| text.contains(secret).then(|| text.replace(secret, "***")))
    };
    let bodies = [started(), decided(1, Verdict::Allow), settled(1), ended(1)];
    for (secret, places) in [("456789", 1), ("path", 1), ("return 1", 1), ("settled", 0)] {
        let bytes = sealed(&bodies, redact(secret));
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert_eq!(text.matches("***").count(), places, "{secret}: {text}");
        assert!(read(&bytes).unwrap().ended().is_some(), "{secret}");
    }
}

/// Replaces every text of an entry by a secret, except airlock's own words, names and digests.
fn with_secrets(value: &mut serde_json::Value, kept: &[&str]) {
    use serde_json::Value;
    match value {
        Value::String(text) => *text = "s3cret".into(),
        Value::Array(items) => items.iter_mut().for_each(|it| with_secrets(it, kept)),
        Value::Object(members) => {
            for (_, value) in members
                .iter_mut()
                .filter(|(name, _)| !kept.contains(&name.as_str()))
            {
                with_secrets(value, kept);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[test]
fn every_text_is_redacted_unless_exempt() {
    // Names of members whose texts are airlock's own words. A new member that may contain text from
    // outside must not be added to this list.
    let ours = [
        "answer",
        "args_digest",
        "chain",
        "code",
        "decision",
        "description",
        "grant",
        "guest_digest",
        "guest_name",
        "input_digest",
        "kind",
        "labels",
        "outcome",
        "payload_digest",
        "program",
        "run",
        "same_servers",
        "reads",
        "script_digest",
        "seed",
        "servers",
        "severity",
        "shown",
        "status",
        "tool",
        "tools",
        "value_digest",
    ];
    let [asked, answered] = asked();
    let Body::Ended(mut end) = ended(2) else {
        panic!()
    };
    end.error = Some(ReportedError {
        name: "n".into(),
        message: "m".into(),
        code: Code::Denied,
        line: None,
        column: None,
        stack: "s".into(),
    });
    let Body::Settled(mut settled) = settled(1) else {
        panic!()
    };
    settled.why = Some("w".into());
    let Body::Decided(mut denied) = decided(2, Verdict::Deny) else {
        panic!()
    };
    denied.told = Some("t".into());
    let bodies = [
        started(),
        asked,
        answered,
        given(),
        voided(),
        decided(1, Verdict::Allow),
        Body::Settled(settled),
        Body::Decided(denied),
        Body::Ended(end),
    ];
    let mut secrets = 0;
    let secret: Vec<Body> = bodies
        .iter()
        .map(|body| {
            let mut value = serde_json::to_value(body).unwrap();
            with_secrets(&mut value, &ours);
            secrets += value.to_string().matches("s3cret").count();
            serde_json::from_value(value).unwrap()
        })
        .collect();
    let redact = redact_texts(|text| {
        text.contains("s3cret")
            .then(|| text.replace("s3cret", "***"))
    });
    let lines = String::from_utf8(sealed(&secret, redact)).unwrap();
    assert!(!lines.contains("s3cret"), "{lines}");
    assert!(
        secrets > 12 && lines.matches("***").count() == secrets,
        "{lines}"
    );
    assert!(read(lines.as_bytes()).is_ok());
}

/// Returns the decided entry of a call with these arguments, as it is read back from a journal.
fn read_back(arguments: &str, facts: Option<Facts>, redact: Redact) -> DecidedEntry {
    let Body::Decided(mut body) = decided(1, Verdict::Deny) else {
        panic!()
    };
    let arguments = args(arguments);
    body.args_digest = arguments.digest();
    body.args = Some(arguments);
    body.facts = facts.map(Arc::new);
    let bytes = sealed(&[started(), Body::Decided(body)], redact);
    let journal = read(&bytes).unwrap_or_else(|broken| panic!("{broken}"));
    journal.decided(CallId(1)).unwrap().clone()
}

#[test]
fn argument_is_redacted_by_the_name_of_its_member_and_as_number() {
    let redact = Redact::new(|piece| match piece {
        Piece::Member {
            name: "key",
            text: "hush",
        } => Some("***".into()),
        Piece::Number(number) if number.to_string() == "1234" => Some("***".into()),
        _ => None,
    });
    let exact = r#"{"a":{"key":"hush"},"b":[{"key":"hush","other":"hush"},"hush",1234,5]}"#;
    let found = read_back(exact, None, redact);
    assert_eq!(
        found.args.unwrap().value().to_string(),
        r#"{"a":{"key":"***"},"b":[{"key":"***","other":"hush"},"hush","***",5]}"#
    );
}

#[test]
fn pointers_lead_to_the_redacted_arguments() {
    let long = |n: usize| LargeText {
        bytes: n as u64,
        digest: Digest::sha256("x".repeat(n).as_bytes()),
    };
    let exact = format!(
        r#"{{"b/~":{{"s/1":"{}","s/2":["{}"]}},"plain":"x"}}"#,
        "x".repeat(5_000),
        "x".repeat(6_000)
    );
    let facts = Facts {
        dest_unexplained: ["/b~1~0/s~11".to_owned()].into(),
        shares: vec![RepeatedText {
            field: "/b~1~0/s~12/0".into(),
            call: CallId(1),
            pieces: 1,
        }],
        large_texts: [
            ("/b~1~0/s~11".to_owned(), long(5_000)),
            ("/b~1~0/s~12/0".to_owned(), long(6_000)),
        ]
        .into(),
        ..Facts::default()
    };
    let redact = redact_texts(|text| text.starts_with("s/").then(|| "***".into()));
    let found = read_back(&exact, Some(facts), redact);
    let (args, facts) = (found.args.unwrap(), found.facts.unwrap());
    let pointers: Vec<&str> = facts.large_texts.keys().map(String::as_str).collect();
    assert_eq!(pointers, ["/b~1~0/***", "/b~1~0/***#2/0"]);
    assert!(facts.dest_unexplained.contains("/b~1~0/***"));
    assert_eq!(facts.shares[0].field, "/b~1~0/***#2/0");
    for (pointer, large) in &facts.large_texts {
        let text = args.value().pointer(pointer).unwrap().as_str().unwrap();
        assert_eq!(text.len() as u64, large.bytes, "{pointer}");
    }
}

/// A server's credential can be recognised in any number of names.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test measures time")]
fn redacting_many_names_takes_linear_time() {
    let time = |names: usize| {
        let members: Vec<String> = (0..names).map(|n| format!(r#""s{n}":1"#)).collect();
        let exact = format!("{{{}}}", members.join(","));
        let redact = redact_texts(|text| text.starts_with('s').then(|| "***".into()));
        let start = std::time::Instant::now();
        read_back(&exact, None, redact);
        start.elapsed()
    };
    let (few, many) = (time(500), time(5_000));
    assert!(many < few * 60, "{few:?} and {many:?}");
}

#[test]
fn keys_redacted_alike_stay_distinct() {
    let Body::Decided(mut body) = decided(1, Verdict::Deny) else {
        panic!()
    };
    body.args = Some(args(r#"{"s1":1,"s2":2}"#));
    let redact = redact_texts(|text| text.starts_with('s').then(|| "***".into()));
    let lines = sealed(&[started(), Body::Decided(body)], redact);
    let lines = String::from_utf8(lines).unwrap();
    assert!(lines.contains(r#"{"***":1,"***#2":2}"#), "{lines}");
}

#[test]
fn redacted_facts_parse() {
    let mut entry = decided(1, Verdict::Allow);
    let Body::Decided(body) = &mut entry else {
        panic!()
    };
    let pointer = "/hush/x".to_owned();
    let large = LargeText {
        bytes: 5_000,
        digest: Digest::sha256(b"x"),
    };
    body.facts = Some(Arc::new(Facts {
        dest_hosts: Some(["hush.example".to_owned()].into()),
        dest_unexplained: [pointer.clone()].into(),
        large_texts: [(pointer, large)].into(),
        ..Facts::default()
    }));
    for secret in ["hush", "untrusted", "sha256"] {
        let redact =
            redact_texts(move |text| text.contains(secret).then(|| text.replace(secret, "***")));
        let bytes = sealed(&[started(), entry.clone(), settled(1), ended(1)], redact);
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert_eq!(text.contains("hush"), secret != "hush", "{text}");
        let lines = read(&bytes).unwrap().lines;
        let Body::Decided(body) = &lines[1].body else {
            panic!()
        };
        assert!(body.facts.as_ref().unwrap().labels.is_untrusted());
    }
}

/// A reader could test guesses of the secret against a digest of the original content.
#[test]
fn digest_of_redacted_content_is_of_the_recorded_content() {
    let redact = |secret: &'static str| {
        redact_texts(move |text| text.contains(secret).then(|| text.replace(secret, "***")))
    };
    let [asked, answered] = asked();
    let bodies = [
        started(),
        asked,
        answered,
        decided(1, Verdict::Allow),
        settled(1),
        ended(1),
    ];
    let plain = read(&journal(&bodies)).unwrap();
    for secret in ["return 1", "path", "456789"] {
        let verified = read(&sealed(&bodies, redact(secret))).unwrap();
        assert!(verified.ended().is_some(), "{secret}");
        let digests = |journal: &VerifiedJournal| {
            let decided = journal.decided(CallId(1)).unwrap();
            let settled = journal.settled(CallId(1)).unwrap();
            (
                journal.started().unwrap().script_digest,
                decided.args_digest,
                settled.payload_digest,
            )
        };
        assert_ne!(digests(&verified), digests(&plain), "{secret}");
    }
    let verified = read(&sealed(&bodies, redact("456789"))).unwrap();
    assert_eq!(verified.settled(CallId(1)).unwrap().payload_bytes, 9);
}
