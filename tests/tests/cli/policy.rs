//! Tests policies on the command line: the check, the test cases, and the decisions in a run.

use std::path::Path;

use tests::command::{CommandOutput, Home};

/// Returns the shipped rules.
fn shipped() -> String {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    workspace.join("policies").display().to_string()
}

const NOTES: &str = "@id(\"x\")\n@owner(\"o\")\n@reason(\"because\")\n";

#[test]
fn shipped_rules_load_and_each_decides_a_case() {
    let home = Home::new();
    let checked = home
        .run(["policy", "check", &shipped(), "--demo"])
        .expect_code(0);
    assert!(checked.stdout.contains("nothing found"), "{checked}");
    let tested = home
        .run(["policy", "test", &shipped(), "--json"])
        .expect_code(0);
    let results = tested.json();
    assert_eq!(results["failures"], serde_json::json!([]), "{tested}");
    assert_eq!(results["uncovered"], serde_json::json!([]), "{tested}");
    assert!(results["rules"].as_u64() > Some(3), "{tested}");
}

fn check_found(rule: &str, expected: &[&str]) {
    let home = Home::new();
    home.write("rules/a.cedar", format!("{NOTES}{rule}"));
    let ended = home
        .run(["policy", "check", "rules", "--demo"])
        .expect_code(32);
    for part in expected {
        assert!(ended.stdout.contains(part), "{part}\n{ended}");
    }
    assert!(ended.stdout.ends_with("1 error\n"), "{ended}");
}

#[test]
fn policy_misspellings_are_reported_with_place() {
    check_found(
        "permit(principal, action == Action::\"demo.tickets_lst\", resource);",
        &[
            "error: rules/a.cedar:4:37: there is no tool or group `demo.tickets_lst`\n",
            " next: did you mean `demo.tickets_list`?\n",
        ],
    );
    check_found(
        "permit(principal, action == Action::\"demo.tickets_create\", resource)\n\
         when { context.args.titel == \"x\" };",
        &[
            "error: rules/a.cedar:5:21: there is no argument `titel`\n",
            " next: did you mean `title`?\n",
        ],
    );
    check_found(
        "forbid(principal, action, resource) when { context.labels.contains(\"priwate\") };",
        &["rules/a.cedar:4:68: `priwate` is not a label\n"],
    );
    check_found(
        "@promt(\"?\") permit(principal, action, resource) when { context.approval >= 1 };",
        &["rules/a.cedar:4:1: unknown annotation `@promt`\n"],
    );
}

/// For Cedar, a lone carriage return ends a comment, but an editor does not show it as a line
/// break.
#[test]
fn lone_carriage_return_is_refused() {
    let home = Home::new();
    let rule =
        format!("{NOTES}forbid(principal, action in Action::\"destructive\", resource);\r\n");
    home.write("rules/a.cedar", &rule);
    home.run(["policy", "check", "rules", "--demo"])
        .expect_code(0);
    home.write("rules/a.cedar", format!("{rule}// none\r{rule}"));
    let ended = home
        .run(["policy", "check", "rules", "--demo"])
        .expect_code(30);
    let expected =
        "invalid character in rules/a.cedar:5\n  why: the line has the invisible character U+000D";
    assert!(ended.stderr.contains(expected), "{ended}");
}

fn decided(home: &Home, code: &str, more: &[&str]) -> CommandOutput {
    let mut args = vec!["run", "--demo", "--no-ask", "--policy", "rules", "-e", code];
    args.extend(more);
    home.run(args)
}

#[test]
fn rules_decide_and_patterns_only_tighten() {
    let home = Home::new();
    let rule = "permit(principal, action == Action::\"demo.tickets_create\", resource)\n\
                when { context.args.title == \"mine\" && context.counts.calls_run < 2 };";
    home.write("rules/a.cedar", format!("{NOTES}{rule}"));
    home.write(
        "project/b.cedar",
        NOTES.replace("\"x\"", "\"y\"") + "forbid(principal, action, resource);",
    );
    let create = "return await demo.tickets_create({title: 'mine'})";
    decided(&home, create, &[]).expect_code(0);
    let three = "for (let i = 0; i < 3; i++) await demo.tickets_create({title: 'mine'})";
    let ended = decided(&home, three, &[]).expect_code(22);
    assert!(
        ended.stderr.contains("no policy rule permits the call"),
        "{ended}"
    );
    let other = "return await demo.tickets_create({title: 'yours'})";
    decided(&home, other, &["--allow", "*"]).expect_code(22);
    let ended = decided(&home, create, &["--deny", "demo.*"]).expect_code(22);
    assert!(ended.stderr.contains("--deny"), "{ended}");
    let ended = decided(&home, create, &["--tighten", "project"]).expect_code(22);
    assert!(
        ended
            .stderr
            .contains("rule `y` (project/b.cedar:1) forbids: because"),
        "{ended}"
    );
}

