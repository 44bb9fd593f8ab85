//! Tests the journal of a run: written before a call is sent, readable after the run, correct after
//! a crash. If the journal cannot be written, no call is made.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::binary::airlock;
use tests::command::{Home, detached, program, start};
use tests::patience::{PATIENCE, wait_until};

use crate::demo;

/// Returns a configuration file with a server that logs its messages, and the path of the log.
fn logging_server(home: &Home) -> (std::path::PathBuf, std::path::PathBuf) {
    let log = home.path().join("rogue.log");
    let config = json!({"mcpServers": {"rogue": {"command": program("rogue-server"), "env": {"ROGUE_LOG": log}}}});
    (home.write("rogue.json", config.to_string()), log)
}

fn entries(path: &std::path::Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn kinds(entries: &[Value]) -> Vec<&str> {
    entries
        .iter()
        .map(|entry| entry["kind"].as_str().unwrap())
        .collect()
}

#[test]
fn run_leaves_one_verifiable_journal() {
    let home = Home::new();
    let report = demo(&home, "await demo.logs_services({}); return 1", &[])
        .expect_code(0)
        .json();
    let [journal] = &home.journals()[..] else {
        panic!("{:?}", home.journals())
    };
    let run = report["run"].as_str().unwrap();
    assert_eq!(journal.file_stem().unwrap().to_str(), Some(run));
    let entries = entries(journal);
    assert_eq!(
        kinds(&entries),
        ["run-started", "decided", "settled", "resumed", "ended"]
    );
    assert_eq!(entries[1]["decision"], "allow");
    assert!(
        entries[1]["reasons"][0]
            .as_str()
            .unwrap()
            .contains("demo.*")
    );
    home.run(["runs", "verify", run]).expect_code(0);
    home.verify_all();
}

#[test]
fn journal_is_private_to_owner() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    demo(&home, "return 1", &[]).expect_code(0);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(&home.journals()[0]), mode(&home.runs_dir())),
        (0o600, 0o700)
    );
}

#[test]
fn runs_list_and_show_agree() {
    let home = Home::new();
    let done = demo(&home, "await demo.logs_services({}); return 1", &[])
        .expect_code(0)
        .json();
    let failed = demo(&home, "await demo.flaky_report({})", &[])
        .expect_code(20)
        .json();
    let list = home.run(["runs", "list", "--json"]).expect_code(0).json();
    let list = list
        .as_array()
        .or_else(|| list["runs"].as_array())
        .unwrap_or_else(|| panic!("{list:#}"))
        .clone();
    let mut runs: Vec<_> = list
        .iter()
        .map(|run| (run["run"].clone(), run["status"].clone()))
        .collect();
    runs.sort_by_key(|(run, _)| run.to_string());
    let mut expected = vec![
        (done["run"].clone(), json!("done")),
        (failed["run"].clone(), json!("failed")),
    ];
    expected.sort_by_key(|(run, _)| run.to_string());
    assert_eq!(runs, expected);
    let run = failed["run"].as_str().unwrap();
    let shown = home
        .run(["runs", "show", run, "--json"])
        .expect_code(0)
        .json();
    assert_eq!(
        (&shown["run"], &shown["status"], &shown["code"]),
        (&failed["run"], &json!("failed"), &json!("tool-failed"))
    );
    assert_eq!(
        (&shown["calls"][0]["tool"], &shown["calls"][0]["outcome"]),
        (&json!("demo.flaky_report"), &json!("failed"))
    );
    let text = home.run(["runs", "show", run]).expect_code(0).stdout;
    assert!(
        text.contains("demo.flaky_report") && text.contains("tool-failed"),
        "{text}"
    );
    let text = home.run(["runs", "list"]).expect_code(0).stdout;
    assert!(text.contains(run) && text.contains("failed"), "{text}");
}

