//! Tests what a person at a terminal sees and types: questions, answers with one key, and runs that
//! are repeated.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::json;
use tests::command::Home;
use tests::counting;
use tests::typing::type_at;

use crate::lock::SERVER;

/// Returns a home with a server that writes files.
fn home() -> Home {
    let home = Home::new();
    home.write("server.sh", SERVER);
    let text = json!({"type": "string"});
    let schema = json!({"type": "object", "properties": {"content": text, "path": text}});
    let write = json!({"name": "write", "inputSchema": schema});
    home.write("tools.json", json!([write]).to_string());
    home
}

const SHOP: [&str; 3] = ["run", "--server", "shop=sh server.sh"];

fn write(times: u32) -> String {
    format!(
        "for (let n = 1; n <= {times}; n++) \
         await shop.write({{content: '# Notes\\n- one\\n', path: 'out/' + n + '.md'}}); \
         return 'all written'"
    )
}

#[test]
fn question_shows_path_then_content_as_lines_and_one_key_answers() {
    let home = home();
    let code = write(1);
    let args = [&SHOP[..], &["-e", &code]].concat();
    let (shown, exit) = type_at(&home, &args, &[("      > ", "y")]);
    assert!(shown.contains("all written") && exit == Some(0), "{shown}");
    let lines = [
        "path: \"out/1.md\"",
        "content: 2 lines, 14 bytes",
        "│ # Notes",
        "│ - one",
    ];
    let mut rest = shown.as_str();
    for line in lines {
        let at = rest
            .find(line)
            .unwrap_or_else(|| panic!("no {line:?} in order\n{shown}"));
        rest = &rest[at..];
    }
    assert!(
        shown.contains("y = this call, a = ") && shown.contains("(asks how many"),
        "{shown}"
    );
    assert!(shown.contains("calls of this tool where"), "{shown}");
    home.verify_all();
}

#[test]
fn question_mark_explains_and_other_keys_allow_nothing() {
    let home = home();
    let code = write(1);
    let args = [&SHOP[..], &["-e", &code]].concat();
    let typed = [
        ("      > ", "?"),
        ("y  allow this call, and no other", ""),
        ("      > ", "x"),
        ("nothing was allowed; type y, a, n, v or ?", ""),
        ("      > ", "yes please\n"),
        ("nothing was allowed; type y, a, n, v or ?", ""),
        ("      > ", "\n"),
        ("nothing was allowed; type y, a, n, v or ?", ""),
        ("      > ", "n"),
    ];
    let (shown, exit) = type_at(&home, &args, &typed);
    assert!(shown.contains("refused") && exit == Some(22), "{shown}");
    home.verify_all();
}

#[test]
fn similar_calls_are_allowed_with_a_key_and_enter() {
    let home = home();
    let code = write(3);
    let args = [&SHOP[..], &["-e", &code]].concat();
    let typed = [
        ("      > ", "a"),
        ("including this one; Enter = 20 > ", "\n"),
    ];
    let (shown, exit) = type_at(&home, &args, &typed);
    assert!(shown.contains("all written") && exit == Some(0), "{shown}");
    assert_eq!(shown.matches("allow?").count(), 1, "{shown}");
    home.verify_all();
}

#[test]
fn enter_right_after_the_key_takes_no_number() {
    let home = home();
    let code = write(1);
    let args = [&SHOP[..], &["-e", &code]].concat();
    let typed = [
        ("      > ", "a\n"),
        ("including this one; Enter = 20 > ", "x\n"),
        ("invalid number; nothing was allowed", ""),
        ("      > ", "n"),
    ];
    let (shown, exit) = type_at(&home, &args, &typed);
    assert!(shown.contains("refused") && exit == Some(22), "{shown}");
    home.verify_all();
}

#[test]
fn key_that_is_pressed_twice_does_not_answer_the_next_question() {
    let home = home();
    let code = write(2);
    let args = [&SHOP[..], &["-e", &code]].concat();
    let typed = [("      > ", "y"), ("call 2 of", "y"), ("      > ", "n")];
    let (shown, exit) = type_at(&home, &args, &typed);
    assert!(shown.contains("refused") && exit == Some(22), "{shown}");
    home.verify_all();
}

