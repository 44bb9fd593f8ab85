//! Tests that every kind of invalid input gets an error message with what, why, next and code.

use std::net::TcpListener;

use tests::command::{CommandOutput, Home};

fn is_a_problem(ended: &CommandOutput) {
    for part in ["error:", "next:", "code:"] {
        assert!(ended.stderr.contains(part), "no `{part}`\n{ended}");
    }
    assert_eq!(ended.stdout, "", "{ended}");
    for leak in ["panicked", "RUST_BACKTRACE", ".rs:"] {
        assert!(!ended.stderr.contains(leak), "{ended}");
    }
}

#[test]
fn invalid_command_line_is_a_usage_error() {
    check(
        2,
        &[
            &["run"],
            &["run", "a.js", "-e", "return 2"],
            &["run", "--no-such-flag", "a.js"],
            &["no-such-command"],
            &["run", "a.js", "--seed", "seven"],
            &["run", "a.js", "--input", "{not json"],
            &["runs", "show"],
            &["types", "--detail", "everything"],
            &["types", "--server", "no-equals-sign"],
            &["runs", "list", "--number", "few"],
            &["run", "a.js", "--timeout", "soon"],
            &["run", "a.js", "--timeout", "0s"],
            &["run", "a.js", "--memory", "64 parsecs"],
            &["run", "a.js", "--max-calls", "some"],
            &["run", "a.js", "--fsync", "sometimes"],
            &["run", "a.js", "--unknown-keys", "forgive"],
            &["run", "a.js", "--server", "no-equals-sign"],
            &["run", "a.js", "--server", "=command"],
            &["run", "a.js", "--server", "9bad=command"],
            &["run", "a.js", "--server", "quote=sh -c 'unclosed"],
            &[
                "run",
                "a.js",
                "--server",
                "twice=true",
                "--server",
                "twice=true",
            ],
            &["run", "a.js", "--allow", "nodot"],
            &["run", "a.js", "--allow", ""],
        ],
    );
}

#[test]
fn errors_use_the_terms_of_their_source() {
    let home = Home::new();
    home.write("a.js", "return 1");
    for (args, part) in [
        (
            &["run", "a.js", "--memory", "1"][..],
            "`memory` is 1B, and must be between 16MiB and 4GiB",
        ),
        (
            &["run", "a.js", "--limit", "speed=5s"],
            "the limits are timeout,",
        ),
        (&["run", "a.js", "--max-calls", "-1"], "invalid count `-1`"),
        (&["run", "a.js", "--allow", ""], "the pattern is empty"),
        (&["run", "a.js", "--server", "x=ftp://h/"], "`ftp://`"),
        (
            &["run", "a.js", "--fsync="],
            "missing value for `--fsync`; expected always, writes or never",
        ),
        (&["completions", "foo"], "for `SHELL`; expected bash"),
        (&["runs", "answer", "R:1", "yes"], "for `ANSWER`; expected"),
        (&["descriptions", "pull"], "there is nothing to pull"),
        (
            &["policy", "can", "demo.nope", "--demo"],
            "--server, --config",
        ),
        (
            &["policy", "can", "demo.logs_qery", "--demo"],
            "did you mean `demo.logs_query`?",
        ),
    ] {
        let ended = home.run(args).expect_code(2).expect_stderr(part);
        is_a_problem(&ended);
    }
}

