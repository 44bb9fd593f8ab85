//! Sessions that continue: after restarts, across sessions of one caller, and when records are
//! lost. A decision never sees fewer labels than were read.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::PathBuf;

use airlock_core::decide::{Answer, Question};
use airlock_core::flow::{LabelConfig, LabelRule};
use airlock_core::grant::{Scope, Terms};
use airlock_core::labels::{Label, Labels};

use super::host::{Host, HostTransport, TestServer, tool};
use super::*;
use crate::approver::NeverApprover;
use crate::broker::{Broker, Builder};
use crate::config::FlowConfig;

const HTTP: [HostKind; 2] = [
    HostKind {
        over: HostTransport::Http,
        ..LEGACY
    },
    HostKind {
        over: HostTransport::Http,
        ..MODERN
    },
];

fn rule(server: &str, words: &[&str]) -> LabelRule {
    let reads = words.iter().map(|word| Label::parse(word).unwrap());
    LabelRule {
        server: server.into(),
        reads: Some(reads.collect::<Labels>()),
        tools: None,
        writes: None,
        destinations: None,
        fixed_destination: None,
        paths: None,
        origin: String::new(),
    }
}

/// Builds a broker whose tools read data with different labels.
fn labelled() -> Builder {
    let label_config = LabelConfig(vec![
        rule("web", &["untrusted"]),
        rule("mail", &["private:mail"]),
        rule("notes", &["private:notes"]),
        rule("clock", &[]),
    ]);
    let flow = FlowConfig {
        label_config,
        ..FlowConfig::default()
    };
    let mut builder = Broker::builder().flow(flow).discovery(true);
    for server in ["web", "mail", "notes", "clock"] {
        let echo = async |args: Value| Ok(args);
        builder = builder.tool(tool(server, "read", "Returns its arguments.", echo));
    }
    builder
}

fn at_once() -> ServeSettings {
    ServeSettings {
        disclosure: Disclosure::Full,
        ..settings()
    }
}

async fn open(settings: ServeSettings) -> TestServer {
    TestServer::built(labelled(), settings).await
}

async fn read(host: &mut Host, server: &str) {
    let result = host.run(&format!("await {server}.read({{}})")).await;
    assert_eq!(result["structuredContent"]["status"], "done", "{result}");
}

/// Returns the labels with which the next run starts.
async fn carried(host: &mut Host) -> BTreeSet<String> {
    let run = host.run("return 1").await;
    let labels = &run["structuredContent"]["flow"]["labels"];
    let labels = serde_json::from_value(labels.clone());
    labels.unwrap_or_else(|_| panic!("no labels: {run}"))
}

fn labels(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|it| (*it).to_owned()).collect()
}

fn worst() -> BTreeSet<String> {
    labels(&["private", "private:mail", "private:notes", "untrusted"])
}

async fn described(host: &mut Host, name: &str) -> bool {
    let code = format!("await {name}({{}})");
    let result = host.run(&code).await;
    !text(&result).contains("TOOL_DESCRIPTION_REQUIRED")
}

#[tokio::test]
async fn restart_continues_session() {
    for way in WAYS {
        let mut house = open(settings()).await;
        let mut host = house.host(way, json!({})).await;
        host.call("get_tool_details", json!({"tools": ["web.read"]}))
            .await;
        read(&mut host, "web").await;
        house.restart(labelled()).await;
        house.reconnect(&mut host).await;
        assert_eq!(carried(&mut host).await, labels(&["untrusted"]), "{way}");
        assert!(described(&mut host, "web.read").await, "{way}");
        assert!(!described(&mut host, "mail.read").await, "{way}");
    }
}

#[tokio::test]
async fn session_after_delete_starts_with_labels_of_caller() {
    let house = open(at_once()).await;
    let mut host = house.host_named("a", HTTP[0], json!({})).await;
    read(&mut host, "web").await;
    read(&mut host, "mail").await;
    host.end_session().await;
    let mut anew = house.host_named("a", HTTP[0], json!({})).await;
    let expected = labels(&["private", "private:mail", "untrusted"]);
    assert_eq!(carried(&mut anew).await, expected);
    // The labels count for this caller, in both eras, and for no other.
    let mut newer = house.host_named("a", HTTP[1], json!({})).await;
    assert_eq!(carried(&mut newer).await, expected);
    let mut other = house.host_named("b", HTTP[0], json!({})).await;
    assert_eq!(carried(&mut other).await, labels(&[]));
}

