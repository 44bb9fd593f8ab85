//! Tests grants: signed in a file, counted across processes, and counted as used if a process is
//! killed during the use.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::command::{Home, RunningCommand, program, start};
use tests::patience::PATIENCE;
use tests::stdio_host::StdioHost;

/// A script that ends only by a signal, because the server never answers.
const SILENT: &str = "return await rogue.silent({ to: 'ops' })";
const USES: u64 = 5;

struct Scene {
    home: Home,
    /// The file in which the server logs its calls.
    log: PathBuf,
    grant: PathBuf,
}

/// Sets up a server whose calls need approval, and a session grant for five calls of `script`.
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
    fn start(&self) -> RunningCommand {
        let mut args = args();
        args.extend([
            "--grant",
            self.grant.to_str().unwrap(),
            "--approver",
            "never",
        ]);
        start(&mut self.home.airlock(&args), "")
    }

    /// Returns the uses of the grant stored on disk.
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

    /// Returns the number of calls that reached the server.
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
fn counted_use_survives_killed_process() {
    let scene = scene(SILENT);
    for round in 1..=USES {
        let mut run = scene.start();
        let since = Instant::now();
        // Kills the process as soon as the use is on disk, before or while the call is sent.
        while scene.uses() < round {
            assert!(
                run.is_running() && since.elapsed() < PATIENCE,
                "round {round}"
            );
        }
        run.signal(Signal::KILL);
        assert_eq!(run.wait().code, None);
        assert_eq!(scene.uses(), round, "a use was counted twice or returned");
        assert!(scene.heard() <= round, "a call was sent without a use");
        let journal = scene.newest_journal();
        assert!(journal.contains("\"kind\":\"grant-claimed\""), "{journal}");
        let id = scene.home.journals().pop().unwrap();
        let id = id.file_stem().unwrap().to_str().unwrap().to_owned();
        let verified = scene.home.run(["runs", "verify", &id, "--json"]);
        let verified = verified.expect_code(26).json();
        let doubts = [&verified["in_doubt"], &verified["uses_in_doubt"]];
        let named: usize = doubts.iter().map(|it| it.as_array().unwrap().len()).sum();
        assert_eq!(named, 1, "neither the call nor its use: {verified}");
    }
    let last = scene.start().wait().expect_code(22);
    assert!(last.stderr.contains("[[grant]]"), "{last}");
    assert_eq!(scene.uses(), USES, "some uses are left");
    // The call of the last killed process may arrive only now.
    assert!(scene.heard() <= USES, "a call was sent without a use");
    scene.home.verify_all();
}

#[test]
fn unnamed_grant_is_refused_and_revoked_one_stays_revoked() {
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
        "the same file gave more uses"
    );
}

#[test]
fn report_with_signed_grants_is_taken_as_a_grant_file() {
    let scene = scene("return await rogue.fine({})");
    let mut args = self::args();
    args.extend(["--approver", "never", "--json"]);
    let mut report = scene.home.run(&args).expect_code(22).json();
    let run = |report: &Value| {
        let file = scene.home.write("report.json", report.to_string());
        let mut args = self::args();
        args.extend(["--grant", file.to_str().unwrap(), "--approver", "never"]);
        scene.home.run(&args)
    };
    let unsigned = run(&report).expect_code(30);
    assert!(unsigned.stderr.contains("`by` of the grant"), "{unsigned}");
    report["grants_needed"][0]["by"] = "Ada".into();
    run(&report).expect_code(0);
    assert_eq!(scene.heard(), 1);
    report["grants_needed"][0]["expires_at_ms"] = 1.into();
    let file = scene.home.write("old.json", report.to_string());
    scene.home.write(
        "policies/all.cedar",
        "permit(principal, action, resource);\n",
    );
    let check = [
        "policy",
        "check",
        "policies",
        "--config",
        "airlock.toml",
        "--grant",
    ];
    let checked = scene
        .home
        .run([&check[..], &[file.to_str().unwrap()]].concat());
    assert!(
        checked.to_string().contains("the grant has expired"),
        "{checked}"
    );
}

