//! Tests servers whose tools have changed. A call that was decided with the old descriptions is not
//! sent, whether or not the new descriptions could be loaded.

use airlock::config::{Config, Environment, Flags};
use airlock::core::problem::Problem;
use airlock::{Broker, Builder, Script, ServerState};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::changing::{ChangingServer, redefined, tool};

use super::{offers, run, until, value};

const WRITE: &str = "return await fs.write({}).then(() => 'returned', (e) => e.code)";

fn builder(home: &TempDir, fs: &ChangingServer) -> Builder {
    let builder = Broker::builder().state_dir(home.path()).server(fs.spec());
    builder.allow("*.*").unwrap().servers_join_later(true)
}

async fn connected(home: &TempDir, fs: &ChangingServer) -> Broker {
    let broker = builder(home, fs).build().await.unwrap();
    until(&broker, |it| offers(it, "fs.write")).await;
    broker
}

/// Makes the server announce a change. The broker may process the change only after it has received
/// the answer.
async fn changes(broker: &Broker) {
    let report = run(broker, "return (await fs.change({})) && 1").await;
    assert_eq!(value(&report), 1);
}

/// Both rules name a tool that the server is about to remove.
const RULES: &str = r#"
@id("all") @owner("tests") @reason("tools of a test")
permit(principal, action in [Action::"fs.write", Action::"fs.gone", Action::"fs.change"], resource);
"#;
const LABELS: &str = "[labels.fs.tools.gone]\nwrites = []\n";

