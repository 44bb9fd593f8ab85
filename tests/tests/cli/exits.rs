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
