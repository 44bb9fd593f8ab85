//! Sessions that continue: after restarts, across sessions of one caller, and when records are
//! lost. A decision never sees fewer labels than were read.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use airlock_core::decide::{Answer, Question};
use airlock_core::flow::{Declassification, LabelConfig, LabelRule};
use airlock_core::grant::{Scope, Terms};
use airlock_core::labels::{Label, Labels};
use airlock_core::policy::PolicyFile;
use tokio::sync::Notify;

use super::host::{Host, HostTransport, TestServer, tool};
use super::*;
use crate::approver::NeverApprover;
use crate::broker::{Broker, Builder, ToolFailure};
use crate::config::{FlowConfig, PolicyConfig};
use crate::host_record::HostRecords;

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
        let mut server = open(settings()).await;
        let mut host = server.host(way, json!({})).await;
        host.call("get_tool_details", json!({"tools": ["web.read"]}))
            .await;
        read(&mut host, "web").await;
        server.restart(labelled()).await;
        server.reconnect(&mut host).await;
        assert_eq!(carried(&mut host).await, labels(&["untrusted"]), "{way}");
        assert!(described(&mut host, "web.read").await, "{way}");
        assert!(!described(&mut host, "mail.read").await, "{way}");
    }
}

#[tokio::test]
async fn session_after_delete_starts_with_labels_of_caller() {
    let server = open(at_once()).await;
    let mut host = server.host_named("a", HTTP[0], json!({})).await;
    read(&mut host, "web").await;
    read(&mut host, "mail").await;
    host.end_session().await;
    let mut anew = server.host_named("a", HTTP[0], json!({})).await;
    let expected = labels(&["private", "private:mail", "untrusted"]);
    assert_eq!(carried(&mut anew).await, expected);
    // The labels apply to this caller in both eras, and to no other caller.
    let mut newer = server.host_named("a", HTTP[1], json!({})).await;
    assert_eq!(carried(&mut newer).await, expected);
    let mut other = server.host_named("b", HTTP[0], json!({})).await;
    assert_eq!(carried(&mut other).await, labels(&[]));
}

#[tokio::test]
async fn requests_of_a_caller_without_handle_share_one_session() {
    let server = open(settings()).await;
    let mut host = server.host(HTTP[1], json!({})).await;
    host.call("get_tool_details", json!({"tools": ["web.read"]}))
        .await;
    // Hosts do not send the handle back.
    host.handle = None;
    assert!(described(&mut host, "web.read").await);
    host.handle = None;
    assert_eq!(carried(&mut host).await, labels(&["untrusted"]));
    let mut other = server.host(HTTP[1], json!({})).await;
    assert!(!described(&mut other, "web.read").await);
    assert_eq!(carried(&mut other).await, labels(&[]));
}

#[tokio::test]
async fn host_with_a_session_per_call_keeps_disclosures_and_labels() {
    for way in [HTTP[0], LEGACY] {
        let server = open(settings()).await;
        let mut first = server.host_named("a", way, json!({})).await;
        first
            .call("get_tool_details", json!({"tools": ["web.read"]}))
            .await;
        drop(first);
        let mut second = server.host_named("a", way, json!({})).await;
        assert!(described(&mut second, "web.read").await, "{way}");
        drop(second);
        let mut third = server.host_named("a", way, json!({})).await;
        assert_eq!(carried(&mut third).await, labels(&["untrusted"]), "{way}");
    }
}

#[tokio::test]
async fn handle_gives_session_of_its_own() {
    for way in [HTTP[1], MODERN] {
        let server = open(at_once()).await;
        let mut own = server.host_named("a", way, json!({})).await;
        own.handle = Some("new".into());
        assert_eq!(carried(&mut own).await, labels(&[]), "{way}");
        let handle = own.handle.clone().unwrap();
        assert_ne!(handle, "new", "{way}");
        let mut shared = server.host_named("a", way, json!({})).await;
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
        let mut later = server.host_named("a", way, json!({})).await;
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
                let mut server = open(at_once()).await;
                let mut host = server.host_named("a", way, json!({})).await;
                read(&mut host, "web").await;
                for file in server.records() {
                    let is_caller = file.ends_with("caller.state");
                    if lost == "all" || is_caller == (lost == "caller") {
                        std::fs::remove_file(file).unwrap();
                    }
                }
                if restarts {
                    server.restart(labelled()).await;
                    server.reconnect(&mut host).await;
                }
                let found = carried(&mut host).await;
                assert_eq!(found, worst(), "{way} {lost} {restarts}");
            }
        }
    }
}

