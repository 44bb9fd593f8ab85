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
        ended.stdout.is_empty() && ended.stderr.contains("no tool matches the patterns"),
        "{ended}"
    );
}

#[test]
fn same_tools_give_same_bytes() {
    let home = Home::new();
    assert_eq!(
        types(&home, &["--detail", "full"]),
        types(&home, &["--detail", "full"])
    );
}
