//! Tests `airlock policy diff`, which reports the calls that a change of rules permits or denies.
//! For each pair of folders the report is correct, and both folders decide each example as
//! reported.

use serde_json::{Value, json};
use tests::command::{CommandOutput, Home};
use tests::solver;

fn tools() -> Value {
    let text = json!({"type": "string"});
    let schema = json!({"type": "object", "required": ["to", "count", "serial"], "properties": {
        "serial": {"type": "integer"},
        "to": text, "count": {"type": "integer", "minimum": 0, "maximum": 100},
        "mode": {"enum": ["draft", "now"]}, "huge": {"type": "integer"},
        "tags": {"type": "array", "items": text},
    }});
    let tool = |name: &str| json!({"name": name, "inputSchema": schema});
    json!({"tools": [tool("send"), tool("read")]})
}

/// Expands short rules, separated by `;`. A short rule is `send`, `read` or `all`, then `permit` or
/// `forbid`, then a condition.
fn folder(short: &str) -> String {
    let rules = short.split(';').map(str::trim).filter(|it| !it.is_empty());
    let rule = |(at, rule): (usize, &str)| {
        let mut words = rule.splitn(3, ' ');
        let action = match words.next().unwrap() {
            "all" => "action".to_owned(),
            tool => format!("action == Action::\"mail.{tool}\""),
        };
        let effect = words.next().unwrap();
        let condition = words.next().unwrap_or_default();
        let prompt = if condition.contains("approval") {
            "@prompt(\"?\")"
        } else {
            ""
        };
        format!(
            "@id(\"r{at}\") @owner(\"o\") @reason(\"because\") {prompt}\n\
             {effect}(principal, {action}, resource) {condition};\n"
        )
    };
    rules.enumerate().map(rule).collect()
}

fn home(old: &str, new: &str) -> Home {
    let home = Home::new();
    home.write("mail.json", tools().to_string());
    home.write("old/a.cedar", folder(old));
    home.write("new/a.cedar", folder(new));
    // A configuration in which no tool is labelled.
    home.write("none.toml", "");
    home
}

fn diff(home: &Home, more: &[&str]) -> CommandOutput {
    home.run(
        [
            &["policy", "diff", "old", "new", "--from", "mail.json"][..],
            &["--labels", "none.toml"],
            more,
        ]
        .concat(),
    )
}

/// Returns the level that `explain` reports for a call under one folder.
fn level(home: &Home, folder: &str, call: &Value) -> &'static str {
    let call = call.to_string();
    let args = [
        "policy",
        "explain",
        &call,
        "--policy",
        folder,
        "--from",
        "mail.json",
    ];
    let explained = home.run(args).expect_code(0).stdout;
    let of = [
        ("decision: allowed", "allow"),
        ("decision: a person is asked; a grant", "ask"),
        ("decision: a person is asked; only", "ask-call"),
        ("decision: denied\n", "deny"),
    ];
    let found = of.iter().find(|(words, _)| explained.contains(words));
    found.unwrap_or_else(|| panic!("{explained}")).1
}

const LEVELS: [&str; 4] = ["allow", "ask", "ask-call", "deny"];

/// Compares two folders. `expected` contains the result for all tools, then the one for
/// `mail.send`.
fn check(old: &str, new: &str, expected: [&str; 2]) {
    if solver::path().is_none() {
        return;
    }
    let home = home(old, new);
    let code = if matches!(expected[0], "widened" | "both") {
        32
    } else {
        0
    };
    let found = diff(&home, &["--json", "--require-proof"]).expect_code(code);
    let told = found.json();
    assert_eq!(told["change"], expected[0], "{old} -> {new}: {found}");
    assert_eq!(told["open"], false, "{old} -> {new}: {found}");
    for tool in told["tools"].as_array().unwrap() {
        if tool["tool"] == "mail.send" {
            assert_eq!(tool["change"], expected[1], "{old} -> {new}: {found}");
        }
        for way in ["widened", "narrowed"] {
            let told = &tool[way];
            if told["found"] != true {
                continue;
            }
            let place = |folder: &str| {
                let level = level(&home, folder, &told["call"]);
                assert_eq!(
                    level, told[folder]["level"],
                    "{old} -> {new}, {folder}: {told}"
                );
                LEVELS.iter().position(|it| *it == level).unwrap()
            };
            let (before, after) = (place("old"), place("new"));
            assert_eq!(way == "widened", after < before, "{old} -> {new}: {told}");
        }
    }
}