#[tokio::test]
async fn lost_key_refuses_handles_and_keeps_labels_of_caller() {
    let mut server = open(at_once()).await;
    let mut host = server.host_named("a", HTTP[1], json!({})).await;
    read(&mut host, "web").await;
    std::fs::remove_file(PathBuf::from(server.place()).join("serve/seal.key")).unwrap();
    server.restart(labelled()).await;
    server.reconnect(&mut host).await;
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
        let server = open(few.clone()).await;
        let mut host = server.host_named("victim", way, json!({})).await;
        host.call("get_tool_details", json!({"tools": ["web.read"]}))
            .await;
        read(&mut host, "web").await;
        for number in 0..30 {
            // Tries the same client again, and clients with other names.
            for name in ["flood".to_owned(), format!("flood {number}")] {
                let mut flood = server.host_named(&name, way, json!({})).await;
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
    let server = open(at_once()).await;
    let mut host = server.host(HTTP[1], json!({})).await;
    read(&mut host, "web").await;
    let key = PathBuf::from(server.place()).join("serve/seal.key");
    for file in server.records().into_iter().chain([key]) {
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
        let mut server = TestServer::built(asks(true), at_once()).await;
        let mut host = server.host(way, json!({})).await;
        let result = host.run(code).await;
        assert_eq!(result["structuredContent"]["value"], 1, "{way}: {result}");
        server.restart(asks(false)).await;
        server.reconnect(&mut host).await;
        let result = host.run(code).await;
        assert_eq!(result["structuredContent"]["value"], 1, "{way}: {result}");
        let mut other = server.host(way, json!({})).await;
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
    let server = TestServer::built(labelled().tool(login), progressive).await;
    for way in WAYS {
        let mut host = server.host(way, json!({})).await;
        let result = host.call("web_login", json!({"session": "s-1"})).await;
        assert!(!is_error(&result), "{way}: {result}");
    }
}

/// A direct call shares the grants of its session with all other direct calls of the same tool, in
/// both eras.
#[tokio::test]
async fn direct_calls_share_grants_of_their_session() {
    let progressive = ServeSettings {
        mode: ListMode::Progressive,
        ..at_once()
    };
    for way in WAYS {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let terms = || Terms {
            scope: Scope::Session,
            ..Terms::up_to(NonZeroU32::new(5).unwrap())
        };
        let approving = labelled().ask("clock.read").unwrap();
        let approving = approving.approver(move |_: Question| {
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Answer::Allow(terms()))
        });
        let never = || {
            labelled()
                .ask("clock.read")
                .unwrap()
                .approver(NeverApprover)
        };
        let mut server = TestServer::built(approving, progressive.clone()).await;
        let mut host = server.host(way, json!({})).await;
        for _ in 0..3 {
            let called = host.call("clock_read", json!({"text": "a"})).await;
            assert_eq!(called["structuredContent"]["text"], "a", "{way}: {called}");
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1, "{way}");
        // The grant covers the arguments that the person was asked about, and no script.
        let other = host.call("clock_read", json!({"text": "b"})).await;
        assert!(!is_error(&other), "{way}: {other}");
        assert_eq!(asked.load(Ordering::Relaxed), 2, "{way}");
        let run = host.run("return await clock.read({text: 'a'})").await;
        assert!(!is_error(&run), "{way}: {run}");
        assert_eq!(asked.load(Ordering::Relaxed), 3, "{way}");
        server.restart(never()).await;
        server.reconnect(&mut host).await;
        let call = json!({"text": "a"});
        if way.over == HostTransport::Http {
            // Two uses are left.
            for _ in 0..2 {
                let last = host.call("clock_read", call.clone()).await;
                assert!(!is_error(&last), "{way}: {last}");
            }
        }
        let over = host.call("clock_read", call.clone()).await;
        assert!(text(&over).contains("unanswered"), "{way}: {over}");
        let mut stranger = server.host(way, json!({})).await;
        let refused = stranger.call("clock_read", json!({"text": "b"})).await;
        assert!(text(&refused).contains("unanswered"), "{way}: {refused}");
    }
}

/// The person at the host gives such a grant in the form of the question.
#[tokio::test]
async fn host_gives_a_grant_for_direct_calls_of_the_session() {
    let progressive = ServeSettings {
        mode: ListMode::Progressive,
        ..at_once()
    };
    for way in WAYS {
        let builder = labelled().ask("clock.read").unwrap();
        let server = TestServer::built(builder.approver(NeverApprover), progressive.clone()).await;
        let mut host = server.host(way, json!({"elicitation": {"form": {}}})).await;
        let content = json!({"decision": "allow-session", "uses": 3});
        let answer = json!({"action": "accept", "content": content});
        let mut params = json!({"name": "clock_read", "arguments": {"text": "a"}});
        let first = match way.era {
            Era::Legacy => {
                let id = host.begin("tools/call", params.clone()).await;
                let asked = host.asked().await;
                assert_eq!(asked["method"], "elicitation/create", "{way}");
                let reply = json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer});
                host.say(&reply.to_string()).await;
                host.answer_to(id).await.unwrap()
            }
            Era::Modern => {
                let asked = host.request("tools/call", params.clone()).await.unwrap();
                assert_eq!(asked["resultType"], "input_required", "{way}: {asked}");
                params["requestState"] = asked["requestState"].clone();
                params["inputResponses"] = json!({"call-1": answer});
                host.request("tools/call", params).await.unwrap()
            }
        };
        assert_eq!(first["structuredContent"]["text"], "a", "{way}: {first}");
        for _ in 0..2 {
            let covered = host.call("clock_read", json!({"text": "a"})).await;
            assert_eq!(
                covered["structuredContent"]["text"], "a",
                "{way}: {covered}"
            );
        }
        // The uses are over, so the person is asked again.
        let params = json!({"name": "clock_read", "arguments": {"text": "a"}});
        match way.era {
            Era::Legacy => {
                host.begin("tools/call", params).await;
                let asked = host.asked().await;
                assert_eq!(asked["method"], "elicitation/create", "{way}: {asked}");
            }
            Era::Modern => {
                let asked = host.request("tools/call", params).await.unwrap();
                assert_eq!(asked["resultType"], "input_required", "{way}: {asked}");
            }
        }
    }
}

