//! Tests rules that are checked against tools from files, rules about tags and groups from tool
//! files, the choice of the approver, and tools that hosts do not see.

use serde_json::{Value, json};
use tests::command::{CommandOutput, Home};
use tests::serving::ServeProcess;

const NOTES: &str = "@id(\"x\")\n@owner(\"o\")\n@reason(\"because\")\n";

fn rule(home: &Home, text: &str) {
    home.write("rules/a.cedar", format!("{NOTES}{text}"));
}

fn mail() -> Value {
    let text = json!({"type": "string"});
    let schema =
        json!({"type": "object", "properties": {"to": text, "body": text}, "required": ["to"]});
    let tool = |name: &str| json!({"name": name, "inputSchema": schema});
    json!({"tools": [tool("send"), tool("draft")]})
}

fn check(home: &Home, more: &[&str]) -> CommandOutput {
    home.run([&["policy", "check", "rules"], more].concat())
}

#[test]
fn rules_check_against_saved_list() {
    let home = Home::new();
    home.write("mail.json", mail().to_string());
    for (text, what, next) in [
        (
            "permit(principal, action == Action::\"mail.sned\", resource);",
            "rules/a.cedar:4:37: there is no tool or group `mail.sned`",
            "did you mean `mail.send`?",
        ),
        (
            "permit(principal, action == Action::\"mail.send\", resource)\n\
             when { context.args.too == \"x\" };",
            "rules/a.cedar:5:21: there is no argument `too`",
            "did you mean `to`?",
        ),
        (
            "forbid(principal, action, resource)\nwhen { context.labels.contains(\"pivate\") };",
            "rules/a.cedar:5:32: `pivate` is not a label",
            "did you mean `private`?",
        ),
        (
            "@promt(\"?\") permit(principal, action, resource) when { context.approval >= 1 };",
            "rules/a.cedar:4:1: unknown annotation `@promt`",
            "did you mean `@prompt`?",
        ),
    ] {
        rule(&home, text);
        let found = check(&home, &["--from", "mail.json"]).expect_code(32);
        let (what, next) = (format!("error: {what}\n"), format!(" next: {next}\n"));
        assert!(found.stdout.starts_with(&what), "{what}\n{found}");
        assert!(found.stdout.contains(&next), "{next}\n{found}");
        assert!(found.stdout.ends_with("\n1 error\n"), "{found}");
    }
    let right = "permit(principal, action == Action::\"post.send\", resource)\n\
                 when { context.args.to == \"x\" };";
    rule(&home, right);
    let checked = check(&home, &["--from", "post=mail.json"]).expect_code(0);
    assert!(
        checked.stdout.starts_with("1 rules, nothing found"),
        "{checked}"
    );
}

#[test]
fn configured_labels_apply_to_saved_list() {
    let home = Home::new();
    home.write("mail.json", mail().to_string());
    rule(
        &home,
        "permit(principal, action in [Action::\"group:own\", Action::\"read-only\"], resource)\n\
                 when { context.args.body == \"x\" };",
    );
    let config = "[servers.mail]\ncommand = \"no-such-program\"\nread_only = [\"draft\"]\n\
                  [groups]\nown = [\"mail.draft\"]\n";
    home.write("airlock.toml", config);
    let found = check(&home, &["--from", "mail.json", "--config", "airlock.toml"]).expect_code(32);
    assert!(found.stdout.contains("has body"), "{found}");
    let both = check(&home, &["--from", "mail.json", "--demo"]).expect_code(2);
    assert!(both.stderr.contains("connect to no server"), "{both}");
}