/// The pairs differ in bounds, text patterns, sets, labels, approval levels and scopes.
#[test]
fn diff_is_correct_on_twenty_pairs() {
    const LESS: &str = "send permit when { context.args.count < 10 }";
    let pairs = [
        (LESS, LESS, ["equal", "equal"]),
        // A different text with the same meaning.
        (
            LESS,
            "send permit when { context.args.count <= 9 }",
            ["equal", "equal"],
        ),
        (
            LESS,
            "send permit when { context.args.count < 11 }",
            ["widened", "widened"],
        ),
        (
            LESS,
            "send permit when { context.args.count < 9 }",
            ["narrowed", "narrowed"],
        ),
        (
            LESS,
            "send permit when { context.args.count > 5 }",
            ["both", "both"],
        ),
        // The schema has no negative counts.
        (
            LESS,
            "send permit when { context.args.count < 10 || context.args.count < 0 }",
            ["equal", "equal"],
        ),
        (LESS, "", ["narrowed", "narrowed"]),
        ("", LESS, ["widened", "widened"]),
        ("send permit", "all permit", ["widened", "equal"]),
        ("all permit", "send permit", ["narrowed", "equal"]),
        (
            "all permit",
            "send permit ; read permit",
            ["equal", "equal"],
        ),
        (
            "all permit when { context.approval >= 1 }",
            "all permit when { context.approval >= 2 }",
            ["narrowed", "narrowed"],
        ),
        (
            "all permit ; send forbid unless { context.approval >= 2 }",
            "all permit ; send forbid unless { context.approval >= 1 }",
            ["widened", "widened"],
        ),
        (
            "all permit ; all forbid when { context.labels.contains(\"private\") }",
            "all permit ; all forbid when { context.labels.contains(\"untrusted\") }",
            ["both", "both"],
        ),
        (
            "all permit ; all forbid when { context.labels.containsAny([\"private\", \"untrusted\"]) }",
            "all permit ; all forbid when { context.labels.containsAll([\"private\", \"untrusted\"]) }",
            ["widened", "widened"],
        ),
        (
            "send permit when { context.args has mode && context.args.mode == \"draft\" }",
            "send permit when { context.args has mode && context.args.mode != \"now\" }",
            ["equal", "equal"],
        ),
        (
            "send permit when { context.args has tags && [\"a\"].containsAll(context.args.tags) }",
            "send permit when { context.args has tags && context.args.tags.contains(\"a\") }",
            ["both", "both"],
        ),
        (
            "send permit ; send forbid when { context.time.hour >= 22 }",
            "send permit ; send forbid when { context.time.hour > 23 }",
            ["widened", "widened"],
        ),
        (
            "all permit ; send forbid when { context.counts.calls_run >= 20 }",
            "all permit ; send forbid when { context.counts.calls_run > 10 }",
            ["narrowed", "narrowed"],
        ),
        // A rule that reads a number that rules cannot see denies the call, even if it tests the
        // number with `has` first.
        (
            "send permit ; send forbid when { context.args.serial == 1 }",
            "send permit ; send forbid when { context.args has serial && context.args.serial == 1 }",
            ["equal", "equal"],
        ),
        // One rule permits fewer calls, another one permits more.
        (
            "send permit when { context.args.to == \"a\" } ; read permit",
            "send permit when { context.args.to == \"b\" } ; read permit when { context.args.count == 3 }",
            ["both", "both"],
        ),
        // An unlabelled tool counts as writing, so the new rule permits no call.
        (
            "send permit",
            "send permit ; read permit when { !context.writes.state }",
            ["equal", "equal"],
        ),
        (
            "send permit when { context.args.serial == 33 }",
            "send permit when { context.args.serial > 32 && context.args.serial < 34 }",
            ["equal", "equal"],
        ),
        // A product that overflows is an error, and an error denies.
        (
            "send permit when { context.args has huge && context.args.huge * 2 > 20 }",
            "send permit when { context.args has huge && context.args.huge > 10 }",
            ["widened", "widened"],
        ),
        (
            "send permit when { context.args has huge && context.args.huge * 2 > 20 }",
            "send permit when { context.args has huge && context.args.huge > 10 && context.args.huge <= 4611686018427387903 }",
            ["equal", "equal"],
        ),
        // The sum overflows for no call.
        (
            "send permit when { context.args has huge && context.args.huge + 1 > 10 }",
            "send permit when { context.args has huge && context.args.huge > 9 }",
            ["equal", "equal"],
        ),
        (
            "all permit ; send forbid when { context.args.count * 3 > 30 }",
            "all permit ; send forbid when { context.args.count > 10 }",
            ["equal", "equal"],
        ),
        (
            "all permit ; send forbid when { context.args.count - context.args.serial > 0 }",
            "all permit ; send forbid when { context.args.count - context.args.serial > 1 }",
            ["widened", "widened"],
        ),
    ];
    assert!(pairs.len() >= 20);
    for (old, new, expected) in pairs {
        check(old, new, expected);
    }
}