/// A person declassifies the session or the caller while the server runs. The next run starts
/// without the labels, and so does every run after a restart.
#[tokio::test]
async fn declassified_session_of_a_host_stays_declassified() {
    let declassification = || Declassification {
        labels: vec![Label::private()],
        counts: false,
        by: "Ann".into(),
        at_ms: 1,
    };
    for way in WAYS {
        for is_caller in [false, true] {
            let mut server = open(at_once()).await;
            let mut host = server.host_named("a", way, json!({})).await;
            read(&mut host, "web").await;
            read(&mut host, "mail").await;
            assert!(carried(&mut host).await.contains("private:mail"), "{way}");
            let records = HostRecords::states(&server.state()).unwrap();
            let [caller] = &records[..] else {
                panic!("{records:?}")
            };
            assert_eq!(
                caller.state.as_ref().unwrap().who.as_deref(),
                Some("client a")
            );
            let (session, _) = caller.sessions.first().unwrap();
            let record = HostRecords::existing(&server.state(), session.clone()).unwrap();
            if is_caller {
                record.declassify_caller(&declassification(), 1).unwrap();
            } else {
                record.declassify_session(declassification(), 1).unwrap();
            }
            assert_eq!(carried(&mut host).await, labels(&["untrusted"]), "{way}");
            server.restart(labelled()).await;
            server.reconnect(&mut host).await;
            // On stdio, the session ends with its process; the next one starts with its caller's labels.
            let is_left = is_caller || way.over == HostTransport::Http;
            let expected = match is_left {
                true => labels(&["untrusted"]),
                false => labels(&["private", "private:mail", "untrusted"]),
            };
            let run = host.run("return 1").await;
            let flow = &run["structuredContent"]["flow"];
            assert_eq!(flow["labels"], json!(expected), "{way} {is_caller}: {run}");
            if is_left {
                assert_eq!(flow["declassified"][0]["by"], "Ann", "{way}: {run}");
            }
            // What is read later has its labels again.
            read(&mut host, "mail").await;
            assert!(carried(&mut host).await.contains("private:mail"), "{way}");
        }
    }
}

