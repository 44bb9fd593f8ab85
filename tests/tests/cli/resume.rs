//! Runs that resume: no call that has happened is made again, whatever ended the run before.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::binary::airlock;
use tests::command::{CommandOutput, Home, detached, start};
use tests::counting;
use tests::patience::wait_until;
use tests::stdio_host::StdioHost;

/// A home with the counting server.
struct Stage {
    home: Home,
    config: PathBuf,
}

impl Stage {
    fn new() -> Self {
        let home = Home::new();
        let config = home.path().join("airlock.toml");
        let stage = Self { home, config };
        stage.serve_from("server.sh", "");
        stage
    }

    /// Configures the server's program, and the descriptions of its tools.
    fn serve_from(&self, program: &str, description: &str) {
        fs::write(
            &self.config,
            counting::config(&self.home, program, description),
        )
        .unwrap();
    }

    fn args<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let config = self.config.to_str().unwrap();
        let mut args = vec!["run", "--json", "--config", config, "--allow", "w.*"];
        args.extend(more);
        args
    }

    fn run(&self, more: &[&str]) -> CommandOutput {
        self.home.run(self.args(more))
    }

    fn made(&self) -> Vec<String> {
        counting::made(&self.home)
    }

    /// Returns the id of the newest run.
    fn newest(&self) -> String {
        let path = self.home.journals().pop().unwrap();
        path.file_stem().unwrap().to_str().unwrap().to_owned()
    }

    /// Runs a script, and kills airlock when the server has got so many calls.
    fn killed_after(&self, calls: usize, script: &str) -> String {
        let running = start(&mut self.home.airlock(self.args(&["-e", script])), "");
        wait_until(|| self.made().len() == calls);
        running.signal(Signal::KILL);
        let _ = running.wait();
        self.newest()
    }

    fn chain_file(&self, root: &str) -> PathBuf {
        let state = self.home.runs_dir();
        state.parent().unwrap().join(format!("chains/{root}.jsonl"))
    }
}

fn run_of(output: &CommandOutput) -> String {
    output.json()["run"].as_str().unwrap().to_owned()
}

/// Returns how many calls were reused, made, doubtful and left over.
fn counts(report: &Value) -> [u64; 4] {
    let number = |name: &str| report[name].as_u64().unwrap_or_default();
    let length = |name: &str| report[name].as_array().map_or(0, Vec::len) as u64;
    [
        number("reused"),
        number("ran"),
        length("doubtful"),
        length("left_over"),
    ]
}

const FOUR: &str = "const made = [];
for (const title of ['c0', 'c1', 'c2-hang', 'c3']) made.push(await w.create({title}));
return made;";

