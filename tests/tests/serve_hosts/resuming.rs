//! Hosts resume runs of the same caller and project, from any session and any process.

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::command::Home;
use tests::counting::{config, made};
use tests::patience::wait_until;
use tests::serving::{CONFIGURED, ServeProcess, Session};

use crate::text;

fn scene() -> Home {
    let home = Home::new();
    let config = config(&home, "server.sh", "");
    home.write(
        "airlock.toml",
        format!("{config}[rules]\nallow = [\"w.*\"]\n"),
    );
    home
}

fn newest(home: &Home) -> String {
    let journal = home.journals().pop().unwrap();
    journal.file_stem().unwrap().to_str().unwrap().to_owned()
}

fn resume(session: &Session, id: u64, run: &str) -> Value {
    session.call(id, "resume_run", &json!({ "run": run }))
}

#[test]
fn interrupted_run_is_resumed_by_another_session_of_its_caller() {
    let serving = ServeProcess::start_in(scene(), CONFIGURED);
    let session = serving.session_of("ada", &json!({}));
    let code = "await w.create({title: 'a'}); await w.create({title: 'b'});
return await w.read({title: 'r-hang'});";
    let params = json!({"name": "run_script", "arguments": {"code": code}});
    let _request = session.begin_without_waiting(1, "tools/call", &params);
    wait_until(|| made(&serving.home).len() == 3);
    let run = newest(&serving.home);
    let running = resume(&serving.session_of("ada", &json!({})), 1, &run);
    assert!(text(&running).contains("still running"), "{running}");

    let serving = serving.restart(Signal::KILL, CONFIGURED);
    serving.home.write("answers", "");
    let other = resume(&serving.session_of("eve", &json!({})), 1, &run);
    assert!(text(&other).contains("no run"), "{other}");
    let session = serving.session_of("ada", &json!({}));
    let resumed = resume(&session, 1, &run);
    assert_eq!(
        resumed["structuredContent"]["value"], "made r-hang",
        "{resumed}"
    );
    let again = resume(&serving.session_of("ada", &json!({})), 1, &run);
    assert_eq!(
        again["structuredContent"], resumed["structuredContent"],
        "{again}"
    );
    assert_eq!(made(&serving.home), ["a", "b", "r-hang", "r-hang"]);
    serving.home.verify_all();
}

#[test]
fn failed_script_is_corrected_and_resumed() {
    let serving = ServeProcess::start_in(scene(), CONFIGURED);
    let session = serving.session_of("ada", &json!({}));
    let code = "const a = await w.create({title: 'a'}); await w.create({title: 'b'});
return a.missing.length;";
    let failed = session.run(1, code);
    let run = newest(&serving.home);
    let advice = format!("call run_script with resume \"{run}\"");
    assert!(text(&failed).contains(&advice), "{failed}");
    let args = json!({"code": code.replace("missing.", ""), "resume": run});
    let other = serving
        .session_of("eve", &json!({}))
        .call(1, "run_script", &args);
    assert!(text(&other).contains("no run"), "{other}");
    for unknown in ["", "../x", "zz"] {
        let args = json!({"code": "return 1", "resume": unknown});
        let refused = session.call(2, "run_script", &args);
        assert!(text(&refused).contains("no run"), "{refused}");
    }
    let resumed = serving
        .session_of("ada", &json!({}))
        .call(1, "run_script", &args);
    assert_eq!(resumed["structuredContent"]["value"], 6, "{resumed}");
    assert_eq!(resumed["structuredContent"]["reused"], 2, "{resumed}");
    let twice = session.call(3, "run_script", &args);
    assert!(text(&twice).contains("already resumed"), "{twice}");
    assert_eq!(made(&serving.home), ["a", "b"]);
}

#[test]
fn claim_of_a_model_does_not_release_an_indeterminate_call() {
    let serving = ServeProcess::start_in(scene(), CONFIGURED);
    let session = serving.session_of("ada", &json!({}));
    let code = "return await w.create({title: 'a-hang'});";
    let params = json!({"name": "run_script", "arguments": {"code": code}});
    let _request = session.begin_without_waiting(1, "tools/call", &params);
    wait_until(|| made(&serving.home).len() == 1);
    let run = newest(&serving.home);
    let serving = serving.restart(Signal::KILL, CONFIGURED);
    serving.home.write("answers", "");
    let session = serving.session_of("ada", &json!({}));
    let claiming = json!({"code": code, "resume": run, "input": {"did-not-happen": true}});
    let resumed = session.call(1, "run_script", &claiming);
    assert!(text(&resumed).contains("outcome-unknown"), "{resumed}");
    assert!(
        text(&resumed).contains("are not made again: w.create"),
        "{resumed}"
    );
    let more = json!({"code": code, "resume": run, "resolved": "did-not-happen"});
    let refused = session.call(2, "run_script", &more);
    assert_eq!(refused["isError"], true, "{refused}");
    assert_eq!(made(&serving.home), ["a-hang"]);
}
