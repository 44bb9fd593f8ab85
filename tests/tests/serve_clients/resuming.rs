//! Hosts on the official SDKs resume runs: a failed one with a corrected script, and a paused one in
//! a new session of another process and era.

use serde_json::Value;
use tests::command::{Home, start};
use tests::counting::{config, made};
use tests::real_hosts::{RealHosts, installed};
use tests::serving::{CONFIGURED, ServeProcess};

use crate::{HostEra, arguments_of, script};

#[derive(Clone, Copy)]
enum Sdk {
    Python,
    TypeScript,
}

/// A home whose server `w` has a third tool, `ask`, which needs approval.
fn scene() -> Home {
    let home = Home::new();
    let config = config(&home, "server.sh", "");
    let server = std::fs::read_to_string(home.path().join("server.sh")).unwrap();
    let create = r#""name":"create""#;
    let tool = server.lines().find(|line| line.contains(create)).unwrap();
    let begin = tool.find("[{").unwrap() + 1;
    let end = tool[begin..].find("},{").unwrap() + begin + 1;
    let ask = tool[begin..end].replace(create, r#""name":"ask""#);
    let with_ask = server.replacen(
        &tool[begin..end],
        &format!("{},{ask}", &tool[begin..end]),
        1,
    );
    home.write("server.sh", with_ask);
    let rules = "[rules]\nallow = [\"w.create\", \"w.read\"]\nask = [\"w.ask\"]\n";
    home.write(
        "airlock.toml",
        format!("approver = \"later\"\n{config}{rules}"),
    );
    home
}

fn host(
    (hosts, sdk): (&RealHosts, Sdk),
    speaks: HostEra,
    name: &str,
    serving: &ServeProcess,
    step: &str,
) -> Value {
    let mut command = match sdk {
        Sdk::Python => hosts.python(&script("resuming.py")),
        Sdk::TypeScript => hosts.node(&script("resuming.mjs")),
    };
    serving.home.dress(&mut command);
    command.args([arguments_of(speaks), name, &serving.url(), step]);
    start(&mut command, "").wait().expect_code(0).json()
}

fn resumes(sdk: Sdk, first: HostEra, second: HostEra) {
    let Some(hosts) = installed() else { return };
    let with = (hosts, sdk);
    let serving = ServeProcess::start_in(scene(), CONFIGURED);
    let seen = host(with, first, "ada", &serving, "begin");
    let failed = seen["failed"].as_str().unwrap();
    assert!(failed.contains("call run_script with resume"), "{seen}");
    assert_eq!(seen["corrected"]["value"], "made r".len(), "{seen}");
    assert_eq!(seen["corrected"]["reused"], 2, "{seen}");
    assert_eq!(seen["paused"]["status"], "paused", "{seen}");
    assert_eq!(made(&serving.home), ["r", "a"]);
    let run = seen["paused"]["run"].as_str().unwrap();

    let other = host(with, second, "eve", &serving, run);
    let text = other["resumed"]["text"].as_str().unwrap();
    assert!(text.contains("no run"), "{other}");
    let waiting = serving.home.run(["runs", "waiting", "--json"]).json();
    let call = waiting["waiting"][0]["questions"][0]["call"]
        .as_str()
        .unwrap();
    let answered = serving.home.run(["runs", "answer", call, "allow"]);
    answered.expect_code(0);
    let serving = serving.restart(rustix::process::Signal::TERM, CONFIGURED);
    let resumed = host(with, second, "ada", &serving, run);
    assert_eq!(resumed["resumed"]["report"]["value"], "made b", "{resumed}");
    assert_eq!(made(&serving.home), ["r", "a", "b"]);
    serving.home.verify_all();
}

#[test]
fn python_sdk_resumes_runs_across_eras() {
    resumes(Sdk::Python, HostEra::Older, HostEra::Newer);
    resumes(Sdk::Python, HostEra::Newer, HostEra::Older);
}

#[test]
fn typescript_sdk_resumes_runs_across_eras() {
    resumes(Sdk::TypeScript, HostEra::Older, HostEra::Newer);
    resumes(Sdk::TypeScript, HostEra::Newer, HostEra::Older);
}
