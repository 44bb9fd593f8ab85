//! Tests `airlock policy can`, which reports all possible decisions about calls. `explain` confirms
//! each example, and only proved answers are called proved.

use serde_json::{Value, json};
use tests::command::{CommandOutput, Home};
use tests::solver;

const NOTES: &str = "@owner(\"o\") @reason(\"because\")";

fn tools() -> Value {
    let text = json!({"type": "string"});
    let schema = json!({"type": "object", "required": ["to"], "properties": {
        "to": text, "size": {"type": "integer"}, "mode": {"enum": ["draft", "now"]},
    }});
    let tool = |name: &str| json!({"name": name, "inputSchema": schema});
    json!({"tools": [tool("send"), tool("draft"), tool("burn")]})
}

/// Returns a home with rules under which each tool gets a different answer.
fn home() -> Home {
    let home = Home::new();
    home.write("mail.json", tools().to_string());
    let rules = format!(
        "@id(\"small\") {NOTES} permit(principal, action == Action::\"mail.send\", resource)\n\
         when {{ context.args has size && context.args.size < 10 }};\n\
         @id(\"asked\") {NOTES} @prompt(\"?\")\n\
         permit(principal, action in Action::\"server:mail\", resource)\n\
         when {{ context.approval >= 1 }};\n\
         @id(\"never-both\") {NOTES} permit(principal, action == Action::\"mail.draft\", resource)\n\
         when {{ context.args has mode && context.args.mode == \"now\" && context.args.mode == \"draft\" }};\n\
         @id(\"no-burning\") {NOTES} forbid(principal, action == Action::\"mail.burn\", resource);\n"
    );
    home.write("rules/a.cedar", rules);
    home
}

fn can(home: &Home, more: &[&str]) -> CommandOutput {
    let mut args = vec!["policy", "can", "--policy", "rules", "--from", "mail.json"];
    args.extend(more);
    home.run(args)
}

fn words(answers: &Value) -> Vec<String> {
    let word = |answer: &Value| match answer["how"].as_str().unwrap() {
        "example" => "yes".to_owned(),
        "proved" => "proved never".to_owned(),
        "settled" => "never".to_owned(),
        _ => "open".to_owned(),
    };
    answers.as_array().unwrap().iter().map(word).collect()
}

fn check(found: &CommandOutput, tool: &str, expected: &[&str]) {
    let told = found.json();
    let tools = told["tools"].as_array().unwrap();
    let told = tools.iter().find(|it| it["tool"] == tool).unwrap();
    assert_eq!(words(&told["answers"]), expected, "{tool}: {found}");
}

#[test]
fn can_reports_levels_confirmed_by_explain() {
    let Some(_) = solver::path() else { return };
    let home = home();
    let found = can(&home, &["--json"]).expect_code(0);
    check(&found, "mail.send", &["yes", "yes", "never"]);
    check(&found, "mail.draft", &["proved never", "yes", "never"]);
    check(&found, "mail.burn", &["never", "never", "never"]);
    let mut confirmed = 0;
    for tool in found.json()["tools"].as_array().unwrap() {
        for answer in tool["answers"].as_array().unwrap() {
            if answer["possible"] != true {
                continue;
            }
            let call = answer["call"].to_string();
            let explained = ["policy", "explain", &call, "--policy", "rules"];
            let explained = home.run([&explained[..], &["--from", "mail.json"]].concat());
            let expected = match answer["level"].as_str().unwrap() {
                "allow" => "decision: allowed",
                "ask" => "decision: a person is asked; a grant for the run is enough",
                _ => "decision: a person is asked; only an approval of this call is enough",
            };
            assert!(explained.stdout.contains(expected), "{call}: {explained}");
            for reason in answer["reasons"].as_array().unwrap() {
                let reason = reason.as_str().unwrap();
                assert!(explained.stdout.contains(reason), "{call}: {explained}");
            }
            confirmed += 1;
        }
    }
    assert_eq!(confirmed, 3);
}