/// A person removes a label from a session. Later runs start without it, and their journals and
/// reports name the person.
#[test]
fn declassified_session_is_recorded_and_shown() {
    let home = Home::new();
    let config = "[labels.demo]\nreads = [\"private:logs\", \"untrusted\"]\nwrites = []\n\
                  [labels.demo.tools.tickets_list]\nreads = []\n";
    home.write("airlock.toml", config);
    let run = |code: &str| {
        let args = ["run", "-e", code, "--demo", "--config", "airlock.toml"];
        let more = ["--allow", "demo.*", "--session", "s", "--json"];
        home.run([&args[..], &more[..]].concat())
            .expect_code(0)
            .json()
    };
    let declassify = |labels: &[&str], by: &str| {
        let args = ["sessions", "declassify", "s"];
        home.run([&args, labels, &["--by", by]].concat())
    };
    declassify(&["private"], "Ann").expect_code(2);
    let read = run("await demo.logs_query({}); return 1");
    let all = json!(["private", "private:logs", "untrusted"]);
    assert_eq!(read["flow"]["labels"], all, "{read}");
    declassify(&["secret"], "Ann").expect_code(2);
    declassify(&["private"], " ").expect_code(2);
    let said = declassify(&["private"], "Ann Example")
        .expect_code(0)
        .stdout;
    let expected = "labels of s: untrusted (before: private, private:logs, untrusted)\n";
    assert_eq!(said, expected);
    let later = run("await demo.tickets_list({}); return 1");
    assert_eq!(later["flow"]["labels"], json!(["untrusted"]), "{later}");
    assert_eq!(
        later["flow"]["declassified"][0]["by"], "Ann Example",
        "{later}"
    );
    let call = format!("{}:1", later["run"].as_str().unwrap());
    let explained = home.run(["policy", "explain", &call]).expect_code(0).stdout;
    assert!(
        explained.contains(" session: Ann Example declassified private at "),
        "{explained}"
    );
    // Data that a later run reads is labelled again.
    let again = run("await demo.logs_query({}); return 1");
    assert_eq!(again["flow"]["labels"], all, "{again}");
    let listed = home.run(["sessions", "list"]).expect_code(0).stdout;
    let begin = "s  labels: private, private:logs, untrusted; calls: 3, ";
    assert!(listed.starts_with(begin), "{listed}");
    assert!(
        listed.contains("; Ann Example declassified private at "),
        "{listed}"
    );
    let listed = home
        .run(["sessions", "list", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(listed["sessions"][0]["labels"], all, "{listed}");
    declassify(&["private", "untrusted", "--counts"], "Ann").expect_code(0);
    let listed = home.run(["sessions", "list"]).expect_code(0).stdout;
    assert!(
        listed.starts_with("s  labels: none; Ann Example"),
        "{listed}"
    );
    assert!(listed.contains("Ann declassified private, untrusted and reset the counts"));
}

/// `airlock serve` takes the grants that `airlock run --approver never` printed for the same script
/// and rules. A grant of scope `run` gives its uses to each run.
#[test]
fn serve_uses_grants_of_file() {
    const CODE: &str = "return (await demo.tickets_create({ title: 'x' })).id > 0";
    let home = Home::new();
    let never = ["--demo", "--ask", "demo.*", "--approver", "never"];
    let ended = home.run([&["run", "-e", CODE], &never[..]].concat());
    let told = format!("{}{}", ended.stdout, ended.stderr);
    assert!(told.contains("at least these grants"), "{told}");
    let file = told.find("[[grant]]").map(|at| &told[at..]);
    let file = file.unwrap_or_else(|| panic!("{ended}"));
    let file = file.split("\n\n").next().unwrap();
    let signed = file.replace("approved_by = \"\"", "approved_by = \"Ada\"");
    home.write("grant.toml", signed);
    let run = |more: &[&str]| {
        let args = ["--demo", "--ask", "demo.*", "--disclosure", "full"];
        let mut host = StdioHost::start(&mut home.serve([&args[..], more].concat()), &json!({}));
        [(); 2].map(|()| host.call("run_script", &json!({"code": CODE})))
    };
    for result in run(&["--grant", "grant.toml"]) {
        assert_eq!(result["structuredContent"]["value"], true, "{result}");
    }
    for result in run(&[]) {
        assert_eq!(result["isError"], true, "{result}");
    }
}
