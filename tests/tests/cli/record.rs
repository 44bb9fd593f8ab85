//! Tests `airlock runs verify`: with the signed head of its run, here or on another machine, every
//! edit of a journal is found. Also tests the modes of the files that runs leave behind.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::binary::airlock;
use tests::command::{CommandOutput, Home, start};
use tests::patience::wait_until;

use crate::demo;

const SCRIPT: &str = "await demo.logs_services({}); return 1";

fn state(home: &Home) -> PathBuf {
    home.path().join(".local/state/airlock")
}

/// Runs a script, and returns the run's id.
fn run(home: &Home, code: &str) -> String {
    let report = demo(home, code, &[]).expect_code(0).json();
    report["run"].as_str().unwrap().to_owned()
}

fn journal(home: &Home, run: &str) -> PathBuf {
    home.runs_dir().join(format!("{run}.jsonl"))
}

fn verify(home: &Home, run: &str) -> CommandOutput {
    home.run(["runs", "verify", run])
}

fn public_key(home: &Home) -> String {
    let printed = home.run(["runs", "key"]).expect_code(0).stdout;
    printed.trim().to_owned()
}

#[test]
fn ended_run_is_signed() {
    let home = Home::new();
    let run = run(&home, SCRIPT);
    let key = public_key(&home);
    let shown = verify(&home, &run).expect_code(0).stdout;
    assert!(shown.contains(&format!("signed with {key}")), "{shown}");
    let json = home
        .run(["runs", "verify", &run, "--json"])
        .expect_code(0)
        .json();
    assert_eq!(json["state"], "signed", "{json:#}");
    assert_eq!(json["signed"]["head"], json["head"], "{json:#}");
    assert_eq!(json["signed"]["key"], json!(key), "{json:#}");
}

#[test]
fn edit_of_last_line_is_found() {
    let home = Home::new();
    let run = run(&home, SCRIPT);
    let path = journal(&home, &run);
    let whole = fs::read_to_string(&path).unwrap();
    let at = whole.rfind("\"wall_ms\":").unwrap();
    let edited = format!("{}1{}", &whole[..at + 10], &whole[at + 10..]);
    fs::write(&path, edited).unwrap();
    verify(&home, &run)
        .expect_code(31)
        .expect_stderr("the head differs from the signed head");
}

#[test]
fn journal_of_another_run_link_and_empty_file_do_not_pass() {
    let home = Home::new();
    let (first, second) = (run(&home, SCRIPT), run(&home, "return 2"));
    let (path, other) = (journal(&home, &first), journal(&home, &second));
    let whole = fs::read(&path).unwrap();
    fs::copy(&other, &path).unwrap();
    verify(&home, &first)
        .expect_code(31)
        .expect_stderr(&format!("holds the journal of {second}"));
    fs::remove_file(&path).unwrap();
    let elsewhere = home.write("elsewhere.jsonl", &whole);
    symlink(&elsewhere, &path).unwrap();
    verify(&home, &first)
        .expect_code(31)
        .expect_stderr("symbolic link");
    home.run(["runs", "show", &first]).expect_code(31);
    fs::remove_file(&path).unwrap();
    fs::write(&path, "").unwrap();
    verify(&home, &first)
        .expect_code(31)
        .expect_stderr("the end was cut off");
    fs::remove_file(&path).unwrap();
    let all = home.run(["runs", "verify"]).expect_code(26);
    assert!(all.stdout.contains("the journal is missing"), "{all}");
    fs::write(&path, whole).unwrap();
    home.run(["runs", "verify"]).expect_code(0);
}

/// Verifies one run and all runs, and checks that both give the same state and exit code.
fn expect_state(home: &Home, run: &str, state: &str, code: i32) {
    let one = home.run(["runs", "verify", run, "--json"]);
    let all = home.run(["runs", "verify", "--json"]);
    let (one, all) = (one.expect_code(code).json(), all.expect_code(code).json());
    assert_eq!(one["state"], state, "{one:#}");
    assert_eq!(all["runs"][0]["state"], state, "{all:#}");
    assert_eq!(all[state], 1, "{all:#}");
    let text = home.run(["runs", "verify"]).expect_code(code).stdout;
    let counts = format!("1 journal: 1 {state}");
    assert_eq!(text.lines().last(), Some(&*counts), "{text}");
}

#[test]
fn only_locked_journal_without_end_is_running() {
    let home = Home::new();
    let run = run(&home, SCRIPT);
    let path = journal(&home, &run);
    let whole = fs::read_to_string(&path).unwrap();
    let ended_at = whole.trim_end().rfind('\n').unwrap() + 1;
    let lock = fs::File::open(&path).unwrap();
    lock.lock().unwrap();
    expect_state(&home, &run, "signed", 0);
    fs::remove_file(state(&home).join("index.jsonl")).unwrap();
    expect_state(&home, &run, "unsigned", 27);
    fs::write(&path, &whole[..ended_at]).unwrap();
    expect_state(&home, &run, "running", 0);
    drop(lock);
    expect_state(&home, &run, "incomplete", 26);
}

