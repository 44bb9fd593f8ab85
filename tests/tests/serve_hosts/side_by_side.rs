//! Two hosts at once, one slow approval, one server that dies: nobody waits for
//! anybody else's run.

use serde_json::json;
use tests::command::Home;
use tests::serving::Serving;

use super::{fixture, noted, running, text};

#[test]
fn nobody_waits_for_an_approval_or_for_a_server_that_died_under_somebody_else() {
    let home = Home::new();
    let server = fixture(&home);
    let args = ["--demo", "--disclosure", "full", "--allow", "*.*"];
    let more = ["--ask", "demo.tickets_create", "--server", &server];
    let serving = Serving::start_in(home, args.into_iter().chain(more));
    let (slow, quick) = (
        serving.session(&json!({"elicitation": {}})),
        serving.session(&json!({})),
    );
    // One host's person has the question in hand, and takes long.
    let code = "return typeof await demo.tickets_create({title: 'slow'})";
    let mut approval = slow.begin(1, "tools/call", &running(code));
    let asked = approval.told("elicitation/create");
    // The same host waits for a call, which goes down with its server.
    let mut lost = slow.begin(2, "tools/call", &running("return await test.wait({})"));
    while !lost
        .told("notifications/progress")
        .to_string()
        .contains("test.wait: allow")
    {}
    let list = "return (await demo.tickets_list({})).tickets.length > 0";
    assert_eq!(quick.run(1, list)["structuredContent"]["value"], true);
    let crash = quick.run(2, "return await test.crash({})");
    assert!(text(&crash).contains("outcome-unknown"), "{crash}");
    let lost = lost.answer(2);
    assert!(text(&lost).contains("outcome-unknown"), "{lost}");
    // The server is started anew for whoever comes next; the question still waits.
    assert_eq!(quick.run(3, list)["structuredContent"]["value"], true);
    let again = quick.run(4, "return await test.simple_text({})");
    assert_eq!(again["structuredContent"]["value"], "this is simple_text");
    assert_eq!(noted(&serving.home).matches("pid ").count(), 2);
    let yes = json!({"action": "accept", "content": {"decision": "allow"}});
    slow.reply(&asked["id"], &yes);
    let approved = approval.answer(1);
    assert_eq!(
        approved["structuredContent"]["status"], "done",
        "{approved}"
    );
}
