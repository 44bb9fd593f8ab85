//! Tests `airlock servers`, the completions and the manual pages.

use tests::command::Home;

const DIES: &str = "dies=sh -c 'echo first >&2; echo no license >&2; exit 3'";

#[test]
fn every_server_is_shown_with_its_state() {
    let home = Home::new();
    let ended = home
        .run(["servers", "--demo", "--server", DIES])
        .expect_code(30);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let demo = lines.iter().find(|it| it.starts_with("demo")).unwrap();
    for part in ["connected", "2026-07-28", "10 tools"] {
        assert!(demo.contains(part), "{part}\n{ended}");
    }
    assert!(
        lines.iter().any(|it| it.starts_with("dies  unavailable")),
        "{ended}"
    );
    for part in [
        "no license",
        "next: `airlock servers --stderr`",
        "lines; add --stderr",
    ] {
        assert!(ended.stdout.contains(part), "{part}\n{ended}");
    }
    assert!(!ended.stdout.contains("stderr: first"), "{ended}");
    let may_fail = ["servers", "--demo", "--server", DIES, "--skip-unreachable"];
    home.run(may_fail).expect_code(0);
}

#[test]
fn whole_stderr_is_printed_on_demand() {
    let home = Home::new();
    let args = ["servers", "dies", "--demo", "--server", DIES, "--stderr"];
    let ended = home.run(args).expect_code(30);
    // The server is started twice, because it may have ended at the message of the newer era.
    for part in ["  stderr: first", "  stderr: no license"] {
        assert_eq!(ended.stdout.matches(part).count(), 1, "{part}\n{ended}");
    }
    assert!(!ended.stdout.contains("demo"), "{ended}");
    // The advice names no command that prints the same again.
    assert!(!ended.stdout.contains("servers --stderr"), "{ended}");
    assert!(
        ended.stdout.contains("next: the lines below show"),
        "{ended}"
    );
}

#[test]
fn json_has_a_member_for_each_column() {
    let home = Home::new();
    let args = ["servers", "--demo", "--server", DIES, "--json", "--stderr"];
    let shown = home.run(args).expect_code(30).json();
    let servers = shown["servers"].as_array().unwrap();
    let named = |name: &str| servers.iter().find(|it| it["name"] == name).unwrap();
    let demo = named("demo");
    assert_eq!(demo["state"], "connected", "{shown:#}");
    assert_eq!(
        (&demo["era"], &demo["tools"]),
        (&"2026-07-28".into(), &10.into()),
        "{shown:#}"
    );
    let mut names: Vec<&str> = demo.as_object().unwrap().keys().map(|it| &**it).collect();
    names.sort_unstable();
    let expected = [
        "era",
        "left_out",
        "login",
        "name",
        "on_demand",
        "server_info",
        "state",
        "stderr",
        "target",
        "tools",
        "version",
    ];
    assert_eq!(names, expected, "{shown:#}");
    let dies = named("dies");
    assert_eq!(dies["state"], "unavailable", "{shown:#}");
    // The server was started once for each era of the protocol.
    let stderr = dies["stderr"].as_str().unwrap();
    assert!(stderr.starts_with("first\nno license\n"), "{shown:#}");
    assert!(
        dies["why"].as_str().unwrap().contains("no license"),
        "{shown:#}"
    );
}

#[test]
fn credentials_of_a_server_are_masked() {
    let home = Home::new();
    let script = "sh -c 'echo \"token $KEY\" >&2; exit 1'";
    let config = format!(
        "[servers.shop]\ncommand = \"\"\"{script}\"\"\"\n\
         [servers.shop.env]\nKEY = \"sk-live-0123456789abcdef\"\n"
    );
    home.write("airlock.toml", config);
    let ended = home
        .run(["servers", "--config", "airlock.toml", "--stderr"])
        .expect_code(30);
    assert!(ended.stdout.contains("token "), "{ended}");
    assert!(!format!("{ended}").contains("0123456789abcdef"), "{ended}");
}

#[test]
fn completions_and_manual_name_every_command() {
    let home = Home::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let text = home.run(["completions", shell]).expect_code(0).stdout;
        for part in ["servers", "declassify", "skip-unreachable"] {
            assert!(text.contains(part), "{shell}: {part}");
        }
    }
    let text = home.run(["man"]).expect_code(0).stdout;
    assert!(
        text.contains(".TH airlock 1") && text.contains("airlock\\-run"),
        "{text:.300}"
    );
    let text = home.run(["man", "policy", "check"]).expect_code(0).stdout;
    for part in [".TH airlock-policy-check 1", "\\-\\-except"] {
        assert!(text.contains(part), "{part}: {text:.300}");
    }
}
