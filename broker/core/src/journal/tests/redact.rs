//! Tests of which texts of an entry are redacted.

use super::*;

#[test]
fn known_secret_never_reaches_a_line() {
    let redact = |secret: &'static str| {
        Redact::new(move |text| text.contains(secret).then(|| text.replace(secret, "***")))
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
    // The members that contain airlock's own words, if they are texts. Do not add a new member that
    // may contain text from outside.
    let ours = [
        "answer",
        "args_digest",
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
        "run",
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
    let redact = Redact::new(|text| {
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

#[test]
fn keys_redacted_alike_stay_distinct() {
    let Body::Decided(mut body) = decided(1, Verdict::Deny) else {
        panic!()
    };
    body.args = Some(args(r#"{"s1":1,"s2":2}"#));
    let redact = Redact::new(|text| text.starts_with('s').then(|| "***".into()));
    let lines = sealed(&[started(), Body::Decided(body)], redact);
    let lines = String::from_utf8(lines).unwrap();
    assert!(lines.contains(r#"{"***":1,"***'":2}"#), "{lines}");
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
            Redact::new(move |text| text.contains(secret).then(|| text.replace(secret, "***")));
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

/// The digest of the original would let a reader test guesses of the secret.
#[test]
fn digest_of_redacted_content_is_of_the_recorded_content() {
    let redact = |secret: &'static str| {
        Redact::new(move |text| text.contains(secret).then(|| text.replace(secret, "***")))
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