#[test]
fn diff_prints_text_and_sarif_and_fails_gate() {
    if solver::path().is_none() {
        return;
    }
    let home = home("send permit when { context.args.count < 10 }", "all permit");
    let text = diff(&home, &[]).expect_code(32).stdout;
    assert!(
        text.starts_with("mail.read: widened\n  widened: deny, now allow\n    {\"tool\""),
        "{text}"
    );
    assert!(
        text.contains("    old: no policy rule permits the call\n"),
        "{text}"
    );
    assert!(
        text.contains("    new: rule `r0` (new/a.cedar:1) permits: because\n"),
        "{text}"
    );
    let counted = "2 tools: widened; 2 widened, 0 narrowed, 0 both, 0 equal, 0 open (proved)\n";
    assert!(text.contains(counted), "{text}");
    let sarif = diff(&home, &["--format", "sarif"]).expect_code(32).json();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 2, "{sarif}");
    assert_eq!(
        (&results[0]["ruleId"], &results[0]["level"]),
        (&json!("widened"), &json!("error"))
    );
    let only = diff(&home, &["--tool", "mail.read", "--json"])
        .expect_code(32)
        .json();
    assert_eq!(only["tools"].as_array().unwrap().len(), 1);
}

#[test]
fn diff_claims_no_proof_without_solver() {
    let same = home("send permit", "send permit");
    let other = home(
        "send permit when { context.args.count < 10 }",
        "send permit when { context.args.count <= 9 }",
    );
    let run = |home: &Home, more: &[&str]| {
        let args = ["policy", "diff", "old", "new", "--from", "mail.json"];
        let mut command = home.airlock([&args, more].concat());
        command.env("PATH", home.path());
        tests::command::start(&mut command, "").wait()
    };
    // The result follows from the rules' text alone.
    let text = run(&same, &["--require-proof"]).expect_code(0).stdout;
    assert!(
        text.contains("2 equal, 0 open (by the rules' text)\n"),
        "{text}"
    );
    assert!(!text.contains("(proved)"), "{text}");
    let told = run(&same, &["--json"]).expect_code(0).json();
    assert_eq!(
        (&told["open"], &told["how"]),
        (&json!(false), &json!("settled"))
    );
    let text = run(&other, &[]).expect_code(34).stdout;
    assert!(text.contains("2 tools: open; 0 widened"), "{text}");
    assert!(text.contains("1 equal, 1 open\n"), "{text}");
    assert!(
        text.contains("widened: open, neither an example nor a proof (there is no solver)"),
        "{text}"
    );
    let told = run(&other, &["--json"]).expect_code(34).json();
    assert_eq!(
        (&told["change"], &told["open"]),
        (&json!("open"), &json!(true))
    );
    run(&other, &["--require-proof"]).expect_code(32);
}

/// The product of two values may overflow, and no condition can express when it does.
#[test]
fn diff_cannot_prove_product_of_variables() {
    if solver::path().is_none() {
        return;
    }
    let home = home(
        "send permit ; send forbid when { context.args.count * context.args.serial < -5 }",
        "send permit ; send forbid when { context.args.count * context.args.serial < -4 - 1 }",
    );
    let found = diff(&home, &["--json"]);
    let told = found.json();
    let tools = told["tools"].as_array().unwrap();
    let of = |name: &str| tools.iter().find(|it| it["tool"] == name).unwrap();
    let why = of("mail.send")["widened"]["why"].as_str();
    let why = why.unwrap_or_else(|| panic!("{found}"));
    assert!(
        why.contains("multiplies two values") || why.contains("solver"),
        "{found}"
    );
    assert_eq!(of("mail.read")["widened"]["how"], "settled", "{found}");
}