#[test]
fn patterns_and_labels_of_configuration_are_checked() {
    let home = Home::new();
    home.write("mail.json", mail().to_string());
    rule(
        &home,
        "permit(principal, action == Action::\"mail.draft\", resource);",
    );
    let config = "[servers.mail]\ncommand = \"no-such-program\"\n\
                  [rules]\nallow = [\"mail.draft\", \"mail.nothing\"]\ndeny = [\"mail.*\"]\n\
                  [labels.mail]\nreads = []\ndestinations = [\"/path\"]\n";
    home.write("airlock.toml", config);
    let found = check(&home, &["--from", "mail.json", "--config", "airlock.toml"]).expect_code(32);
    for expected in [
        "the rule allow 'mail.draft' never takes effect\n",
        "  why: the rule deny 'mail.*' (",
        " code: pattern-overruled\n",
        "the label `/path` does not fit `mail.",
        " code: label-unfitting\n",
        "airlock.toml:4:1: ",
    ] {
        assert!(found.stdout.contains(expected), "{expected}\n{found}");
    }
    let excepted = [
        "--except",
        "pattern-overruled",
        "--except",
        "label-unfitting",
    ];
    let more = [
        &["--from", "mail.json", "--config", "airlock.toml"][..],
        &excepted,
    ]
    .concat();
    check(&home, &more).expect_code(0);
    // A pattern that matches no tool.
    home.write("airlock.toml", "[rules]\nask = [\"mail.drafd\"]\n");
    let found = check(&home, &["--from", "mail.json", "--config", "airlock.toml"]).expect_code(32);
    for expected in ["did you mean `mail.draft`?\n", " code: pattern-unmatched\n"] {
        assert!(found.stdout.contains(expected), "{expected}\n{found}");
    }
}

#[test]
fn rules_check_against_lock_file() {
    let home = Home::new();
    home.run(["lock", "--demo"]).expect_code(0);
    rule(
        &home,
        "permit(principal, action == Action::\"demo.tickets_lst\", resource);",
    );
    let found = check(&home, &["--lock", "airlock.lock"]).expect_code(32);
    for expected in [
        "there is no tool or group `demo.tickets_lst`\n",
        " next: did you mean `demo.tickets_list`?\n",
    ] {
        assert!(found.stdout.contains(expected), "{found}");
    }
    rule(
        &home,
        "permit(principal, action == Action::\"demo.tickets_list\", resource);",
    );
    let checked = check(&home, &["--lock", "airlock.lock"]).expect_code(0);
    assert!(
        checked.stdout.starts_with("1 rules, nothing found"),
        "{checked}"
    );
    let gone = check(&home, &["--lock", "gone.lock"]).expect_code(33);
    assert!(gone.stderr.contains("does not exist"), "{gone}");
}

const ALL: &str = "permit(principal, action, resource);\n";

fn ticket(home: &Home, more: &[&str]) -> CommandOutput {
    let code = "return await demo.tickets_create({title: 'mine'})";
    let run = ["run", "--demo", "--policy", "rules", "-e", code];
    home.run([&run, more].concat())
}

#[test]
fn tool_file_groups_forbid_and_never_permit() {
    let home = Home::new();
    let file = json!({"name": "tickets_create", "tags": ["files something"], "groups": ["desk"]});
    home.write("words/demo/tickets_create.json", file.to_string());
    let words = ["--descriptions", "words"];
    for word in ["tag:files something", "file-group:desk"] {
        let forbid = format!("forbid(principal, action in Action::\"{word}\", resource);");
        let notes = NOTES.replace("\"x\"", "\"y\"");
        rule(&home, &format!("{ALL}{notes}{forbid}"));
        let denied = ticket(&home, &words).expect_code(22);
        assert!(denied.stderr.contains("rule `y`"), "{denied}");
        // Without the folder no tool has tags, so the rule has no effect.
        ticket(&home, &[]).expect_code(0);
        rule(&home, &forbid.replace("forbid", "permit"));
        let found = check(&home, &["--demo", "--descriptions", "words"]).expect_code(32);
        assert!(found.stdout.contains("comes from a tool file"), "{found}");
    }
}

#[test]
fn approver_flag_overrides_configuration() {
    let home = Home::new();
    rule(
        &home,
        "@prompt(\"ok?\") permit(principal, action, resource) when { context.approval >= 1 };",
    );
    let config = |who: &str| home.write("airlock.toml", format!("approver = \"{who}\"\n"));
    let asked = |more: &[&str]| ticket(&home, &[&["--config", "airlock.toml"], more].concat());
    config("never");
    let ended = asked(&[]).expect_code(22);
    assert!(
        ended.stderr.contains("the run needs at least these grants"),
        "{ended}"
    );
    let ended = asked(&["--no-ask"]).expect_code(22);
    assert!(
        !ended.stderr.contains("the run needs at least these grants"),
        "{ended}"
    );
    home.write(
        "yes.sh",
        "sed 's/.*\"nonce\":\"\\([^\"]*\\)\".*/{\"nonce\":\"\\1\",\"answer\":\"allow-once\"}/'\n",
    );
    config("command:sh yes.sh");
    asked(&[]).expect_code(0);
    asked(&["--approver", "never"]).expect_code(22);
    config("somebody");
    let ended = asked(&[]).expect_code(30);
    assert!(
        ended
            .stderr
            .contains("invalid value for `approver` (airlock.toml:1)"),
        "{ended}"
    );
    assert!(
        ended.stderr.contains("`somebody` is not an approver"),
        "{ended}"
    );
}

