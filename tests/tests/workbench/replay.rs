//! Tests `airlock policy replay`: journals of runs on the demo server are decided again by the same
//! rules and by other rules.

use std::path::PathBuf;

use serde_json::{Value, json};
use tests::command::{CommandOutput, Home};

use super::sarif::is_valid;

/// The rules at the time of the run: one tool is allowed, one asks, one is forbidden.
const THEN: &str = r#"
@id("lists") @owner("desk") @reason("a list has no secrets")
permit(principal, action == Action::"demo.tickets_list", resource);
@id("creates") @owner("desk") @reason("a person confirms each ticket")
@prompt("Create this ticket?")
permit(principal, action == Action::"demo.tickets_create", resource)
when { context.approval >= 1 };
@id("no-clock") @owner("desk") @reason("scripts do not need the time")
forbid(principal, action == Action::"demo.get-time", resource);
"#;

/// The rules of the replay. Lists are forbidden, tickets need no approval, and the clock is
/// forbidden by another rule than before.
const NOW: &str = r#"
@id("no-lists") @owner("desk") @reason("lists are private now")
forbid(principal, action == Action::"demo.tickets_list", resource);
@id("creates") @owner("desk") @reason("tickets are cheap")
permit(principal, action == Action::"demo.tickets_create", resource)
when { context.args.title == "a" };
@id("clocks") @owner("desk") @reason("no clocks at all")
forbid(principal, action == Action::"demo.get-time", resource);
"#;

const SCRIPT: &str = "
for (const call of [
  () => demo.tickets_list({}),
  () => demo.tickets_create({title: 'a'}),
  () => demo.get_time({}),
  () => demo.logs_services({}),
  () => demo['tickets_' + 'create']({}),
]) { try { await call() } catch (e) { console.log(e.code) } }
";

/// Returns a home with rules, a lock file, and the journal of one run.
fn recorded() -> (Home, String) {
    let home = Home::new();
    home.write("then/a.cedar", THEN);
    home.write("now/a.cedar", NOW);
    home.run(["lock", "--demo"]).expect_code(0);
    let answer =
        "sed 's/.*\"nonce\":\"\\([^\"]*\\)\".*/{\"nonce\":\"\\1\",\"answer\":\"allow-once\"}/'\n";
    home.write("yes.sh", answer);
    home.write("script.js", SCRIPT);
    run(
        &home,
        &["--policy", "then", "--approver", "command:sh yes.sh"],
    );
    let run = id(&home.journals()[0]);
    (home, run)
}

fn run(home: &Home, more: &[&str]) {
    home.run([&["run", "--demo", "script.js"], more].concat())
        .expect_code(0);
}

fn id(journal: &std::path::Path) -> String {
    journal.file_stem().unwrap().to_string_lossy().into_owned()
}

fn replay(home: &Home, journals: &[&str], rules: &str, more: &[&str]) -> CommandOutput {
    let by = ["--policy", rules, "--lock", "airlock.lock"];
    home.run([&["policy", "replay"], journals, &by, more].concat())
}

fn changes(replayed: &Value) -> Vec<(&str, &str, Value, Value)> {
    let calls = replayed["journals"][0]["calls"].as_array().unwrap();
    let told = |call: &Value, when: &str| json!([call[when]["how"], call[when]["rules"]]);
    calls
        .iter()
        .map(|call| {
            let tool = call["tool"].as_str().unwrap();
            (
                tool,
                call["change"].as_str().unwrap(),
                told(call, "then"),
                told(call, "now"),
            )
        })
        .collect()
}

#[test]
fn replay_under_same_rules_decides_the_same() {
    let (home, run) = recorded();
    let same = replay(&home, &[&run], "then", &[]).expect_code(0);
    assert_eq!(
        same.stdout, "5 calls of 1 journal: all decided as recorded\n",
        "{same}"
    );
    let replayed = replay(&home, &[&run], "then", &["--format", "json"])
        .expect_code(0)
        .json();
    for (tool, change, ..) in changes(&replayed) {
        assert_eq!(change, "same", "{tool}");
    }
}