#[test]
fn unusable_solver_is_named_once_and_ignored() {
    let home = home(
        "all permit when { context.args.count < 10 }",
        "all permit when { context.args.count <= 9 }",
    );
    home.write("text", "this is no program");
    for (named, said) in [
        ("/no/such/cvc5", "cannot be started: No such file"),
        ("/", "cannot be started: Permission denied"),
        ("/bin/false", "ended without an answer"),
        ("text", "cannot be started"),
    ] {
        let args = ["policy", "diff", "old", "new", "--from", "mail.json"];
        let mut command = home.airlock(args);
        command.env("CVC5", named);
        let found = tests::command::start(&mut command, "")
            .wait()
            .expect_code(34);
        let text = &found.stdout;
        assert_eq!(text.matches(said).count(), 1, "{found}");
        let line = format!("`{named}` is not a usable cvc5");
        assert_eq!(text.matches(&line).count(), 1, "{found}");
        assert!(!text.contains("proof relies"), "{found}");
        assert!(!text.contains("(proved)"), "{found}");
        let word = "widened: open, neither an example nor a proof (the solver cannot be used)";
        assert_eq!(text.matches(word).count(), 2, "{found}");
    }
}

/// Compares two folders for tools with these schemas and this configuration. `expected` contains
/// the change of `mail.send` and the exit code.
fn check_labelled(properties: &Value, config: &str, rules: [&str; 2], expected: (&str, i32)) {
    if solver::path().is_none() {
        return;
    }
    let home = home(rules[0], rules[1]);
    let schema = json!({"type": "object", "additionalProperties": false,
        "required": properties["required"], "properties": properties["properties"]});
    let tools = json!({"tools": [{"name": "send", "inputSchema": schema}]});
    home.write("mail.json", tools.to_string());
    home.write("airlock.toml", config);
    let more = ["--json", "--config", "airlock.toml"];
    let args = ["policy", "diff", "old", "new", "--from", "mail.json"];
    let found = home
        .run([&args[..], &more[..]].concat())
        .expect_code(expected.1);
    let told = found.json();
    let tool = &told["tools"][0];
    assert_eq!(tool["change"], expected.0, "{rules:?}: {found}");
    assert_eq!(told["checked"]["unlabelled"], json!([]), "{found}");
    if tool["widened"]["found"] == true {
        let call = tool["widened"]["call"].to_string();
        let explained = ["policy", "explain", &call, "--policy", "new", "--from"];
        let more = ["mail.json", "--config", "airlock.toml"];
        let explained = home.run([&explained[..], &more[..]].concat());
        assert!(
            explained.stdout.contains("decision: allowed\n"),
            "{explained}"
        );
    }
}

/// The schema makes it difficult to generate a call, but the change from asking to allowing is
/// found.
#[test]
fn diff_finds_unasked_call_to_labelled_destination() {
    let text = json!({"type": "string"});
    let label = |field: &str| {
        format!(
            "known_destinations = [\"@corp.example\"]\n[labels.mail]\nreads = []\n\
             writes = [\"external\"]\ndestinations = [\"{field}\"]\n"
        )
    };
    const OUTSIDE: &str = "send permit ; send forbid unless { context.approval >= 1 || \
        context has dest_domains && [\"corp.example\"].containsAll(context.dest_domains) }";
    let optional_list = json!({"required": [], "properties": {
        "to": {"type": "array", "items": text}, "subject": text}});
    let required_list = json!({"required": ["to"], "properties": {
        "to": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["mail"],
            "properties": {"mail": text, "name": text}}}}});
    let pattern = json!({"required": ["to"], "properties": {
        "to": {"type": "string", "pattern": "^[a-z]+@[a-z]+\\.example$"}}});
    for (schema, field) in [
        (&optional_list, "/to"),
        (&required_list, "/to/*/mail"),
        (&pattern, "/to"),
    ] {
        let rules = [OUTSIDE, "send permit"];
        check_labelled(schema, &label(field), rules, ("widened", 32));
        check_labelled(
            schema,
            &label(field),
            ["send permit", OUTSIDE],
            ("narrowed", 0),
        );
    }
    // From 20 to 20,000 tickets, in any project.
    let tickets = json!({"required": ["project", "count"], "properties": {
        "project": {"type": "string", "pattern": "^[A-Z]{2,5}$"}, "count": {"type": "integer"}}});
    const FEW: &str = "send permit ; send forbid when { context.args.count > 20 } \
        unless { context.approval >= 1 }";
    let many = FEW.replace("20", "20000");
    check_labelled(&tickets, &label("/project"), [FEW, &many], ("widened", 32));
    check_labelled(&tickets, &label("/project"), [FEW, FEW], ("equal", 0));
}

