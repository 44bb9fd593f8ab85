//! Tests a server that refuses a call until somebody has logged in. The host's user opens the
//! address of the login, and the call is then made. Covers both eras of hosts.

use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use serde_json::{Value, json};
use tests::command::Home;
use tests::login_server::LoginServer;
use tests::patience::wait_until;
use tests::serving::ServeProcess;

use super::passing::modern;
use super::{running, text};

const CREATE: &str = "return await w.create({title: 't'})";

fn serving(server: &LoginServer) -> ServeProcess {
    let home = Home::new();
    home.write(
        "airlock.toml",
        server.config() + "\n[oauth]\nkeys = \"file\"\n",
    );
    log_in(&home, server);
    let flags = ["--disclosure", "full", "--allow", "*.*", "--config"];
    let serving = ServeProcess::start_in(home, flags.into_iter().chain(["airlock.toml"]));
    // The first request waits until the server is connected.
    let ready = serving.session(&json!({})).run(1, "return typeof w.create");
    assert!(text(&ready).contains("function"), "{ready}");
    serving
}

#[test]
fn host_logs_in_to_a_server_whose_tools_are_not_known() {
    for is_open in [false, true] {
        let server = LoginServer::start();
        if is_open {
            server.open_handshake();
        }
        let home = Home::new();
        let config = server.config() + "\n[oauth]\nkeys = \"file\"\n";
        home.write("airlock.toml", config);
        // Rules can name tools that are not known yet.
        let rules = "@id(\"all\") @owner(\"desk\") @reason(\"a test\")\n\
                     permit(principal, action, resource);\n\
                     @id(\"creates\") @owner(\"desk\") @reason(\"a test\")\n\
                     permit(principal, action == Action::\"w.create\", resource);\n";
        home.write("rules/a.cedar", rules);
        let flags = ["--disclosure", "full", "--policy", "rules", "--config"];
        let serving = ServeProcess::start_in(home, flags.into_iter().chain(["airlock.toml"]));
        let host = serving.session(&json!({"elicitation": {"url": {}}}));
        let mut run = host.begin(1, "tools/call", &running("return await w.log_in({})"));
        let asked = run.told("elicitation/create");
        let _ = server.browse(asked["params"]["url"].as_str().unwrap());
        let logged_in = run.answer(1);
        assert!(text(&logged_in).contains("has logged in"), "{logged_in}");
        let _ = host.call(2, "get_tool_details", &json!({"tools": ["w.create"]}));
        let made = host.run(3, CREATE);
        assert!(text(&made).contains("made with"), "{made}");
        assert_eq!(server.calls(), ["t"]);
        // The server's own tools have taken the place of the one that logs in.
        let gone = host.run(4, "return typeof w['log' + '_in']");
        assert!(text(&gone).contains("has no tool `log_in`"), "{gone}");
        serving.home.verify_all();
    }
}

/// Logs in with the command.
pub(super) fn log_in(home: &Home, server: &LoginServer) {
    use std::io::{BufRead as _, BufReader};
    let args = ["login", "w", "--config", "airlock.toml", "--no-browser"];
    let mut command = home.airlock(args);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut read = lines.map_while(Result::ok);
    let address = read.find(|it| it.contains("/authorize?")).unwrap();
    let _ = server.browse(address.trim());
    read.for_each(drop);
    assert!(child.wait().unwrap().success());
}