#[test]
fn replay_under_other_rules_reports_each_difference() {
    let (home, run) = recorded();
    let replayed = replay(&home, &[&run], "now", &["--json"])
        .expect_code(32)
        .json();
    let invalid = json!(["denied (invalid-arguments)", []]);
    let expected = [
        (
            "demo.tickets_list",
            "narrowed",
            json!(["allowed", ["lists"]]),
            json!(["denied", ["no-lists"]]),
        ),
        (
            "demo.tickets_create",
            "widened",
            json!(["asked, and allowed", ["creates"]]),
            json!(["allowed", ["creates"]]),
        ),
        (
            "demo.get-time",
            "other-rules",
            json!(["denied", ["no-clock"]]),
            json!(["denied", ["clocks"]]),
        ),
        (
            "demo.logs_services",
            "same",
            json!(["denied", []]),
            json!(["denied", []]),
        ),
        ("demo.tickets_create", "same", invalid.clone(), invalid),
    ];
    assert_eq!(changes(&replayed), expected);
    let counts = json!([
        replayed["widened"],
        replayed["narrowed"],
        replayed["other_rules"]
    ]);
    assert_eq!(counts, json!([1, 1, 1]));
    assert_eq!(replayed["journals"][0]["calls"][0]["facts"], "journal");

    let told = replay(&home, &[&run], "now", &[]).expect_code(32).stdout;
    let told = told.replace(&run, "RUN");
    let expected = "narrowed: call 1 of RUN, script.js:3:26: `demo.tickets_list`
  args: {}
  then: allowed
        rule `lists` (then/a.cedar:2) permits: a list has no secrets
   now: denied
        rule `no-lists` (now/a.cedar:2) forbids: lists are private now
";
    assert!(told.starts_with(expected), "{told}");
    let last = "5 calls of 1 journal: 1 widened, 1 narrowed, 1 decided the same by other rules\n";
    assert!(told.ends_with(last), "{told}");

    let log = replay(&home, &[&run], "now", &["--format", "sarif"])
        .expect_code(32)
        .json();
    is_valid(&log);
    let results = log["runs"][0]["results"].as_array().unwrap();
    let kinds: Vec<_> = results
        .iter()
        .map(|it| it["ruleId"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["call-narrowed", "call-widened", "call-other-rules"]);
    let location = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], "now/a.cedar");
    assert_eq!(location["region"]["startLine"], 2);
}

#[test]
fn replay_skips_damaged_journals() {
    let (home, whole) = recorded();
    let path = |name: &str| home.path().join(name);
    let text = std::fs::read_to_string(&home.journals()[0]).unwrap();
    let cut = text.len() - 40;
    home.write("cut.jsonl", &text[..cut]);
    home.write(
        "damaged.jsonl",
        text.replacen("\"tickets_list\"", "\"tickets_lost\"", 1)
            .replacen("a list has", "a lost has", 1),
    );
    home.write("garbage.jsonl", "{}\nnot a journal\n");
    home.write("empty.jsonl", "");
    let names: Vec<String> = ["cut", "damaged", "garbage", "empty", "gone"]
        .iter()
        .map(|name| path(&format!("{name}.jsonl")).display().to_string())
        .collect();
    let all: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .chain([whole.as_str()])
        .collect();
    let ended = replay(&home, &all, "now", &[]).expect_code(31);
    assert!(
        ended
            .stdout
            .contains("cut.jsonl is cut off; its complete entries were used\n"),
        "{ended}"
    );
    assert!(
        ended.stdout.contains("of 2 journals:")
            && ended.stdout.ends_with("; 4 journals could not be read\n"),
        "{ended}"
    );
    for (name, why) in [
        ("damaged", "does not verify"),
        ("garbage", "line 1:"),
        ("empty", "is empty"),
        ("gone", "cannot be read"),
    ] {
        assert!(
            ended.stderr.contains(&format!("{name}.jsonl")),
            "{name}\n{ended}"
        );
        assert!(ended.stderr.contains(why), "{why}\n{ended}");
    }
    let replayed = replay(&home, &all, "now", &["--json"])
        .expect_code(31)
        .json();
    assert_eq!(
        replayed["broken"].as_array().unwrap().len(),
        4,
        "{replayed}"
    );
    assert_eq!(replayed["broken"][0]["problem"]["code"], "journal-broken");
    assert_eq!(replayed["journals"][0]["cut"], true);
    is_valid(
        &replay(&home, &all, "now", &["--format", "sarif"])
            .expect_code(31)
            .json(),
    );
    let unknown = replay(&home, &["zzz"], "now", &[]).expect_code(31);
    unknown.expect_stderr("there is no such run");
}

#[test]
fn run_without_facts_is_replayed_as_worst_case() {
    let home = Home::new();
    home.run(["lock", "--demo"]).expect_code(0);
    home.write("script.js", "return (await demo.tickets_list({})).length");
    run(&home, &["--allow", "*"]);
    let journal: PathBuf = home.journals()[0].clone();
    let shipped = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .join("policies");
    let by = shipped.display().to_string();
    let ended = replay(&home, &[&journal.display().to_string()], &by, &[]).expect_code(32);
    assert!(ended.stdout.starts_with("narrowed: call 1 of "), "{ended}");
    assert!(
        ended
            .stdout
            .contains(" facts: none are recorded, so their worst values are used\n"),
        "{ended}"
    );
    assert!(ended.stdout.contains("rule --allow '*'"), "{ended}");
}

#[test]
fn replay_needs_usable_rules() {
    let (home, run) = recorded();
    let none = home
        .run(["policy", "replay", &run, "--lock", "airlock.lock"])
        .expect_code(2);
    none.expect_stderr("there are no rules to replay with");
    home.write("now/a.cedar", NOW.replace("tickets_list", "tickets_lst"));
    let found = replay(&home, &[&run], "now", &[]).expect_code(32);
    assert!(found.stdout.contains("code: tool-unknown"), "{found}");
    home.write("now/a.cedar", NOW);
    // Removes a recorded tool from the lock file, against which the rules are checked.
    let lock = std::fs::read_to_string(home.path().join("airlock.lock")).unwrap();
    home.write(
        "airlock.lock",
        lock.replace("\"tickets_list\"", "\"tickets_gone\""),
    );
    let ended = replay(&home, &[&run], "then", &[]);
    assert!(matches!(ended.code, Some(32 | 33)), "{ended}");
}
