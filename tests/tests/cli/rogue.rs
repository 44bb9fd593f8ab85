//! Tests misbehaving servers. A server can harm only its own calls, and never the broker, other
//! servers, or the correctness of the report.

use std::time::Duration;

use serde_json::{Value, json};
use tests::command::{CommandOutput, Home, program};

/// Upper bound for commands; an endless operation would take much longer.
const IN_TIME: Duration = Duration::from_secs(1_200);
/// A time limit longer than [`IN_TIME`] and shorter than the time after which a command is killed.
const LONG: &str = "1500s";

/// Runs code with a rogue server and the demo server.
fn beside(trick: &str, code: &str, more: &[&str]) -> CommandOutput {
    beside_in(&Home::new(), trick, code, more)
}

fn beside_in(home: &Home, trick: &str, code: &str, more: &[&str]) -> CommandOutput {
    let server = format!("rogue={} {trick}", program("rogue-server").display());
    let mut args = vec![
        "run",
        "--json",
        "--demo",
        "--server",
        &server,
        "--allow",
        "*.*",
        "--timeout",
        LONG,
    ];
    args.extend(more);
    args.extend(["-e", code]);
    home.run(args)
}

/// Calls a bad tool that never answers, and then other tools. The time limit of calls applies to
/// all of them, so the other tools must answer in time. On a busy machine, repeats this with a
/// longer limit.
fn in_vain(tool: &str) -> Value {
    let found = |wall| after(tool, &["--call-timeout", wall]);
    let seen = found("300ms");
    if seen[1] == "returned" && seen[2] == "returned" {
        return seen;
    }
    found("60s")
}

/// Calls one bad tool, then a good one, then another server. Returns the outcome of each call.
fn after(tool: &str, more: &[&str]) -> Value {
    let code = format!(
        "const word = (p) => p.then((v) => 'returned', (e) => e.code); \
         return [await word(rogue.{tool}({{}})), await word(rogue.fine({{}})), await word(demo.logs_services({{}}))]"
    );
    let ended = beside("", &code, more).expect_code(0);
    let report = ended.json();
    report["value"].clone()
}

#[test]
fn silent_server_fails_only_its_call() {
    assert_eq!(
        in_vain("silent"),
        json!(["outcome-unknown", "returned", "returned"])
    );
}

#[test]
fn oversized_answer_is_refused_before_buffering() {
    assert_eq!(
        after("huge", &["--call-timeout", LONG]),
        json!(["outcome-unknown", "returned", "returned"])
    );
}

#[test]
fn answer_with_foreign_id_settles_nothing() {
    assert_eq!(
        in_vain("other_id"),
        json!(["outcome-unknown", "returned", "returned"])
    );
}

#[test]
fn second_answer_to_a_call_is_ignored() {
    assert_eq!(
        after("twice", &[]),
        json!(["returned", "returned", "returned"])
    );
}

#[test]
fn million_notifications_are_skipped() {
    assert_eq!(
        after("notifications", &["--call-timeout", LONG]),
        json!(["returned", "returned", "returned"])
    );
}

#[test]
fn list_changed_flood_does_not_affect_run() {
    assert_eq!(
        after("list_changed", &[]),
        json!(["returned", "returned", "returned"])
    );
}

#[test]
fn unreadable_answer_is_an_unknown_outcome() {
    for tool in ["not_utf8", "deep"] {
        let value = in_vain(tool);
        assert!(
            value[0] == "outcome-unknown" || value[0] == "result-invalid",
            "{tool}: {value}"
        );
        assert_eq!(
            (&value[1], &value[2]),
            (&json!("returned"), &json!("returned")),
            "{tool}"
        );
    }
}

#[test]
fn malformed_result_is_no_value() {
    for tool in ["no_result", "wrong_shape"] {
        let value = in_vain(tool);
        assert!(
            value[0] == "outcome-unknown" || value[0] == "result-invalid",
            "{tool}: {value}"
        );
        assert_eq!(
            (&value[1], &value[2]),
            (&json!("returned"), &json!("returned")),
            "{tool}"
        );
    }
}

#[test]
fn garbage_between_lines_is_skipped() {
    assert_eq!(
        after("garbage", &[]),
        json!(["returned", "returned", "returned"])
    );
    assert_eq!(
        after("stderr_flood", &[]),
        json!(["returned", "returned", "returned"])
    );
}

#[test]
fn server_dying_in_call_is_unknown_and_restarted() {
    for tool in ["exits", "half_line"] {
        assert_eq!(
            after(tool, &[]),
            json!(["outcome-unknown", "returned", "returned"]),
            "{tool}"
        );
    }
}

#[test]
fn script_never_answers_server_requests() {
    assert_eq!(
        after("asks_back", &[]),
        json!(["returned", "returned", "returned"])
    );
}