#[test]
fn run_in_progress_is_running_until_it_ends() {
    let home = Home::new();
    let code = "await demo.slow_echo({ms: 30000, value: 'x'}); return 1";
    let args = ["run", "--demo", "--allow", "demo.*", "-e", code];
    let started = start(&mut home.airlock(args), "");
    wait_until(|| {
        let text = home.journals().first().map(fs::read_to_string);
        text.is_some_and(|text| text.is_ok_and(|text| text.contains("\"decided\"")))
    });
    let path = home.journals()[0].clone();
    let run = path.file_stem().unwrap().to_str().unwrap();
    expect_state(&home, run, "running", 0);
    started.signal(Signal::KILL);
    assert_eq!(started.wait().code, None);
    expect_state(&home, run, "incomplete", 26);
}

#[test]
fn journal_without_end_is_incomplete_and_without_signature_unsigned() {
    let home = Home::new();
    let run = run(&home, SCRIPT);
    let path = journal(&home, &run);
    let whole = fs::read_to_string(&path).unwrap();
    let ended_at = whole.trim_end().rfind('\n').unwrap() + 1;
    fs::write(&path, &whole[..ended_at]).unwrap();
    verify(&home, &run)
        .expect_code(31)
        .expect_stderr("the end was cut off");
    fs::remove_file(state(&home).join("index.jsonl")).unwrap();
    for (text, code, word) in [
        (&whole[..ended_at], 26, "journal-incomplete"),
        ("", 26, "journal-incomplete"),
        (&*whole, 27, "journal-unsigned"),
    ] {
        fs::write(&path, text).unwrap();
        verify(&home, &run).expect_code(code).expect_stderr(word);
        let json = home
            .run(["runs", "verify", &run, "--json"])
            .expect_code(code)
            .json();
        assert_eq!(
            json!(format!("journal-{}", json["state"].as_str().unwrap())),
            json!(word)
        );
        home.run(["runs", "verify"])
            .expect_code(code)
            .expect_stderr(word);
    }
}

#[test]
fn journal_verifies_on_another_machine() {
    let (home, other) = (Home::new(), Home::new());
    let run = run(&home, SCRIPT);
    let key = public_key(&home);
    let copy = other.write(
        &format!("{run}.jsonl"),
        fs::read(journal(&home, &run)).unwrap(),
    );
    let index = other.write("index", fs::read(state(&home).join("index.jsonl")).unwrap());
    let (copy, index) = (copy.to_str().unwrap(), index.to_str().unwrap());
    let verify = |key: &str| other.run(["runs", "verify", copy, "--key", key, "--index", index]);
    verify(&key).expect_code(0);
    verify(&public_key(&other))
        .expect_code(27)
        .expect_stderr("another key");
    verify("ed25519:AAAA").expect_code(2);
    other
        .run(["runs", "verify", copy, "--key", &key])
        .expect_code(27)
        .expect_stderr("no signed end");
    other
        .run(["runs", "verify", copy, "--key", &key, "--index", "missing"])
        .expect_code(2);
    let text = fs::read_to_string(copy).unwrap();
    fs::write(
        copy,
        text.replacen("demo.logs_services", "demo.logs_query", 1),
    )
    .unwrap();
    verify(&key).expect_code(31);
}

#[test]
fn new_key_beside_an_existing_index_is_reported() {
    let home = Home::new();
    let (first, old) = (run(&home, SCRIPT), public_key(&home));
    fs::remove_file(state(&home).join("signing.key")).unwrap();
    let second = demo(&home, SCRIPT, &[])
        .expect_code(0)
        .expect_stderr("signed with a new key")
        .expect_stderr(&old)
        .json();
    let second = second["run"].as_str().unwrap();
    let third = demo(&home, SCRIPT, &[]).expect_code(0);
    assert!(!third.stderr.contains("signed with a new key"), "{third}");
    let new = public_key(&home);
    verify(&home, second).expect_code(0);
    verify(&home, &first)
        .expect_code(27)
        .expect_stderr(&format!("another key, {old}"));
    home.run(["runs", "verify", "--key", &old, "--key", &new])
        .expect_code(0);
}