fn was_made_once(serving: &ServeProcess, server: &LoginServer, result: &Value) {
    let shown = result.to_string();
    assert!(text(result).contains("made with"), "{shown}");
    assert_eq!(server.calls(), ["t"]);
    serving.home.verify_all();
    let journals = serving.home.journals();
    let journal = std::fs::read_to_string(journals.last().unwrap()).unwrap();
    let login = format!(r#""login":{{"issuer":"{}","scopes":[]}}"#, server.issuer());
    assert_eq!(journal.matches(&login).count(), 1, "{journal}");
    for secret in server.secrets() {
        assert!(!shown.contains(&secret) && !journal.contains(&secret));
    }
    assert!(!shown.contains("/authorize") && !journal.contains("/authorize"));
}

#[test]
fn host_of_the_older_era_logs_in() {
    // The host can answer before the login is complete, or never.
    for answers_first in [true, false] {
        let server = LoginServer::start();
        let serving = serving(&server);
        let host = serving.session(&json!({"elicitation": {"url": {}}}));
        server.expire_login();
        let mut run = host.begin(1, "tools/call", &running(CREATE));
        let asked = run.told("elicitation/create");
        let message = asked["params"]["message"].as_str().unwrap();
        assert!(message.contains("`w` behind airlock"), "{message}");
        if answers_first {
            host.reply(&asked["id"], &json!({"action": "accept"}));
        }
        let page = server.browse(asked["params"]["url"].as_str().unwrap());
        assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
        was_made_once(&serving, &server, &run.answer(1));
    }
}

#[test]
fn host_of_the_newer_era_logs_in() {
    let can = json!({"elicitation": {"url": {}}});
    let server = LoginServer::start();
    let serving = serving(&server);
    server.expire_login();
    let mut params = json!({"name": "run_script", "arguments": {"code": CREATE}});
    let first = modern(&serving, params.clone(), &can).answer(1);
    let requests = first["inputRequests"].as_object().unwrap();
    let (key, request) = requests.iter().next().unwrap();
    let _ = server.browse(request["params"]["url"].as_str().unwrap());
    params["requestState"] = first["requestState"].clone();
    params["inputResponses"] = json!({ key: {"action": "accept"} });
    let last = modern(&serving, params, &can).answer(1);
    was_made_once(&serving, &server, &last);
}

#[test]
fn host_that_cannot_open_addresses_gets_the_command_and_a_later_login_works_at_once() {
    let server = LoginServer::start();
    let serving = serving(&server);
    let host = serving.session(&json!({"elicitation": {}}));
    server.expire_login();
    let refused = host.run(1, CREATE);
    let refused = text(&refused);
    assert!(refused.contains("login-required"), "{refused}");
    // The flags contain paths and addresses, which are not for the model.
    assert!(refused.contains("`airlock login w`"), "{refused}");
    assert!(server.calls().is_empty());
    log_in(&serving.home, &server);
    let made = host.run(2, CREATE);
    assert!(text(&made).contains("made with"), "{made}");
    assert_eq!(server.calls(), ["t"]);
}

#[test]
fn renewal_that_does_not_help_leads_to_a_login() {
    let server = LoginServer::start();
    let serving = serving(&server);
    let host = serving.session(&json!({"elicitation": {"url": {}}}));
    server.refuse_renewed();
    let mut run = host.begin(1, "tools/call", &running(CREATE));
    let asked = run.told("elicitation/create");
    assert_eq!(server.renewals(), 1);
    let _ = server.browse(asked["params"]["url"].as_str().unwrap());
    was_made_once(&serving, &server, &run.answer(1));
}

#[test]
fn cancelled_run_that_waits_for_the_login_of_another_sends_nothing() {
    let server = LoginServer::start();
    let serving = serving(&server);
    let host = serving.session(&json!({"elicitation": {"url": {}}}));
    server.expire_login();
    let mut first = host.begin(1, "tools/call", &running(CREATE));
    let asked = first.told("elicitation/create");
    let refused = server.requests_for("/mcp");
    let code = "return await w.create({title: 'cancelled'})";
    let second = host.begin(2, "tools/call", &running(code));
    wait_until(|| server.requests_for("/mcp") > refused);
    host.notify("notifications/cancelled", &json!({"requestId": 2}));
    drop(second);
    let cancelled = || {
        let journals = serving.home.journals();
        let texts = journals
            .iter()
            .map(|it| std::fs::read_to_string(it).unwrap());
        let mut all = texts.filter(|it| it.contains("\"cancelled\""));
        all.find(|it| it.contains("\"status\":\"cancelled\""))
    };
    wait_until(|| cancelled().is_some());
    let journal = cancelled().unwrap();
    assert!(journal.contains("login-required"), "{journal}");
    assert!(!journal.contains("outcome-unknown"), "{journal}");
    let _ = server.browse(asked["params"]["url"].as_str().unwrap());
    let _ = first.answer(1);
    assert_eq!(server.calls(), ["t"]);
}

#[test]
fn person_who_declines_does_not_decline_for_another_host() {
    let server = LoginServer::start();
    let serving = serving(&server);
    let can = json!({"elicitation": {"url": {}}});
    let (first, second) = (serving.session(&can), serving.session(&can));
    server.expire_login();
    let mut declined = first.begin(1, "tools/call", &running(CREATE));
    let asked = declined.told("elicitation/create");
    let refused = server.requests_for("/mcp");
    let mut made = second.begin(1, "tools/call", &running(CREATE));
    wait_until(|| server.requests_for("/mcp") > refused);
    first.reply(&asked["id"], &json!({"action": "decline"}));
    let answer = declined.answer(1);
    assert!(text(&answer).contains("the person did not log in"));
    let asked = made.told("elicitation/create");
    let _ = server.browse(asked["params"]["url"].as_str().unwrap());
    was_made_once(&serving, &server, &made.answer(1));
}

#[test]
fn cancelled_run_keeps_the_login_that_ends_afterwards_and_sends_nothing() {
    let server = LoginServer::start();
    let serving = serving(&server);
    let host = serving.session(&json!({"elicitation": {"url": {}}}));
    server.expire_login();
    let mut run = host.begin(1, "tools/call", &running(CREATE));
    let asked = run.told("elicitation/create");
    server.set_token_delay(Duration::from_secs(2));
    let exchanges = server.requests_for("/token");
    let _ = server.browse(asked["params"]["url"].as_str().unwrap());
    wait_until(|| server.requests_for("/token") > exchanges);
    host.notify("notifications/cancelled", &json!({"requestId": 1}));
    wait_until(|| {
        let journal = serving.home.journals().pop().unwrap();
        let journal = std::fs::read_to_string(journal).unwrap();
        journal.contains("\"status\":\"cancelled\"")
    });
    server.set_token_delay(Duration::ZERO);
    let logins = server.requests_for("/authorize");
    let made = host.run(2, CREATE);
    assert!(text(&made).contains("made with"), "{made}");
    assert_eq!(server.calls(), ["t"]);
    assert_eq!(server.requests_for("/authorize"), logins);
    serving.home.verify_all();
}

#[test]
fn login_that_waits_for_another_process_does_not_delay_the_end() {
    let server = LoginServer::start();
    let mut serving = serving(&server);
    let host = serving.session(&json!({"elicitation": {"url": {}}}));
    server.expire_login();
    let mut run = host.begin(1, "tools/call", &running(CREATE));
    let asked = run.told("elicitation/create");
    let asked_before = server.requests_for("/token");
    let _held = hold_login(&serving.home);
    let _ = server.browse(asked["params"]["url"].as_str().unwrap());
    // The end waits up to 12 s for a login that is being exchanged.
    let (_, took, _) = serving.stop(Signal::TERM);
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(server.requests_for("/token"), asked_before);
}

/// Takes the lock of the only login, as another process does that renews it.
fn hold_login(home: &Home) -> File {
    let folder = std::fs::read_dir(home.path().join(".local/state/airlock/logins")).unwrap();
    let mut files = folder.map(|it| it.unwrap().path());
    let lock = files.find(|it| it.extension().is_some_and(|it| it == "lock"));
    let lock = File::open(lock.unwrap()).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    lock
}
