//! Tests notifications about prompts and resources of offered servers, with both eras of hosts and
//! servers. Changes of a list are sent to all hosts that listen. Changes of a resource are sent
//! only to hosts that subscribed to it.

use serde_json::{Value, json};
use tests::command::{Home, program};
use tests::patience::wait_until;
use tests::serving::{HttpResponse, ServeProcess, Session};
use tests::stdio_host::StdioHost;

use super::noted;

const VERSION: &str = "2026-07-28";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const THEIRS: &str = "test://static-text";
const OURS: &str = "airlock://test/test://static-text";
const LISTS: [&str; 2] = [
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
];
const UPDATED: &str = "notifications/resources/updated";
const ARGS: [&str; 6] = ["--disclosure", "full", "--allow", "*.*", "--offer", "test"];

fn fixture(home: &Home, era: &str) -> String {
    let (program, log) = (program("fixture-server"), home.path().join("fixture.log"));
    format!("test={}{era} {}", program.display(), log.display())
}

fn serving(era: &str) -> ServeProcess {
    let home = Home::new();
    let server = fixture(&home, era);
    let more = ["--server", &server];
    ServeProcess::start_in(home, ARGS.into_iter().chain(more))
}

fn ask(host: &Session, method: &str, params: &Value) -> Result<Value, Value> {
    let mut page = host.begin(9, method, params);
    let message = page.next_message().expect("an answer");
    match message.get("error") {
        Some(error) => Err(error.clone()),
        None => Ok(message["result"].clone()),
    }
}

fn change(host: &Session) {
    let run = host.run(7, "return await test.trigger_prompt_change({})");
    assert_eq!(run["structuredContent"]["status"], "done", "{run}");
}

/// Returns the messages up to the reports that both lists have changed.
fn told(stream: &mut HttpResponse) -> Vec<Value> {
    let mut told = Vec::new();
    let has = |told: &[Value], method: &str| told.iter().any(|it| it["method"] == method);
    while !LISTS.iter().all(|list| has(&told, list)) {
        told.push(stream.next_message().expect("a message"));
    }
    told
}

fn updated(stream: &mut HttpResponse) -> Value {
    stream.told(UPDATED)["params"]["uri"].clone()
}

/// Counts the lines of the fixture's log with this word.
fn heard(serving: &ServeProcess, word: &str) -> usize {
    noted(&serving.home).matches(word).count()
}

#[test]
fn older_era_host_gets_list_and_resource_notifications() {
    for era in ["", " --newer"] {
        let serving = serving(era);
        let (host, other) = (serving.session(&json!({})), serving.session(&json!({})));
        let uri = json!({ "uri": OURS });
        assert_eq!(
            ask(&host, "resources/subscribe", &uri),
            Ok(json!({})),
            "{era}"
        );
        let (mut stream, mut beside) = (host.listen(), other.listen());
        change(&other);
        assert_eq!(updated(&mut stream), OURS, "{era}");
        change(&other);
        assert_eq!(updated(&mut stream), OURS, "{era}");
        // A host without subscriptions is notified about the lists only.
        for _ in 0..2 {
            let told = told(&mut beside);
            assert!(told.iter().all(|it| it["method"] != UPDATED), "{told:?}");
        }
        assert_eq!(ask(&host, "resources/unsubscribe", &uri), Ok(json!({})));
    }
}

#[test]
fn upstream_subscription_is_shared_and_renewed() {
    let serving = serving("");
    let hosts = [serving.session(&json!({})), serving.session(&json!({}))];
    // The server's own address works as well, since no other server has it.
    for (host, uri) in hosts.iter().zip([OURS, THEIRS]) {
        let uri = json!({ "uri": uri });
        assert_eq!(ask(host, "resources/subscribe", &uri), Ok(json!({})));
        assert_eq!(ask(host, "resources/subscribe", &uri), Ok(json!({})));
    }
    assert_eq!(heard(&serving, "resources/subscribe"), 1);
    let mut stream = hosts[1].listen();
    let uri = json!({ "uri": OURS });
    assert_eq!(ask(&hosts[0], "resources/unsubscribe", &uri), Ok(json!({})));
    change(&hosts[0]);
    assert_eq!(updated(&mut stream), THEIRS);
    assert_eq!(heard(&serving, "resources/unsubscribe"), 0);
    // The end of a session ends its subscriptions.
    hosts[1].end();
    wait_until(|| heard(&serving, "resources/unsubscribe") == 1);
}

/// Sends a request of the newer era that stays open.
fn listen(serving: &ServeProcess, notifications: &Value) -> HttpResponse {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let method = "subscriptions/listen";
    let params = json!({"notifications": notifications, "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": params});
    let headers = [("MCP-Protocol-Version", VERSION), ("Mcp-Method", method)];
    serving.request("POST", &headers, &message.to_string())
}