#[test]
fn script_without_servers_learns_how_to_add_one() {
    let home = Home::new();
    let code = "return await fs.read_file({path: 'x'})";
    for (command, code_text) in [("run", "code: check-failed"), ("check", "unknown-server")] {
        let ended = home.run([command, "-e", code]).expect_code(20);
        let shown = format!("{}{}", ended.stdout, ended.stderr);
        for part in [
            "there is no server `fs`",
            "add --server NAME=COMMAND",
            code_text,
        ] {
            assert!(shown.contains(part), "{part}: {ended}");
        }
        for part in ["There are no files", "`airlock`", "--config airlock.toml"] {
            assert!(!shown.contains(part), "{part}: {ended}");
        }
    }
    home.write("airlock.toml", "[servers.fs]\ncommand = \"true\"\n");
    for command in ["run", "check"] {
        let ended = home.run([command, "-e", code]).expect_code(20);
        let shown = format!("{}{}", ended.stdout, ended.stderr).to_lowercase();
        for part in ["no server is configured", "add --config airlock.toml"] {
            assert_eq!(shown.matches(part).count(), 1, "{part}: {ended}");
        }
    }
    home.run(["servers"])
        .expect_code(2)
        .expect_stderr("add --config airlock.toml");
}

#[test]
fn script_that_was_not_started_gets_the_correction_as_advice() {
    let home = Home::new();
    for (code, parts) in [
        (
            "const x = ;",
            ["was not started, because it has a syntax error", "next: "],
        ),
        (
            "return demo.logs_qery({})",
            ["was not started", "next: Did you mean `logs_query`?"],
        ),
    ] {
        let ended = home.run(["run", "--demo", "-e", code]).expect_code(20);
        for part in parts {
            assert!(ended.stderr.contains(part), "{part}: {ended}");
        }
    }
    let args = [
        "run",
        "--demo",
        "--check",
        "warn",
        "-e",
        "return demo.logs_qery({})",
    ];
    let ended = home.run(args).expect_code(20);
    assert!(ended.stderr.contains("the script failed"), "{ended}");
    assert!(!ended.stderr.contains("not started"), "{ended}");
}

#[test]
fn name_of_a_file_as_input_gets_the_form_that_reads_it() {
    let home = Home::new();
    home.run(["run", "-e", "return input", "--input", "nosuch.json"])
        .expect_code(2)
        .expect_stderr("to read a file, write `@nosuch.json`");
}

#[test]
fn denial_names_all_tools_and_the_other_ways() {
    let home = Home::new();
    let code = "const calls = [demo.logs_query({level: 'error'}), demo.tickets_create({title: 'x'})]; \
                await Promise.allSettled(calls); throw (await calls[0].catch((e) => e))";
    let args = ["run", "--demo", "-e", code];
    let ended = home.run(args).expect_code(22);
    for part in [
        "--allow 'demo.logs_query' --allow 'demo.tickets_create'",
        "`--approver later`",
    ] {
        assert!(ended.stderr.contains(part), "{part}: {ended}");
    }
    let listed = home.run(["runs", "list"]).expect_code(0);
    assert!(listed.stdout.contains("2 calls, 2 denied"), "{listed}");
    assert!(!listed.stdout.contains("can be resumed"), "{listed}");
}

#[test]
fn invalid_arguments_name_the_unknown_argument() {
    let home = Home::new();
    let code = "return await demo.tickets_create(input)";
    let input = "{\"priority\": \"zzz\", \"titel\": \"x\"}";
    let args = [
        "run", "--demo", "--allow", "demo.*", "-e", code, "--input", input,
    ];
    let ended = home.run(args);
    assert!(ended.stderr.contains("code: invalid-arguments"), "{ended}");
    let why = ended.stderr.lines().find(|it| it.contains("why:"));
    let why = why.expect("a reason");
    for part in ["args.title", "args.titel", "an unknown property"] {
        assert!(why.contains(part), "{part}: {ended}");
    }
    // The correction comes first.
    let at = |part: &str| why.find(part).unwrap_or(usize::MAX);
    assert!(at("Did you") < at("args.priority"), "{ended}");
}

