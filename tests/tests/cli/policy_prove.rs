//! Tests findings about rules without effect, which need a proof. Each finding is correct and helps
//! the author, no rule that decides some call is reported, and without a solver there are no
//! findings.

use serde_json::{Value, json};
use tests::command::{CommandOutput, Home};
use tests::solver;

/// Id, effect, tool and condition of each rule. A rule whose condition mentions approval gets a
/// `@prompt` with its id.
const RULES: [(&str, &str, &str, &str); 13] = [
    ("small", "permit", "send", "context.counts.calls_run < 10"),
    (
        "rest",
        "permit",
        "send",
        "context.counts.calls_run >= 10 && context.time.hour < 12",
    ),
    ("both", "permit", "send", "context.time.hour < 6"),
    (
        "within",
        "permit",
        "send",
        "context.counts.calls_session < 9",
    ),
    (
        "never",
        "permit",
        "send",
        "context.counts.calls_session < context.counts.calls_run",
    ),
    ("night", "forbid", "send", "context.time.hour > 20"),
    ("morning", "forbid", "send", "context.time.hour < 3"),
    (
        "late",
        "forbid",
        "send",
        "context.time.hour > 21 && context.time.hour != 22",
    ),
    (
        "gone",
        "permit",
        "send",
        "context.time.hour > 20 || context.time.hour < 3",
    ),
    (
        "asks",
        "permit",
        "send",
        "context.time.hour < 11 && context.approval >= 1",
    ),
    (
        "asks-more",
        "permit",
        "send",
        "context.counts.calls_run > 15 && context.approval >= 1",
    ),
    ("guard", "forbid", "read", "context.time.hour < 4"),
    (
        "hosts",
        "forbid",
        "send",
        "context has dest_hosts && context.dest_hosts.contains(\"a.example\")",
    ),
];

fn home() -> Home {
    let home = Home::new();
    let schema = json!({"type": "object", "properties": {"to": {"type": "string"}}});
    let tool = |name: &str| json!({"name": name, "inputSchema": schema});
    let tools = json!({"tools": [tool("send"), tool("read")]});
    home.write("mail.json", tools.to_string());
    home.write("rules/a.cedar", text(&RULES));
    home
}

fn text(rules: &[(&str, &str, &str, &str)]) -> String {
    let rule = |(id, effect, tool, condition): &(&str, &str, &str, &str)| {
        let prompt = match condition.contains("approval") {
            true => format!("@prompt(\"{id}?\") "),
            false => String::new(),
        };
        format!(
            "@id(\"{id}\") @owner(\"o\") @reason(\"because\") {prompt}\n\
             {effect}(principal, action == Action::\"mail.{tool}\", resource)\n\
             when {{ {condition} }};\n"
        )
    };
    rules.iter().map(rule).collect()
}

fn check(home: &Home, more: &[&str]) -> CommandOutput {
    let args = ["policy", "check", "rules", "--from", "mail.json"];
    let long: &[&str] = match more {
        ["--prove", "--prove-seconds", ..] => &[],
        ["--prove", ..] => &["--prove-seconds", "3600"],
        _ => &[],
    };
    home.run([&args, more, long].concat())
}

/// Returns the rules of the findings with their codes.
fn found(ended: &CommandOutput) -> Vec<(String, String)> {
    let told = ended.json();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let findings = told["findings"].as_array().unwrap().iter();
    findings
        .map(|it| (word(&it["rule"]), word(&it["code"])))
        .collect()
}