#[test]
fn kill_in_third_of_four_calls_then_resolve_makes_each_call_once() {
    let stage = Stage::new();
    let run = stage.killed_after(3, FOUR);
    let call = format!("{run}:3");

    // Without a statement, the call that may have happened is not made again.
    let blocked = stage.run(&["--resume", &run]).expect_code(20);
    let report = blocked.json();
    assert_eq!(report["code"], "outcome-unknown", "{blocked}");
    assert_eq!(
        report["indeterminate"][0]["at"],
        json!({"run": run, "call": 3}),
        "{blocked}"
    );
    assert_eq!(stage.made(), ["c0", "c1", "c2-hang"]);

    let waiting = stage.home.run(["runs", "waiting", "--json"]).expect_code(0);
    let waiting = waiting.json();
    assert_eq!(
        waiting["waiting"][0]["indeterminate"][0]["call"],
        call.as_str(),
        "{waiting}"
    );
    let resolve = [
        "runs",
        "resolve",
        &call,
        "happened",
        "--result",
        "\"made c2\"",
    ];
    stage.home.run(resolve).expect_code(0);

    let newest = run_of(&blocked);
    let resumed = stage.run(&["--resume", &newest]).expect_code(0);
    assert_eq!(stage.made(), ["c0", "c1", "c2-hang", "c3"]);
    assert_eq!(resumed.json()["value"][2], "made c2", "{resumed}");
    let waiting = stage
        .home
        .run(["runs", "waiting", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(waiting["waiting"], json!([]), "{waiting}");
    stage.home.verify_all();
}

#[test]
fn call_that_did_not_happen_is_made_when_resumed() {
    let stage = Stage::new();
    let run = stage.killed_after(1, "return await w.create({title: 'x-hang'});");
    let call = format!("{run}:1");
    let wrong = ["runs", "resolve", &call, "did-not-happen", "--result", "1"];
    stage.home.run(wrong).expect_code(2);
    stage
        .home
        .run(["runs", "resolve", &format!("{run}:2"), "happened"])
        .expect_code(24);
    stage
        .home
        .run(["runs", "resolve", &run, "happened"])
        .expect_code(2);
    stage
        .home
        .run(["runs", "resolve", &call, "did-not-happen"])
        .expect_code(0);
    // The server never answers this title, so the run ends with the time limit of the call.
    let resumed = stage
        .run(&["--resume", &run, "--call-timeout", "500ms"])
        .expect_code(20);
    assert_eq!(resumed.json()["code"], "outcome-unknown", "{resumed}");
    assert_eq!(stage.made(), ["x-hang", "x-hang"]);
}

#[test]
fn stated_result_fits_output_schema_and_can_be_corrected() {
    let stage = Stage::new();
    let server = stage.home.path().join("server.sh");
    let listed = fs::read_to_string(&server).unwrap();
    let schema =
        json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]});
    let members = format!(r#""outputSchema":{schema},"inputSchema""#);
    fs::write(&server, listed.replace(r#""inputSchema""#, &members)).unwrap();
    let run = stage.killed_after(1, "return await w.create({title: 'x-hang'});");
    let call = format!("{run}:1");
    let resolve = |more: &[&str]| {
        let mut args = vec!["runs", "resolve", &call];
        args.extend(more);
        stage.home.run(args)
    };
    resolve(&["happened", "--result", r#"{"id":"one"}"#])
        .expect_code(2)
        .expect_stderr("the stated result does not fit the output schema");
    resolve(&["did-not-happen"]).expect_code(0);
    resolve(&["happened", "--result", r#"{"id":1}"#])
        .expect_code(0)
        .expect_stderr("replaces the earlier statement: did not happen");
    let resumed = stage.run(&["--resume", &run]).expect_code(0);
    assert_eq!(resumed.json()["value"], json!({"id": 1}), "{resumed}");
    // A correction also counts after a run has used the statement.
    resolve(&["happened", "--result", r#"{"id":2}"#]).expect_code(0);
    let resumed = stage.run(&["--resume", &run_of(&resumed)]).expect_code(0);
    assert_eq!(resumed.json()["value"], json!({"id": 2}), "{resumed}");
    assert_eq!(stage.made(), ["x-hang"]);
}

#[test]
fn outcomes_of_calls_in_flight_are_recorded_when_a_call_fails() {
    let stage = Stage::new();
    let script = "const titles = [1, 2, 3, 4, 5, 6, 7].map((n) => 'hold' + n);
await Promise.all([...titles, 'no'].map((title) => w.create({title})));";
    let failed = stage.run(&["-e", script]).expect_code(20);
    let report = failed.json();
    let calls = report["calls"].as_array().unwrap();
    let returned = calls.iter().filter(|call| call["outcome"] == "returned");
    assert_eq!(returned.count(), 7, "{failed}");
    // The failed call may be made again, and the others are not.
    let corrected = script.replace("'no'", "'yes'");
    let resumed = stage.run(&["--resume", &run_of(&failed), "-e", &corrected]);
    assert_eq!(resumed.json()["reused"], 7, "{resumed}");
    assert_eq!(
        stage
            .made()
            .iter()
            .filter(|title| title.starts_with("hold"))
            .count(),
        7
    );
}

#[test]
fn retry_of_call_without_answer_is_made_once() {
    let stage = Stage::new();
    let script = "for (let n = 0; n < 3; n++) {
  try { return await w.create({title: 'late'}); } catch {}
}";
    let output = stage.run(&["--call-timeout", "500ms", "-e", script]);
    assert_eq!(stage.made(), ["late"], "{output}");
    let resumed = stage.run(&["--resume", &run_of(&output)]);
    assert_eq!(stage.made(), ["late"], "{resumed}");
}

/// An approver that gives one answer to every question.
fn approver(home: &Home, answer: &str) -> String {
    const SCRIPT: &str = r#"q=$(cat)
nonce=$(printf %s "$q" | sed 's/.*"nonce":"\([0-9a-f]*\)".*/\1/')
printf '%s\n' "$q" >> LOG
printf '{"nonce":"%s",%s}' "$nonce" 'ANSWER'
"#;
    let log = home.path().join("questions.log").display().to_string();
    let script = SCRIPT.replace("LOG", &log).replace("ANSWER", answer);
    format!("command:sh {}", home.write("approver.sh", script).display())
}

#[test]
fn person_states_during_the_run_what_became_of_a_call() {
    const RETRIES: &str = "const codes = [];
for (let n = 0; n < 3; n++) {
  try { return await w.create({title: 'late'}); } catch (error) { codes.push(error.code); }
}
return codes;";
    let unknown = "outcome-unknown";
    let seen = r#""answer":"happened","result":"\"seen\"""#;
    let no_json = r#""answer":"happened","result":"{no""#;
    // The call happened, so trying again does not make it again.
    let no_result = json!([unknown, "result-invalid", unknown]);
    for (answer, states, made, value) in [
        (seen, true, 1, json!("seen")),
        (r#""answer":"happened""#, true, 1, no_result),
        (
            r#""answer":"did-not-happen""#,
            true,
            3,
            json!([unknown, unknown, unknown]),
        ),
        (
            r#""answer":"refuse""#,
            false,
            1,
            json!([unknown, unknown, unknown]),
        ),
        // No other answer allows a call whose equal may have happened.
        (
            r#""answer":"allow-once""#,
            false,
            1,
            json!([unknown, unknown, unknown]),
        ),
        (no_json, false, 1, json!([unknown, unknown, unknown])),
    ] {
        let stage = Stage::new();
        let approver = approver(&stage.home, answer);
        let args = ["--call-timeout", "500ms", "--approver", &approver];
        let output = stage.run(&[&args[..], &["-e", RETRIES]].concat());
        let output = output.expect_code(0);
        assert_eq!(output.json()["value"], value, "{answer}: {output}");
        assert_eq!(stage.made().len(), made, "{answer}");
        stage.home.verify_all();
        let run = run_of(&output);
        let questions = fs::read_to_string(stage.home.path().join("questions.log")).unwrap();
        let about = format!("\"outcome_of\":\"{run}:1\"");
        assert!(questions.contains(&about), "{questions}");
        let shown = stage.home.run(["runs", "show", &run]).expect_code(0).stdout;
        let user = rustix::process::geteuid().as_raw();
        let stated = format!("command sh, user id {user} stated that call {run}:1");
        assert_eq!(shown.contains(&stated), states, "{shown}");
        let reused = format!("a person stated what became of call {run}:1");
        assert_eq!(shown.contains(&reused), made == 1 && states, "{shown}");
    }
}

#[test]
fn statement_of_a_run_counts_for_the_runs_that_resume_it() {
    let stage = Stage::new();
    let run = stage.killed_after(1, "return await w.create({title: 'x-hang'});");
    let approver = approver(&stage.home, r#""answer":"happened","result":"\"seen\"""#);
    let failing = "return (await w.create({title: 'x-hang'})).missing.length;";
    let args = ["--resume", &run, "--approver", &approver, "-e", failing];
    let newest = run_of(&stage.run(&args).expect_code(20));
    // No person is there to be asked, and the result is the stated one.
    let script = "return await w.create({title: 'x-hang'});";
    let resumed = stage.run(&["--resume", &newest, "-e", script]);
    assert_eq!(resumed.expect_code(0).json()["value"], "seen");
    assert_eq!(stage.made(), ["x-hang"]);
    stage.home.verify_all();
}

const BASE: &str = "const a = await w.create({title: 'a'});
const b = await w.create({title: 'b'});
const r = await w.read({title: 'r'});
const c = await w.create({title: 'c'});
return [a, b, r, c, a.missing.length];";

#[test]
fn edited_scripts_reuse_exact_calls() {
    for (name, edited, expected, more) in [
        (
            "fixed property",
            BASE.replace("a.missing.length", "1"),
            [4, 0, 0, 0],
            &[][..],
        ),
        (
            "all at once",
            "return await Promise.all([w.create({title: 'a'}), w.create({title: 'b'}), \
             w.read({title: 'r'}), w.create({title: 'c'})]);"
                .into(),
            [4, 0, 0, 0],
            &[],
        ),
        (
            "reordered",
            "for (const title of ['c', 'b', 'a']) await w.create({title}); \
             return await w.read({title: 'r'});"
                .into(),
            [4, 0, 0, 0],
            &[],
        ),
        (
            "extra read",
            format!(
                "await w.read({{title: 'q'}});\n{}",
                BASE.replace("a.missing.length", "1")
            ),
            [4, 1, 0, 0],
            &["q"],
        ),
        (
            "rewritten title",
            BASE.replace("'b'", "'B'"),
            [1, 0, 1, 3],
            &[],
        ),
        (
            "removed write",
            BASE.replace("const b = await w.create({title: 'b'});", "const b = 1;")
                .replace("a.missing.length", "1"),
            [3, 0, 0, 1],
            &[],
        ),
        (
            "write after all others",
            BASE.replace("return [", "await w.create({title: 'd'}); return [")
                .replace("a.missing.length", "1"),
            [4, 1, 0, 0],
            &["d"],
        ),
        (
            "write before all others",
            format!("await w.create({{title: 'd'}});\n{BASE}"),
            [0, 0, 1, 4],
            &[],
        ),
        (
            "same write once more",
            BASE.replace("return [", "await w.create({title: 'a'}); return [")
                .replace("a.missing.length", "1"),
            [4, 1, 0, 0],
            &["a"],
        ),
        (
            "function with try",
            "const go = async (title) => { try { return await w.create({title}); } catch (e) \
             { throw e; } };\nawait go('a'); await go('b'); await w.read({title: 'r'}); \
             return await go('c');"
                .into(),
            [4, 0, 0, 0],
            &[],
        ),
        (
            "types",
            BASE.replace("const a =", "const a: any =")
                .replace("a.missing.length", "1"),
            [4, 0, 0, 0],
            &[],
        ),
        (
            "console and names",
            BASE.replace("const r", "console.log('read'); const r")
                .replace("a.missing.length", "1"),
            [4, 0, 0, 0],
            &[],
        ),
    ] {
        let stage = Stage::new();
        let failed = stage.run(&["-e", BASE]).expect_code(20);
        let resumed = stage.run(&["--resume", &run_of(&failed), "-e", &edited]);
        assert_eq!(counts(&resumed.json()), expected, "{name}: {resumed}");
        let made: Vec<_> = ["a", "b", "r", "c"].iter().chain(more).copied().collect();
        assert_eq!(stage.made(), made, "{name}: {resumed}");
    }
}

#[test]
fn old_reads_are_read_again() {
    let stage = Stage::new();
    let failed = stage.run(&["-e", BASE]).expect_code(20);
    let edited = BASE.replace("a.missing.length", "1");
    let fresh = [
        "--resume",
        &run_of(&failed),
        "--reads-max-age",
        "0s",
        "-e",
        &edited,
    ];
    let resumed = stage.run(&fresh).expect_code(0);
    let report = resumed.json();
    assert_eq!(
        (&report["reused"], &report["refreshed"][0]["changed"]),
        (&json!(3), &json!(false)),
        "{resumed}"
    );
    assert_eq!(stage.made(), ["a", "b", "r", "c", "r"]);
    stage
        .run(&["--reads-max-age", "1m", "-e", "1"])
        .expect_code(2);
}

#[test]
fn dry_run_lists_recorded_calls_and_starts_nothing() {
    let stage = Stage::new();
    let run = stage.killed_after(3, FOUR);
    // A server that cannot be started would end the command with another code.
    fs::write(
        &stage.config,
        "[servers.w]\ncommand = \"/does/not/exist\"\n",
    )
    .unwrap();
    let listed = stage.run(&["--resume", &run, "--dry-run"]).expect_code(0);
    let report = listed.json();
    let would: Vec<_> = report["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["would"])
        .collect();
    assert_eq!(would, ["reused", "reused", "indeterminate"], "{listed}");
    let config = stage.config.to_str().unwrap();
    let text = stage
        .home
        .run(["run", "--config", config, "--resume", &run, "--dry-run"]);
    let text = text.expect_code(0).stdout;
    assert!(text.contains(&format!("{run}:3  indeterminate")), "{text}");
    assert_eq!(stage.home.journals().len(), 1);
}

#[test]
fn server_at_another_target_reuses_nothing() {
    let stage = Stage::new();
    let failed = stage.run(&["-e", BASE]).expect_code(20);
    stage.serve_from("moved.sh", "");
    let resumed = stage.run(&["--resume", &run_of(&failed)]);
    let report = resumed.json();
    assert_eq!(report["code"], "outcome-unknown", "{resumed}");
    assert_eq!(
        report["reused"].as_u64().unwrap_or_default(),
        0,
        "{resumed}"
    );
    assert_eq!(stage.made(), ["a", "b", "r", "c"]);
}

#[test]
fn changed_credential_blocks_reuse_without_same_server() {
    const TOKENS: [&str; 2] = ["first-canary-51d0c77a", "second-canary-9e3b20f4"];
    let stage = Stage::new();
    let settings = fs::read_to_string(&stage.config).unwrap();
    let with_token = |token: &str| {
        let settings = format!("{settings}env = {{ API_TOKEN = \"{token}\" }}\n");
        fs::write(&stage.config, settings).unwrap();
    };
    with_token(TOKENS[0]);
    let failed = run_of(&stage.run(&["-e", BASE]).expect_code(20));
    with_token(TOKENS[1]);
    let edited = BASE.replace("a.missing.length", "1");
    let blocked = stage.run(&["--resume", &failed, "-e", &edited]);
    let report = blocked.expect_code(20).json();
    assert_eq!(
        (&report["code"], counts(&report)),
        (&json!("outcome-unknown"), [0, 0, 0, 4]),
        "{report}"
    );
    let blocked = report["run"].as_str().unwrap();
    let same = ["--resume", blocked, "--same-server", "w"];
    let resumed = stage.run(&[&same[..], &["-e", &edited]].concat());
    assert_eq!(counts(&resumed.expect_code(0).json()), [4, 0, 0, 0]);
    assert_eq!(stage.made(), ["a", "b", "r", "c"]);
    let unknown = ["--resume", &stage.newest(), "--same-server", "x"];
    stage
        .run(&unknown)
        .expect_code(2)
        .expect_stderr("its servers are: w");
    for journal in stage.home.journals() {
        let journal = fs::read_to_string(journal).unwrap();
        assert!(
            TOKENS.iter().all(|token| !journal.contains(token)),
            "{journal}"
        );
    }
}

#[test]
fn tool_file_that_gains_an_example_repeats_no_write() {
    let stage = Stage::new();
    let file = |examples: Value| {
        let file = json!({"name": "create", "examples": examples});
        stage.home.write("tools/w/create.json", file.to_string());
    };
    let run = |more: &[&str]| stage.run(&[&["--descriptions", "tools"], more].concat());
    file(json!([]));
    let failed = run_of(&run(&["-e", BASE]).expect_code(20));
    file(json!([{"input": {"title": "a"}}]));
    let resumed = run(&["--resume", &failed]);
    assert_eq!(resumed.json()["code"], "outcome-unknown", "{resumed}");
    assert_eq!(stage.made(), ["a", "b", "r", "c"]);
}

#[test]
fn policy_counts_reused_calls() {
    let stage = Stage::new();
    let rule = "@id(\"few\") @owner(\"desk\") @reason(\"two are enough\")
permit(principal, action == Action::\"w.create\", resource) when { context.counts.calls_run < 2 };";
    stage.home.write("rules/a.cedar", rule);
    let run = |more: &[&str]| stage.run(&[&["--policy", "rules"], more].concat());
    let two = "await w.create({title: 'a'}); await w.create({title: 'b'});";
    let failed = run(&["-e", &format!("{two} throw new Error('x');")]).expect_code(20);
    let third = format!("{two} await w.create({{title: 'c'}});");
    let resumed = run(&["--resume", &run_of(&failed), "-e", &third]);
    let report = resumed.json();
    assert_eq!(
        (&report["code"], &report["reused"]),
        (&json!("denied"), &json!(2)),
        "{resumed}"
    );
    assert_eq!(stage.made(), ["a", "b"]);
}

/// A script that does its best to make the calls whose outcomes are unknown once more.
const STUBBORN: &str = "const codes = new Set();
const again = (args) => w.create(args).catch((error) => codes.add(error.code));
for (let n = 0; n < 5; n++) await again({title: 'x-hang'});
await Promise.allSettled([1, 2, 3].map(() => again({title: 'x-hang'})));
for (const name of Object.keys(w)) if (name === 'create') await again(JSON.parse('{\"title\":\"x-hang\"}'));
await again({title: 'x-hang', stated: 'happened'});
await again({title: 'x-hang', stated: 'did-not-happen'});
return [...codes];";

#[test]
fn script_cannot_repeat_indeterminate_call() {
    let stage = Stage::new();
    let mut run = stage.killed_after(1, "return await w.create({title: 'x-hang'});");
    for _ in 0..3 {
        let resumed = stage
            .run(&["--resume", &run, "-e", STUBBORN])
            .expect_code(0);
        let report = resumed.json();
        // A call with other arguments is doubtful, and no person is there to be asked.
        let codes = json!(["outcome-unknown", "unanswered"]);
        assert_eq!(report["value"], codes, "{resumed}");
        assert_eq!(
            report["indeterminate"].as_array().unwrap().len(),
            1,
            "{resumed}"
        );
        run = run_of(&resumed);
    }
    assert_eq!(stage.made(), ["x-hang"]);
}

#[test]
fn host_tools_cannot_state_an_outcome() {
    let stage = Stage::new();
    let run = stage.killed_after(1, "return await w.create({title: 'x-hang'});");
    let call = format!("{run}:1");
    let config = stage.config.to_str().unwrap();
    let serve = ["--config", config, "--allow", "w.*"];
    let mut host = StdioHost::start(&mut stage.home.serve(serve), &json!({}));
    let claim = json!({"call": call, "stated": "did-not-happen"});
    for (tool, arguments) in [
        ("resume_run", json!({"run": run})),
        ("resume_run", json!({"run": run, "statements": [claim]})),
        ("run_script", json!({"code": "return 1", "resume": run})),
        (
            "run_script",
            json!({"code": "return 1", "statements": [claim]}),
        ),
        ("runs_resolve", claim.clone()),
        ("resolve", claim.clone()),
    ] {
        let id = host.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        let answer = host.wait_for(|it| it["id"] == id && it["method"].is_null());
        let is_refused = answer["error"].is_object() || answer["result"]["isError"] == true;
        assert!(is_refused, "{tool}: {answer}");
    }
    drop(host);
    let waiting = stage.home.run(["runs", "waiting", "--json"]).expect_code(0);
    let waiting = waiting.json();
    let unknown = &waiting["waiting"][0]["indeterminate"][0]["call"];
    assert_eq!(unknown, call.as_str(), "{waiting}");
    assert_eq!(stage.made(), ["x-hang"]);
}

#[test]
fn changed_description_repeats_no_write() {
    let stage = Stage::new();
    let failed = stage.run(&["-e", BASE]).expect_code(20);
    stage.serve_from("server.sh", "Creates it.");
    let resumed = stage.run(&["--resume", &run_of(&failed)]);
    assert_eq!(resumed.json()["code"], "outcome-unknown", "{resumed}");
    assert_eq!(stage.made(), ["a", "b", "r", "c"]);
}

#[test]
fn only_newest_run_is_resumed() {
    let stage = Stage::new();
    let first = run_of(&stage.run(&["-e", BASE]).expect_code(20));
    let second = run_of(&stage.run(&["--resume", &first]).expect_code(20));
    let refused = stage.run(&["--resume", &first]).expect_code(24);
    assert!(refused.stderr.contains(&second), "{refused}");
    let running = "return await w.create({title: 'hang'});";
    let process = start(&mut stage.home.airlock(stage.args(&["-e", running])), "");
    wait_until(|| stage.made().iter().any(|title| title == "hang"));
    stage
        .run(&["--resume", &stage.newest()])
        .expect_code(24)
        .expect_stderr("still running");
    process.signal(Signal::KILL);
    let _ = process.wait();
    stage.run(&["--resume", "zz"]).expect_code(2);
}

#[test]
fn altered_and_foreign_files_are_refused() {
    let stage = Stage::new();
    let first = run_of(&stage.run(&["-e", BASE]).expect_code(20));
    let second = run_of(&stage.run(&["--resume", &first]).expect_code(20));
    let other = run_of(&stage.run(&["-e", BASE]).expect_code(20));
    let journal = |run: &str| stage.home.runs_dir().join(format!("{run}.jsonl"));
    let check = |path: &Path, altered: Option<String>, run: &str, code: i32| {
        let before = fs::read_to_string(path).ok();
        match altered {
            Some(text) => fs::write(path, text).unwrap(),
            None => fs::remove_file(path).unwrap(),
        }
        let refused = stage.run(&["--resume", run]);
        assert_eq!(refused.code, Some(code), "{}: {refused}", path.display());
        match before {
            Some(text) => fs::write(path, text).unwrap(),
            None => fs::remove_file(path).unwrap(),
        }
    };
    let text = |path: &Path| fs::read_to_string(path).unwrap();
    let chain = stage.chain_file(&first);
    let whole = text(&journal(&first));
    check(
        &journal(&first),
        Some(whole.replace("made b", "made x")),
        &second,
        31,
    );
    // The end was cut off, so that calls would look as if they were never made.
    let cut: String = whole.split_inclusive('\n').take(3).collect();
    check(&journal(&first), Some(cut.clone()), &second, 31);
    let last: String = text(&journal(&second))
        .split_inclusive('\n')
        .take(1)
        .collect();
    check(&journal(&second), Some(last), &second, 31);
    check(&journal(&second), Some(text(&journal(&other))), &second, 31);
    check(&journal(&first), None, &second, 31);
    check(
        &chain,
        Some(text(&chain).replace(&second, &other)),
        &second,
        31,
    );
    check(&chain, Some(String::new()), &second, 24);
    // A lost file does not make the first run resumable again.
    check(&chain, None, &first, 31);
    check(&stage.chain_file(&other), Some(text(&chain)), &other, 31);
    let itself = text(&chain).replace(
        &format!("\"run\":\"{first}\""),
        &format!("\"run\":\"{second}\""),
    );
    check(&chain, Some(itself), &second, 31);
    assert_eq!(stage.made().len(), 8);
    stage.run(&["--resume", &second]).expect_code(20);
    assert_eq!(stage.made().len(), 8);
}

#[test]
fn waiting_names_journals_that_are_damaged_or_missing() {
    let stage = Stage::new();
    let later = ["--ask", "w.create", "--approver", "later"];
    let script = "return await w.create({title: 'a'});";
    let paused = stage.run(&[&later[..], &["-e", script]].concat());
    let run = run_of(&paused.expect_code(23));
    // A run that is done waits for nothing, and nothing is lost with its journal.
    let done = run_of(&stage.run(&["-e", "return 1"]).expect_code(0));
    let path = |run: &str| stage.home.runs_dir().join(format!("{run}.jsonl"));
    fs::remove_file(path(&done)).unwrap();
    stage.home.run(["runs", "waiting"]).expect_code(0);
    let whole = fs::read_to_string(path(&run)).unwrap();
    let check = |expected: &str| {
        let found = stage.home.run(["runs", "waiting"]).expect_code(31);
        assert!(found.stderr.contains(expected), "{expected}\n{found}");
        assert!(found.stderr.contains(&run), "{found}");
        let none = "no run waits for a person";
        assert!(!found.stderr.contains(none), "{found}");
        let json = stage.home.run(["runs", "waiting", "--json"]);
        let json = json.expect_code(31).json();
        assert_eq!(json["problems"].as_array().unwrap().len(), 1, "{json}");
    };
    fs::write(path(&run), whole.replace("w.create", "w.creata")).unwrap();
    check("does not verify");
    fs::remove_file(path(&run)).unwrap();
    check(&format!("the journal of run {run} is missing"));
    let verified = stage.home.run(["runs", "verify", &run]).expect_code(26);
    for expected in ["is missing", "put back a copy of the file"] {
        assert!(verified.stderr.contains(expected), "{expected}\n{verified}");
    }
    fs::write(path(&run), whole).unwrap();
    stage.home.run(["runs", "waiting"]).expect_code(0);
    // A run that was killed before it wrote anything waits for nothing.
    fs::write(path("09"), "").unwrap();
    stage.home.run(["runs", "waiting"]).expect_code(0);
}

/// What a person answers counts at once, so the file with the answers is signed line by line.
#[test]
fn altered_answer_is_found_and_does_not_count() {
    let stage = Stage::new();
    let later = ["--ask", "w.create", "--approver", "later"];
    let script = "return await w.create({title: 'a'});";
    let paused = stage.run(&[&later[..], &["-e", script]].concat());
    let run = run_of(&paused.expect_code(23));
    let call = format!("{run}:1");
    let answer = ["runs", "answer", &call, "refuse"];
    stage.home.run(answer).expect_code(0);
    let chain = stage.chain_file(&run);
    let whole = fs::read_to_string(&chain).unwrap();
    let resume = || stage.run(&[&later[..], &["--resume", &run]].concat());
    let named = format!("run chain {run}: broken: ");
    for word in ["allow-once", "sometimes"] {
        let altered = whole.replace("\"refuse\"", &format!("\"{word}\""));
        assert_ne!(altered, whole);
        fs::write(&chain, altered).unwrap();
        resume().expect_code(31);
        let all = stage.home.run(["runs", "verify"]).expect_code(31);
        assert!(all.stdout.contains(&named), "{all}");
        assert!(all.stdout.ends_with("; 1 run chain damaged\n"), "{all}");
        let one = stage.home.run(["runs", "verify", &run]).expect_code(31);
        let said = format!("the run chain {run} does not verify");
        one.expect_stderr(&said);
        let json = stage.home.run(["runs", "verify", &run, "--json"]);
        let json = json.expect_code(31).json();
        assert_eq!(json["chain"]["state"], "broken", "{json}");
        let json = stage.home.run(["runs", "verify", "--json"]);
        let json = json.expect_code(31).json();
        assert_eq!(json["damaged_chains"][0]["chain"], run, "{json}");
        let shown = stage.home.run(["runs", "show", &run]).expect_code(0);
        shown.expect_stdout("the answers of people after this run cannot be shown: ");
    }
    // Without the answer, the question is still open.
    fs::write(&chain, "").unwrap();
    assert_eq!(run_of(&resume().expect_code(23)), run);
    stage.home.run(["runs", "verify"]).expect_code(0);
    // A lost file is noticed as soon as a journal names the chain.
    fs::write(&chain, whole).unwrap();
    let refused = run_of(&resume().expect_code(22));
    assert_eq!(stage.made(), [""; 0]);
    fs::remove_file(&chain).unwrap();
    let lost = stage.home.run(["runs", "verify"]).expect_code(31);
    assert!(lost.stdout.contains(&named), "{lost}");
    stage.run(&["--resume", &refused]).expect_code(24);
}

/// The number of races is larger with `AIRLOCK_RACES=200`.
#[test]
fn one_of_two_processes_resumes() {
    let races = std::env::var("AIRLOCK_RACES")
        .ok()
        .and_then(|it| it.parse().ok());
    let stage = Stage::new();
    let mut run = run_of(&stage.run(&["-e", BASE]).expect_code(20));
    for race in 0..races.unwrap_or(5) {
        let begin = || start(&mut stage.home.airlock(stage.args(&["--resume", &run])), "");
        let both = [begin(), begin()].map(|process| process.wait());
        let mut codes = both.each_ref().map(|output| output.code);
        codes.sort_unstable();
        assert_eq!(
            codes,
            [Some(20), Some(24)],
            "race {race}: {}\n{}",
            both[0],
            both[1]
        );
        run = stage.newest();
    }
    assert_eq!(stage.made(), ["a", "b", "r", "c"]);
}

#[test]
fn run_that_waits_for_a_person_ends_its_process_and_goes_on_after_the_answer() {
    let stage = Stage::new();
    let later = ["--ask", "w.create", "--approver", "later"];
    let script = "const r = await w.read({title: 'r'});
return [r, await w.create({title: 'a'}), await w.create({title: 'b'})];";
    let run = |more: &[&str]| stage.run(&[&later[..], more].concat());
    let paused = run(&["-e", script]).expect_code(23);
    assert_eq!(paused.json()["status"], "paused", "{paused}");
    assert_eq!(stage.made(), ["r"]);
    let mut newest = run_of(&paused);
    // Without an answer, no run is started, so the id stays valid.
    let still = run(&["--resume", &newest]).expect_code(23);
    assert_eq!(run_of(&still), newest, "{still}");
    assert_eq!(stage.home.journals().len(), 1);
    for title in ["a", "b"] {
        let waiting = stage
            .home
            .run(["runs", "waiting", "--json"])
            .expect_code(0)
            .json();
        let question = &waiting["waiting"][0]["questions"][0];
        assert_eq!(question["args"], json!({"title": title}), "{waiting}");
        let call = question["call"].as_str().unwrap();
        let shown = stage.home.run(["runs", "answer", call]).expect_code(0);
        assert!(
            shown.stdout.contains(&format!("title: \"{title}\"")),
            "{shown}"
        );
        stage
            .home
            .run(["runs", "answer", call, "allow"])
            .expect_code(0);
        // The question is answered, so it cannot be answered again.
        stage
            .home
            .run(["runs", "answer", call, "refuse"])
            .expect_code(2);
        let code = if title == "a" { 23 } else { 0 };
        newest = run_of(&run(&["--resume", &newest]).expect_code(code));
    }
    assert_eq!(stage.made(), ["r", "a", "b"]);
    stage.home.verify_all();
}

#[test]
fn resume_with_other_input_starts_a_run_while_a_question_is_open() {
    let stage = Stage::new();
    let later = ["--ask", "w.create", "--approver", "later"];
    let run = |more: &[&str]| stage.run(&[&later[..], more].concat());
    let script = ["-e", "return await w.create(input)"];
    let paused = run(&[&script[..], &["--input", r#"{"title": "a"}"#]].concat());
    let first = run_of(&paused.expect_code(23));
    let never = [
        "--resume",
        &first,
        "--ask",
        "w.create",
        "--approver",
        "never",
    ];
    let same = stage.run(&never).expect_code(23);
    assert_eq!(run_of(&same), first, "{same}");
    let changed = run(&["--resume", &first, "--input", r#"{"title": "b"}"#]).expect_code(23);
    assert_ne!(run_of(&changed), first, "{changed}");
    let waiting = stage.home.run(["runs", "waiting", "--json"]).expect_code(0);
    let question = &waiting.json()["waiting"][0]["questions"][0];
    assert_eq!(question["args"], json!({"title": "b"}), "{waiting}");
}

#[test]
fn recorded_answer_counts_without_a_terminal_and_no_failed_attempt_uses_it_up() {
    let stage = Stage::new();
    let script = "const first = await w.create({title: 'a'});
return [first, await w.create({title: 'b'})];";
    let paused = stage.run(&["--ask", "w.create", "--approver", "later", "-e", script]);
    let run = run_of(&paused.expect_code(23));
    let call = format!("{run}:1");
    stage
        .home
        .run(["runs", "answer", &call])
        .expect_code(0)
        .expect_stderr(&format!("`airlock runs answer {call} allow`"));
    stage
        .home
        .run(["runs", "answer", &call, "allow"])
        .expect_code(0)
        .expect_stderr(&format!(
            "continue with: airlock run --resume {run} --config"
        ));

    // Without its servers, the script has definite errors.
    stage
        .home
        .run(["run", "--resume", &run])
        .expect_code(20)
        .expect_stderr(&format!("run {run} was not resumed and stays as it was"));
    let wrong = "return await w.creat({title: 'b'});";
    let refused = stage.run(&["--resume", &run, "-e", wrong]).expect_code(20);
    assert_eq!(refused.json()["can_resume"]["run"], run, "{refused}");

    // Other rules are pointed out.
    stage
        .home
        .run([
            "run",
            "--resume",
            &run,
            "--config",
            stage.config.to_str().unwrap(),
            "-e",
            wrong,
        ])
        .expect_code(20)
        .expect_stderr(&format!("the rules differ from those of run {run}"));

    // The second question waits as the first one did.
    let paused = stage.run(&["--ask", "w.create", "--resume", &run]);
    let newest = run_of(&paused.expect_code(23));
    assert_eq!(stage.made(), ["a"]);
    let shown = stage.home.run(["runs", "show", &run]).expect_code(0);
    for expected in [
        "suspended with 1 open question".to_owned(),
        "call 1 was allowed by ".to_owned(),
        format!("run {newest} resumed this run"),
    ] {
        assert!(shown.stdout.contains(&expected), "{expected}: {shown}");
    }
    let listed = stage
        .home
        .run(["runs", "list", "--status", "resumed", "--json"]);
    assert_eq!(listed.json()["runs"][0]["run"], run, "{listed}");
    // Ends of suspended runs are signed too.
    stage.home.run(["runs", "verify"]).expect_code(0);
}

#[test]
fn prune_deletes_whole_chains_that_nothing_waits_for() {
    let stage = Stage::new();
    let first = run_of(&stage.run(&["-e", BASE]).expect_code(20));
    stage.run(&["--resume", &first]).expect_code(20);
    let done = run_of(&stage.run(&["-e", "return 1"]).expect_code(0));
    let unknown = stage.killed_after(5, "await w.create({title: 'hang'});");
    let prune = |more: &[&str]| {
        let mut args = vec!["runs", "prune", "--json", "--keep", "0s"];
        args.extend(more);
        stage.home.run(args).expect_code(0).json()
    };
    let listed = prune(&["--dry-run"]);
    assert_eq!(listed["deleted"].as_array().unwrap().len(), 3, "{listed}");
    assert_eq!(stage.home.journals().len(), 4);
    let pruned = prune(&[]);
    assert_eq!(pruned["deleted"], listed["deleted"], "{pruned}");
    assert_eq!(pruned["kept"][0]["run"], unknown.as_str(), "{pruned}");
    assert_eq!(stage.newest(), unknown);
    assert!(!stage.chain_file(&first).exists());
    stage.run(&["--resume", &done]).expect_code(2);
    stage.run(&["--resume", &first]).expect_code(2);
    // Only the run that was killed does not verify.
    let verified = stage.home.run(["runs", "verify", "--json"]);
    let verified = verified.expect_code(26).json();
    assert_eq!(verified["pruned"], 3, "{verified}");
    assert_eq!(verified["incomplete"], 1, "{verified}");
    let call = format!("{unknown}:1");
    let resolve = ["runs", "resolve", &call, "did-not-happen"];
    stage.home.run(resolve).expect_code(0);
    assert_eq!(prune(&[])["deleted"], json!([unknown]));
    let verified = stage.home.run(["runs", "verify"]).expect_code(0);
    assert_eq!(verified.stdout, "3 journals: 3 pruned\n");
}

#[test]
fn prune_finishes_what_was_interrupted() {
    let stage = Stage::new();
    let prune = || {
        let args = ["runs", "prune", "--json", "--keep", "0s"];
        stage.home.run(args).expect_code(0).json()
    };
    let first = run_of(&stage.run(&["-e", BASE]).expect_code(20));
    stage.run(&["--resume", &first]).expect_code(20);
    let journals = stage.home.journals();
    let lost = fs::read(&journals[0]).unwrap();
    let chain = fs::read(stage.chain_file(&first)).unwrap();
    assert_eq!(prune()["deleted"].as_array().unwrap().len(), 2);
    // As if the process had been killed after it deleted the first journal.
    fs::write(&journals[0], lost).unwrap();
    fs::write(stage.chain_file(&first), chain).unwrap();
    assert_eq!(prune()["deleted"], json!([first]));
    assert!(stage.home.journals().is_empty() && !stage.chain_file(&first).exists());
}

#[test]
fn prune_keeps_a_run_that_another_key_has_signed() {
    let stage = Stage::new();
    let run = run_of(&stage.run(&["-e", "return 1"]).expect_code(0));
    let state = stage.home.runs_dir().parent().unwrap().to_owned();
    fs::remove_file(state.join("signing.key")).unwrap();
    stage.home.run(["runs", "key"]).expect_code(0);
    let args = ["runs", "prune", "--json", "--keep", "0s"];
    let pruned = stage.home.run(args).expect_code(0).json();
    assert_eq!(pruned["deleted"], json!([]), "{pruned}");
    assert_eq!(pruned["kept"][0]["run"], run.as_str(), "{pruned}");
    let why = pruned["kept"][0]["why"].as_str().unwrap();
    assert!(why.contains("runs prune --unsigned"), "{pruned}");
    stage.home.run(["runs", "verify"]).expect_code(27);
    let args = ["runs", "prune", "--json", "--keep", "0s", "--unsigned"];
    let pruned = stage.home.run(args).expect_code(0).json();
    assert_eq!(pruned["deleted"], json!([run]), "{pruned}");
}

#[test]
fn prune_keeps_a_suspended_run_that_another_key_has_signed() {
    let stage = Stage::new();
    let later = ["--ask", "w.create", "--approver", "later"];
    let run = |more: &[&str]| stage.run(&[&later[..], more].concat());
    let script = "return await w.create({title: 'a'});";
    let paused = run_of(&run(&["-e", script]).expect_code(23));
    let state = stage.home.runs_dir().parent().unwrap().to_owned();
    fs::remove_file(state.join("signing.key")).unwrap();
    stage.home.run(["runs", "key"]).expect_code(0);
    let call = format!("{paused}:1");
    stage
        .home
        .run(["runs", "answer", &call, "allow"])
        .expect_code(0);
    run(&["--resume", &paused]).expect_code(0);
    let args = ["runs", "prune", "--json", "--keep", "0s"];
    let pruned = stage.home.run(args).expect_code(0).json();
    assert_eq!(pruned["deleted"], json!([]), "{pruned}");
}

#[test]
fn deletion_without_signature_counts_as_missing() {
    let stage = Stage::new();
    let run = run_of(&stage.run(&["-e", "return 1"]).expect_code(0));
    stage
        .home
        .run(["runs", "prune", "--keep", "0s"])
        .expect_code(0);
    let state = stage.home.runs_dir().parent().unwrap().to_owned();
    let pruned = fs::read_to_string(state.join("pruned.jsonl")).unwrap();
    assert!(pruned.contains(&run), "{pruned}");
    stage.home.run(["runs", "verify"]).expect_code(0);
    let other = run_of(&stage.run(&["-e", "return 2"]).expect_code(0));
    fs::remove_file(stage.home.journals().pop().unwrap()).unwrap();
    let forged = pruned.replace(&run, &other);
    fs::write(state.join("pruned.jsonl"), format!("{pruned}{forged}")).unwrap();
    let verified = stage.home.run(["runs", "verify"]).expect_code(26);
    assert!(
        verified.stdout.contains(&format!("{other}: incomplete")),
        "{verified}"
    );
}

#[test]
fn prune_keeps_what_the_configuration_says() {
    let stage = Stage::new();
    let run = run_of(&stage.run(&["-e", "return 1"]).expect_code(0));
    let unclear = stage.home.run(["runs", "prune"]).expect_code(2);
    assert!(unclear.stderr.contains("journals_keep"), "{unclear}");
    let user = stage.home.path().join(".config/airlock");
    fs::create_dir_all(&user).unwrap();
    let keep = |time: &str| {
        fs::write(
            user.join("config.toml"),
            format!("journals_keep = \"{time}\"\n"),
        )
        .unwrap();
    };
    keep("1h");
    let kept = stage.home.run(["runs", "prune", "--json"]).expect_code(0);
    assert_eq!(kept.json()["deleted"], json!([]));
    keep("0s");
    let pruned = stage.home.run(["runs", "prune", "--json"]).expect_code(0);
    assert_eq!(pruned.json()["deleted"], json!([run]));
}

#[test]
fn reports_and_history_mark_reused_calls() {
    let stage = Stage::new();
    let failed = stage.run(&["-e", "await w.read({title: 'r'}); null.x"]);
    let run = run_of(&failed.expect_code(20));
    let config = stage.config.to_str().unwrap();
    let again = [
        "run", "--config", config, "--allow", "w.*", "--resume", &run,
    ];
    stage
        .home
        .run(again)
        .expect_code(20)
        .expect_stderr(&format!(
            "w.read  returned, the recorded outcome of call {run}:1 is reused"
        ))
        .expect_stderr("1 call is recorded (1 reused from earlier runs)")
        .expect_stderr("1 call, 1 reused, ");
    let newest = stage.newest();
    let shown = stage.home.run(["runs", "show", &newest, "--json"]).json();
    let from = &shown["calls"][0]["reused_from"];
    assert_eq!(*from, format!("{run}:1"), "{shown}");
}

/// Runs a line in a shell, in which `airlock` is the tested program.
fn shell(home: &Home, folder: &Path, line: &str) -> CommandOutput {
    let mut command = Command::new(detached());
    command.args(["sh", "-c", line]);
    home.dress(&mut command);
    let mut path = airlock().parent().expect("a folder").as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    command.env("PATH", path).current_dir(folder);
    start(&mut command, "").wait()
}

/// Returns the rest of the line that contains this text.
fn line_after<'a>(shown: &'a str, text: &str) -> &'a str {
    let (_, rest) = shown
        .split_once(text)
        .unwrap_or_else(|| panic!("no {text} in {shown}"));
    rest.lines().next().unwrap_or_default()
}

#[test]
fn printed_commands_resume_a_run_as_they_stand() {
    let home = Home::new();
    let _ = counting::config(&home, "server.sh", "");
    let root = Path::new("/");
    let flags = [
        "run",
        "--server",
        "w=sh server.sh",
        "--ask",
        "w.cr*",
        "--approver",
        "later",
    ];
    let pause = |title: &str| {
        let script = format!("return await w.create({{title: '{title}'}})");
        home.run([&flags[..], &["-e", &script]].concat())
            .expect_code(23)
    };
    let answer = || {
        let waiting = home.run(["runs", "waiting", "--json"]).json();
        let call = waiting["waiting"][0]["questions"][0]["call"].clone();
        let answer = ["runs", "answer", call.as_str().unwrap(), "allow"];
        home.run(answer).expect_code(0)
    };

    let paused = pause("a");
    let line = line_after(&paused.stderr, "after the answers, run: ");
    answer();
    shell(&home, home.path(), line)
        .expect_code(0)
        .expect_stdout("made a");

    pause("b");
    let line = answer().stderr;
    let line = line_after(&line, "continue with: ");
    shell(&home, home.path(), line)
        .expect_code(0)
        .expect_stdout("made b");

    // In another folder, the command changes to the folder of the run.
    pause("c");
    let waiting = shell(&home, root, "airlock runs waiting").expect_code(0);
    answer();
    let line = line_after(&waiting.stdout, "then continue with: ");
    shell(&home, root, line)
        .expect_code(0)
        .expect_stdout("made c");

    let fails = "await w.read({title: 'r'}); null.x";
    let failed = [
        "run",
        "--server",
        "w=sh server.sh",
        "--allow",
        "w.*",
        "-e",
        fails,
    ];
    let failed = home.run(failed).expect_code(20);
    home.write("FILE", fails);
    let line = line_after(
        &failed.stderr,
        "to go on without repeating it, correct the script, save it as FILE, and run: ",
    );
    let resumed = shell(&home, home.path(), line).expect_code(20);
    assert!(resumed.stderr.contains(" is reused"), "{resumed}");
    assert!(
        resumed.stderr.contains("(1 reused from earlier runs)"),
        "{resumed}"
    );
    let shown = shell(
        &home,
        root,
        "airlock runs show $(airlock runs list -n 1 | cut -d' ' -f1)",
    );
    let line = line_after(&shown.stdout, "continue with: ");
    shell(&home, root, line).expect_code(20);
    assert_eq!(counting::made(&home), ["a", "b", "c", "r"]);
    home.verify_all();
}

#[test]
fn printed_commands_contain_no_credential() {
    let home = Home::new();
    let _ = counting::config(&home, "server.sh", "");
    let server = "w=sh server.sh --api-key hunter2";
    let failed = home.run([
        "run",
        "--server",
        server,
        "--allow",
        "w.*",
        "-e",
        "await w.read({}); null.x",
    ]);
    let failed = failed.expect_code(20);
    assert!(failed.stderr.contains("add --server w=…"), "{failed}");
    let run = line_after(&failed.stderr, "--resume ")
        .split(' ')
        .next()
        .unwrap();
    let shown = home.run(["runs", "show", run]).expect_code(0);
    let journal = fs::read_to_string(home.journals().pop().unwrap()).unwrap();
    let header: Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
    let recorded = header["command"].to_string();
    for text in [&failed.stderr, &shown.stdout, &recorded] {
        assert!(!text.contains("hunter2"), "{text}");
    }
}
