//! Tests `--json`: one object on standard output, always of the same shape.

use serde_json::{Value, json};
use tests::command::Home;
use tests::patience::at_its_own_pace;

use crate::demo;

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = value
        .as_object()
        .unwrap_or_else(|| panic!("{value}"))
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys
}

const TOP: [&str; 10] = [
    "calls",
    "code",
    "console",
    "console_dropped_bytes",
    "error",
    "findings",
    "run",
    "status",
    "usage",
    "value",
];
const CALL: [&str; 7] = ["code", "decision", "id", "ms", "outcome", "reasons", "tool"];
const ERROR: [&str; 6] = ["code", "column", "line", "message", "name", "stack"];
const USAGE: [&str; 6] = [
    "calls",
    "calls_not_recorded",
    "guest_ms",
    "memory_bytes_peak",
    "output_bytes",
    "wall_ms",
];

#[test]
fn report_has_value_console_and_calls() {
    let home = Home::new();
    let code = "console.info('one'); const e = await demo.slow_echo({ms: 1, value: 'x'}); return {got: e.value}";
    let report = demo(&home, code, &[]).expect_code(0).json();
    assert_eq!(keys(&report), TOP);
    assert_eq!(report["status"], "done");
    assert_eq!(
        (&report["code"], &report["error"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(report["value"], json!({"got": "x"}));
    assert_eq!(report["console"], json!([{"level": "info", "text": "one"}]));
    let call = &report["calls"][0];
    assert_eq!(keys(call), CALL);
    assert_eq!(
        (&call["id"], &call["tool"]),
        (&json!(1), &json!("demo.slow_echo"))
    );
    assert_eq!(
        (&call["decision"], &call["outcome"], &call["code"]),
        (&json!("allow"), &json!("returned"), &Value::Null)
    );
    assert!(
        call["reasons"][0].as_str().unwrap().contains("demo.*"),
        "{call}"
    );
    assert_eq!(keys(&report["usage"]), USAGE);
    assert_eq!(report["usage"]["calls"], 1);
    // The console line with its line break, plus the value.
    assert_eq!(report["usage"]["output_bytes"], 4 + r#"{"got":"x"}"#.len());
    assert!(report["usage"]["memory_bytes_peak"].as_u64().unwrap() > 0);
}

#[test]
fn uncaught_tool_error_reports_line_code_and_prior_calls() {
    let home = Home::new();
    let code = "const a = await demo.logs_services({});\n\nawait demo.flaky_report({});\nreturn a;";
    let report = demo(&home, code, &[]).expect_code(20).json();
    assert_eq!(
        (&report["status"], &report["code"]),
        (&json!("failed"), &json!("tool-failed"))
    );
    let error = &report["error"];
    assert_eq!(keys(error), ERROR);
    assert_eq!(
        (&error["name"], &error["code"], &error["line"]),
        (&json!("ToolError"), &json!("tool-failed"), &json!(3))
    );
    let outcomes: Vec<_> = report["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| &call["outcome"])
        .collect();
    assert_eq!(outcomes, ["returned", "failed"]);
    assert_eq!(report["calls"][1]["code"], "tool-failed");
}

#[test]
fn uncaught_tool_error_shows_its_line() {
    let home = Home::new();
    home.write(
        "fails.js",
        "await demo.logs_services({});\nawait demo.flaky_report({});\n",
    );
    let ended = home
        .run(["run", "fails.js", "--demo", "--allow", "demo.*"])
        .expect_code(20);
    assert_eq!(ended.stdout, "", "{ended}");
    for part in [
        "error:",
        "fails.js:2",
        "tool-failed",
        "demo.logs_services",
        "demo.flaky_report",
    ] {
        assert!(ended.stderr.contains(part), "no `{part}`\n{ended}");
    }
}

#[test]
fn caught_tool_error_has_content() {
    let code = "try { await demo.flaky_report({}); } catch (e) { \
        return [e instanceof ToolError, e.code, e.tool, e.content[0].type, e.content[0].text.length > 0]; }";
    let report = demo(&Home::new(), code, &[]).expect_code(0).json();
    assert_eq!(
        report["value"],
        json!([true, "tool-failed", "demo.flaky_report", "text", true])
    );
    assert_eq!(report["calls"][0]["outcome"], "failed");
}

#[test]
fn ten_calls_of_fifty_ms_overlap() {
    let code = "const all = await Promise.all(Array.from({length: 10}, (_, i) => demo.slow_echo({ms: 50, value: String(i)}))); \
        return all.map((x) => x.value).join('')";
    at_its_own_pace(|slower| {
        let ms = 50 * u64::from(slower);
        let code = code.replace("ms: 50", &format!("ms: {ms}"));
        let report = demo(&Home::new(), &code, &[]).expect_code(0).json();
        assert_eq!(report["value"], "0123456789");
        let wall = report["usage"]["wall_ms"].as_u64().unwrap();
        assert!((ms..5 * ms).contains(&wall), "{wall} ms");
    });
}

#[test]
fn plain_error_has_line_column_and_stack() {
    let home = Home::new();
    let code = "const f = () => {\n  throw new RangeError('too far');\n};\nf();";
    let report = home
        .run(["run", "--json", "-e", code])
        .expect_code(20)
        .json();
    let error = &report["error"];
    assert_eq!(
        (&report["code"], &error["code"]),
        (&json!("script-error"), &json!("script-error"))
    );
    assert_eq!(
        (&error["name"], &error["message"], &error["line"]),
        (&json!("RangeError"), &json!("too far"), &json!(2))
    );
    assert!(error["stack"].as_str().unwrap().contains(":4:"), "{error}");
}

#[test]
fn syntax_error_has_its_line() {
    let report = Home::new()
        .run([
            "run",
            "--json",
            "-e",
            "const a = 1;\nconst b = ;\nreturn a;",
        ])
        .expect_code(20)
        .json();
    assert_eq!(
        (&report["error"]["name"], &report["error"]["line"]),
        (&json!("SyntaxError"), &json!(2))
    );
    assert_eq!(report["calls"], json!([]));
}

#[test]
fn unawaited_calls_are_reported_with_outcome() {
    let code = "demo.slow_echo({ms: 10000, value: 'flying'}); await demo.logs_services({}); \
        demo.tickets_create({title: 'late'}); return 1";
    let report = demo(&Home::new(), code, &[]).expect_code(0).json();
    let outcomes: Vec<_> = report["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| &call["outcome"])
        .collect();
    assert_eq!(outcomes[..2], ["unknown", "returned"]);
    assert_eq!(outcomes[2], "not-sent", "{report:#}");
}
