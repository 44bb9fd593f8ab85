//! Tests callers that an authorization server tells apart, and servers that require a login: each
//! caller has its own login, or all share one.

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::command::Home;
use tests::login_server::LoginServer;
use tests::serving::{ServeProcess, Session};

use super::logging_in::log_in;
use super::tokens::Issuer;
use super::{running, text};

/// A configuration with the server `w`, whose logins belong to `credentials`.
fn home(server: &LoginServer, credentials: &str) -> Home {
    let home = Home::new();
    let keys = "\n[oauth]\nkeys = \"file\"\n";
    home.write("airlock.toml", server.config() + credentials + keys);
    home
}

fn flags(issuer: &Issuer, home: &Home) -> Vec<String> {
    let flags = [
        "--disclosure",
        "full",
        "--allow",
        "*.*",
        "--config",
        "airlock.toml",
    ];
    let oauth = issuer.args(home);
    flags.map(str::to_owned).into_iter().chain(oauth).collect()
}

/// Which of the tools a caller has: the one that works for all accounts, and those of two accounts.
fn tools_of(host: &Session, id: u64) -> String {
    let code = "const kind = name => { try { return typeof w[name] } catch { return 'undefined' } }; \
                return ['create', 'of_account_0', 'of_account_1'].map(kind).join('|')";
    text(&host.run(id, code)).to_owned()
}

/// Logs in through the host, and returns what the run returned.
fn log_in_at(host: &Session, server: &LoginServer) -> Value {
    let mut run = host.begin(1, "tools/call", &running("return await w.log_in({})"));
    let asked = run.told("elicitation/create");
    let page = server.browse(asked["params"]["url"].as_str().unwrap());
    assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
    run.answer(1)
}

#[test]
fn each_caller_has_its_own_login_and_list() {
    let (issuer, server) = (Issuer::start(), LoginServer::start());
    server.keep_accounts();
    let home = home(&server, "credentials = \"caller\"\n");
    let flags = flags(&issuer, &home);
    let serving = ServeProcess::start_in(home, &flags);
    let can = json!({"elicitation": {"url": {}}});
    let [alice, bob] = ["alice", "bob"].map(|it| serving.session_with_token(it, &can));
    let logged_in = log_in_at(&alice, &server);
    assert!(text(&logged_in).contains("has logged in"), "{logged_in}");
    let has = |host: &Session, id, expected: &str| {
        let found = tools_of(host, id);
        assert!(found.contains(expected), "{expected}: {found}");
    };
    has(&alice, 2, "function|function|undefined");
    // Nothing of Alice's login or list serves Bob.
    has(&bob, 3, "undefined|undefined|undefined");
    let _ = log_in_at(&bob, &server);
    has(&bob, 4, "function|undefined|function");
    let create = |host: &Session, id, title: &str| {
        let _ = host.call(
            100 + id,
            "get_tool_details",
            &json!({"tools": ["w.create"]}),
        );
        let made = host.run(id, &format!("return await w.create({{title: '{title}'}})"));
        assert!(text(&made).contains("made with"), "{made}");
    };
    create(&alice, 5, "alice");
    create(&bob, 6, "bob");
    create(&alice, 7, "alice");
    let again = serving.session_with_token("alice-again", &can);
    create(&again, 8, "alice");
    let calls = ["alice", "bob", "alice", "alice"];
    let account = |name: &str| usize::from(name == "bob");
    let calls = calls.map(|name| format!("{name} by account {}", account(name)));
    assert_eq!(server.calls(), calls);
    // Both logins survive the process.
    let serving = serving.restart(Signal::TERM, &flags);
    let bob = serving.session_with_token("bob", &can);
    create(&bob, 9, "bob");
    assert_eq!(server.calls().last().unwrap(), "bob by account 1");
    assert_eq!(server.requests_for("/authorize"), 2);
    serving.home.verify_all();
}

#[test]
fn all_callers_share_a_login_if_the_configuration_says_so() {
    let (issuer, server) = (Issuer::start(), LoginServer::start());
    server.keep_accounts();
    let home = home(&server, "credentials = \"shared\"\n");
    log_in(&home, &server);
    let flags = flags(&issuer, &home);
    let serving = ServeProcess::start_in(home, flags);
    for (id, who) in ["alice", "bob"].into_iter().enumerate() {
        let host = serving.session_with_token(who, &json!({}));
        let made = host.run(id as u64, "return await w.create({title: 'x'})");
        assert!(text(&made).contains("made with"), "{made}");
    }
    assert_eq!(server.calls(), ["x by account 0", "x by account 0"]);
}

#[test]
fn login_is_refused_if_the_configuration_says_nothing() {
    let (issuer, server) = (Issuer::start(), LoginServer::start());
    let home = home(&server, "");
    log_in(&home, &server);
    let args = ["serve", "--http", "127.0.0.1:0"].map(str::to_owned);
    let refused = home.run(args.into_iter().chain(flags(&issuer, &home)));
    let refused = refused
        .expect_code(2)
        .expect_stderr("all callers would share");
    refused.expect_stderr("set `credentials = \"caller\"`");
}
