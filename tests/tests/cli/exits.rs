//! Tests every exit code, and every limit or event that stops a run.

use std::time::Duration;

use serde_json::json;
use tests::command::Home;
use tests::patience::at_its_own_pace;

use crate::demo;

/// Maximum time that a run may take beyond its deadline.
const SLACK_MS: u64 = 250;
/// Deadline of runs that must end at another limit. The whole process must end long before it.
const LONG: Duration = Duration::from_secs(300);

#[test]
fn call_without_rule_is_denied_without_approver() {
    let home = Home::new();
    let report = home
        .run([
            "run",
            "--json",
            "--demo",
            "-e",
            "return await demo.logs_services({})",
        ])
        .expect_code(22)
        .json();
    assert_eq!(
        (&report["status"], &report["code"]),
        (&json!("failed"), &json!("denied"))
    );
    assert_eq!(
        (
            &report["calls"][0]["decision"],
            &report["calls"][0]["outcome"]
        ),
        (&json!("deny"), &json!("denied"))
    );
}

#[test]
fn strictest_rule_wins_in_any_order() {
    let home = Home::new();
    let code = "try { await demo.tickets_delete({id: 1}); } catch (e) { return e.code; }";
    for rules in [
        ["--allow", "demo.*", "--deny", "demo.tickets_delete"],
        ["--deny", "demo.tickets_delete", "--allow", "demo.*"],
        ["--deny", "*.tickets_*", "--allow", "demo.tickets_delete"],
    ] {
        let mut args = vec!["run", "--json", "--demo"];
        args.extend(rules);
        args.extend(["-e", code]);
        let report = home.run(args).expect_code(0).json();
        assert_eq!(report["value"], "denied");
        let reasons = report["calls"][0]["reasons"].to_string();
        assert!(reasons.contains("--deny"), "{reasons}");
    }
}

#[test]
fn narrower_allow_is_exception_to_ask() {
    let home = Home::new();
    let code = "await demo.logs_services({}); \
                try { await demo.tickets_create({title: 'x'}); } catch (e) { return e.code; }";
    let rules = ["--allow", "demo.logs_*", "--ask", "demo.*"];
    let run = [&["run", "--json", "--demo"][..], &rules, &["-e", code]].concat();
    let report = home.run(run).expect_code(0).json();
    assert_eq!(report["calls"][0]["decision"], "allow", "{report:#}");
    let reasons = report["calls"][0]["reasons"].to_string();
    assert!(
        reasons.contains("more specific than --ask 'demo.*'"),
        "{reasons}"
    );
    assert_ne!(report["calls"][1]["decision"], "allow", "{report:#}");
}

#[test]
fn rule_without_effect_is_reported_at_start() {
    let home = Home::new();
    let rules = ["--allow", "demo.logs_*", "--deny", "demo.*"];
    let run = [&["run", "--demo"][..], &rules, &["-e", "return 1"]].concat();
    let ended = home.run(run).expect_code(0);
    for part in [
        "the rule --allow 'demo.logs_*' never takes effect",
        "the rule --deny 'demo.*' wins wherever both match",
    ] {
        assert!(ended.stderr.contains(part), "{part}\n{ended}");
    }
}

#[test]
fn denied_tool_is_in_no_list_and_answers_denied() {
    let home = Home::new();
    let rules = ["--allow", "demo.*", "--deny", "demo.tickets_delete"];
    let code = "const listed = Object.keys(demo).join(); \
                const described = await airlock.describe({tools: ['demo.tickets_delete']}).catch((e) => e.message); \
                const codes = []; \
                for (const call of [() => demo.tickets_delete({id: 1}), () => demo_tickets_delete({id: 1}), \
                                    () => demo['tickets_' + 'delete']({id: 1})]) \
                  try { await call(); } catch (e) { codes.push(e.code); } \
                return [listed.includes('tickets_delete'), listed.includes('tickets_list'), described, codes];";
    let run = [&["run", "--json", "--demo"][..], &rules, &["-e", code]].concat();
    let report = home.run(run).expect_code(0).json();
    let value = &report["value"];
    assert_eq!(
        (&value[0], &value[1]),
        (&json!(false), &json!(true)),
        "{report:#}"
    );
    let described = value[2].to_string();
    assert!(
        described.contains("denied: rule --deny 'demo.tickets_delete'"),
        "{described}"
    );
    assert_eq!(value[3], json!(["denied", "denied", "denied"]));
    home.write(
        "airlock.toml",
        "[rules]\nallow = [\"demo.*\"]\ndeny = [\"demo.tickets_delete\"]\n",
    );
    let types = home
        .run(["types", "--demo", "--config", "airlock.toml"])
        .expect_code(0);
    assert!(!types.stdout.contains("tickets_delete"), "{types}");
    assert!(types.stdout.contains("tickets_list"), "{types}");
}