#[test]
fn empty_result_is_reported_on_stderr() {
    let home = Home::new();
    for (args, part) in [
        (&["runs", "list"][..], "does not exist yet"),
        (&["runs", "verify"], "does not exist yet"),
        (&["grants", "list"], "no grant is open"),
        (&["grants", "list", "--all"], "no grant"),
    ] {
        let ended = home.run(args).expect_code(0).expect_stderr(part);
        assert_eq!(ended.stdout, "", "{ended}");
        let json = home.run([args, &["--json"]].concat()).expect_code(0);
        assert_eq!(json.stderr, "", "{json}");
    }
    for _ in 0..2 {
        home.run(["run", "-e", "return 1"]).expect_code(0);
    }
    let some = home.run(["runs", "list", "-n", "1"]).expect_code(0);
    assert_eq!(some.stdout.lines().count(), 1, "{some}");
    some.expect_stderr("1 of 2 runs");
    let all = home.run(["runs", "list"]).expect_code(0);
    assert_eq!(all.stderr, "", "{all}");
    home.run(["runs", "show", ""])
        .expect_code(2)
        .expect_stderr("it is not clear which run is meant");
}

fn check(code: i32, commands: &[&[&str]]) {
    let home = Home::new();
    home.write("a.js", "return 1");
    for args in commands {
        let ended = home.run(*args);
        assert_eq!(ended.code, Some(code), "{args:?}\n{ended}");
        is_a_problem(&ended);
    }
}

#[test]
fn missing_command_prints_help_and_is_a_usage_error() {
    let home = Home::new();
    for args in [&[][..], &["runs"]] {
        let ended = home
            .run(args)
            .expect_code(2)
            .expect_stderr("Usage: airlock");
        assert!(!ended.stderr.contains("error:"), "{ended}");
        assert_eq!(ended.stdout, "", "{ended}");
    }
}

#[test]
fn unreadable_script_is_a_problem() {
    let home = Home::new();
    home.write("bytes.js", b"return '\xff\xfe'");
    home.write("empty.js", "");
    home.write("blank.js", "  \n\t\n");
    std::fs::create_dir(home.path().join("folder.js")).unwrap();
    for (script, word) in [
        ("missing.js", "missing.js"),
        ("bytes.js", "UTF-8"),
        ("empty.js", "empty"),
        ("blank.js", "empty"),
        ("folder.js", "folder.js"),
    ] {
        let ended = home.run(["run", script]).expect_code(2).expect_stderr(word);
        is_a_problem(&ended);
    }
}

#[test]
fn unreadable_input_is_a_problem() {
    let home = Home::new();
    home.write("bad.json", "{");
    for input in ["@missing.json", "@bad.json", "[1,"] {
        is_a_problem(
            &home
                .run(["run", "-e", "return 1", "--input", input])
                .expect_code(2),
        );
    }
}

#[test]
fn unreachable_server_is_named() {
    let home = Home::new();
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for server in [
        "gone=no-such-program-anywhere --flag".to_owned(),
        "gone=false".to_owned(),
        "gone=sh -c 'echo fell over >&2; exit 7'".to_owned(),
        format!("gone=http://{closed}/mcp"),
    ] {
        let ended = home
            .run(["run", "-e", "return 1", "--server", &server])
            .expect_code(30)
            .expect_stderr("gone");
        is_a_problem(&ended);
    }
    let ended = home.run([
        "run",
        "-e",
        "return 1",
        "--server",
        "gone=sh -c 'echo fell over >&2; exit 7'",
    ]);
    assert!(
        ended.stderr.contains("fell over"),
        "the server's last output is not shown\n{ended}"
    );
}