/// The schema of the tool has a pattern for which airlock cannot generate a text.
#[test]
fn diff_without_confirmed_call_is_open() {
    let schema = json!({"required": ["to"], "properties": {
        "to": {"type": "string", "pattern": "^(?=.*[0-9])(?=.*[a-z])(?!.*aa)[0-9a-z]{12}$"}}});
    let config = "[labels.mail]\nreads = []\nwrites = []\n";
    let rules = ["send permit when { context.time.hour < 9 }", "send permit"];
    check_labelled(&schema, config, rules, ("open", 34));
}

#[test]
fn diff_without_configuration_is_open_where_labels_decide() {
    if solver::path().is_none() {
        return;
    }
    let to_corp = "send permit ; send forbid unless { context.approval >= 1 || \
        context has dest_domains && [\"corp.example\"].containsAll(context.dest_domains) }";
    let to_all = "send permit ; send forbid unless { context.approval >= 1 || \
        context has dest_domains }";
    let home = home(to_corp, to_all);
    let run = |more: &[&str]| {
        let args = ["policy", "diff", "old", "new", "--from", "mail.json"];
        home.run([&args, more].concat())
    };
    let text = run(&[]).expect_code(34).stdout;
    assert!(text.contains("mail.send: open\n"), "{text}");
    assert!(text.contains("no configuration labels the tools"), "{text}");
    assert!(
        text.contains("no configuration was named, so the tools may have any labels\n"),
        "{text}"
    );
    assert!(text.contains("hold for tools with any labels"), "{text}");
    assert!(!text.contains("(proved)"), "{text}");
    run(&["--require-proof"]).expect_code(32);
    // An empty configuration also counts: it says that no tool is labelled.
    let text = run(&["--labels", "none.toml"]).expect_code(0).stdout;
    assert!(text.contains("2 tools: equal"), "{text}");
    assert!(
        text.contains("the configuration does not label mail.read, mail.send\n"),
        "{text}"
    );
    let same = run(&["--json", "--tool", "mail.read"])
        .expect_code(0)
        .json();
    assert_eq!(same["change"], "equal", "{same}");
}

/// The rules of the configuration are in force in a run, and hide a difference between two folders.
#[test]
fn diff_compares_only_the_named_folders() {
    const OLD: &str = "send permit ; send forbid when { context.args.count > 5 }";
    for config in [
        "policies = [\"old\"]",
        "policies = [\"copy\"]",
        "tighten = [\"strict\"]",
    ] {
        let home = home(OLD, "send permit");
        home.write("copy/a.cedar", folder(OLD).replace("@id(\"r", "@id(\"copy"));
        let strict = folder("send forbid when { context.args.count > 5 }");
        home.write("strict/a.cedar", strict.replace("@id(\"r", "@id(\"strict"));
        home.write("airlock.toml", config);
        let found = diff(&home, &["--config", "airlock.toml"]).expect_code(32);
        assert!(found.stdout.contains("mail.send: widened\n"), "{found}");
        let ignored = found.stderr.contains("do not count here");
        assert_eq!(ignored, !config.contains("\"old\""), "{config}: {found}");
    }
    // An empty new folder denies every call, although the configured rules permit some.
    let home = home(OLD, "");
    home.write("airlock.toml", "policies = [\"old\"]");
    let found = diff(&home, &["--config", "airlock.toml", "--json"]);
    assert_eq!(
        found.json()["tools"][1]["narrowed"]["found"],
        true,
        "{found}"
    );
}