#[test]
fn ask_without_approver_denies() {
    let home = Home::new();
    let code =
        "try { await demo.logs_services({}); return 'allowed'; } catch (e) { return e.code; }";
    let report = home
        .run(["run", "--json", "--demo", "--ask", "demo.*", "-e", code])
        .expect_code(0)
        .json();
    assert!(
        report["value"] == "denied" || report["value"] == "unanswered",
        "{report:#}"
    );
}

#[test]
fn deadline_ends_run_in_time() {
    let home = Home::new();
    for code in [
        "while (true) {}",
        "try { for (;;); } catch {} finally { for (;;); }",
        "await demo.slow_echo({ms: 60000, value: ''})",
        "for (;;) await new Promise((r) => setTimeout(r, 0))",
    ] {
        at_its_own_pace(|slower| {
            let most_ms = 500 * u64::from(slower);
            let timeout = format!("{most_ms}ms");
            let ended = demo(&home, code, &["--timeout", &timeout]).expect_code(21);
            assert!(ended.wall < LONG, "{code}: {:?}", ended.wall);
            let report = ended.json();
            assert_eq!(report["code"], "limit-time", "{code}: {report:#}");
            let wall_ms = report["usage"]["wall_ms"].as_u64().unwrap();
            let slack_ms = SLACK_MS * u64::from(slower);
            assert!(wall_ms <= most_ms + slack_ms, "{code}: {wall_ms} ms");
        });
    }
}

#[test]
fn every_limit_ends_run_with_its_code() {
    let home = Home::new();
    let brackets = format!("return {}{}", "[".repeat(100_000), "]".repeat(100_000));
    let check = |code: &str, more: &[&str], exit: i32, word: &str| {
        let ended = demo(&home, code, &[&["--timeout", "1000s"], more].concat()).expect_code(exit);
        assert!(ended.wall < LONG, "{code:.60}: {:?}", ended.wall);
        let report = ended.json();
        assert_eq!(report["code"], word, "{code:.60}: {report:#}");
        report
    };
    check(
        "while (true) {}",
        &["--limit", "cpu=300ms"],
        21,
        "limit-cpu",
    );
    check(
        "const a = []; for (;;) a.push(new Uint8Array(1 << 22))",
        &["--memory", "32MiB"],
        21,
        "limit-memory",
    );
    check("const f = () => f(); f()", &[], 21, "limit-stack");
    check(
        "for (let i = 0; i < 9; i++) await demo.logs_services({})",
        &["--max-calls", "3"],
        21,
        "limit-calls",
    );
    let report = check(
        "for (;;) console.log('x'.repeat(8192))",
        &["--max-output", "64KiB", "--limit", "flood=512KiB"],
        21,
        "limit-output",
    );
    let lines = report["console"].as_array().unwrap();
    let kept: usize = lines
        .iter()
        .map(|line| line["text"].as_str().unwrap().len())
        .sum();
    assert!((32 * 1024..65 * 1024).contains(&kept), "{kept} bytes kept");
    assert!(
        report["console_dropped_bytes"].as_u64() > Some(256 * 1024),
        "{report:#}"
    );
    check("await new Promise(() => {})", &[], 20, "deadlock");
    // Too long for a command line.
    home.write("brackets.js", brackets);
    let report = home
        .run(["run", "brackets.js", "--json"])
        .expect_code(20)
        .json();
    assert_eq!(report["error"]["name"], "SyntaxError");
}

#[test]
fn limit_message_names_limit_and_flag() {
    let ended = Home::new()
        .run(["run", "--timeout", "200ms", "-e", "for(;;);"])
        .expect_code(21);
    for part in ["error:", "next:", "--timeout", "code: limit-"] {
        assert!(ended.stderr.contains(part), "no `{part}`\n{ended}");
    }
    assert_eq!(ended.stdout, "");
}

#[test]
fn run_after_stopped_run_succeeds() {
    let home = Home::new();
    demo(&home, "for(;;);", &["--timeout", "100ms"]).expect_code(21);
    assert_eq!(
        demo(&home, "return 1 + 1", &[]).expect_code(0).json()["value"],
        2
    );
}
