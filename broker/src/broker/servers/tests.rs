//! Tests of idle and unreachable servers. The clock of these tests stands still while any task
//! works.

use std::sync::Mutex as Lock;

use airlock_core::flow::LabelConfig;
use airlock_core::id::ToolName;
use serde_json::Value;
use tokio::time::Instant;

use super::*;
use crate::broker::registry::OpenedToolFiles;
use crate::broker::server_registry::ServerRegistry;
use crate::broker::sources::ToolSources;
use crate::broker::tool_checks::CheckRegistry;
use crate::config::{PolicyConfig, ServerConfig, UnknownKeys};
use crate::listing_file::ListingStore;
use crate::secrets::Secrets;
use crate::target_key::TargetKey;
use crate::tempdir::TempDir;
use crate::upstream::Era;
use crate::upstream::era::EraChoice;
use crate::upstream::tests::fake::{ConnectedFake, FakeReply, FakeServer, legacy, text, words};

const IDLE: Duration = Duration::from_secs(60);
const MOMENT: Duration = Duration::from_secs(1);

struct Stage {
    servers: Arc<Servers>,
    connected: ConnectedFake,
    _scratch: TempDir,
}

impl Stage {
    fn new(mut fake: FakeServer, idle: Option<Duration>) -> Self {
        fake.spec.era = EraChoice::Pinned(Era::Legacy);
        let scratch = TempDir::new();
        let server = ServerConfig {
            idle,
            ..ServerConfig::new(fake.spec.clone())
        };
        let listings = ListingStore::new(scratch.path());
        let stored = (listings, TargetKey::open(scratch.path()).unwrap());
        let server_registry = ServerRegistry::new(vec![server], None, Secrets::default(), stored);
        let sources = ToolSources {
            own: Vec::new(),
            label_config: Arc::new(LabelConfig::default()),
            policies: PolicyConfig::default(),
            rules: Vec::new(),
            approver_is_there: false,
        };
        let opened = OpenedToolFiles::open(None).unwrap();
        let checks = CheckRegistry::new(UnknownKeys::Warn);
        let registry = ToolRegistry::new(sources, server_registry, opened, checks).unwrap();
        let (connected, server) = fake.server();
        let upstream = Upstream::of_fakes(vec![server]);
        let idle = [(name(), idle)].into_iter();
        Self {
            servers: Servers::new(upstream, registry, idle, Handle::current()),
            connected,
            _scratch: scratch,
        }
    }

    fn state(&self) -> ServerState {
        self.servers.state(&name()).unwrap()
    }

    fn call(&self, within: Duration) -> impl Future<Output = Reply> + Send + use<> {
        let tool = ToolName("t".into());
        let upstream = self.servers.upstream();
        upstream.call(&name(), &tool, b"{}".to_vec(), within)
    }

    async fn joined(&self) {
        assert_eq!(self.servers.join(&name()).await, Ok(()));
        assert_eq!(self.state(), ServerState::Connected);
    }
}

fn name() -> ServerName {
    ServerName("fake".into())
}

/// Returns a server that answers each call after this duration.
fn answering(after: Duration) -> FakeServer {
    FakeServer::calling(move |_, message| vec![FakeReply::After(after, text(message, "done"))])
}

#[tokio::test(start_paused = true)]
async fn idle_server_is_disconnected_and_reconnected_on_call() {
    let stage = Stage::new(answering(Duration::ZERO), Some(IDLE));
    assert_eq!(stage.state(), ServerState::OnDemand);
    for connects in 1..=3 {
        stage.joined().await;
        assert_eq!(stage.connected.dials(), connects);
        sleep(IDLE - MOMENT).await;
        assert_eq!(stage.state(), ServerState::Connected);
        sleep(2 * MOMENT).await;
        assert_eq!(stage.state(), ServerState::OnDemand);
        // The server stays disconnected, and its tools stay known.
        sleep(10 * IDLE).await;
        assert_eq!(stage.connected.dials(), connects);
        let known = stage.servers.registry.last().1;
        assert_eq!(known.servers[0].tools, Some(1));
    }
}