/// Types answers to the question what became of a call. Returns the terminal's output, the exit code
/// and the number of calls that the server got.
fn state(typed: &[(&str, &str)]) -> (String, Option<i32>, usize) {
    const RETRY: &str = "try { return await w.create({title: 'late'}); } catch {}
return await w.create({title: 'late'});";
    let home = Home::new();
    let config = counting::config(&home, "server.sh", "");
    let config = home.write("airlock.toml", config).display().to_string();
    let args = [
        "run",
        "--config",
        &config,
        "--allow",
        "w.*",
        "--call-timeout",
        "500ms",
    ];
    let args = [&args[..], &["-e", RETRY]].concat();
    let (mut shown, exit) = type_at(&home, &args, typed);
    home.verify_all();
    let journal = home.journals().pop().unwrap();
    let run = journal.file_stem().unwrap().to_str().unwrap();
    shown += &home.run(["runs", "show", run]).expect_code(0).stdout;
    (shown, exit, counting::made(&home).len())
}

#[test]
fn result_of_a_call_is_stated_at_the_terminal() {
    let (shown, exit, made) = state(&[
        ("what became of call", ""),
        // Keys of a question whether a call is allowed state nothing.
        ("      > ", "y"),
        ("nothing was allowed; type h, r, x, n, v or ?", ""),
        ("      > ", "d"),
        ("nothing was allowed; type h, r, x, n, v or ?", ""),
        ("      > ", "?"),
        ("x  the earlier call had no effect", ""),
        ("      > ", "r"),
        ("Enter = no result > ", "seen\n"),
        ("not JSON; nothing was recorded", ""),
        ("      > ", "r"),
        ("Enter = no result > ", "\"seen\"\n"),
    ]);
    assert_eq!((exit, made), (Some(0), 1), "{shown}");
    let user = rustix::process::geteuid().as_raw();
    let by = format!("terminal, user id {user} stated that call");
    assert!(shown.contains("seen") && shown.contains(&by), "{shown}");
}

#[test]
fn each_key_states_what_its_help_says() {
    for (key, made, said) in [
        ("h", 1, "result-invalid"),
        ("x", 2, "outcome-unknown"),
        ("n", 1, "outcome-unknown"),
    ] {
        let (shown, exit, found) = state(&[("what became of call", ""), ("      > ", key)]);
        assert_eq!((exit, found), (Some(20), made), "{key}: {shown}");
        assert!(shown.contains(said), "{key}: {shown}");
    }
}

#[test]
fn findings_of_the_check_come_before_the_first_question() {
    let home = home();
    let code = "await shop.write({path: 'a', contnt: 'b'}); return 'all written'";
    let args = [&SHOP[..], &["--check", "warn", "-e", code]].concat();
    let (shown, _) = type_at(&home, &args, &[("      > ", "y")]);
    let warned = shown.find("contnt").unwrap_or_else(|| panic!("{shown}"));
    let asked = shown.find("allow?").unwrap_or_else(|| panic!("{shown}"));
    assert!(warned < asked, "{shown}");
    assert_eq!(shown.matches("unknown-property").count(), 1, "{shown}");
}

#[test]
fn watch_runs_again_when_the_script_changes() {
    let home = Home::new();
    home.write("a.js", "return 'first'");
    let mut command = home.airlock(["run", "a.js", "--watch"]);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut values = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut value = || values.next().unwrap().unwrap();
    let mut note = |part: &str| {
        let found = notes
            .by_ref()
            .map_while(Result::ok)
            .find(|it| it.contains(part));
        assert!(found.is_some(), "{part}");
    };
    assert_eq!(value(), "first");
    note("watching a.js; Ctrl-C ends");
    // A mistake does not end the watch.
    home.write("a.js", "  ");
    note("the script a.js is empty");
    note("watching a.js; Ctrl-C ends");
    home.write("a.js", "return 'second'");
    assert_eq!(value(), "second");
    note("watching a.js; Ctrl-C ends");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
