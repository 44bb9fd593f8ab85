//! Tests of tool files: their effect, and the messages about invalid ones.

use serde_json::{Value, json};
use std::collections::BTreeSet;

use super::*;

fn upstream() -> Description {
    let tool = json!({
        "name": "find", "description": "Finds.",
        "inputSchema": {"type": "object", "properties": {
            "query": {"type": "string"}, "limit": {"type": "integer"}, "any": true
        }, "required": ["query"], "additionalProperties": false},
    });
    Description::parse("s", &tool).unwrap()
}

fn file(value: &Value) -> ReadToolFile {
    read(&serde_json::to_string_pretty(value).unwrap(), value.clone()).unwrap()
}

fn texts(faults: &[ToolFileFault]) -> Vec<String> {
    let text = |fault: &ToolFileFault| format!("{}: {}", fault.line, fault.text);
    faults.iter().map(text).collect()
}

#[test]
fn tool_file_overrides_and_extends_server_text() {
    let read = file(&json!({
        "name": "find", "title": "T", "description": "Finds things.",
        "arguments": {"query": {"description": "Words.", "examples": ["red"]}, "any": {"description": "Whatever."}},
        "deprecation": {"replacement": "search", "removal": "3.0"},
        "outputSchema": {"type": "object", "properties": {"hits": {"type": "array"}}},
    }));
    let before = upstream();
    let (full, faults) = before.clone().with_file(&read);
    assert_eq!(texts(&faults), Vec::<String>::new());
    assert_eq!(full.text.as_deref(), Some("Finds things."));
    assert_eq!(
        full.input_schema["properties"]["query"],
        json!({"type": "string", "description": "Words.", "examples": ["red"]})
    );
    assert_eq!(
        full.input_schema["required"],
        before.input_schema["required"]
    );
    assert_eq!(
        full.claims.deprecated.as_deref(),
        Some("use `search` instead; removed in 3.0")
    );
    assert!(full.checked_output().is_some());
    assert_eq!(full.upstream, before.digest);
    assert_ne!(full.digest, before.digest);
}

#[test]
fn digest_depends_on_content_not_formatting() {
    let digest = |value: Value| upstream().with_file(&file(&value)).0.digest;
    let plain = digest(json!({"name": "find", "version": "1"}));
    assert_eq!(
        plain,
        digest(json!({"version": "1", "name": "find", "$schema": "x"}))
    );
    let seen = upstream().digest.to_string();
    assert_eq!(
        plain,
        digest(json!({"name": "find", "version": "1", "upstream": seen}))
    );
    assert_ne!(plain, digest(json!({"name": "find", "version": "2"})));
}

#[test]
fn observed_schema_is_shown_but_not_enforced() {
    let schema = json!({"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]});
    let read = file(
        &json!({"name": "find", "outputSchema": schema, "observed": {"results": 3, "runs": 1}}),
    );
    let (full, _) = upstream().with_file(&read);
    assert!(full.output_schema.is_some() && full.checked_output().is_none());
    assert!(!full.unwraps());
}

#[test]
fn tool_file_cannot_change_accepted_arguments() {
    let mut tool = upstream();
    tool.output_schema = Some(json!({"type": "object"}).into());
    let read = file(&json!({
        "name": "find", "arguments": {"querry": {"description": "x"}}, "outputSchema": {"type": "string"},
    }));
    let (full, faults) = tool.clone().with_file(&read);
    assert_eq!(full.input_schema, tool.input_schema);
    assert_eq!(full.output_schema, tool.output_schema);
    assert_eq!(
        texts(&faults),
        [
            "4: the tool has no argument `querry`. Did you mean `query`?",
            "8: the server declares an `outputSchema` itself; this one is not used",
        ]
    );
}

#[test]
fn malformed_file_is_refused_with_line_and_suggestion() {
    let check = |text: &str, line: usize, part: &str| {
        let value = serde_json::from_str(text).unwrap();
        let faults = read(text, value).unwrap_err();
        assert!(
            faults
                .iter()
                .any(|fault| fault.line == line && fault.text.contains(part)),
            "{text}: {faults:?}"
        );
    };
    check("{}", 1, "name");
    check("[]", 1, "object");
    check(
        "{\n\"name\": \"x\",\n\"descripton\": \"y\"}",
        3,
        "`description`",
    );
    check(
        "{\n\"name\": \"x\",\n\"rate_limit\": {\"calls\": 1,\n\"per\": \"week\"}}",
        4,
        "minute",
    );
    check(
        "{\n\"name\": \"x\",\n\"examples\": [{},\n{\"input\": 3}]}",
        4,
        "object",
    );
    check("{\"name\": \"x\",\n\"upstream\": \"sha1:0\"}", 2, "sha256");
}

#[test]
fn check_reports_what_no_longer_fits() {
    let read = file(&json!({
        "name": "find",
        "upstream": format!("sha256:{}", "0".repeat(64)),
        "arguments": {"limit": {"examples": ["many"]}},
        "examples": [{"input": {"querry": "x"}}, {"input": {"query": "x"}}],
        "related_tools": ["serach", "other.tool"],
    }));
    let tools: BTreeSet<String> = ["find", "search"].map(str::to_owned).into();
    let others: BTreeSet<String> = ["other.tool".to_owned()].into();
    let found = texts(&check::against(&read, &upstream(), &tools, &others)).join("\n");
    for part in [
        "3: the server's description has changed since",
        "file.arguments.limit.examples[0]: expected",
        "`query`",
        "there is no tool `serach`. Did you mean `search`?",
    ] {
        assert!(found.contains(part), "no `{part}` in\n{found}");
    }
    assert!(
        !found.contains("other.tool") && !found.contains("examples[1]"),
        "{found}"
    );
}

#[test]
fn written_files_have_one_escaped_form() {
    let value = json!({"tags": ["b"], "description": "a\u{202e}b\u{e0041}", "name": "x"});
    let text = formatted(&value);
    assert_eq!(
        text,
        "{\n  \"name\": \"x\",\n  \"description\": \"a\\u202eb\\udb40\\udc41\",\n  \"tags\": [\n    \"b\"\n  ]\n}\n"
    );
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
}