#[tokio::test(start_paused = true)]
async fn in_flight_call_delays_idle_timeout() {
    const TAKES: Duration = Duration::from_secs(10 * IDLE.as_secs());
    let stage = Stage::new(answering(TAKES), Some(IDLE));
    stage.joined().await;
    sleep(IDLE - MOMENT).await;
    let call = tokio::spawn(stage.call(2 * TAKES));
    // Only the time without calls counts, so one call may take any time.
    sleep(TAKES - MOMENT).await;
    assert_eq!(stage.state(), ServerState::Connected);
    assert_eq!(words(&call.await.unwrap()), "done");
    sleep(IDLE - 2 * MOMENT).await;
    assert_eq!(stage.state(), ServerState::Connected);
    // Idleness is checked again after the time that was left at the last check.
    sleep(IDLE + 2 * MOMENT).await;
    assert_eq!(stage.state(), ServerState::OnDemand);
    assert_eq!(stage.connected.dials(), 1);
}

#[tokio::test(start_paused = true)]
async fn call_during_idle_disconnect_reconnects_and_runs_once() {
    let stage = Stage::new(answering(Duration::ZERO), Some(IDLE));
    stage.joined().await;
    sleep(IDLE + MOMENT).await;
    assert_eq!(stage.state(), ServerState::OnDemand);
    stage.joined().await;
    assert_eq!(words(&stage.call(MOMENT).await), "done");
    assert_eq!(stage.connected.heard("tools/call").len(), 1);
    assert_eq!(stage.connected.dials(), 2);
    sleep(2 * (IDLE + MOMENT)).await;
    assert_eq!(stage.state(), ServerState::OnDemand);
}

/// Returns a server that ends its first `times` connections at once, and the times of all
/// connections.
fn failing(times: usize) -> (FakeServer, Arc<Lock<Vec<Instant>>>) {
    let dialled: Arc<Lock<Vec<Instant>>> = Arc::default();
    let noted = Arc::clone(&dialled);
    let fake = FakeServer::new(move |_, message: &Value| {
        if message["method"] == "initialize" {
            let mut noted = noted.lock().unwrap();
            noted.push(Instant::now());
            if noted.len() <= times {
                return vec![FakeReply::Die];
            }
        }
        legacy(message).unwrap_or_default()
    });
    (fake, dialled)
}

#[tokio::test(start_paused = true)]
async fn unreachable_server_is_retried_with_backoff() {
    const FAILURES: usize = 12;
    let (fake, dialled) = failing(FAILURES);
    let stage = Stage::new(fake, None);
    assert_eq!(stage.state(), ServerState::Starting);
    stage.servers.start();
    sleep(MOMENT).await;
    assert!(matches!(stage.state(), ServerState::Unavailable(_)));
    // Longer than all pauses together.
    sleep(RETRY_LAST * u32::try_from(FAILURES).unwrap()).await;
    assert_eq!(stage.state(), ServerState::Connected);
    let dialled = dialled.lock().unwrap();
    let pauses: Vec<u64> = dialled
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_secs())
        .collect();
    let expected = [2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300];
    assert_eq!(pauses, expected);
}

#[tokio::test(start_paused = true)]
async fn unreachable_on_demand_server_is_not_retried_until_needed() {
    let (fake, dialled) = failing(1);
    let stage = Stage::new(fake, Some(IDLE));
    assert!(stage.servers.join(&name()).await.is_err());
    assert!(matches!(stage.state(), ServerState::Unavailable(_)));
    sleep(RETRY_LAST).await;
    assert_eq!(dialled.lock().unwrap().len(), 1);
    stage.joined().await;
    assert_eq!(dialled.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn pause_before_next_attempt_ends_with_a_login() {
    for (logged_in_after, expected) in [(Some(30), 31), (None, 300)] {
        let since = Instant::now();
        let logged_in = || {
            let elapsed = since.elapsed();
            logged_in_after.is_some_and(|it| elapsed > Duration::from_secs(it))
        };
        sleep_until_change(RETRY_LAST, logged_in).await;
        assert_eq!(since.elapsed().as_secs(), expected);
    }
}
