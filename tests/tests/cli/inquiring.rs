//! Tests `airlock run` at a terminal when a server requests input during a call.

use tests::command::{Home, program};
use tests::typing::type_at;

fn run(code: &str, typed: &[(&str, &str)]) -> (Home, String, Option<i32>) {
    let home = Home::new();
    let log = home.path().join("fixture.log");
    let server = format!(
        "test={} {}",
        program("fixture-server").display(),
        log.display()
    );
    let args = ["run", "--server", &server, "--allow", "test.*", "-e", code];
    let (shown, exit) = type_at(&home, &args, typed);
    (home, shown, exit)
}

fn noted(home: &Home) -> String {
    std::fs::read_to_string(home.path().join("fixture.log")).unwrap_or_default()
}

const DEFAULTS: &str = "return await test.elicitation_sep1034_defaults({})";
const ENUMS: &str = "return await test.elicitation_sep1330_enums({})";

#[test]
fn form_is_filled_by_field_and_sent_after_review() {
    let (home, shown, exit) = run(
        DEFAULTS,
        &[
            ("1/5 name", "Ada\n"),
            ("2/5 age", "old\n"),
            ("expected a whole number", "36\n"),
            ("3/5 score", "\n"),
            ("3 pending", "9\n"),
            ("expected a number from 1 to 3", "2\n"),
            ("5/5 verified", "n\n"),
            ("[s]end", "s\n"),
        ],
    );
    assert!(
        shown.contains("asks the server `test`, during a call:"),
        "{shown}"
    );
    assert!(shown.contains("> Please look through these"), "{shown}");
    assert!(shown.contains("status = inactive"), "{shown}");
    assert!(
        shown.contains("state-ok: answer accept") && exit == Some(0),
        "{shown}"
    );
    let said = r#"{"name":"Ada","age":36,"score":95.5,"status":"inactive","verified":false}"#;
    assert!(noted(&home).contains(said), "{}", noted(&home));
    home.verify_all();
}

#[test]
fn choices_are_numbered_and_optional_field_may_be_empty() {
    let (home, shown, _) = run(
        ENUMS,
        &[
            ("1/5", "1\n"),
            ("2/5", "value3\n"),
            ("Option Two (opt2)", "2\n"),
            ("4/5", "1, 3\n"),
            ("5/5", "2\n"),
            ("[s]end", "send\n"),
        ],
    );
    let noted = noted(&home);
    for said in [
        r#""legacyEnum":"opt2""#,
        r#""titledSingle":"value3""#,
        r#""untitledMulti":["option1","option3"]"#,
        r#""titledMulti":["value2"]"#,
    ] {
        assert!(noted.contains(said), "{said}: {noted}\n{shown}");
    }
}

#[test]
fn person_may_decline_cancel_or_restart() {
    for (typed, expected) in [
        (
            &[("1/5 name", "/decline\n")] as &[(&str, &str)],
            "answer decline",
        ),
        (&[("1/5 name", "/cancel\n")], "answer cancel"),
        // End of input.
        (&[("1/5 name", "\u{4}")], "answer cancel"),
        (
            &[
                ("1/5", "\n"),
                ("2/5", "\n"),
                ("3/5", "\n"),
                ("4/5", "\n"),
                ("5/5", "\n"),
                ("[s]end", "e\n"),
                ("1/5", "Eve\n"),
                ("2/5", "\n"),
                ("3/5", "\n"),
                ("4/5", "\n"),
                ("5/5", "\n"),
                ("name = Eve", ""),
                ("[s]end", "d\n"),
            ],
            "answer decline",
        ),
    ] {
        let (_, shown, _) = run(DEFAULTS, typed);
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
}

#[test]
fn form_without_terminal_is_declined_with_notice() {
    let home = Home::new();
    let server = format!("test={}", program("fixture-server").display());
    let args = [
        "run", "--server", &server, "--allow", "test.*", "-e", DEFAULTS,
    ];
    let ended = home.run(args).expect_code(0);
    assert!(ended.stdout.contains("answer decline"), "{}", ended.stdout);
    let said = "the server `test` asked the user to fill in a form; airlock declined, because there is no terminal";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
}

#[test]
fn input_typed_before_review_sends_nothing() {
    let pasted = "Ada\n\n\n\n\ns\n";
    let (home, shown, _) = run(DEFAULTS, &[("1/5 name", pasted), ("[s]end", "d\n")]);
    assert!(shown.contains("answer decline"), "{shown}");
    assert!(!noted(&home).contains("Ada"), "{}", noted(&home));
}

const ADDRESS: &str = "return await test.elicitation_address({})";

#[test]
fn url_is_shown_in_full_and_not_opened() {
    for (typed, expected) in [
        (&[("[o]pened", "o\n")] as &[(&str, &str)], "answer accept"),
        (&[("[o]pened", "opened\n")], "answer accept"),
        (&[("[o]pened", "d\n")], "answer decline"),
        (&[("[o]pened", "c\n")], "answer cancel"),
        (&[("[o]pened", "/decline\n")], "answer decline"),
        // End of input.
        (&[("[o]pened", "\u{4}")], "answer cancel"),
        (
            &[
                ("[o]pened", "\n"),
                ("unknown answer", ""),
                ("[o]pened", "yes\n"),
                ("unknown answer", ""),
                ("[o]pened", "o\n"),
            ],
            "answer accept",
        ),
    ] {
        let (home, shown, exit) = run(ADDRESS, typed);
        let asks = "asks the server `test`, during a call:";
        assert!(
            shown.contains(asks) && shown.contains("> Sign in"),
            "{shown}"
        );
        assert!(shown.contains("address https://example.com/a"), "{shown}");
        assert!(shown.contains("open this address if you trust"), "{shown}");
        assert!(shown.contains(expected) && exit == Some(0), "{shown}");
        let said = expected.replace("answer ", "");
        assert!(noted(&home).contains(&said), "{}", noted(&home));
        home.verify_all();
    }
}

#[test]
fn url_with_hidden_characters_is_spelled_out() {
    let code = "return await test.elicitation_address({hidden: true})";
    let (_, shown, _) = run(code, &[("[o]pened", "d\n")]);
    assert!(shown.contains("> Sign in\\u{202e}"), "{shown}");
    assert!(!shown.contains('\u{202e}'), "{shown}");
    assert!(
        shown.contains("address https://example.com/%E2%80%AE"),
        "{shown}"
    );
}