#[test]
fn can_and_explain_name_program_or_never_as_approver() {
    let home = home();
    let call = json!({"tool": "mail.draft", "args": {"to": "a"}}).to_string();
    for (approver, assumed, decision) in [
        ("", None, "a person is asked"),
        ("approver = \"web\"\n", None, "a person is asked"),
        (
            "approver = \"command:yes -n 'a b'\"\n",
            Some("approvals come from the program `yes -n 'a b'`, and not from a person"),
            "the program `yes -n 'a b'` is asked, and not a person",
        ),
        (
            "approver = \"never\"\n",
            Some("the approver is `never`: a call that needs an approval is denied"),
            "an approval is needed, and the approver `never` gives none",
        ),
    ] {
        home.write("airlock.toml", approver);
        let config = ["--config", "airlock.toml"];
        let found = can(&home, &[&config[..], &["--auto", "mail.draft"]].concat());
        let note = "assuming: approvals come";
        match assumed {
            Some(assumed) => {
                let line = format!("assuming: {assumed}");
                assert!(found.stdout.contains(&line), "{approver}: {found}");
            }
            None => assert!(!found.stdout.contains(note), "{approver}: {found}"),
        }
        assert!(!found.stdout.contains("without a person"), "{found}");
        let told = can(&home, &[&config[..], &["--json", "mail.draft"]].concat()).json();
        let named = approver.split('"').nth(1);
        assert_eq!(told["approver"], json!(named), "{approver}: {told}");
        let explain = ["policy", "explain", &call, "--policy", "rules"];
        let more = ["--from", "mail.json", "--config", "airlock.toml"];
        let found = home.run([&explain[..], &more].concat()).expect_code(0);
        let line = format!("decision: {decision}; a grant for the run is enough\n");
        assert!(found.stdout.contains(&line), "{approver}: {found}");
    }
}

/// Returns the calls that `can` printed, each with its level.
fn printed(text: &str) -> Vec<(&'static str, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let level = |line: &str| match line.trim() {
        "without asking: yes" => Some("allow"),
        "with a grant or an approval: yes" => Some("ask"),
        "only with an approval of this call: yes" => Some("ask-call"),
        _ => None,
    };
    let pairs = lines.windows(2);
    let pairs = pairs.filter_map(|pair| Some((level(pair[0])?, pair[1].trim().to_owned())));
    pairs.collect()
}

