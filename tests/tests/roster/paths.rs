//! Tests that paths are resolved for the tools with which the run was started.

use airlock::config::{Config, Environment, Flags};
use airlock::{Broker, Script};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::binary::workspace;
use tests::changing::{ChangingServer, tool};

use super::{offers, run, until, value};

/// Reading is allowed only inside the folder `project`.
const LABELS: &str = r#"
[labels.fs]
reads = []
writes = []
[labels.fs.tools.read]
paths = ["/path", "/paths/*"]
[roots]
project = "PROJECT"
"#;

/// Returns the tool `read`, with the arguments that the labels name.
fn reading() -> Value {
    let schema = json!({"type": "object", "properties": {"path": {}, "paths": {}}});
    json!({"name": "read", "inputSchema": schema})
}

/// Returns the outcome of reading a path.
const READ: &str =
    "const read = (path) => fs.read({ path }).then(() => 'returned', (e) => e.code);";

async fn broker(home: &TempDir, servers: &[&ChangingServer]) -> Broker {
    broker_with(home, servers, LABELS).await
}

async fn broker_with(home: &TempDir, servers: &[&ChangingServer], tables: &str) -> Broker {
    let project = home.path().join("project");
    std::fs::create_dir_all(&project).unwrap();
    let labels = home.path().join("labels.toml");
    let text = tables.replace("PROJECT", &project.display().to_string());
    std::fs::write(&labels, text).unwrap();
    let flags = Flags {
        servers: servers.iter().map(|it| it.flag()).collect(),
        policies: vec![workspace().join("policies")],
        labels: vec![labels],
        state_dir: Some(home.path().join("state")),
        ..Flags::default()
    };
    let config = Config::load(flags, &Environment::from([])).unwrap();
    let broker = Broker::builder().config(config).servers_join_later(true);
    broker.build().await.unwrap()
}

fn inside(home: &TempDir) -> String {
    home.path().join("project/a.txt").display().to_string()
}

#[tokio::test]
async fn server_joining_during_run_changes_no_path_roots() {
    let home = TempDir::new().unwrap();
    let fs = ChangingServer::new("fs", &[reading(), tool("wait")]);
    // This server sorts before `fs`, so all tool positions shift when it joins.
    let early = ChangingServer::new("aaa", &[reading(), tool("wait")]);
    early.put("hold");
    let broker = broker(&home, &[&fs, &early]).await;
    until(&broker, |it| offers(it, "fs.read")).await;
    let code = format!(
        "{READ} const before = [await read({0}), await read('/etc/passwd')]; \
         await fs.wait({{}}); return [before, [await read({0}), await read('/etc/passwd')]]",
        Value::from(inside(&home))
    );
    let running = broker.run(Script::body(code));
    fs.until("call wait", 1).await;
    early.take("hold");
    until(&broker, |it| offers(it, "aaa.read")).await;
    fs.put("go");
    let expected = json!(["returned", "unanswered"]);
    assert_eq!(value(&running.report().await), json!([expected, expected]));
    assert_eq!(fs.noted("call read"), 2, "calls inside `project`");
    broker.close().await;
}

/// The server may begin at another folder than airlock, such as the first one of its arguments.
#[tokio::test]
async fn relative_path_without_configured_base_is_outside_every_root() {
    // Wherever the relative path begins, it lies in this root.
    let everything = LABELS.replace("PROJECT", "/");
    let with_base = everything.replace("[labels.fs]", "[labels.fs]\npath_base = '/'");
    for (labels, expected) in [(everything, "unanswered"), (with_base, "returned")] {
        let home = TempDir::new().unwrap();
        let fs = ChangingServer::new("fs", &[reading()]);
        let broker = broker_with(&home, &[&fs], &labels).await;
        until(&broker, |it| offers(it, "fs.read")).await;
        let code = format!("{READ} return [await read('a.txt'), await read('/a.txt')]");
        let found = value(&run(&broker, &code).await);
        assert_eq!(found, json!([expected, "returned"]), "{labels}");
        broker.close().await;
    }
}

#[tokio::test]
async fn too_many_paths_do_not_hide_outside_one() {
    let home = TempDir::new().unwrap();
    let fs = ChangingServer::new("fs", &[reading()]);
    let broker = broker(&home, &[&fs]).await;
    until(&broker, |it| offers(it, "fs.read")).await;
    let code = "const paths = [...Array(10001).keys()].map(String).concat('~/x'); \
                return await fs.read({ paths }).then(() => 'returned', (e) => e.code)";
    assert_eq!(value(&run(&broker, code).await), "unanswered");
    assert_eq!(fs.noted("call read"), 0);
    broker.close().await;
}
