//! Tests of what scripts receive and reports contain for each reply.

use super::*;
use crate::catalog::ValueCheck;
use crate::testing::tool;

fn result(is_error: bool, content: &str, structured: Option<&str>) -> Reply {
    Reply::Result {
        is_error,
        content: content.into(),
        structured_content: structured.map(Into::into),
    }
}

fn check_value(tool: &Tool, content: &str, structured: Option<&str>, expected: &str) {
    let judged = judge(result(false, content, structured), tool, &Limits::default());
    let Outcome::Value(value) = judged.outcome else {
        panic!("{judged:?}")
    };
    assert_eq!(String::from_utf8(value).unwrap(), expected);
    assert_eq!(
        (judged.reported, judged.code),
        (ReportedOutcome::Returned, None)
    );
}

#[test]
fn structured_content_is_the_value_without_declared_wrapper() {
    let plain = tool("fs.read");
    let wrapped = Tool {
        unwrap: true,
        ..tool("fs.read")
    };
    let text = r#"[{"type":"text","text":"other"}]"#;
    check_value(&plain, text, Some(r#"{"result":[1]}"#), r#"{"result":[1]}"#);
    check_value(
        &wrapped,
        text,
        Some(r#"{"result": [1,{"a":2}]}"#),
        r#"[1,{"a":2}]"#,
    );
    check_value(&wrapped, text, Some(r#"{"result":1,"more":2}"#), "1");
    check_value(&plain, "[]", Some("null"), "null");
    check_value(
        &plain,
        "[]",
        Some("12345678901234567890"),
        "12345678901234567890",
    );
}

#[test]
fn single_text_is_itself_or_the_json_it_spells() {
    let plain = tool("fs.read");
    let text = |t: &str| format!(r#"[{{"type":"text","text":{}}}]"#, serde_json::json!(t));
    check_value(&plain, &text("hello \"you\""), None, r#""hello \"you\"""#);
    check_value(&plain, &text(" {\"a\":1}"), None, " {\"a\":1}");
    check_value(&plain, &text("[1,2"), None, r#""[1,2""#);
    check_value(&plain, &text("42"), None, r#""42""#);
    check_value(&plain, &text(""), None, r#""""#);
}

#[test]
fn output_schema_validates_the_script_value() {
    let output = ValueCheck::new(|value| match value.get("n") {
        Some(_) => Vec::new(),
        None => vec!["`n` is missing".into()],
    });
    let declared = Tool {
        result_check: Some(output),
        ..tool("fs.read")
    };
    let disguised = r#"{"$serde_json::private::RawValue":"{\"n\":1}"}"#;
    let says = "`n` is missing";
    let (code, failed) = (Code::ResultInvalid, ReportedOutcome::Failed);
    let reply = result(false, "[]", Some(disguised));
    check_failure(reply, &declared, code, failed, says);
    let text = serde_json::json!([{"type": "text", "text": disguised}]).to_string();
    let judged = judge(result(false, &text, None), &declared, &Limits::default());
    assert_eq!(judged.code, Some(Code::ResultInvalid));
}

#[test]
fn invalid_json_or_wrapper_fails_only_the_call() {
    let plain = tool("fs.read");
    let wrapped = Tool {
        unwrap: true,
        ..tool("fs.read")
    };
    let bytes = |content: &[u8], structured: Option<&[u8]>| Reply::Result {
        is_error: false,
        content: content.to_vec(),
        structured_content: structured.map(<[u8]>::to_vec),
    };
    let replies = [
        (bytes(b"[1,", None), &plain, "not JSON"),
        (bytes(b"[\"\xff\"]", None), &plain, "not JSON"),
        (bytes(b"[]", Some(b"1 2")), &plain, "not JSON"),
        (bytes(b"[]", Some(b"")), &plain, "not JSON"),
        (
            bytes(b"[]", Some(b"{\"result\":1,\"result\":2}")),
            &wrapped,
            "with only `result`",
        ),
        (bytes(b"[]", Some(b"{}")), &wrapped, "with only `result`"),
    ];
    for (reply, tool, says) in replies {
        let failed = ReportedOutcome::Failed;
        check_failure(reply, tool, Code::ResultInvalid, failed, says);
    }
}

#[test]
fn other_content_is_the_content_array() {
    let plain = tool("fs.read");
    let image = r#"[{"type":"image","data":"AA==","mimeType":"image/png"}]"#;
    let two = r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#;
    for content in [image, two, "[]"] {
        check_value(&plain, content, None, content);
    }
}

fn check_failure(reply: Reply, tool: &Tool, code: Code, reported: ReportedOutcome, says: &str) {
    let judged = judge(
        reply,
        tool,
        &Limits {
            json_depth_max: 8,
            ..Limits::default()
        },
    );
    let Outcome::Failure(failure) = judged.outcome else {
        panic!("{judged:?}")
    };
    assert_eq!(
        (failure.code.as_str(), judged.code),
        (code.as_str(), Some(code))
    );
    assert_eq!(judged.reported, reported);
    assert!(failure.message.contains(says), "{}", failure.message);
    assert!(
        !failure.message.contains("/secret/path"),
        "{}",
        failure.message
    );
    assert_eq!(failure.tool, "fs.read");
}

#[test]
fn server_error_and_transport_error_stay_distinct() {
    let plain = tool("fs.read");
    let why = || "/secret/path".to_owned();
    let (failed, unknown) = (ReportedOutcome::Failed, ReportedOutcome::Unknown);
    let refused = Reply::Refused {
        code: -32602,
        message: "no such page".into(),
    };
    check_failure(
        refused,
        &plain,
        Code::ToolFailed,
        failed,
        "(code -32602): no such page",
    );
    let not_sent = Reply::NotSent { why: why() };
    let unavailable = Code::ServerUnavailable;
    check_failure(
        not_sent,
        &plain,
        unavailable,
        ReportedOutcome::NotSent,
        "was not sent",
    );
    check_failure(
        Reply::Changed,
        &plain,
        Code::DescriptionChanged,
        ReportedOutcome::NotSent,
        "was not sent",
    );
    for cause in [
        LostCause::TimedOut,
        LostCause::Disconnected,
        LostCause::TooLarge,
    ] {
        let lost = Reply::Lost { why: why(), cause };
        check_failure(
            lost,
            &plain,
            Code::OutcomeUnknown,
            unknown,
            "may have had its effect",
        );
    }
}

#[test]
fn tool_error_keeps_content_and_structured_content() {
    let content = r#"[{"type":"image","data":""},{"type":"text","text":"disk full"}]"#;
    let reply = result(true, content, Some(r#"{"errno":28}"#));
    check_failure(
        reply.clone(),
        &tool("fs.read"),
        Code::ToolFailed,
        ReportedOutcome::Failed,
        "disk full",
    );
    let judged = judge(reply, &tool("fs.read"), &Limits::default());
    let Outcome::Failure(failure) = judged.outcome else {
        panic!()
    };
    assert_eq!(failure.content, content.as_bytes());
    assert_eq!(failure.structured_content, br#"{"errno":28}"#);
}

#[test]
fn result_breaking_schema_or_limit_is_a_failure() {
    let checked = Tool {
        result_check: Some(ValueCheck::new(|_| vec!["`a` must be a number".into()])),
        ..tool("fs.read")
    };
    let invalid = Code::ResultInvalid;
    let reply = result(false, "[]", Some(r#"{"a":"x"}"#));
    check_failure(
        reply,
        &checked,
        invalid,
        ReportedOutcome::Failed,
        "`a` must be a number",
    );
    let deep = result(false, "[]", Some(&"[".repeat(9)));
    check_failure(
        deep,
        &tool("fs.read"),
        Code::LimitPayload,
        ReportedOutcome::Failed,
        "deeper than 8",
    );
}

#[test]
fn promised_structured_content_may_be_in_text() {
    let number =
        ValueCheck::new(
            |value| match value.get("result").is_some_and(|it| it.is_number()) {
                true => Vec::new(),
                false => vec!["`result` must be a number".into()],
            },
        );
    let checked = Tool {
        result_check: Some(number),
        unwrap: true,
        ..tool("fs.read")
    };
    let text = |t: &str| format!(r#"[{{"type":"text","text":{}}}]"#, serde_json::json!(t));
    check_value(&checked, &text(r#"{"result":5}"#), None, "5");
    check_value(&checked, &text("5"), None, "5");
    for content in [text("five"), text(r#"{"other":5}"#), "[]".into()] {
        let reply = result(false, &content, None);
        let judged = judge(reply, &checked, &Limits::default());
        assert_eq!(judged.code, Some(Code::ResultInvalid), "{content}");
        let Outcome::Failure(failure) = judged.outcome else {
            panic!()
        };
        assert_eq!(failure.content, content.as_bytes());
    }
    let string =
        ValueCheck::new(
            |value| match value.get("result").is_some_and(|it| it.is_string()) {
                true => Vec::new(),
                false => vec!["`result` must be a string".into()],
            },
        );
    let checked = Tool {
        result_check: Some(string),
        ..checked
    };
    check_value(&checked, &text("five"), None, r#""five""#);
}

#[test]
fn unusable_output_schema_is_ignored() {
    let unusable = Tool {
        result_check: Some(crate::testing::unusable()),
        ..tool("fs.read")
    };
    let text = r#"[{"type":"text","text":"hello"}]"#;
    check_value(&unusable, text, None, r#""hello""#);
    check_value(&unusable, text, Some(r#"{"n":1}"#), r#"{"n":1}"#);
}

#[test]
fn own_tool_failure_says_whether_anything_left() {
    for (left, reported) in [
        (true, ReportedOutcome::Failed),
        (false, ReportedOutcome::NotSent),
    ] {
        let reply = Reply::Failed {
            code: Code::ExtractFailed,
            message: "no".into(),
            left,
        };
        let judged = judge(reply, &tool("airlock.extract"), &Limits::default());
        assert_eq!(
            (judged.reported, judged.code),
            (reported, Some(Code::ExtractFailed))
        );
        let Outcome::Failure(failure) = judged.outcome else {
            panic!()
        };
        assert_eq!(
            (&*failure.code, &*failure.message),
            ("extract-failed", "no")
        );
    }
}