#[test]
fn printed_examples_are_cases_of_policy_test() {
    const RULES: &str = "@id(\"pinned\") @owner(\"o\") @reason(\"because\") @prompt(\"?\")
permit(principal, action, resource) when { context.approval >= 1 && !(context has pinned) };
@id(\"in-data\") @owner(\"o\") @reason(\"because\")
permit(principal, action == Action::\"fs.read\", resource)
when { context has path_roots && context.path_roots == [\"data\"] };
@id(\"fixed\") @owner(\"o\") @reason(\"because\") @prompt(\"?\")
permit(principal, action == Action::\"fs.fixed\", resource)
when { context.approval >= 2 && context has path_roots && context.path_roots == [\"data\"] };
";
    let home = Home::new();
    let tool = |name: &str, path: Value| {
        let schema = json!({"type": "object", "required": ["path"], "properties": {"path": path}});
        json!({"name": name, "inputSchema": schema})
    };
    let tools = [
        tool("read", json!({"type": "string"})),
        tool("fixed", json!({"enum": ["/elsewhere/x"]})),
    ];
    home.write("fs.json", json!({ "tools": tools }).to_string());
    home.write("data/a.txt", "a");
    home.write("rules/a.cedar", RULES);
    let config =
        "[labels.fs]\nreads = []\nwrites = []\npaths = [\"/path\"]\n[roots]\ndata = \"data\"\n";
    home.write("airlock.toml", config);
    for more in [&[][..], &["--config", "airlock.toml"]] {
        let sources = [&["--from", "fs.json"], more].concat();
        let can = ["policy", "can", "--policy", "rules"];
        let found = home.run([&can[..], &sources].concat());
        let examples = printed(&found.stdout);
        let least = if more.is_empty() { 1 } else { 3 };
        assert!(examples.len() >= least, "{found}");
        // The only path of this tool is in no root.
        let fixed = found.stdout.split("fs.read:").next().unwrap();
        assert!(!fixed.contains("this call: yes"), "{found}");
        let case = |(number, (level, call)): (usize, &(&str, String))| {
            format!("[[cases]]\nname = \"{number}\"\ncall = '''{call}'''\nlevel = \"{level}\"\n")
        };
        let cases: String = examples.iter().enumerate().map(case).collect();
        home.write("rules/a.cases.toml", cases);
        let tested = home.run([&["policy", "test", "rules"], &sources[..]].concat());
        let passed = format!("{} cases, 0 failed", examples.len());
        assert!(tested.stdout.contains(&passed), "{found}\n{tested}");
        std::fs::remove_file(home.path().join("rules/a.cases.toml")).unwrap();
    }
    let both = "[[cases]]\nname = \"x\"\ncall = '{}'\ntool = \"fs.read\"\nlevel = \"deny\"\n";
    home.write("rules/a.cases.toml", both);
    home.run(["policy", "test", "rules", "--from", "fs.json"])
        .expect_code(32)
        .expect_stderr("expected either `tool`, `args` and `facts`, or `call` alone");
}

#[test]
fn can_auto_prints_text_and_sarif() {
    let Some(path) = solver::path() else { return };
    let home = home();
    let text = can(&home, &["--auto", "mail.send"]).expect_code(0).stdout;
    assert!(
        text.starts_with("mail.send: some calls are allowed without an approval\n  without asking: yes\n    {\"tool\":"),
        "{text}"
    );
    assert!(
        text.contains("why: rule `small` (rules/a.cedar:1) permits"),
        "{text}"
    );
    // The solver was not used, so no answer depends on it.
    assert!(text.contains("\nno question needed a solver\n"), "{text}");
    assert!(text.contains("assuming: no grant was given"), "{text}");
    assert!(!text.contains("a proof relies on"), "{text}");
    let text = can(&home, &["--auto", "mail.draft"]).expect_code(0).stdout;
    assert!(
        text.contains(&format!("proved by {}", path.display())),
        "{text}"
    );
    assert!(text.contains("assuming: a proof relies on cvc5"), "{text}");
    let text = can(&home, &["--auto", "mail.*"]).expect_code(0).stdout;
    let counted = "3 tools: 1 can be called without asking, 2 cannot";
    assert!(text.contains(counted), "{text}");
    let text = can(&home, &["mail.sned"]).expect_code(2).stderr;
    assert!(text.contains("did you mean `mail.send`?"), "{text}");
    let own = home
        .run(["policy", "can", "--demo", "airlock.search"])
        .expect_code(2);
    assert!(own.stderr.contains("reach no server need no rule"), "{own}");
    let sarif = can(&home, &["--auto", "--format", "sarif"])
        .expect_code(0)
        .json();
    assert_eq!(sarif["version"], "2.1.0");
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 1, "{sarif}");
    assert_eq!(results[0]["ruleId"], "may-run-unasked");
    let place = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "rules/a.cedar");
    assert_eq!(place["region"]["startLine"], 1);
}

#[test]
fn can_enumerates_without_solver_and_says_so() {
    let home = home();
    let run = |solver: Option<&str>, more: &[&str]| {
        let mut args = vec!["policy", "can", "--policy", "rules", "--from", "mail.json"];
        args.extend(more);
        let mut command = home.airlock(args);
        command.env("PATH", home.path());
        solver.iter().for_each(|it| {
            command.env("CVC5", it);
        });
        tests::command::start(&mut command, "").wait()
    };
    let found = run(None, &["--json"]).expect_code(34);
    check(&found, "mail.send", &["yes", "yes", "never"]);
    check(&found, "mail.draft", &["open", "yes", "never"]);
    assert_eq!(found.json()["solver"], Value::Null);
    let text = run(None, &["--auto", "mail.draft"]).stdout;
    let expected = "without asking: open, neither an example nor a proof (there is no solver)";
    assert!(text.contains(expected), "{text}");
    let counted = "1 tool: 0 can be called without asking, 0 cannot, 1 open\n";
    assert!(text.contains(counted), "{text}");
    assert!(text.contains("install it, or set CVC5"), "{text}");
    assert!(
        text.contains("checked: 4 rules (2 apply to these tools); 1 tool; no configuration"),
        "{text}"
    );
    // With a program that is not a solver, no answer is proved.
    let text = run(Some("/bin/cat"), &["--auto", "mail.draft"]).stdout;
    assert!(
        text.contains("neither an example nor a proof (the solver cannot be used)"),
        "{text}"
    );
    assert!(text.contains("`/bin/cat` is not a usable cvc5"), "{text}");
    assert!(!text.contains("a proof relies on"), "{text}");
    assert!(!text.contains("never (proved)"), "{text}");
    let found = run(Some("/no/such/cvc5"), &["--json"]);
    assert_eq!(found.json()["solver"], Value::Null, "{found}");
    let trouble = found.json()["trouble"].as_str().unwrap().to_owned();
    assert!(trouble.contains("cannot be started"), "{found}");
    // Answers that need no solver are given without one.
    let text = run(Some("/bin/cat"), &["--auto", "mail.burn"]).stdout;
    assert!(text.contains("no question needed a solver"), "{text}");
}

/// Without a policy folder, a call that no pattern names is not reported as impossible, because a
/// person can be asked.
#[test]
fn can_with_patterns_alone_reports_no_approval() {
    let home = home();
    home.write("airlock.toml", "[rules]\nallow = [\"mail.send\"]\n");
    let args = [
        "policy",
        "can",
        "--from",
        "mail.json",
        "--config",
        "airlock.toml",
    ];
    let text = home.run(args).expect_code(0).stdout;
    assert!(
        text.contains("mail.burn: every call is denied\n  without asking: never"),
        "{text}"
    );
    let assumed = "assuming: a call that no rule matches is denied";
    assert!(text.contains(assumed), "{text}");
    assert!(!can(&home, &[]).stdout.contains(assumed));
}

/// An answer that follows from the rules' text needs no solver. The output does not call it proved.
#[test]
fn can_claims_no_proof_without_solver() {
    let home = home();
    let shipped = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies");
    let shipped = shipped.display().to_string();
    home.write("less/a.cedar", "");
    let ours = ["--policy", "rules", "--from", "mail.json"];
    let theirs = ["--policy", &shipped, "--demo"];
    let commands: [Vec<&str>; 4] = [
        [&["policy", "can"], &ours[..]].concat(),
        [&["policy", "can"], &theirs[..]].concat(),
        vec!["policy", "diff", "rules", "less", "--from", "mail.json"],
        vec![
            "policy",
            "check",
            "rules",
            "--prove",
            "--prove-seconds",
            "3600",
            "--from",
            "mail.json",
        ],
    ];
    let mut settled = 0;
    for named in ["none", "/bin/cat"] {
        for command in &commands {
            let run = |format: &str| {
                let mut command = home.airlock([&command[..], &["--format", format]].concat());
                command.env("PATH", home.path()).env("CVC5", named);
                tests::command::start(&mut command, "").wait()
            };
            for format in ["text", "sarif"] {
                let found = run(format);
                let claims = ["(proved", "proved by", "is proved to", "proof relies"];
                let claimed = claims.iter().find(|it| found.stdout.contains(**it));
                assert_eq!(claimed, None, "{named} {command:?} {format}: {found}");
            }
            let told = run("json").json();
            let mut all = vec![&told];
            while let Some(value) = all.pop() {
                assert_ne!(value["how"], "proved", "{named} {command:?}: {value}");
                let no_rules = [Value::Null, json!([])];
                assert!(no_rules.contains(&value["proved"]), "{command:?}: {value}");
                settled += u32::from(value["how"] == "settled");
                match value {
                    Value::Array(items) => all.extend(items),
                    Value::Object(members) => all.extend(members.values()),
                    _ => {}
                }
            }
        }
    }
    assert!(settled >= 20, "{settled}");
}

#[test]
fn can_names_real_destinations_and_shows_broken_rules() {
    let Some(_) = solver::path() else { return };
    let home = home();
    let config = "known_destinations = [\"@corp.example\"]\n\
                  [labels.mail]\nreads = []\nwrites = [\"external\"]\ndestinations = [\"/to\"]\n";
    home.write("airlock.toml", config);
    let rule = format!(
        "@id(\"own\") {NOTES} permit(principal, action == Action::\"mail.send\", resource)\n\
         when {{ context has dest_domains && [\"corp.example\"].containsAll(context.dest_domains) }};\n\
         @id(\"pages\") {NOTES} permit(principal, action == Action::\"mail.draft\", resource)\n\
         when {{ context has dest_hosts && context has dest_domains }};"
    );
    home.write("rules/a.cedar", rule);
    let found = can(&home, &["--json", "--auto", "--config", "airlock.toml"]).expect_code(0);
    check(&found, "mail.send", &["yes"]);
    check(&found, "mail.draft", &["proved never"]);
    let told = found.json();
    let send = told["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["tool"] == "mail.send");
    let call = &send.unwrap()["answers"][0]["call"];
    assert_eq!(call["args"]["to"], "someone@corp.example", "{call}");
    assert_eq!(
        call["facts"]["dest_domains"],
        json!(["corp.example"]),
        "{call}"
    );
    home.write("rules/a.cedar", "permit(principal, action, resource);");
    let found = can(&home, &[]).expect_code(32);
    assert!(found.stdout.contains("the rule has no @id"), "{found}");
}
