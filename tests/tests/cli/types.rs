//! Tests the declarations that a model reads, at all four levels of detail.

use tests::command::Home;

fn types(home: &Home, args: &[&str]) -> String {
    let mut all = vec!["types", "--demo"];
    all.extend(args);
    home.run(all).expect_code(0).stdout
}

#[test]
fn each_detail_level_adds_to_previous() {
    let home = Home::new();
    let texts: Vec<String> = ["names", "lines", "signatures", "full"]
        .iter()
        .map(|level| types(&home, &["--detail", level]))
        .collect();
    for pair in texts.windows(2) {
        assert!(
            pair[0].len() < pair[1].len(),
            "{}\n---\n{}",
            pair[0],
            pair[1]
        );
    }
    for text in &texts {
        for tool in ["logs_query", "tickets_create", "slow_echo"] {
            assert!(text.contains(tool), "no {tool} in\n{text}");
        }
    }
    assert!(
        texts[3].contains("Promise<") && texts[3].contains("level?:"),
        "{}",
        texts[3]
    );
}

#[test]
fn patterns_select_tools() {
    let home = Home::new();
    let text = types(&home, &["--detail", "names", "demo.tickets_*"]);
    assert!(
        text.contains("tickets_create") && !text.contains("logs_query"),
        "{text}"
    );
}

#[test]
fn pattern_without_match_is_reported() {
    let ended = Home::new()
        .run(["types", "--demo", "demo.logs_qeury"])
        .expect_code(0);
    assert!(
        ended.stdout.is_empty() && ended.stderr.contains("no tool matches"),
        "{ended}"
    );
}

/// A rule that always denies a tool hides it from every list, also without a server.
#[test]
fn denied_tools_of_saved_list_are_not_shown() {
    let home = Home::new();
    let list = r#"{"tools": [
        {"name": "send", "inputSchema": {"type": "object"}},
        {"name": "secret", "inputSchema": {"type": "object"}}
    ]}"#;
    home.write("mail.json", list);
    home.write("airlock.toml", "[rules]\ndeny = [\"mail.secret\"]\n");
    home.write(
        "rules/mail.cedar",
        "@id(\"send\")\n@owner(\"ann\")\n@reason(\"mails may be sent\")\n\
         permit(principal, action == Action::\"mail.send\", resource);\n",
    );
    home.write("strict.toml", "policies = [\"rules\"]\n");
    for config in ["airlock.toml", "strict.toml"] {
        let file = ["--from", "mail.json", "--config", config];
        for format in ["ts", "json", "rust"] {
            let args = [&["types", "--format", format][..], &file].concat();
            let ended = home.run(args).expect_code(0);
            assert!(ended.stdout.contains("send"), "{ended}");
            assert!(
                !ended.stdout.contains("secret"),
                "{config} {format}: {ended}"
            );
        }
        let args = [&["types", "mail.secert"][..], &file].concat();
        let ended = home.run(args).expect_code(0);
        assert!(!ended.stderr.contains("secret"), "{config}: {ended}");
        let script = "return await mail.secert({})";
        let args = [&["check", "--no-tsc", "-e", script][..], &file].concat();
        let ended = home.run(args).expect_code(20);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains("no tool `secert`"), "{config}: {ended}");
        assert!(!said.contains("secret"), "{config}: {ended}");
    }
    let args = ["types", "--from", "mail.json"];
    let ended = home.run(args).expect_code(0);
    assert!(ended.stdout.contains("secret"), "{ended}");
}

#[test]
fn same_tools_give_same_bytes() {
    let home = Home::new();
    assert_eq!(
        types(&home, &["--detail", "full"]),
        types(&home, &["--detail", "full"])
    );
}