/// Returns the tools that a host sees in a full list.
fn listed(home: Home, more: &[&str]) -> Vec<String> {
    let serve = [
        "--demo",
        "--tools",
        "progressive",
        "--disclosure",
        "progressive",
    ];
    let serving = ServeProcess::start_in(home, [&serve, more].concat());
    let session = serving.session(&json!({}));
    let answer = session.begin(2, "tools/list", &json!({})).answer(2);
    let tools = answer["tools"].as_array().unwrap();
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
    names
        .filter(|name| name.starts_with("demo_"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn never_allowed_tool_is_hidden_from_hosts() {
    let home = || {
        let home = Home::new();
        rule(
            &home,
            "permit(principal, action in [Action::\"demo.tickets_list\", \
                     Action::\"demo.get-time\"], resource)\nwhen { context.counts.calls_run < 3 };\n",
        );
        let forbid = "forbid(principal, action == Action::\"demo.get-time\", resource);";
        home.write("project/b.cedar", NOTES.replace("\"x\"", "\"y\"") + forbid);
        home
    };
    assert_eq!(
        listed(home(), &["--policy", "rules"]),
        ["demo_get-time", "demo_tickets_list"]
    );
    let both = ["--policy", "rules", "--tighten", "project"];
    assert_eq!(listed(home(), &both), ["demo_tickets_list"]);
}

/// A reviewer has the policy folder, but not the folders of the configured machine.
#[test]
fn missing_root_does_not_stop_review() {
    let home = Home::new();
    home.write("mail.json", mail().to_string());
    home.write("airlock.toml", "[roots]\ngone = \"/no/such/folder\"\n");
    let condition = "context has path_roots && [\"gone\"].containsAll(context.path_roots)";
    rule(
        &home,
        &format!("permit(principal, action, resource) when {{ {condition} }};"),
    );
    let config = ["--config", "airlock.toml", "--from", "mail.json"];
    let checked = check(&home, &config).expect_code(32);
    let said = "the root `gone` (airlock.toml:2) is not an existing folder";
    assert!(checked.stderr.contains(said), "{checked}");
    let found = "warning: airlock.toml:2:1: the root `gone` is not an existing folder\n";
    assert!(checked.stdout.contains(found), "{checked}");
    let excepted = [&config[..], &["--except", "root-missing"]].concat();
    check(&home, &excepted).expect_code(0);
    for command in [
        &["policy", "can", "--auto", "--policy", "rules"][..],
        &["policy", "diff", "rules", "rules"],
    ] {
        let told = home.run([command, &config].concat()).expect_code(0);
        assert!(told.stderr.contains(said), "{told}");
    }
    let run = ["run", "--config", "airlock.toml", "-e", "return 1"];
    let run = home.run(run).expect_code(30);
    assert!(run.stderr.contains("invalid root `gone`"), "{run}");
}

/// The lock file may describe the tools of another server than the configured one.
#[test]
fn lock_file_of_another_target_is_refused() {
    let home = Home::new();
    home.run(["lock", "--demo"]).expect_code(0);
    rule(&home, "permit(principal, action, resource);");
    let more = ["--lock", "airlock.lock", "--config", "airlock.toml"];
    home.write("airlock.toml", "[servers.demo]\ncommand = \"other\"\n");
    for command in [
        &["policy", "check", "rules"][..],
        &["policy", "can", "--auto", "--policy", "rules"],
        &["policy", "diff", "rules", "rules"],
        &["policy", "test", "rules"],
    ] {
        let found = home.run([command, &more].concat()).expect_code(33);
        for expected in [
            "the lock file does not fit the server `demo`",
            "the server's target is `other`",
            "`airlock lock` accepts them",
        ] {
            assert!(found.stderr.contains(expected), "{expected}\n{found}");
        }
    }
    home.write("airlock.toml", "[servers.more]\ncommand = \"other\"\n");
    let can = ["policy", "can", "--auto", "--policy", "rules"];
    home.run([&can[..], &more].concat())
        .expect_stderr("the tools of the server `more` are not known here");
}

#[test]
fn folder_without_rules_is_an_error() {
    let home = Home::new();
    home.write("mail.json", mail().to_string());
    home.write("rules/README.md", "nothing");
    let checked = check(&home, &["--from", "mail.json"]).expect_code(2);
    let what = "there are no rules to check";
    assert!(checked.stderr.contains(what), "{checked}");
    let tested = home.run(["policy", "test", "rules"]).expect_code(2);
    assert!(
        tested.stderr.contains("there is nothing to test"),
        "{tested}"
    );
}

/// Returns the end date that a report proposes.
fn usual_end(report: &str) -> String {
    let (_, from) = report
        .split_once("write expires = ")
        .expect("a proposed end date");
    let end = from.split(['"', '`', '\\']).next().unwrap_or_default();
    format!("expires = {end}")
}

#[test]
fn grants_are_checked_with_rules() {
    let home = Home::new();
    home.write("mail.json", mail().to_string());
    rule(
        &home,
        "permit(principal, action == Action::\"mail.sned\", resource);",
    );
    let digest = format!("sha256:{}", "0".repeat(64));
    let grant = format!(
        "[[grant]]\ntool = \"mail.send\"\nuses_max = 1\nscope = \"run\"\napproved_by = \"Ada\"\n\
         description = \"{digest}\"\nscript = \"any\"\npolicy = \"{digest}\"\nlabels = []\n"
    );
    home.write("g.toml", &grant);
    let args = ["--from", "mail.json", "--grant", "g.toml"];
    // Both findings are reported.
    let text = check(&home, &args).expect_code(32).stdout;
    for said in [
        "error: rules/a.cedar:4:37: there is no tool or group `mail.sned`\n",
        "error: g.toml:1:1: the grant does not expire\n",
        "    1 | [[grant]]\n",
        " next: add `expires` with a time in UTC\n",
        " code: grant-without-expiry\n",
        "1 grant, 2 errors\n",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    let sarif = check(&home, &[&args[..], &["--format", "sarif"]].concat()).expect_code(32);
    let text = sarif.json().to_string();
    assert!(text.contains("\"uri\":\"g.toml\""), "{text}");
    let ending = |end: &str| grant.replace("scope", &format!("{end}\nscope"));
    home.write("g.toml", ending(&usual_end(&sarif.stdout)));
    rule(
        &home,
        "permit(principal, action == Action::\"mail.send\", resource);",
    );
    let good = check(&home, &args).expect_code(0).stdout;
    assert!(good.contains("1 grant, nothing found"), "{good}");
    for (end, said) in [
        ("2001-01-01T00:00:00Z", "the grant has expired"),
        (
            "9999-12-31T23:59:59Z",
            "the grant expires in more than a year",
        ),
    ] {
        home.write("g.toml", ending(&format!("expires = {end}")));
        let text = check(&home, &args).expect_code(32).stdout;
        assert!(text.contains(said), "{text}");
    }
    let missing = ["--from", "mail.json", "--grant", "none.toml"];
    check(&home, &missing)
        .expect_code(30)
        .expect_stderr("none.toml cannot be read");
}

/// A misspelt name in a group, or in the list of destructive tools, removes a tool from every rule
/// about them.
#[test]
fn misspelt_tool_in_group_or_mark_is_a_finding() {
    let home = Home::new();
    home.write("mail.json", mail().to_string());
    rule(
        &home,
        "forbid(principal, action in Action::\"group:denied\", resource);",
    );
    let from = ["--from", "mail.json", "--config", "airlock.toml"];
    let servers = "[servers.mail]\ncommand = \"none\"\n";
    for (config, expected) in [
        (
            "[groups]\ndenied = [\"mail.draft\",\n\"mail.drafd\"]\n".to_owned(),
            [
                "airlock.toml:3:1: the group pattern 'mail.drafd' matches no tool\n",
                " next: did you mean `mail.draft`?\n",
            ],
        ),
        (
            format!("[groups]\ndenied = []\n{servers}destructive = [\"drafd\"]\n"),
            [
                "the `destructive` pattern 'drafd' matches no tool of `mail`\n",
                " next: did you mean `draft`?\n",
            ],
        ),
    ] {
        home.write("airlock.toml", config);
        let found = check(&home, &from).expect_code(32);
        for part in expected.into_iter().chain([" code: pattern-unmatched\n"]) {
            assert!(found.stdout.contains(part), "{part}\n{found}");
        }
    }
    home.write("airlock.toml", "[groups]\ndenied = [\"mail.dr*\"]\n");
    check(&home, &from).expect_code(0);
    // A run says so when it starts.
    home.write(
        "airlock.toml",
        "[groups]\ndenied = [\"demo.tickets_lst\"]\n",
    );
    let run = [
        "run",
        "--demo",
        "--no-ask",
        "--config",
        "airlock.toml",
        "-e",
        "return 1",
    ];
    let ended = home.run(run).expect_code(0);
    for part in [
        "the group pattern 'demo.tickets_lst' matches no tool (airlock.toml:2)",
        "did you mean `demo.tickets_list`?",
    ] {
        assert!(ended.stderr.contains(part), "{part}\n{ended}");
    }
}

#[test]
fn misspelt_server_or_class_of_labels_is_one_finding() {
    let home = Home::new();
    home.write("mail.json", mail().to_string());
    rule(
        &home,
        "forbid(principal, action, resource) when { context.labels.contains(\"private:mial\") };",
    );
    let from = ["--from", "mail.json", "--config", "airlock.toml"];
    let config = "[labels.mail]\nreads = [\"private:mail\"]\nwrites = []\n";
    home.write("airlock.toml", config);
    let found = check(&home, &from).expect_code(32);
    for part in [
        "`labels` never contains `private:mial`\n",
        "did you mean `private:mail`?",
    ] {
        assert!(found.stdout.contains(part), "{part}\n{found}");
    }
    rule(
        &home,
        "permit(principal, action == Action::\"mail.draft\", resource);",
    );
    check(&home, &from).expect_code(0);
    let more = format!("{config}[labels.mial.tools.x]\nwrites = []\n");
    home.write("airlock.toml", more.replace("labels.mail", "labels.mial"));
    let found = check(&home, &from).expect_code(32);
    assert!(
        found.stdout.contains("there is no server `mial`\n"),
        "{found}"
    );
    assert!(found.stdout.contains("did you mean `mail`?"), "{found}");
    assert_eq!(found.stdout.matches(" code: label-").count(), 1, "{found}");
}

/// Without a folder, the rules of the configuration are checked, patterns included.
#[test]
fn configuration_is_checked_without_a_folder() {
    let home = Home::new();
    home.write("mail.json", mail().to_string());
    home.write("airlock.toml", "[rules]\nask = [\"mail.drafd\"]\n");
    let from = ["--from", "mail.json"];
    let args = ["policy", "check", "--config", "airlock.toml"];
    let found = home.run([&args[..], &from[..]].concat()).expect_code(32);
    assert!(
        found.stdout.contains(" code: pattern-unmatched\n"),
        "{found}"
    );
    assert!(found.stdout.contains("1 pattern, 1 warning\n"), "{found}");
    let permit = "permit(principal, action == Action::\"mail.draft\", resource);";
    rule(&home, permit);
    home.write("airlock.toml", "policies = [\"rules\"]\n");
    let found = home.run([&args[..], &from[..]].concat()).expect_code(0);
    assert!(found.stdout.starts_with("1 rules, "), "{found}");
    // A named folder is checked alone: its rules may have the ids of the configured ones.
    let text = std::fs::read_to_string(home.path().join("rules/a.cedar")).unwrap();
    home.write("new/a.cedar", text);
    let args = ["policy", "check", "new", "--config", "airlock.toml"];
    let found = home.run([&args[..], &from[..]].concat()).expect_code(0);
    assert!(found.stderr.contains("rules` do not count here"), "{found}");
    let nothing = home
        .run(["policy", "check", "--from", "mail.json"])
        .expect_code(2);
    assert!(
        nothing.stderr.contains("there is nothing to check"),
        "{nothing}"
    );
}