#[test]
fn invalid_configuration_names_its_place() {
    let home = Home::new();
    for (name, text, words) in [
        ("servers.json", "{", &["servers.json"][..]),
        ("servers.json", r#"{"mcpServers": []}"#, &["mcpServers"]),
        ("servers.json", r#"{"mcpServers": {"a": {}}}"#, &["a"]),
        (
            "servers.json",
            r#"{"mcpServers": {"not an id": {"command": "x"}}}"#,
            &["not an id"],
        ),
        (
            "servers.json",
            r#"{"mcpServers": {"a": {"command": "x", "env": {"T": "${env:NOT_SET_ANYWHERE}"}}}}"#,
            &["NOT_SET_ANYWHERE"],
        ),
    ] {
        let file = home.write(name, text);
        let ended = home
            .run([
                "run",
                "-e",
                "return 1",
                "--mcp-config",
                file.to_str().unwrap(),
            ])
            .expect_code(30);
        is_a_problem(&ended);
        words
            .iter()
            .for_each(|word| assert!(ended.stderr.contains(word), "no `{word}`\n{ended}"));
    }
    for (text, words) in [
        ("servers = 3", &["airlock.toml", "line 1"][..]),
        ("[limits]\ntimeuot = \"3s\"", &["timeuot", "timeout"]),
        ("nonsense = 1", &["nonsense"]),
        ("not toml at all [", &["airlock.toml"]),
    ] {
        let file = home.write("airlock.toml", text);
        let ended = home
            .run(["run", "-e", "return 1", "--config", file.to_str().unwrap()])
            .expect_code(30);
        is_a_problem(&ended);
        words
            .iter()
            .for_each(|word| assert!(ended.stderr.contains(word), "no `{word}`\n{ended}"));
    }
    for flag in ["--config", "--mcp-config"] {
        is_a_problem(
            &home
                .run(["run", "-e", "return 1", flag, "nowhere.x"])
                .expect_code(30)
                .expect_stderr("nowhere.x"),
        );
    }
}

#[test]
fn rule_matching_no_tool_warns_with_closest_name() {
    let home = Home::new();
    let ended = home
        .run([
            "run",
            "-e",
            "return 1",
            "--demo",
            "--allow",
            "demo.tickets_creat",
        ])
        .expect_code(0);
    for part in ["warning", "demo.tickets_creat", "demo.tickets_create"] {
        assert!(ended.stderr.contains(part), "no `{part}`\n{ended}");
    }
}

#[test]
fn misspelt_tool_or_server_suggests_closest() {
    let home = Home::new();
    let report = crate::demo(&home, "await demo.logs_qeury({})", &[])
        .expect_code(20)
        .json();
    assert!(
        report["error"]["message"]
            .as_str()
            .unwrap()
            .contains("logs_query"),
        "{report:#}"
    );
    let report = crate::demo(&home, "await demon.logs_query({})", &[])
        .expect_code(20)
        .json();
    assert!(
        report["error"]["message"]
            .as_str()
            .unwrap()
            .contains("demon"),
        "{report:#}"
    );
}

#[test]
fn invalid_arguments_are_not_sent_and_explained() {
    let home = Home::new();
    let script = "await demo.logs_query({levle: 'error'})";
    let report = crate::demo(&home, script, &["--check", "warn"])
        .expect_code(20)
        .json();
    assert_eq!(report["findings"][0]["code"], "unknown-property");
    assert_eq!(report["code"], "invalid-arguments");
    let message = report["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("levle") && message.contains("level"),
        "{message}"
    );
    assert_eq!(report["calls"][0]["outcome"], "denied", "{report:#}");
}

#[test]
fn help_and_version_go_to_stdout() {
    let home = Home::new();
    for args in [
        &["--help"][..],
        &["run", "--help"],
        &["types", "--help"],
        &["runs", "--help"],
        &["--version"],
    ] {
        let ended = home.run(args).expect_code(0);
        assert!(
            !ended.stdout.is_empty() && ended.stderr.is_empty(),
            "{args:?}\n{ended}"
        );
    }
    let help = home.run(["run", "--help"]).stdout;
    for flag in [
        "--server",
        "--mcp-config",
        "--allow",
        "--ask",
        "--deny",
        "--input",
        "--timeout",
        "--memory",
        "--json",
    ] {
        assert!(help.contains(flag), "no {flag} in\n{help}");
    }
}