#[test]
fn newer_era_host_gets_subscribed_notifications() {
    for era in ["", " --newer"] {
        let serving = serving(era);
        let wanted = json!({
            "promptsListChanged": true,
            "resourcesListChanged": true,
            "resourceSubscriptions": [OURS, "airlock://nobody/a:1", 7],
        });
        let mut stream = listen(&serving, &wanted);
        let mut others = listen(&serving, &json!({"promptsListChanged": true}));
        let first = stream.told("notifications/subscriptions/acknowledged");
        let honoured = json!({
            "promptsListChanged": true,
            "resourcesListChanged": true,
            "resourceSubscriptions": [OURS],
        });
        assert_eq!(first["params"]["notifications"], honoured, "{era}");
        let _first = others.told("notifications/subscriptions/acknowledged");
        change(&serving.session(&json!({})));
        for method in LISTS.into_iter().chain([UPDATED]) {
            let told = stream.told(method);
            assert_eq!(told["params"]["_meta"][SUBSCRIPTION], 5, "{era}: {told}");
            let uri = told["params"].get("uri");
            assert_eq!(uri.is_some(), method == UPDATED, "{told}");
        }
        let only = others.next_message().expect("a message");
        assert_eq!(only["method"], LISTS[0], "{only}");
    }
}

#[test]
fn stdio_host_gets_notifications() {
    let home = Home::new();
    let server = fixture(&home, "");
    let mut command = home.serve(ARGS);
    command.args(["--server", &server]);
    let mut host = StdioHost::start(&mut command, &json!({}));
    host.request("resources/subscribe", &json!({ "uri": OURS }));
    host.call(
        "run_script",
        &json!({"code": "return await test.trigger_prompt_change({})"}),
    );
    let told = host.wait_for(|it| it["method"] == UPDATED);
    assert_eq!(told["params"], json!({ "uri": OURS }));
    host.wait_for(|it| it["method"] == LISTS[0]);
    host.wait_for(|it| it["method"] == LISTS[1]);
}

/// An airlock over HTTP is a server of another airlock.
#[test]
fn http_servers_notify_in_either_era() {
    let behind = serving("");
    for era in ["2025-11-25", "2026-07-28"] {
        let home = Home::new();
        let url = behind.url();
        let config = format!("[servers.up]\nurl = \"{url}\"\nera = \"{era}\"\n");
        let config = home.write("airlock.toml", config).display().to_string();
        let serving = ServeProcess::start_in(home, ["--config", &config, "--offer", "up"]);
        let host = serving.session(&json!({}));
        let uri = format!("airlock://up/{OURS}");
        let subscribed = ask(&host, "resources/subscribe", &json!({ "uri": uri }));
        assert_eq!(subscribed, Ok(json!({})), "{era}");
        let mut stream = host.listen();
        change(&behind.session(&json!({})));
        assert_eq!(updated(&mut stream), uri, "{era}");
        let uri = format!("airlock://up/airlock://nobody/{THEIRS}");
        let refused = ask(&host, "resources/subscribe", &json!({ "uri": uri }));
        // A server of the newer era may report too late that it has no such resource.
        assert!(refused.is_err() || era == VERSION, "{refused:?}");
    }
}

#[test]
fn unoffered_notifications_are_dropped() {
    let home = Home::new();
    let server = fixture(&home, "");
    let serving = ServeProcess::start_in(home, ["--server", &server, "--offer", "test.prompts"]);
    let host = serving.session(&json!({}));
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let refused = ask(&host, method, &json!({ "uri": THEIRS })).unwrap_err();
        assert_eq!(refused["code"], -32_601, "{refused}");
    }
    let wanted = json!({"resourcesListChanged": true, "resourceSubscriptions": [THEIRS]});
    let first = listen(&serving, &wanted).told("notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["notifications"], json!({}), "{first}");
}

#[test]
fn invalid_subscription_is_refused() {
    let serving = serving("");
    let host = serving.session(&json!({}));
    for (params, code) in [
        (json!({}), -32_602),
        (json!({"uri": 7}), -32_602),
        (json!({"uri": "airlock://nobody/a:1"}), -32_002),
        (json!({"uri": "resource:///tool_descriptions"}), -32_602),
        (json!({"uri": "a \u{202e}b"}), -32_002),
    ] {
        let refused = ask(&host, "resources/subscribe", &params).unwrap_err();
        assert_eq!(refused["code"], code, "{params}: {refused}");
    }
    let many: Vec<_> = (0..300).map(|n| format!("airlock://test/a:{n}")).collect();
    let mut page = listen(&serving, &json!({ "resourceSubscriptions": many }));
    let refused = page.next_message().expect("an answer");
    assert_eq!(refused["error"]["code"], -32_602, "{refused}");
}

#[test]
fn elicitation_complete_reaches_only_the_asked_host() {
    let serving = serving("");
    let can = json!({"elicitation": {"url": {}}});
    let (host, other) = (serving.session(&can), serving.session(&can));
    let (mut stream, mut beside) = (host.listen(), other.listen());
    let code = "return await test.elicitation_address({})";
    let mut run = host.begin(1, "tools/call", &super::running(code));
    let asked = run.told("elicitation/create");
    host.reply(&asked["id"], &json!({"action": "accept"}));
    let done = stream.told("notifications/elicitation/complete");
    assert_eq!(done["params"], json!({"elicitationId": "theirs"}));
    let _answer = run.answer(1);
    change(&host);
    let only = told(&mut beside);
    let is_done = |it: &Value| it["method"] == "notifications/elicitation/complete";
    assert!(!only.iter().any(is_done), "{only:?}");
}