#[tokio::test]
async fn requests_of_a_caller_without_handle_share_one_session() {
    let house = open(settings()).await;
    let mut host = house.host(HTTP[1], json!({})).await;
    host.call("get_tool_details", json!({"tools": ["web.read"]}))
        .await;
    // Hosts do not send the handle back.
    host.handle = None;
    assert!(described(&mut host, "web.read").await);
    host.handle = None;
    assert_eq!(carried(&mut host).await, labels(&["untrusted"]));
    let mut other = house.host(HTTP[1], json!({})).await;
    assert!(!described(&mut other, "web.read").await);
    assert_eq!(carried(&mut other).await, labels(&[]));
}

#[tokio::test]
async fn host_with_a_session_per_call_keeps_disclosures_and_labels() {
    for way in [HTTP[0], LEGACY] {
        let house = open(settings()).await;
        let mut first = house.host_named("a", way, json!({})).await;
        first
            .call("get_tool_details", json!({"tools": ["web.read"]}))
            .await;
        drop(first);
        let mut second = house.host_named("a", way, json!({})).await;
        assert!(described(&mut second, "web.read").await, "{way}");
        drop(second);
        let mut third = house.host_named("a", way, json!({})).await;
        assert_eq!(carried(&mut third).await, labels(&["untrusted"]), "{way}");
    }
}

#[tokio::test]
async fn handle_gives_session_of_its_own() {
    for way in [HTTP[1], MODERN] {
        let house = open(at_once()).await;
        let mut own = house.host_named("a", way, json!({})).await;
        own.handle = Some("new".into());
        assert_eq!(carried(&mut own).await, labels(&[]), "{way}");
        let handle = own.handle.clone().unwrap();
        assert_ne!(handle, "new", "{way}");
        let mut shared = house.host_named("a", way, json!({})).await;
        read(&mut shared, "web").await;
        assert_eq!(carried(&mut own).await, labels(&[]), "{way}");
        read(&mut own, "mail").await;
        if way.over == HostTransport::Http {
            shared.handle = None;
            assert_eq!(carried(&mut shared).await, labels(&["untrusted"]), "{way}");
            // The argument of a tool names the session too.
            shared.handle = None;
            let args = json!({"code": "return 1", "session": handle});
            let run = shared.call("run_script", args).await;
            let found = &run["structuredContent"]["flow"]["labels"];
            assert_eq!(*found, json!(["private", "private:mail"]), "{run}");
        }
        let mut later = house.host_named("a", way, json!({})).await;
        later.handle = Some("new".into());
        let expected = labels(&["private", "private:mail", "untrusted"]);
        assert_eq!(carried(&mut later).await, expected, "{way}");
    }
}

#[tokio::test]
async fn lost_record_counts_as_worst() {
    for way in HTTP {
        for lost in ["session", "caller", "all"] {
            for restarts in [false, true] {
                let mut house = open(at_once()).await;
                let mut host = house.host_named("a", way, json!({})).await;
                read(&mut host, "web").await;
                for file in house.records() {
                    let is_caller = file.ends_with("caller.state");
                    if lost == "all" || is_caller == (lost == "caller") {
                        std::fs::remove_file(file).unwrap();
                    }
                }
                if restarts {
                    house.restart(labelled()).await;
                    house.reconnect(&mut host).await;
                }
                let found = carried(&mut host).await;
                assert_eq!(found, worst(), "{way} {lost} {restarts}");
            }
        }
    }
}

#[tokio::test]
async fn lost_key_refuses_handles_and_keeps_labels_of_caller() {
    let mut house = open(at_once()).await;
    let mut host = house.host_named("a", HTTP[1], json!({})).await;
    read(&mut host, "web").await;
    std::fs::remove_file(PathBuf::from(house.place()).join("serve/seal.key")).unwrap();
    house.restart(labelled()).await;
    house.reconnect(&mut host).await;
    let params = json!({"name": "run_script", "arguments": {"code": "return 1"}});
    let refused = host.request("tools/call", params).await.unwrap_err();
    assert_eq!(refused["code"], -32_602, "{refused}");
    host.handle = None;
    assert_eq!(carried(&mut host).await, labels(&["untrusted"]));
}