/// A limit of calls counts over reconnections and restarts.
#[tokio::test]
async fn counts_continue_after_reconnecting() {
    let calls = |run: &Value| run["structuredContent"]["value"].clone();
    let rules = || {
        let text = "@id(\"few\")\n@owner(\"ops\")\n@reason(\"at most three\")\n\
                    permit(principal, action, resource) when { context.counts.calls_session < 3 };";
        labelled().policies(PolicyConfig {
            files: vec![PolicyFile {
                name: "few.cedar".into(),
                text: text.into(),
                tightens: false,
            }],
            needs_permit: true,
            ..PolicyConfig::default()
        })
    };
    let code = "try { await clock.read({}); return 'done' } catch (e) { return e.code }";
    for way in WAYS {
        let mut server = TestServer::built(rules(), at_once()).await;
        for expected in ["done", "done", "done", "denied", "denied"] {
            let mut host = server.host_named("a", way, json!({})).await;
            host.handle = Some("new".into());
            let run = host.run(code).await;
            assert_eq!(calls(&run), expected, "{way}: {run}");
            drop(host);
            server.restart(rules()).await;
        }
        let mut other = server.host_named("b", way, json!({})).await;
        let run = other.run(code).await;
        assert_eq!(calls(&run), "done", "{way}: {run}");
        // A lost record counts as the largest number.
        for file in server.records() {
            std::fs::remove_file(file).unwrap();
        }
        let run = other.run(code).await;
        assert_eq!(calls(&run), "denied", "{way}: {run}");
    }
}

/// Plays random sequences through whole conversations, `AIRLOCK_SEQUENCES` of them: reads, runs
/// that are killed, restarts, a second process, ends, idle times, clean-ups, and lost or damaged
/// files.
#[test]
fn no_conversation_ends_with_fewer_labels_than_were_read() {
    // A conversation mostly waits.
    const AT_ONCE: u64 = 32;
    let count = std::env::var("AIRLOCK_SEQUENCES").ok();
    let count = count.map_or(24, |it| it.parse::<u64>().unwrap());
    let play = |seed| {
        // Everything that a conversation has started ends with its runtime.
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all();
        let runtime = runtime.build().unwrap();
        runtime.block_on(async { Conversation::open(seed).await.play().await });
    };
    std::thread::scope(|scope| {
        for first in 0..AT_ONCE {
            scope.spawn(move || (first..count).step_by(AT_ONCE as usize).for_each(play));
        }
    });
}

/// A host in a random conversation, and the labels that it has read.
struct Conversation {
    way: HostKind,
    server: TestServer,
    /// Servers in the same folder that still run.
    others: Vec<TestServer>,
    host: Host,
    /// What the session of the host has read.
    known: BTreeSet<String>,
    /// What the shared session has read, while the host uses a session of its own.
    known_of_shared: Option<BTreeSet<String>>,
    /// Is notified when a call arrives that is never answered.
    silent: Arc<Notify>,
    random: u64,
    log: Vec<String>,
}

impl Conversation {
    async fn open(seed: u64) -> Self {
        let way = WAYS[(seed % 4) as usize];
        let settings = ServeSettings {
            session_idle: Duration::from_secs(3_600),
            labels_keep: Some(Duration::from_secs(24 * 3_600)),
            ..at_once()
        };
        let silent = Arc::new(Notify::new());
        let server = TestServer::built(labelled_and_silent(&silent), settings).await;
        let host = server.host_named("a", way, json!({})).await;
        Self {
            way,
            server,
            others: Vec::new(),
            host,
            known: BTreeSet::new(),
            known_of_shared: None,
            silent,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            log: vec![format!("seed {seed} {way}")],
        }
    }