#[test]
fn list_shows_calls_and_script_and_takes_filters() {
    let home = Home::new();
    let script = "// counts\n\nawait demo.logs_services({}); await demo.tickets_create({title: 'a'});\nreturn await demo.tickets_list({})";
    let done = demo(&home, script, &[]).expect_code(0).json();
    let session = ["--session", "nightly"];
    let failed = demo(&home, "await demo.flaky_report({})", &session);
    let failed = failed.expect_code(20).json();
    let listed = |filters: &[&str]| {
        let args = [&["runs", "list", "--json"][..], filters].concat();
        let list = home.run(args).expect_code(0).json();
        let runs = list["runs"].as_array().unwrap().clone();
        assert_eq!(list["total"], runs.len(), "{list}");
        runs
    };
    let all = listed(&[]);
    let (newest, oldest) = (&all[0], &all[1]);
    assert_eq!(oldest["first_line"], "// counts");
    assert_eq!((&oldest["calls"], &newest["calls"]), (&json!(3), &json!(1)));
    assert_eq!(newest["session"], "nightly");
    assert_eq!(
        (&oldest["session"], &oldest["host"]),
        (&json!(null), &json!(null))
    );
    for (filters, expected) in [
        (&["--status", "done"][..], vec![&done]),
        (
            &["--status", "done", "--status", "failed"],
            vec![&failed, &done],
        ),
        (&["--status", "paused"], vec![]),
        (&["--host", "claude"], vec![]),
        (&["--session", "night"], vec![&failed]),
        (&["--script", "tickets_list"], vec![&done]),
        (&["--tool", "demo.flaky_*"], vec![&failed]),
        (&["--tool", "demo.*", "--status", "done"], vec![&done]),
        (&["--since", "1h"], vec![&failed, &done]),
        (&["--since", "0s"], vec![]),
        (&["--resumable"], vec![&failed]),
    ] {
        let runs = listed(filters);
        let runs: Vec<_> = runs.iter().map(|run| &run["run"]).collect();
        let expected: Vec<_> = expected.iter().map(|report| &report["run"]).collect();
        assert_eq!(runs, expected, "{filters:?}");
    }
    let text = home
        .run(["runs", "list", "--status", "done"])
        .expect_code(0);
    assert!(
        text.stdout
            .contains("3 calls, 1 not marked read-only  -e: // counts"),
        "{text}"
    );
    let none = home.run(["runs", "list", "--host", "x"]).expect_code(0);
    assert!(
        none.stderr
            .contains("no run matches the filters (2 in all)"),
        "{none}"
    );
    for bad in [
        ["--status", "over"],
        ["--tool", "demo"],
        ["--since", "soon"],
    ] {
        let refused = home.run(["runs", "list", bad[0], bad[1]]).expect_code(2);
        assert!(refused.stderr.contains(bad[1]), "{refused}");
    }
}