/// Returns a configuration that names the tool `gone` in one of two ways, and a lock file.
fn naming_gone(home: &TempDir, fs: &ChangingServer, by_rules: bool) -> Builder {
    let write = |name: &str, text: &str| {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let mut flags = Flags {
        servers: vec![fs.flag()],
        state_dir: Some(home.path().join("state")),
        ..Flags::default()
    };
    flags.settings.tools.lock = Some(home.path().join("airlock.lock"));
    if by_rules {
        let rules = write("rules/all.cedar", RULES);
        flags.policies = vec![rules.parent().unwrap().to_owned()];
    } else {
        flags.labels = vec![write("labels.toml", LABELS)];
        flags.allow = vec!["*.*".to_owned()];
    }
    let config = Config::load(flags, &Environment::from([])).unwrap();
    Broker::builder().config(config)
}

#[tokio::test]
async fn unloadable_change_is_still_seen_by_lock() {
    for by_rules in [true, false] {
        let home = TempDir::new().unwrap();
        let fs = ChangingServer::new("fs", &[tool("write"), tool("gone"), tool("change")]);
        let plain = Broker::builder().state_dir(home.path().join("plain"));
        let plain = plain.server(fs.spec()).build().await.unwrap();
        std::fs::write(home.path().join("airlock.lock"), plain.lock().text()).unwrap();
        plain.close().await;
        let builder = || naming_gone(&home, &fs, by_rules);
        let broker = builder().build().await.unwrap();
        assert_eq!(value(&run(&broker, WRITE).await), "returned");
        broker.close().await;

        // Another process starts from the stored descriptions, and the server has changed
        // meanwhile.
        fs.lists(&[redefined("write"), tool("change")]);
        let broker = builder().servers_join_later(true).build().await.unwrap();
        let mut seen = broker.changes();
        let first = run(&broker, WRITE).await;
        if *seen.borrow_and_update() == 0 {
            seen.changed().await.unwrap();
        }
        let second = run(&broker, WRITE).await;
        for report in [first, second] {
            let report = serde_json::to_value(&report).unwrap();
            let word = report["value"].as_str().or(report["code"].as_str());
            let expected = ["description-changed", "server-unavailable", "check-failed"];
            assert!(expected.contains(&word.unwrap()), "{report}");
        }
        let is_said = |it: &Problem| it.to_string().contains("gone");
        assert!(broker.problems().iter().any(is_said), "{by_rules}");
        assert_eq!(fs.noted("call write"), 1, "only the earlier call");
        broker.close().await;
    }
}

#[tokio::test]
async fn restarted_server_is_relisted_before_calls() {
    let home = TempDir::new().unwrap();
    let fs = ChangingServer::new("fs", &[tool("write"), tool("die")]);
    let broker = connected(&home, &fs).await;
    fs.lists(&[redefined("write"), tool("die")]);
    let code = format!("await fs.die({{}}).catch(() => 0); {WRITE}");
    assert_eq!(value(&run(&broker, &code).await), "description-changed");
    assert_eq!((fs.noted("start"), fs.noted("call write")), (2, 0));
    // The next run knows the server's new description.
    assert_eq!(value(&run(&broker, WRITE).await), "returned");
    broker.close().await;
}

#[tokio::test]
async fn call_from_older_run_is_not_sent_to_changed_tool() {
    let home = TempDir::new().unwrap();
    let fs = ChangingServer::new("fs", &[tool("write"), tool("change"), tool("wait")]);
    let broker = connected(&home, &fs).await;
    let code = format!("await fs.change({{}}); await fs.wait({{}}); {WRITE}");
    let running = broker.run(Script::body(code));
    fs.until("call wait", 1).await;
    fs.lists(&[redefined("write"), tool("change"), tool("wait")]);
    changes(&broker).await;
    fs.put("go");
    assert_eq!(value(&running.report().await), "description-changed");
    assert_eq!(fs.noted("call write"), 0);
    broker.close().await;
}

#[tokio::test]
async fn unreadable_list_is_retried_and_blocks_calls() {
    let home = TempDir::new().unwrap();
    let fs = ChangingServer::new("fs", &[tool("write"), tool("change")]);
    let broker = connected(&home, &fs).await;
    fs.lists(&[redefined("write"), tool("change")]);
    fs.put("fail-list");
    changes(&broker).await;
    fs.until("list failed", 1).await;
    until(&broker, |it| {
        let servers = it.servers();
        matches!(&servers[0].state, ServerState::Unavailable(why) if why.contains("no list today"))
    })
    .await;
    let problems = broker.problems();
    let is_said = |it: &Problem| it.code == "server-unavailable" && it.what.contains("`fs`");
    assert!(problems.iter().any(is_said), "{problems:?}");
    assert_ne!(value(&run(&broker, WRITE).await), "returned");
    assert_eq!(fs.noted("call write"), 0);
    // No call is made and no notification is sent any more.
    fs.take("fail-list");
    until(&broker, |it| {
        it.servers()[0].state == ServerState::Connected
    })
    .await;
    assert_eq!(value(&run(&broker, WRITE).await), "returned");
    assert_eq!(broker.problems(), []);
    broker.close().await;
}

#[tokio::test]
async fn newer_era_server_notifies_subscribed_client() {
    let home = TempDir::new().unwrap();
    let fs = ChangingServer::new("fs", &[tool("write"), tool("change")]);
    fs.put("newer");
    let broker = connected(&home, &fs).await;
    // If the server confirms the subscription late, its list is fetched once more.
    assert_eq!(fs.noted("listen"), 1);
    fs.lists(&[tool("write"), tool("change"), tool("fly")]);
    changes(&broker).await;
    // The server declared that its list stays valid for an hour.
    until(&broker, |it| offers(it, "fs.fly")).await;
    assert_eq!(fs.noted("listen"), 1);
    broker.close().await;
}

#[tokio::test]
async fn constantly_changing_server_can_be_called() {
    let home = TempDir::new().unwrap();
    let fs = ChangingServer::new("fs", &[tool("write"), tool("change")]);
    let broker = connected(&home, &fs).await;
    let code = "const word = (p) => p.then(() => 1, (e) => e.code); \
        return await Promise.all([...Array(40).keys()].map((n) => word(n % 2 ? fs.change({}) : fs.write({}))))";
    let all: Vec<Value> = vec![json!(1); 40];
    assert_eq!(value(&run(&broker, code).await), json!(all));
    broker.close().await;
}