#[test]
fn damaged_index_is_reported_and_not_extended() {
    let home = Home::new();
    let first = run(&home, SCRIPT);
    let index = state(&home).join("index.jsonl");
    let text = fs::read_to_string(&index).unwrap();
    fs::write(&index, text.replacen("\"entries\":", "\"entries\":1", 1)).unwrap();
    let damaged = fs::read(&index).unwrap();
    verify(&home, &first)
        .expect_code(31)
        .expect_stderr("the signature is not correct");
    demo(&home, SCRIPT, &[])
        .expect_code(0)
        .expect_stderr("could not be signed");
    assert_eq!(fs::read(&index).unwrap(), damaged);
    // A crash while a line was written leaves a part of it, which the next run removes.
    fs::write(&index, format!("{text}{{\"at_ms\":17")).unwrap();
    let third = run(&home, SCRIPT);
    verify(&home, &first).expect_code(0);
    verify(&home, &third).expect_code(0);
}

#[test]
fn exposed_key_signs_nothing() {
    let home = Home::new();
    run(&home, SCRIPT);
    let key = state(&home).join("signing.key");
    assert_eq!(fs::metadata(&key).unwrap().mode() & 0o777, 0o600);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let report = demo(&home, SCRIPT, &[])
        .expect_code(0)
        .expect_stderr("other users have access")
        .json();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    verify(&home, report["run"].as_str().unwrap()).expect_code(27);
}

/// Returns the arguments of a run with this anchor, and the file that the anchor writes.
fn anchored(home: &Home, command: &str) -> CommandOutput {
    let config = home.write("airlock.toml", format!("anchor = {}\n", json!(command)));
    demo(home, SCRIPT, &["--config", config.to_str().unwrap()])
}

#[test]
fn signed_head_is_sent_to_the_anchor() {
    let home = Home::new();
    let heads = home.path().join("heads");
    let script = format!("command:sh -c 'cat >> {}'", heads.display());
    let report = anchored(&home, &script).expect_code(0).json();
    anchored(&home, &script).expect_code(0);
    let sent = fs::read_to_string(&heads).unwrap();
    let index = fs::read_to_string(state(&home).join("index.jsonl")).unwrap();
    let values = |text: &str| -> Vec<Value> {
        text.lines()
            .map(|it| serde_json::from_str(it).unwrap())
            .collect()
    };
    assert_eq!(values(&sent), values(&index));
    assert_eq!(values(&sent)[0]["run"], report["run"]);
}

#[test]
fn failed_anchor_is_reported_and_run_is_done() {
    let home = Home::new();
    for (command, why) in [
        ("command:false", "exit status: 1"),
        ("command:/nowhere/anchor", "cannot be started"),
    ] {
        let ended = anchored(&home, command)
            .expect_code(0)
            .expect_stderr("could not be sent out")
            .expect_stderr(why);
        verify(&home, ended.json()["run"].as_str().unwrap()).expect_code(0);
    }
    let config = home.write("bad.toml", "anchor = 'https://example.com'\n");
    demo(&home, SCRIPT, &["--config", config.to_str().unwrap()])
        .expect_code(30)
        .expect_stderr("not a command");
}

/// Checks that only the owner has access to each file and folder below this one.
fn check_private(path: &Path) {
    let mode = fs::symlink_metadata(path).unwrap().mode() & 0o7777;
    if path.is_dir() {
        assert_eq!(mode, 0o700, "{path:?}");
        for entry in fs::read_dir(path).unwrap() {
            check_private(&entry.unwrap().path());
        }
    } else {
        assert_eq!(mode, 0o600, "{path:?}");
    }
}

#[test]
fn modes_do_not_depend_on_umask() {
    for umask in ["0000", "0277"] {
        let home = Home::new();
        let mut command = Command::new("sh");
        let script = format!("umask {umask}; exec \"$@\"");
        command.args(["-c", &script, "sh"]).arg(airlock());
        command.args([
            "run",
            "--demo",
            "--allow",
            "demo.*",
            "--session",
            "s",
            "-e",
            SCRIPT,
        ]);
        home.dress(&mut command);
        start(&mut command, "").wait().expect_code(0);
        check_private(&state(&home));
        home.verify_all();
    }
}

#[test]
fn unsafe_state_directory_is_refused() {
    let home = Home::new();
    let folder = home.path().join("state");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    symlink(&folder, home.path().join("link")).unwrap();
    for (path, why) in [("state", "mode 0777"), ("link", "symbolic link")] {
        for args in [
            &["run", "-e", "return 1"][..],
            &["runs", "list"],
            &["runs", "verify"],
            &["runs", "key"],
            &["grants", "list"],
        ] {
            let args = [args, &["--state-dir", path]].concat();
            let ended = home.run(args).expect_code(31).expect_stderr(why);
            for part in ["error: ", "  why: ", " next: ", " code: state-unsafe"] {
                assert!(ended.stderr.contains(part), "{ended}");
            }
        }
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}