#[test]
fn script_and_value_of_a_run_are_shown() {
    let home = Home::new();
    let script = "const n = 2;\nreturn {n, text: 'a'};";
    let report = demo(&home, script, &[]).expect_code(0).json();
    let run = report["run"].as_str().unwrap();
    let show = |flag: &str| home.run(["runs", "show", run, flag]).expect_code(0).stdout;
    assert_eq!(show("--script"), format!("{script}\n"));
    assert_eq!(
        serde_json::from_str::<Value>(&show("--value")).unwrap(),
        report["value"]
    );
    let json = home
        .run(["runs", "show", run, "--value", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(
        (&json["value"], &json["masked"]),
        (&report["value"], &json!(false))
    );
    let long = demo(&home, "return 'x'.repeat(40000)", &[])
        .expect_code(0)
        .json();
    let nothing = demo(&home, "const a = 1;", &[]).expect_code(0).json();
    for (report, why) in [(long, "longer than 32 KiB"), (nothing, "returned no value")] {
        let refused = home.run(["runs", "show", report["run"].as_str().unwrap(), "--value"]);
        assert!(refused.stderr.contains(why), "{refused}");
        assert_eq!(refused.code, Some(2), "{refused}");
    }
    home.verify_all();
}

#[test]
fn script_findings_are_in_journal() {
    let home = Home::new();
    let script = "demo.logs_services({});\nreturn 1;";
    let report = demo(&home, script, &[]).expect_code(0).json();
    let run = report["run"].as_str().unwrap();
    let found = &report["findings"];
    assert_eq!(found[0]["code"], "not-awaited");
    assert_eq!(&entries(&home.journals()[0])[0]["findings"], found);
    let shown = home.run(["runs", "show", run, "--json"]).expect_code(0);
    assert_eq!(&shown.json()["findings"], found);
    let text = home.run(["runs", "show", run]).expect_code(0).stdout;
    let (message, place) = (found[0]["message"].as_str().unwrap(), "warning 1:1: ");
    assert!(text.contains(&format!("{place}{message}")), "{text}");
    home.verify_all();
}

#[test]
fn missing_state_directory_is_named() {
    let home = Home::new();
    for command in [
        &["runs", "list"][..],
        &["runs", "verify"],
        &["runs", "waiting"],
        &["runs", "prune", "--keep", "1h"],
        &["grants", "list"],
        &["sessions", "list"],
    ] {
        let named = home.run([command, &["--state-dir", "nowhere"]].concat());
        let named = named.expect_code(2);
        for expected in ["the state directory does not exist", "--state-dir"] {
            assert!(named.stderr.contains(expected), "{command:?}: {named}");
        }
        let default = home.run(command).expect_code(0);
        let expected = "does not exist yet; the first run creates it";
        assert!(default.stderr.contains(expected), "{command:?}: {default}");
    }
}

#[test]
fn missing_run_is_a_problem() {
    let home = Home::new();
    for args in [
        ["runs", "show", "no-such-run"],
        ["runs", "verify", "no-such-run"],
        ["runs", "show", "../../etc/passwd"],
    ] {
        let ended = home.run(args);
        assert!(
            matches!(ended.code, Some(code) if code != 0 && code != 1),
            "{ended}"
        );
        assert!(
            ended.stderr.contains("error:") && ended.stderr.contains("next:"),
            "{ended}"
        );
    }
    let list = home.run(["runs", "list", "--json"]).expect_code(0).json();
    assert!(list == json!([]) || list["runs"] == json!([]), "{list}");
}

#[test]
fn changed_dropped_or_swapped_line_is_detected() {
    let home = Home::new();
    let report = demo(&home, "await demo.logs_services({}); return 1", &[])
        .expect_code(0)
        .json();
    let run = report["run"].as_str().unwrap().to_owned();
    let journal = home.journals()[0].clone();
    let whole = fs::read_to_string(&journal).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let broken = |lines: Vec<String>, line: &str| {
        fs::write(&journal, lines.join("\n") + "\n").unwrap();
        let ended = home.run(["runs", "verify", &run]);
        assert!(ended.code != Some(0) && ended.code != Some(1), "{ended}");
        let told = format!("{}{}", ended.stdout, ended.stderr);
        assert!(told.contains(line), "no `{line}` in the output\n{ended}");
        fs::write(&journal, &whole).unwrap();
    };
    let own = |lines: &[&str]| {
        lines
            .iter()
            .map(|line| (*line).to_owned())
            .collect::<Vec<_>>()
    };
    let mut changed = own(&lines);
    changed[1] = changed[1].replace("\"decision\":\"allow\"", "\"decision\":\"deny\"");
    assert_ne!(changed[1], lines[1]);
    // Each line is protected by its digest in the next line.
    broken(changed, "line 3");
    let mut dropped = own(&lines);
    dropped.remove(1);
    broken(dropped, "line 2");
    let mut swapped = own(&lines);
    swapped.swap(1, 2);
    broken(swapped, "line 2");
    home.run(["runs", "verify", &run]).expect_code(0);
}

#[test]
fn verify_all_names_the_broken_run() {
    let home = Home::new();
    let verify = ["runs", "verify"];
    assert_eq!(home.run(verify).expect_code(0).stdout, "");
    for code in ["return 1", "return 2"] {
        demo(&home, code, &[]).expect_code(0);
    }
    let whole = home.run(verify).expect_code(0).stdout;
    assert_eq!(whole.matches(": signed, ").count(), 2, "{whole}");
    let broken = home.journals()[0].clone();
    let text = fs::read_to_string(&broken).unwrap();
    fs::write(&broken, text.replacen("run-started", "run-begun", 1)).unwrap();
    let ended = home.run(verify).expect_code(31).expect_stderr("1 of 2");
    let run = broken.file_stem().unwrap().to_str().unwrap();
    let named = format!("{run}: broken: ");
    assert!(ended.stdout.contains(&named), "{ended}");
    let counts = "2 journals: 1 signed, 1 broken";
    assert_eq!(ended.stdout.lines().nth(2), Some(counts), "{ended}");
    let json = home
        .run(["runs", "verify", "--json"])
        .expect_code(31)
        .json();
    assert_eq!(json["broken"], 1, "{json:#}");
}

#[test]
fn killed_broker_leaves_journal_naming_open_call() {
    let home = Home::new();
    let code = "await demo.logs_services({}); await demo.slow_echo({ms: 30000, value: 'in doubt'}); return 1";
    let started = start(
        &mut home.airlock(["run", "--demo", "--allow", "demo.*", "-e", code]),
        "",
    );
    let journal = wait_for(|| {
        home.journals().first().cloned().filter(|path| {
            fs::read_to_string(path).is_ok_and(|text| {
                text.contains("in doubt") && text.matches("\"decided\"").count() == 2
            })
        })
    });
    started.signal(Signal::KILL);
    assert_eq!(started.wait().code, None);
    // After a crash of the machine, the last line may be incomplete.
    let mut bytes = fs::read(&journal).unwrap();
    let run = journal.file_stem().unwrap().to_str().unwrap().to_owned();
    for torn in [false, true] {
        if torn {
            bytes.extend_from_slice(b"{\"at_ms\":17");
            fs::write(&journal, &bytes).unwrap();
        }
        let ended = home.run(["runs", "verify", &run]).expect_code(26);
        let told = format!("{}{}", ended.stdout, ended.stderr);
        assert!(
            told.contains("demo.slow_echo") && told.contains("doubt"),
            "{ended}"
        );
        let json = home
            .run(["runs", "verify", &run, "--json"])
            .expect_code(26)
            .json()
            .to_string();
        assert!(json.contains("in_doubt"), "{json}");
    }
    let shown = home
        .run(["runs", "show", &run, "--json"])
        .expect_code(0)
        .json();
    assert_eq!(
        (&shown["status"], &shown["calls"][1]["outcome"]),
        (&json!("interrupted"), &Value::Null)
    );
    assert_eq!(shown["in_doubt"][0]["tool"], "demo.slow_echo", "{shown:#}");
}

#[test]
fn unwritable_journal_refuses_to_run() {
    let home = Home::new();
    let (config, log) = logging_server(&home);
    let file = home.write("in-the-way", "a file where the state folder belongs");
    let ended = home
        .run([
            "run",
            "--mcp-config",
            config.to_str().unwrap(),
            "--allow",
            "rogue.*",
            "--state-dir",
            file.to_str().unwrap(),
            "-e",
            "await rogue.fine({})",
        ])
        .expect_code(31);
    assert!(
        ended.stderr.contains("journal-unwritable") && ended.stderr.contains("next:"),
        "{ended}"
    );
    let heard = fs::read_to_string(log).unwrap_or_default();
    assert!(!heard.contains("tools/call"), "{heard}");
}

#[test]
fn run_with_file_size_limit_reports_it_first() {
    let home = Home::new();
    let mut command = Command::new(detached());
    command
        .args(["sh", "-c", r#"ulimit -f 1024; exec "$@""#, "sh"])
        .arg(airlock())
        .args(["run", "-e", "return 1"]);
    home.dress(&mut command);
    let ended = start(&mut command, "").wait().expect_code(30);
    for part in ["ulimit -f", "code: sandbox-unavailable"] {
        assert!(ended.stderr.contains(part), "no `{part}`\n{ended}");
    }
    assert!(home.journals().is_empty(), "{ended}");
}

/// `serve` loads the engine after the tools are available. It reports the size limit even without a
/// request to run a script.
#[test]
fn serve_with_file_size_limit_refuses_runs() {
    let home = Home::new();
    let mut command = Command::new(detached());
    command
        .args(["sh", "-c", r#"ulimit -f 1024; exec "$@""#, "sh"])
        .arg(airlock())
        .args(["serve", "--demo"]);
    home.dress(&mut command);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    // A host that is connected and sends nothing.
    let _stdin = child.stdin.take();
    wait_until(|| child.try_wait().unwrap().is_some());
    let ended = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(30), "{stderr}");
    assert!(stderr.contains("code: sandbox-unavailable"), "{stderr}");
}

#[test]
fn failed_journal_write_stops_next_call() {
    let home = Home::new();
    let (config, log) = logging_server(&home);
    let code = "const pad = 'p'.repeat(3000000); \
        for (let i = 0; i < 100; i++) await rogue.fine({ i, pad })";
    // Limits files to 32 or 64 MiB, which has the effect of a full disk. The guest's initial memory
    // counts as a file and must fit.
    let mut command = Command::new(detached());
    command
        .args(["sh", "-c", r#"ulimit -f 65536; exec "$@""#, "sh"])
        .arg(airlock());
    command.args([
        "run",
        "--json",
        "--mcp-config",
        config.to_str().unwrap(),
        "--allow",
        "rogue.*",
        "--max-calls",
        "10000",
        "-e",
        code,
    ]);
    home.dress(&mut command);
    let report = start(&mut command, "").wait().expect_code(31).json();
    assert_eq!(report["code"], "journal-unwritable", "{}", report["status"]);
    let recorded = kinds(&entries(&home.journals()[0]))
        .iter()
        .filter(|kind| **kind == "decided")
        .count();
    let heard = fs::read_to_string(log)
        .unwrap()
        .matches("tools/call fine")
        .count();
    assert!(
        heard > 3 && heard <= recorded,
        "{heard} calls reached the server, {recorded} recorded"
    );
}

#[test]
fn fsync_modes_write_same_journal() {
    let home = Home::new();
    for mode in ["always", "writes", "never"] {
        demo(
            &home,
            "await demo.logs_services({}); return 1",
            &["--fsync", mode],
        )
        .expect_code(0);
    }
    for journal in home.journals() {
        assert_eq!(kinds(&entries(&journal)).len(), 5);
    }
    home.verify_all();
}

#[test]
fn state_folder_is_flag_then_variables_then_home() {
    let home = Home::new();
    let holds_a_run = |dir: &str| {
        fs::read_dir(home.path().join(dir).join("runs")).map_or(0, Iterator::count) == 1
    };
    let run = |args: &[&str], vars: &[(&str, &str)]| {
        let mut command = home.airlock([&["run", "-e", "return 1"], args].concat());
        vars.iter().for_each(|(key, dir)| {
            command.env(key, home.path().join(dir));
        });
        start(&mut command, "").wait().expect_code(0);
    };
    let all = [
        ("AIRLOCK_STATE_DIR", "from-variable"),
        ("XDG_STATE_HOME", "xdg"),
    ];
    let flag = home.path().join("from-flag");
    run(&["--state-dir", flag.to_str().unwrap()], &all);
    assert!(holds_a_run("from-flag"));
    run(&[], &all);
    assert!(holds_a_run("from-variable"));
    run(&[], &all[1..]);
    assert!(holds_a_run("xdg/airlock"));
    run(&[], &[]);
    assert!(holds_a_run(".local/state/airlock"));
}

fn wait_for<T>(mut ready: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(since.elapsed() < PATIENCE, "the condition never held");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
