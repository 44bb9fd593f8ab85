//! What the model reads: declarations at four levels.

use tests::command::Home;

fn types(home: &Home, args: &[&str]) -> String {
    let mut all = vec!["types", "--demo"];
    all.extend(args);
    home.run(all).expect_code(0).stdout
}

#[test]
fn each_level_says_more_than_the_one_before() {
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
fn patterns_choose_the_tools() {
    let home = Home::new();
    let text = types(&home, &["--detail", "names", "demo.tickets_*"]);
    assert!(
        text.contains("tickets_create") && !text.contains("logs_query"),
        "{text}"
    );
}

#[test]
fn a_pattern_that_matches_nothing_says_so() {
    let ended = Home::new()
        .run(["types", "--demo", "demo.logs_qeury"])
        .expect_code(0);
    assert!(
        ended.stdout.is_empty() && ended.stderr.contains("no tool fits"),
        "{ended}"
    );
}

#[test]
fn the_same_tools_give_the_same_bytes() {
    let home = Home::new();
    assert_eq!(
        types(&home, &["--detail", "full"]),
        types(&home, &["--detail", "full"])
    );
}