#[test]
fn protocol_error_text_is_a_tool_failure() {
    let code =
        "try { await rogue.rpc_error({}); } catch (e) { return [e.code, e instanceof ToolError]; }";
    assert_eq!(
        beside("", code, &[]).expect_code(0).json()["value"],
        json!(["tool-failed", true])
    );
}

#[test]
fn bad_tool_does_not_hide_good_ones() {
    let ended = beside("list-bad-tools", "return await rogue.fine({})", &[]).expect_code(0);
    assert_eq!(ended.json()["value"], "fine");
    assert!(
        ended.stderr.contains("no_schema"),
        "the omitted tools are not reported\n{ended}"
    );
}

#[test]
fn exploding_schemas_are_refused_and_named() {
    let code = "const word = (p) => p.then(() => 'returned', (e) => e.code ?? e.name); \
        return [await word(rogue.fine({})), await word((async () => rogue.bomb_remote_ref({a: 1}))())]";
    let ended = beside("list-bombs", code, &["--call-timeout", LONG]).expect_code(0);
    assert!(ended.wall < IN_TIME, "{:?}", ended.wall);
    let value = &ended.json()["value"];
    assert_eq!(value[0], "returned");
    assert_eq!(
        value[1], "tool-unusable",
        "a call with an unreadable schema was sent"
    );
    let home = Home::new();
    let server = format!("rogue={} list-bombs", program("rogue-server").display());
    let listed = home.run(["types", "--detail", "names", "--server", &server]);
    let said = "the tool `rogue.bomb_remote_ref` cannot be called";
    listed.expect_code(0).expect_stderr(said);
}

#[test]
fn slow_pattern_in_schema_is_bounded() {
    let code = "try { await rogue.bomb_pattern({a: 'a'.repeat(50) + '!'}); return 'returned'; } catch (e) { return e.code ?? e.name; }";
    let ended = beside("list-bombs", code, &["--call-timeout", "300ms"]).expect_code(0);
    assert_ne!(ended.json()["value"], "returned");
    assert!(ended.wall < IN_TIME, "{:?}", ended.wall);
}

#[test]
fn endless_tool_list_is_cut() {
    for trick in ["list-endless", "list-loop"] {
        let ended = beside(
            trick,
            "return await demo.logs_services({}).then(() => 1)",
            &[],
        );
        assert!(matches!(ended.code, Some(0 | 30)), "{trick}\n{ended}");
        assert!(ended.wall < IN_TIME, "{trick}: {:?}", ended.wall);
        assert!(ended.stderr.contains("rogue"), "{trick}\n{ended}");
    }
}

#[test]
fn malformed_list_is_a_problem_of_its_server() {
    let ended = beside("list-wrong", "return 1", &[]);
    assert!(ended.stderr.contains("rogue"), "{ended}");
}

#[test]
fn result_breaking_its_schema_is_kept_on_error() {
    let code = "return await rogue.typed({limit: 3}).catch((e) => \
                [e.code, e.message, e.content, e.structuredContent])";
    let ended = beside("list-typed", code, &[]).expect_code(0);
    let report = ended.json();
    assert_eq!(
        report["value"],
        json!([
            "result-invalid",
            "the result of `rogue.typed` is invalid: result.count: expected an integer, got \"many\"",
            [{"type": "text", "text": "as many as you like"}],
            {"count": "many"},
        ])
    );
    assert_eq!(report["calls"][0]["outcome"], "failed");
    assert_eq!(report["calls"][0].get("warnings"), None);
}

#[test]
fn unknown_key_is_warned_about_and_refused_on_request() {
    let code = "return await rogue.typed({limits: 3}).catch((e) => e.code)";
    let says = "args.limits: expected `limit`, got an unknown property. Did you mean `limit`?";
    let home = Home::new();
    let ended = beside_in(&home, "list-typed", code, &[]).expect_code(0);
    let report = ended.json();
    assert_eq!(report["value"], "result-invalid");
    assert_eq!(report["calls"][0]["warnings"], json!([says]));
    let run = report["run"].as_str().unwrap();
    let shown = home
        .run(["runs", "show", run, "--json"])
        .expect_code(0)
        .json();
    assert_eq!(shown["calls"][0]["warnings"], json!([says]));
    let text = home.run(["runs", "show", run]).expect_code(0).stdout;
    assert!(text.contains(&format!("call 1  warning: {says}")), "{text}");

    let ended = beside("list-typed", code, &["--unknown-keys", "refuse"]).expect_code(0);
    let report = ended.json();
    assert_eq!(report["value"], "invalid-arguments");
    assert_eq!(report["calls"][0]["outcome"], "denied");
    assert_eq!(report["calls"][0]["reasons"], json!([says]));
}
