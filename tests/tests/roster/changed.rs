//! Servers whose tools are others by now: nothing leaves that was decided with what they said
//! before, whether or not what they say now could be taken in.

use airlock::config::{Config, Environment, Flags};
use airlock::core::problem::Problem;
use airlock::{Broker, Builder, Script, ServerState};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::changing::{Changing, redefined, tool};

use super::{offers, run, until, value};

const WRITE: &str = "return await fs.write({}).then(() => 'returned', (e) => e.code)";

fn builder(home: &TempDir, fs: &Changing) -> Builder {
    let builder = Broker::builder().state_dir(home.path()).server(fs.spec());
    builder.allow("*.*").unwrap().servers_join_later(true)
}

async fn connected(home: &TempDir, fs: &Changing) -> Broker {
    let broker = builder(home, fs).build().await.unwrap();
    until(&broker, |it| offers(it, "fs.write")).await;
    broker
}

/// It says that it has changed, which nobody has to have heard when its answer is there.
async fn changes(broker: &Broker) {
    let report = run(broker, "return (await fs.change({})) && 1").await;
    assert_eq!(value(&report), 1);
}

/// Both name a tool that the server will not have any more.
const RULES: &str = r#"
@id("all") @owner("tests") @reason("they are a test's own")
permit(principal, action in [Action::"fs.write", Action::"fs.gone", Action::"fs.change"], resource);
"#;
const LABELS: &str = "[labels.fs.tools.gone]\nwrites = []\n";

/// A configuration that names the tool `gone` in one way or the other, and a lock file.
fn naming_gone(home: &TempDir, fs: &Changing, by_rules: bool) -> Builder {
    let write = |name: &str, text: &str| {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let mut flags = Flags {
        servers: vec![fs.flag()],
        lock: Some(home.path().join("airlock.lock")),
        state_dir: Some(home.path().join("state")),
        ..Flags::default()
    };
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
async fn a_change_that_does_not_fit_the_configuration_hides_none_from_the_lock() {
    for by_rules in [true, false] {
        let home = TempDir::new().unwrap();
        let fs = Changing::new("fs", &[tool("write"), tool("gone"), tool("change")]);
        let plain = Broker::builder().state_dir(home.path().join("plain"));
        let plain = plain.server(fs.spec()).build().await.unwrap();
        std::fs::write(home.path().join("airlock.lock"), plain.lock().text()).unwrap();
        plain.close().await;
        let builder = || naming_gone(&home, &fs, by_rules);
        let broker = builder().build().await.unwrap();
        assert_eq!(value(&run(&broker, WRITE).await), "returned");
        broker.close().await;

        // Another process starts from what was remembered, and the server has changed meanwhile.
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
        assert_eq!(fs.noted("call write"), 1, "the one before");
        broker.close().await;
    }
}

#[tokio::test]
async fn a_server_that_is_started_anew_is_asked_what_it_is_before_anything_leaves() {
    let home = TempDir::new().unwrap();
    let fs = Changing::new("fs", &[tool("write"), tool("die")]);
    let broker = connected(&home, &fs).await;
    fs.lists(&[redefined("write"), tool("die")]);
    let code = format!("await fs.die({{}}).catch(() => 0); {WRITE}");
    assert_eq!(value(&run(&broker, &code).await), "description-changed");
    assert_eq!((fs.noted("start"), fs.noted("call write")), (2, 0));
    // The next run knows what the server says now.
    assert_eq!(value(&run(&broker, WRITE).await), "returned");
    broker.close().await;
}

#[tokio::test]
async fn a_call_in_a_run_of_before_does_not_leave_to_a_tool_of_now() {
    let home = TempDir::new().unwrap();
    let fs = Changing::new("fs", &[tool("write"), tool("change"), tool("wait")]);
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
async fn a_list_that_cannot_be_read_is_tried_again_and_nothing_leaves_meanwhile() {
    let home = TempDir::new().unwrap();
    let fs = Changing::new("fs", &[tool("write"), tool("change")]);
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
    // Nobody calls, and nobody says anything any more.
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
async fn a_server_of_the_newer_era_tells_of_a_change_because_somebody_listens() {
    let home = TempDir::new().unwrap();
    let fs = Changing::new("fs", &[tool("write"), tool("change")]);
    fs.put("newer");
    let broker = connected(&home, &fs).await;
    // Where it is late to say that it will tell, it is listed once more.
    assert_eq!(fs.noted("listen"), 1);
    fs.lists(&[tool("write"), tool("change"), tool("fly")]);
    changes(&broker).await;
    // What it said of how long its list holds would have been an hour.
    until(&broker, |it| offers(it, "fs.fly")).await;
    assert_eq!(fs.noted("listen"), 1);
    broker.close().await;
}

#[tokio::test]
async fn a_server_that_says_all_the_time_that_it_has_changed_can_be_called() {
    let home = TempDir::new().unwrap();
    let fs = Changing::new("fs", &[tool("write"), tool("change")]);
    let broker = connected(&home, &fs).await;
    let code = "const word = (p) => p.then(() => 1, (e) => e.code); \
        return await Promise.all([...Array(40).keys()].map((n) => word(n % 2 ? fs.change({}) : fs.write({}))))";
    let all: Vec<Value> = vec![json!(1); 40];
    assert_eq!(value(&run(&broker, code).await), json!(all));
    broker.close().await;
}
