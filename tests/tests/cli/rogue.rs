//! Servers that misbehave: each harms its own calls at most, and never the
//! broker, the other servers, or the truth of the report.

use std::time::Duration;

use serde_json::{Value, json};
use tests::command::{Ended, Home, program};

/// What nothing stops would take much longer.
const IN_TIME: Duration = Duration::from_secs(1_200);
/// What comes in the end, however busy the machine is, and sooner than a command is given up.
const LONG: &str = "1500s";

/// Runs code beside a rogue server, the demo server next to it.
fn beside(trick: &str, code: &str, more: &[&str]) -> Ended {
    beside_in(&Home::new(), trick, code, more)
}

fn beside_in(home: &Home, trick: &str, code: &str, more: &[&str]) -> Ended {
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

/// The same where the bad tool is waited for in vain. The wall of its call holds for the calls
/// after it too, which must be answered within it: on a busy machine a longer one shows the same.
fn in_vain(tool: &str) -> Value {
    let found = |wall| after(tool, &["--call-timeout", wall]);
    let seen = found("300ms");
    if seen[1] == "returned" && seen[2] == "returned" {
        return seen;
    }
    found("60s")
}

/// Calls one bad tool, then a good one, then another server; answers what became of each.
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
fn a_server_that_never_answers_costs_its_call_and_nothing_else() {
    assert_eq!(
        in_vain("silent"),
        json!(["outcome-unknown", "returned", "returned"])
    );
}

#[test]
fn an_answer_that_is_far_too_large_is_refused_before_it_is_held() {
    assert_eq!(
        after("huge", &["--call-timeout", LONG]),
        json!(["outcome-unknown", "returned", "returned"])
    );
}

#[test]
fn an_answer_for_somebody_else_settles_nothing() {
    assert_eq!(
        in_vain("other_id"),
        json!(["outcome-unknown", "returned", "returned"])
    );
}

#[test]
fn a_second_answer_to_one_call_is_ignored() {
    assert_eq!(
        after("twice", &[]),
        json!(["returned", "returned", "returned"])
    );
}

#[test]
fn a_million_notifications_are_waded_through() {
    assert_eq!(
        after("notifications", &["--call-timeout", LONG]),
        json!(["returned", "returned", "returned"])
    );
}

#[test]
fn a_storm_of_list_changes_changes_nothing_in_a_run() {
    assert_eq!(
        after("list_changed", &[]),
        json!(["returned", "returned", "returned"])
    );
}

#[test]
fn an_answer_that_cannot_be_read_is_an_unknown_outcome() {
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
fn a_result_of_the_wrong_shape_is_no_value() {
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
fn garbage_between_the_lines_is_skipped() {
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
fn a_server_that_dies_in_a_call_leaves_it_unknown_and_is_started_again_for_the_next() {
    for tool in ["exits", "half_line"] {
        assert_eq!(
            after(tool, &[]),
            json!(["outcome-unknown", "returned", "returned"]),
            "{tool}"
        );
    }
}

#[test]
fn what_a_server_asks_for_in_a_call_is_never_answered_by_the_script() {
    assert_eq!(
        after("asks_back", &[]),
        json!(["returned", "returned", "returned"])
    );
}

#[test]
fn the_text_of_a_protocol_error_is_a_tools_failure() {
    let code =
        "try { await rogue.rpc_error({}); } catch (e) { return [e.code, e instanceof ToolError]; }";
    assert_eq!(
        beside("", code, &[]).expect_code(0).json()["value"],
        json!(["tool-failed", true])
    );
}

#[test]
fn one_bad_tool_hides_no_good_one() {
    let ended = beside("list-bad-tools", "return await rogue.fine({})", &[]).expect_code(0);
    assert_eq!(ended.json()["value"], "fine");
    assert!(
        ended.stderr.contains("no_schema"),
        "what was left out is said\n{ended}"
    );
}

#[test]
fn schemas_that_explode_are_refused_in_time_and_named_by_whoever_looks_at_all_of_them() {
    let code = "const word = (p) => p.then(() => 'returned', (e) => e.code ?? e.name); \
        return [await word(rogue.fine({})), await word((async () => rogue.bomb_remote_ref({a: 1}))())]";
    let ended = beside("list-bombs", code, &["--call-timeout", LONG]).expect_code(0);
    assert!(ended.wall < IN_TIME, "{:?}", ended.wall);
    let value = &ended.json()["value"];
    assert_eq!(value[0], "returned");
    assert_eq!(
        value[1], "tool-unusable",
        "a schema that nobody can read lets nothing through"
    );
    let home = Home::new();
    let server = format!("rogue={} list-bombs", program("rogue-server").display());
    let listed = home.run(["types", "--detail", "names", "--server", &server]);
    let said = "the tool `rogue.bomb_remote_ref` cannot be called";
    listed.expect_code(0).expect_stderr(said);
}

#[test]
fn a_slow_pattern_in_a_schema_is_bounded() {
    let code = "try { await rogue.bomb_pattern({a: 'a'.repeat(50) + '!'}); return 'returned'; } catch (e) { return e.code ?? e.name; }";
    let ended = beside("list-bombs", code, &["--call-timeout", "300ms"]).expect_code(0);
    assert_ne!(ended.json()["value"], "returned");
    assert!(ended.wall < IN_TIME, "{:?}", ended.wall);
}

#[test]
fn a_tool_list_without_an_end_is_cut() {
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
fn a_list_that_is_no_list_is_a_problem_of_that_server() {
    let ended = beside("list-wrong", "return 1", &[]);
    assert!(ended.stderr.contains("rogue"), "{ended}");
}

#[test]
fn a_result_that_breaks_its_own_schema_is_no_value_and_is_kept_on_the_error() {
    let code = "return await rogue.typed({limit: 3}).catch((e) => \
                [e.code, e.message, e.content, e.structuredContent])";
    let ended = beside("list-typed", code, &[]).expect_code(0);
    let report = ended.json();
    assert_eq!(
        report["value"],
        json!([
            "result-invalid",
            "the result of `rogue.typed` is not usable: result.count: expected an integer, got \"many\"",
            [{"type": "text", "text": "as many as you like"}],
            {"count": "many"},
        ])
    );
    assert_eq!(report["calls"][0]["outcome"], "failed");
    assert_eq!(report["calls"][0].get("warnings"), None);
}

#[test]
fn a_key_that_the_schema_does_not_know_is_warned_of_and_refused_when_asked() {
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