#[tokio::test]
async fn one_client_cannot_push_out_sessions_of_others() {
    let few = ServeSettings {
        sessions_max: 8,
        ..settings()
    };
    for way in HTTP {
        let house = open(few.clone()).await;
        let mut host = house.host_named("victim", way, json!({})).await;
        host.call("get_tool_details", json!({"tools": ["web.read"]}))
            .await;
        read(&mut host, "web").await;
        for number in 0..30 {
            // The same client again, and clients with other names.
            for name in ["flood".to_owned(), format!("flood {number}")] {
                let mut flood = house.host_named(&name, way, json!({})).await;
                flood.handle = Some("new".into());
                carried(&mut flood).await;
            }
        }
        assert!(described(&mut host, "web.read").await, "{way}");
        assert_eq!(carried(&mut host).await, labels(&["untrusted"]), "{way}");
    }
}

#[tokio::test]
async fn state_files_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let house = open(at_once()).await;
    let mut host = house.host(HTTP[1], json!({})).await;
    read(&mut host, "web").await;
    let key = PathBuf::from(house.place()).join("serve/seal.key");
    for file in house.records().into_iter().chain([key]) {
        let mode =
            |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600, "{}", file.display());
        assert_eq!(mode(file.parent().unwrap()), 0o700, "{}", file.display());
    }
}

#[tokio::test]
async fn grants_of_a_session_continue_with_it() {
    let asks = |approver: bool| {
        let builder = labelled().ask("clock.read").unwrap();
        if !approver {
            return builder.approver(NeverApprover);
        }
        let terms = || Terms {
            scope: Scope::Session,
            ..Terms::up_to(NonZeroU32::new(5).unwrap())
        };
        builder.approver(move |_: Question| std::future::ready(Answer::Allow(terms())))
    };
    let code = "return (await clock.read({})) && 1";
    for way in HTTP {
        let mut house = TestServer::built(asks(true), at_once()).await;
        let mut host = house.host(way, json!({})).await;
        let result = host.run(code).await;
        assert_eq!(result["structuredContent"]["value"], 1, "{way}: {result}");
        house.restart(asks(false)).await;
        house.reconnect(&mut host).await;
        let result = host.run(code).await;
        assert_eq!(result["structuredContent"]["value"], 1, "{way}: {result}");
        let mut other = house.host(way, json!({})).await;
        let result = other.run(code).await;
        assert_eq!(result["structuredContent"]["code"], "unanswered", "{way}");
    }
}

#[tokio::test]
async fn argument_of_servers_tool_names_no_session() {
    let echo = async |args: Value| Ok(args);
    let schema = json!({"type": "object", "properties": {"session": {"type": "string"}}});
    let description = json!({"name": "login", "inputSchema": schema});
    let login = crate::broker::InProcessTool::new("web", description, echo);
    let progressive = ServeSettings {
        mode: ListMode::Progressive,
        ..at_once()
    };
    let house = TestServer::built(labelled().tool(login), progressive).await;
    for way in WAYS {
        let mut host = house.host(way, json!({})).await;
        let result = host.call("web_login", json!({"session": "s-1"})).await;
        assert!(!is_error(&result), "{way}: {result}");
    }
}

/// Random sequences of requests, restarts and losses through whole conversations. The model of the
/// records plays many more of them.
#[tokio::test]
async fn no_conversation_ends_with_fewer_labels_than_were_read() {
    let count = std::env::var("AIRLOCK_SEQUENCES").ok();
    let count = count.map_or(150, |it| it.parse::<u64>().unwrap()) / 30;
    for seed in 0..count.max(4) {
        conversation(seed).await;
    }
}

async fn conversation(seed: u64) {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = move |end: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % end
    };
    let way = WAYS[(seed % 4) as usize];
    let mut house = open(at_once()).await;
    let mut host = house.host_named("a", way, json!({})).await;
    let mut known = BTreeSet::new();
    let mut log = vec![format!("seed {seed} {way}")];
    for _ in 0..10 {
        let event = below(8);
        log.push(event.to_string());
        match event {
            0..=2 => {
                let (server, words) = [
                    ("web", vec!["untrusted"]),
                    ("mail", vec!["private", "private:mail"]),
                    ("notes", vec!["private", "private:notes"]),
                ][event as usize]
                    .clone();
                read(&mut host, server).await;
                known.extend(labels(&words));
            }
            3 => {
                house.restart(labelled()).await;
                house.reconnect(&mut host).await;
            }
            4 => {
                host.end_session().await;
                host = house.host_named("a", way, json!({})).await;
            }
            5 => host.handle = None,
            _ => {
                let files = house.records();
                if !files.is_empty() {
                    let file = &files[below(files.len() as u64) as usize];
                    std::fs::remove_file(file).unwrap();
                }
            }
        }
        let found = carried(&mut host).await;
        assert!(known.is_subset(&found), "{found:?} {known:?} {log:?}");
    }
}
