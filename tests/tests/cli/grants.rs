//! Grants from outside: signed in a file, counted over processes, and counted
//! as used by a process that was killed in the middle of using one.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::command::{Home, Started, program, start};
use tests::patience::PATIENCE;

/// The server never answers, so nothing but the signal ends the run.
const SILENT: &str = "return await rogue.silent({ to: 'ops' })";
const USES: u64 = 5;

struct Scene {
    home: Home,
    /// What the server heard.
    log: PathBuf,
    grant: PathBuf,
}

/// A server whose calls are asked about, and a session's grant for five calls of `script`.
fn scene(script: &str) -> Scene {
    let home = Home::new();
    let log = home.path().join("heard.log");
    let rogue = json!({"command": program("rogue-server"), "env": {"ROGUE_LOG": log}});
    let config = json!({"servers": {"rogue": rogue}, "rules": {"ask": ["rogue.*"]}});
    home.write("airlock.toml", toml::to_string(&config).unwrap());
    home.write("script.js", script);
    let mut args = args();
    args.extend(["--approver", "never"]);
    let ended = home.run(&args);
    let told = format!("{}{}", ended.stdout, ended.stderr);
    let file = told.find("[[grant]]").map(|at| &told[at..]);
    let file = file.unwrap_or_else(|| panic!("no grant is proposed\n{ended}"));
    let file = file.split("\n\n").next().unwrap();
    let signed = file
        .replace("approved_by = \"\"", "approved_by = \"Ada\"")
        .replace("uses_max = 1", &format!("uses_max = {USES}"))
        .replace("scope = \"run\"", "scope = \"session\"");
    let grant = home.write("grant.toml", signed);
    Scene { home, log, grant }
}

fn args() -> Vec<&'static str> {
    let words = "run script.js --config airlock.toml --session work --call-timeout 20s";
    words.split(' ').collect()
}

impl Scene {
    fn start(&self) -> Started {
        let mut args = args();
        args.extend([
            "--grant",
            self.grant.to_str().unwrap(),
            "--approver",
            "never",
        ]);
        start(&mut self.home.airlock(&args), "")
    }

    /// Uses of the grant as they stand on disk.
    fn uses(&self) -> u64 {
        let path = self
            .home
            .path()
            .join(".local/state/airlock/sessions/work.state");
        let text = fs::read_to_string(path).unwrap_or_default();
        let state = text.lines().nth(1).unwrap_or_default();
        let state: Value = serde_json::from_str(state).unwrap_or_default();
        state["grants"][0]["grant"]["uses"].as_u64().unwrap_or(0)
    }

    /// Calls that reached the server.
    fn heard(&self) -> u64 {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        text.lines()
            .filter(|line| line.starts_with("tools/call"))
            .count() as u64
    }

    fn newest_journal(&self) -> String {
        let path = self.home.journals().pop().unwrap();
        fs::read_to_string(path).unwrap()
    }
}

#[test]
fn a_use_that_was_counted_when_its_process_was_killed_stays_used_and_is_named() {
    let scene = scene(SILENT);
    for round in 1..=USES {
        let mut run = scene.start();
        let since = Instant::now();
        // The moment that the use is on disk, the process is gone: before the bytes left, or while.
        while scene.uses() < round {
            assert!(
                run.is_running() && since.elapsed() < PATIENCE,
                "round {round}"
            );
        }
        run.signal(Signal::KILL);
        assert_eq!(run.wait().code, None);
        assert_eq!(
            scene.uses(),
            round,
            "a use was counted twice, or given back"
        );
        assert!(scene.heard() <= round, "a call left without a use");
        let journal = scene.newest_journal();
        assert!(journal.contains("\"kind\":\"grant-claimed\""), "{journal}");
        let id = scene.home.journals().pop().unwrap();
        let id = id.file_stem().unwrap().to_str().unwrap().to_owned();
        let verified = scene.home.run(["runs", "verify", &id, "--json"]);
        let verified = verified.expect_code(0).json();
        let doubts = [&verified["in_doubt"], &verified["uses_in_doubt"]];
        let named: usize = doubts.iter().map(|it| it.as_array().unwrap().len()).sum();
        assert_eq!(named, 1, "the call, or the use that it was for: {verified}");
    }
    let last = scene.start().wait().expect_code(22);
    assert!(last.stderr.contains("[[grant]]"), "{last}");
    assert_eq!(scene.uses(), USES, "all five are spent");
    // The last that was killed may be heard as late as now.
    assert!(scene.heard() <= USES, "a call left without a use");
    scene.home.verify_all();
}

#[test]
fn a_grant_without_a_name_is_none_and_one_that_was_revoked_stays_so() {
    let scene = scene("return await rogue.fine({})");
    let signed = fs::read_to_string(&scene.grant).unwrap();
    fs::write(&scene.grant, signed.replace("\"Ada\"", "\"\"")).unwrap();
    let ended = scene.start().wait();
    assert!(
        ended.code != Some(0) && ended.stderr.contains("approved_by"),
        "{ended}"
    );
    fs::write(&scene.grant, signed).unwrap();
    scene.start().wait().expect_code(0);
    assert_eq!((scene.uses(), scene.heard()), (1, 1));
    let listed = scene.home.run(["grants", "list", "--json"]).expect_code(0);
    let id = listed.json()["grants"][0]["grant"]["id"].clone();
    let id = id.as_str().unwrap().to_owned();
    scene.home.run(["grants", "revoke", &id]).expect_code(0);
    scene.start().wait().expect_code(22);
    assert_eq!(
        (scene.uses(), scene.heard()),
        (1, 1),
        "the same file gives nothing any more"
    );
}