#[test]
fn empty_folder_allows_nothing_and_permit_cannot_tighten() {
    let home = Home::new();
    home.write("rules/readme.txt", "nothing here");
    let ended = decided(&home, "await demo.get_time({})", &[]).expect_code(22);
    assert!(
        ended.stderr.contains("the policy folders contain no rule"),
        "{ended}"
    );
    home.write(
        "loose/a.cedar",
        format!("{NOTES}permit(principal, action, resource);"),
    );
    let ended = decided(&home, "return 1", &["--tighten", "loose"]).expect_code(32);
    assert!(
        ended.stderr.contains("in a folder that may only forbid"),
        "{ended}"
    );
}

#[test]
fn failing_case_or_untested_rule_fails() {
    let home = Home::new();
    home.write(
        "rules/a.cedar",
        format!("{NOTES}permit(principal, action, resource);"),
    );
    let ended = home.run(["policy", "test", "rules"]).expect_code(32);
    assert!(
        ended
            .stdout
            .contains("the rule `x` (rules/a.cedar:1) decides no case"),
        "{ended}"
    );
    let cases = "[tools.\"a.b\"]\n[[cases]]\nname = \"n\"\ntool = \"a.b\"\nlevel = \"LEVEL\"\n";
    home.write("rules/a.cases.toml", cases.replace("LEVEL", "deny"));
    let ended = home.run(["policy", "test", "rules"]).expect_code(32);
    assert!(ended.stdout.contains("found allow by x"), "{ended}");
    home.write("rules/a.cases.toml", cases.replace("LEVEL", "allow"));
    home.run(["policy", "test", "rules"]).expect_code(0);
    for (wrong, expected) in [
        (cases.replace("LEVEL", "maybe"), "a.cases.toml:5"),
        (
            cases.replace("LEVEL", "allow") + "facts = { labls = [] }",
            "did you mean `labels`?",
        ),
        (
            cases.replace("tool = \"a.b\"", "tool = \"a.c\""),
            "the file has no tool `a.c`",
        ),
    ] {
        let wrong = wrong.replace("LEVEL", "allow");
        home.write("rules/a.cases.toml", wrong);
        let ended = home.run(["policy", "test", "rules"]).expect_code(32);
        assert!(ended.stderr.contains(expected), "{expected}\n{ended}");
    }
}

/// The finding points at the text that the advice replaces, and the advice has the brackets that the
/// text needs there.
#[test]
fn advice_can_be_typed_where_the_finding_points() {
    check_found(
        "forbid(principal, action, resource) when { !context.pinned };",
        &[
            "rules/a.cedar:4:45: ",
            "write `(context has pinned && context.pinned)` instead of `context.pinned`\n",
        ],
    );
    check_found(
        "@prompt(\"?\") permit(principal, action, resource)\n\
         when { context.approval >= 2 && context.approval > 0 };",
        &["rules/a.cedar:5:33: ", "write context.approval >= 1\n"],
    );
}

#[test]
fn damaged_lock_file_is_not_replaced_unseen() {
    let home = Home::new();
    home.write("airlock.lock", "{");
    home.write(
        "rules/a.cedar",
        format!("{NOTES}forbid(principal, action, resource);"),
    );
    let check = ["policy", "check", "rules", "--lock", "airlock.lock"];
    let ended = home.run(check).expect_code(33);
    let next =
        "next: restore the file from version control; a new file from `airlock lock` accepts";
    assert!(ended.stderr.contains(next), "{ended}");
}

/// Where a rule asks about each call, no grant is enough, and the run says so.
#[test]
fn run_without_approver_says_that_no_grant_is_enough() {
    let home = Home::new();
    let rule = "@prompt(\"?\") permit(principal, action, resource)\n\
                when { context.approval >= 2 };";
    home.write("rules/a.cedar", format!("{NOTES}{rule}"));
    let args = ["run", "--demo", "--policy", "rules", "--approver", "never"];
    let ended = home.run([&args[..], &["-e", "await demo.get_time({})"]].concat());
    let said = "no grant would have been enough, because the rules ask about each of these calls";
    assert!(ended.stderr.contains(said), "{ended}");
}

#[test]
fn text_that_is_not_cedar_is_explained_where_the_mistake_is() {
    check_found(
        "forbid(principal, action, resource) when { contex.labels.contains(\"private\") };",
        &["rules/a.cedar:4:44: ", " next: did you mean `context`?\n"],
    );
    check_found(
        "forbid(principal, action, resource)\n\n\
         @id(\"y\") @owner(\"o\") @reason(\"r\") forbid(principal, action, resource);",
        &["rules/a.cedar:4:36: ", " next: write `;` here\n"],
    );
}
