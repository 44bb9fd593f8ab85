//! Tests that no host waits for the run of another host, even with a slow approval and a server
//! that dies.

use serde_json::{Value, json};
use tests::command::{Home, program};
use tests::patience::wait_until;
use tests::serving::ServeProcess;

use super::{noted, running, text};

/// Returns the flag value for a fixture server that can restart only after the file `may-start`
/// exists.
fn slow_to_come_back(home: &Home) -> String {
    let script = r#"
        if [ -e begun ]; then
            echo waiting > waiting
            while [ -e begun ] && [ ! -e may-start ]; do sleep 0.02; done
        fi
        echo > begun
        exec "$@""#;
    let (log, script) = (
        home.path().join("fixture.log"),
        home.write("server.sh", script),
    );
    let fixture = program("fixture-server");
    let (script, fixture) = (script.display(), fixture.display());
    format!("test=sh {script} {fixture} {}", log.display())
}

fn approved() -> Value {
    json!({"action": "accept", "content": {"decision": "allow"}})
}

#[test]
fn sessions_do_not_wait_for_other_approvals_or_dead_servers() {
    let home = Home::new();
    let server = slow_to_come_back(&home);
    let args = ["--demo", "--disclosure", "full", "--allow", "*.*"];
    let more = ["--ask", "demo.tickets_create", "--server", &server];
    let serving = ServeProcess::start_in(home, args.into_iter().chain(more));
    let asked = || serving.session(&json!({"elicitation": {}}));
    let (slow, quick, other) = (asked(), serving.session(&json!({})), asked());
    // The person at the slow host gets the question and does not answer yet.
    let code = "return typeof await demo.tickets_create({title: 'slow'})";
    let mut approval = slow.begin(1, "tools/call", &running(code));
    let question = approval.told("elicitation/create");
    // The same host waits for a call whose server dies.
    let mut lost = slow.begin(2, "tools/call", &running("return await test.wait({})"));
    while !lost
        .told("notifications/progress")
        .to_string()
        .contains("test.wait: allow")
    {}
    let list = "return (await demo.tickets_list({})).tickets.length > 0";
    assert_eq!(quick.run(1, list)["structuredContent"]["value"], true);
    // Another person gets the same question and answers at once.
    let mut second = other.begin(1, "tools/call", &running(code));
    let at_once = second.told("elicitation/create");
    other.reply(&at_once["id"], &approved());
    let done = second.answer(1);
    assert_eq!(done["structuredContent"]["value"], "object", "{done}");
    let crash = quick.run(2, "return await test.crash({})");
    assert!(text(&crash).contains("outcome-unknown"), "{crash}");
    let lost = lost.answer(2);
    assert!(text(&lost).contains("outcome-unknown"), "{lost}");
    // The server restarts slowly for the host that needs it. Other hosts do not wait.
    let simple = running("return await test.simple_text({})");
    let again = other.begin(2, "tools/call", &simple);
    wait_until(|| serving.home.path().join("waiting").exists());
    for host in [&quick, &other, &slow] {
        assert_eq!(host.run(3, list)["structuredContent"]["value"], true);
        let found = host.call(4, "search_tools", &json!({"query": "simple text"}));
        assert!(text(&found).contains("simple_text"), "{found}");
    }
    let late = serving.session(&json!({}));
    assert_eq!(late.run(1, list)["structuredContent"]["value"], true);
    assert_eq!(noted(&serving.home).matches("pid ").count(), 1);
    serving.home.write("may-start", "");
    let again = again.answer(2);
    assert_eq!(again["structuredContent"]["value"], "this is simple_text");
    assert_eq!(noted(&serving.home).matches("pid ").count(), 2);
    // The first question is still open, and its answer is accepted.
    slow.reply(&question["id"], &approved());
    let approved = approval.answer(1);
    assert_eq!(
        approved["structuredContent"]["status"], "done",
        "{approved}"
    );
}