/// The rules are the same, and the new configuration takes a label or a group away.
#[test]
fn diff_compares_the_labels_and_groups_of_two_configurations() {
    let home = home("send permit", "send permit");
    let notes = "@owner(\"o\") @reason(\"because\")";
    let guard = format!(
        "@id(\"stays\") {notes} forbid(principal, action, resource)\n\
         when {{ context.writes.external && context.labels.contains(\"private\") }};\n\
         @id(\"denied\") {notes} forbid(principal, action in Action::\"group:denied\", resource);\n"
    );
    for folder in ["old/b.cedar", "new/b.cedar"] {
        home.write(folder, &guard);
    }
    let config = |writes: &str, denied: &str| {
        format!("[groups]\ndenied = [{denied}]\n[labels.mail]\nreads = []\nwrites = [{writes}]\n")
    };
    home.write("old.toml", config("\"external\"", "\"mail.read\""));
    let diff = |new: String| {
        home.write("new.toml", new);
        let args = [
            "policy",
            "diff",
            "old",
            "new",
            "--from",
            "mail.json",
            "--json",
        ];
        let configs = ["--old-config", "old.toml", "--config", "new.toml"];
        home.run([&args[..], &configs].concat())
    };
    let found = diff(config("", "\"mail.read\"")).expect_code(32);
    let send = &found.json()["tools"][1];
    assert_eq!(send["widened"]["old"]["level"], "deny", "{found}");
    assert_eq!(send["widened"]["new"]["level"], "allow", "{found}");
    let found = diff(config("\"external\"", "\"mail.send\"")).expect_code(34);
    assert_eq!(
        found.json()["tools"][1]["narrowed"]["found"],
        true,
        "{found}"
    );
    let found = diff(config("\"external\"", "\"mail.read\"")).expect_code(0);
    assert_eq!(found.json()["change"], "equal", "{found}");

    // A root can have the same name and another folder.
    let rooted = |folder: &str| {
        let labels = config("\"external\"", "\"mail.read\"");
        format!("[roots]\nwork = \"{folder}\"\n{labels}paths = [\"/to\"]\n")
    };
    for folder in ["work", "work/inner"] {
        std::fs::create_dir_all(home.path().join(folder)).unwrap();
    }
    home.write("old.toml", rooted("work"));
    let found = diff(rooted("work/inner")).expect_code(34);
    assert_ne!(found.json()["change"], "equal", "{found}");
    diff(rooted("work")).expect_code(0);

    // Rules that may only forbid, and the labels of the input, count in runs too.
    home.write("strict/a.cedar", guard.replace("@id(\"", "@id(\"strict-"));
    let plain = config("\"external\"", "\"mail.read\"");
    for more in ["tighten = [\"strict\"]\n", "input_reads = [\"private\"]\n"] {
        home.write("old.toml", format!("{more}{plain}"));
        diff(format!("{more}{plain}")).expect_code(0);
        let found = diff(plain.clone()).expect_code(34);
        assert_eq!(found.json()["change"], "open", "{more}: {found}");
    }
}

/// The text changes what a person approves, and no decision.
#[test]
fn diff_shows_changed_questions_and_reasons() {
    const ASKS: &str = "send permit when { context.approval >= 1 }";
    let home = home(ASKS, ASKS);
    let changed = folder(ASKS)
        .replace("@prompt(\"?\")", "@prompt(\"Fine?\")")
        .replace("because", "it is harmless");
    home.write("new/a.cedar", changed);
    let found = diff(&home, &[]).expect_code(0);
    for expected in [
        "rule `r0` has another question: \"Fine?\", before \"?\"\n",
        "rule `r0` has another reason: \"it is harmless\", before \"because\"\n",
        "2 tools: equal; ",
    ] {
        assert!(found.stdout.contains(expected), "{expected}\n{found}");
    }
    let json = diff(&home, &["--json"]).expect_code(0).json();
    let prompt = json!({"rule": "r0", "text": "prompt", "old": "?", "new": "Fine?"});
    assert_eq!(json["texts"][0], prompt, "{json}");
    let other = diff(&home, &["--json", "--tool", "mail.read"]).expect_code(0);
    assert_eq!(other.json()["texts"], json!([]), "{other}");
    let sarif = diff(&home, &["--format", "sarif"]).expect_code(0).json();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 2, "{sarif}");
}