#[test]
fn prove_finds_redundant_rule_and_its_equivalent() {
    if solver::path().is_none() {
        return;
    }
    let home = home();
    // One finding follows from the rules' text alone.
    assert_eq!(
        found(&check(&home, &["--json"]).expect_code(32)),
        [("late".into(), "rule-shadowed".into())]
    );
    let proved = check(&home, &["--prove", "--json"]).expect_code(32);
    let expected = [
        ("both", "rule-shadowed"),
        ("within", "rule-shadowed"),
        ("never", "rule-dead"),
        ("late", "rule-shadowed"),
        ("gone", "rule-overruled"),
        ("asks", "rule-shadowed"),
    ];
    let expected = expected.map(|(rule, code)| (rule.to_owned(), code.to_owned()));
    assert_eq!(found(&proved), expected, "{proved}");
    let told = proved.json();
    let proofs = &told["proofs"];
    let names = ["both", "within", "never", "gone", "asks"];
    assert_eq!(proofs["proved"], json!(names), "{proved}");
    assert_eq!(proofs["open"], json!([]), "{proved}");
    let waiting = proofs["waiting"].as_array().unwrap();
    let waiting: Vec<_> = waiting.iter().map(|it| &it["rule"]).collect();
    assert_eq!(waiting, ["guard", "hosts"], "{proved}");
    let text = check(&home, &["--prove"]).expect_code(32).stdout;
    for said in [
        "warning: rules/a.cedar:7:1: the rule `both` has no effect\n",
        "other rules together permit or forbid all calls that this rule permits; \
         only the reported reason would change",
        "the rule `small` (rules/a.cedar:1) permits all calls that this rule permits",
        "no call meets the condition of the rule `never`\n",
        "the rule `gone` permits nothing\n",
        "(proved by cvc5, for the tool that the rule applies to)",
        "note: the rule `guard` forbids only calls that no rule permits (by the rules' text)",
        "note: the rule `hosts` matches no call of these tools as configured (by the rules' text)",
        "assuming: a proof relies on cvc5",
        "assuming: patterns",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
}

#[test]
fn removing_idle_rules_changes_nothing() {
    if solver::path().is_none() {
        return;
    }
    let home = home();
    let proved = check(&home, &["--prove", "--json"]);
    let gone: Vec<String> = found(&proved).into_iter().map(|(rule, _)| rule).collect();
    let is_left = |it: &&(&str, &str, &str, &str)| !gone.iter().any(|rule| rule == it.0);
    let left: Vec<_> = RULES.iter().filter(is_left).copied().collect();
    home.write("left/a.cedar", text(&left));
    let from = ["--from", "mail.json"];
    let prove = ["--prove", "--prove-seconds", "3600"];
    let after = home.run([&["policy", "check", "left"][..], &prove, &from].concat());
    after.expect_code(0);
    let diff = [
        "policy",
        "diff",
        "rules",
        "left",
        "--require-proof",
        "--json",
    ];
    let diff = home.run([&diff[..], &from].concat()).expect_code(0);
    let told = diff.json();
    assert_eq!(
        (&told["change"], &told["open"]),
        (&json!("equal"), &json!(false)),
        "{diff}"
    );
}

#[test]
fn proved_warning_can_be_excepted() {
    if solver::path().is_none() {
        return;
    }
    let home = home();
    home.write("rules/a.cedar", text(&RULES[..3]));
    let except = ["--prove", "--except", "rule-shadowed:both"];
    let text = check(&home, &except).expect_code(0).stdout;
    assert!(text.contains("nothing found, 1 warning excepted"), "{text}");
    check(&home, &["--except", "rule-shadowed:both"])
        .expect_code(2)
        .expect_stderr("`--except rule-shadowed:both` matches no warning");
}

#[test]
fn prove_without_solver_reports_examples_only_and_fails() {
    let home = home();
    let run = |named: &str, more: &[&str]| {
        let args = ["policy", "check", "rules", "--from", "mail.json", "--prove"];
        let mut command = home.airlock([&args, more].concat());
        command.env("CVC5", named);
        tests::command::start(&mut command, "").wait()
    };
    home.write("rules/a.cedar", text(&RULES[..3]));
    for named in ["/no/such/cvc5", "/bin/false"] {
        let found = run(named, &[]).expect_code(32);
        let text = &found.stdout;
        let open = "not proved: whether the rule `both` has an effect: the solver cannot be used";
        assert!(text.contains(open), "{found}");
        assert!(!text.contains("`small` has an effect"), "{found}");
        assert!(text.contains("3 rules, nothing found"), "{found}");
        assert!(text.contains("is not a usable cvc5"), "{found}");
        assert!(!text.contains("proved by"), "{found}");
    }
    let told = run("/no/such/cvc5", &["--json"]).expect_code(32).json();
    assert_eq!(told["proofs"]["solver"], Value::Null);
    assert_eq!(told["proofs"]["open"][0]["rule"], "both");
    let sarif = run("/no/such/cvc5", &["--format", "sarif"]).expect_code(32);
    let result = &sarif.json()["runs"][0]["results"][0];
    assert_eq!(
        (&result["ruleId"], &result["level"]),
        (&json!("not-proved"), &json!("warning"))
    );
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["region"]["startLine"], 7, "{sarif}");
    // For each of these rules, some call shows that the rule has an effect.
    home.write("rules/a.cedar", text(&RULES[..2]));
    let text = run("/no/such/cvc5", &[]).expect_code(0).stdout;
    assert!(text.contains("no question needed a solver"), "{text}");
}

#[test]
fn prove_time_is_bounded_and_flag_requires_prove() {
    let home = home();
    check(&home, &["--prove-seconds", "5"]).expect_code(2);
    check(&home, &["--prove", "--prove-seconds", "0"]).expect_code(2);
    check(&home, &["--prove", "--prove-seconds", "99999"]).expect_code(2);
}