    /// Returns a random number below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % end as u64) as usize
    }

    async fn play(mut self) {
        for _ in 0..8 {
            self.step().await;
            let run = self.run("return 1").await;
            let found = &run["structuredContent"]["flow"]["labels"];
            let found: BTreeSet<String> = serde_json::from_value(found.clone()).unwrap();
            let (known, log) = (&self.known, &self.log);
            assert!(known.is_subset(&found), "{found:?} {known:?} {log:?}");
        }
    }

    async fn step(&mut self) {
        let event = self.below(14);
        self.log.push(event.to_string());
        match event {
            0..=2 => {
                let (code, words) = self.a_read();
                let result = self.run(&format!("await {code}; return 1")).await;
                let status = &result["structuredContent"]["status"];
                assert_eq!(status, "done", "{result} {:?}", self.log);
                self.known.extend(labels(words));
            }
            3 => {
                self.server.restart(labelled_and_silent(&self.silent)).await;
                self.server.reconnect(&mut self.host).await;
            }
            4 => {
                self.end_session().await;
                self.connect().await;
            }
            5 if self.way.era == Era::Modern => self.use_shared_session(),
            6 if self.way.era == Era::Modern && self.known_of_shared.is_none() => {
                self.known_of_shared = Some(self.known.clone());
                self.host.handle = Some("new".into());
            }
            7 => self.lose_file(),
            8 => self.server.clean_up().await,
            9 => {
                let builder = labelled_and_silent(&self.silent);
                let second = self.server.second(builder).await;
                let first = std::mem::replace(&mut self.server, second);
                self.others.push(first);
                self.server.reconnect(&mut self.host).await;
            }
            10 if !self.others.is_empty() => {
                let at = self.below(self.others.len());
                std::mem::swap(&mut self.server, &mut self.others[at]);
                self.server.reconnect(&mut self.host).await;
            }
            11 => {
                // Everything rests for longer than a session lasts.
                self.others.clear();
                self.server.end();
                self.server.age_records(2 * 3_600_000);
                self.server.restart(labelled_and_silent(&self.silent)).await;
                self.server.reconnect(&mut self.host).await;
            }
            _ => self.kill_during_run().await,
        }
    }

    fn a_read(&mut self) -> (&'static str, &'static [&'static str]) {
        let reads: [(_, &[_]); 3] = [
            ("web.read({})", &["untrusted"]),
            ("mail.read({})", &["private", "private:mail"]),
            ("notes.read({})", &["private", "private:notes"]),
        ];
        reads[self.below(reads.len())]
    }

    /// Continues without the handle of the host's own session.
    fn use_shared_session(&mut self) {
        self.host.handle = None;
        if let Some(known) = self.known_of_shared.take() {
            self.known = known;
        }
    }

    async fn connect(&mut self) {
        self.use_shared_session();
        self.host = self.server.host_named("a", self.way, json!({})).await;
    }

    /// Runs a script, in a new session if the session is over.
    async fn run(&mut self, code: &str) -> Value {
        let params = json!({"name": "run_script", "arguments": {"code": code}});
        match self.host.request("tools/call", params.clone()).await {
            Ok(result) => result,
            Err(error) => {
                assert_eq!(error["message"], "the session is over", "{:?}", self.log);
                self.connect().await;
                self.host.request("tools/call", params).await.unwrap()
            }
        }
    }

    async fn end_session(&mut self) {
        // A session that is over already cannot be ended.
        self.run("return 1").await;
        self.host.end_session().await;
    }

    fn lose_file(&mut self) {
        let files = self.server.records();
        if files.is_empty() {
            return;
        }
        let file = &files[self.below(files.len())];
        match self.below(3) {
            0 => std::fs::write(file, "{\"digest\"").unwrap(),
            // A server that has just ended may still replace the file.
            _ => drop(std::fs::remove_file(file)),
        }
    }

    /// Kills the server while a run waits for a call, after the run has read something.
    async fn kill_during_run(&mut self) {
        let (code, words) = self.a_read();
        // A run of a session that is over would not begin.
        self.run("return 1").await;
        let code = format!("await {code}; await clock.silent({{}})");
        let params = json!({"name": "run_script", "arguments": {"code": code}});
        self.host.begin("tools/call", params).await;
        self.silent.notified().await;
        let builder = labelled_and_silent(&self.silent);
        let killed = self.server.after_kill(builder).await;
        self.server.end();
        self.others.clear();
        self.server = killed;
        self.server.reconnect(&mut self.host).await;
        self.known.extend(labels(words));
    }
}

/// Adds a tool that never answers.
fn labelled_and_silent(called: &Arc<Notify>) -> Builder {
    let called = Arc::clone(called);
    let silent = move |_: Value| {
        called.notify_one();
        std::future::pending::<Result<Value, ToolFailure>>()
    };
    labelled().tool(tool("clock", "silent", "Never answers.", silent))
}
