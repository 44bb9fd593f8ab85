//! Servers that are left when nobody needs them, and that cannot be reached, on a
//! clock that stands still while anything is done.

use std::sync::Mutex as Lock;

use airlock_core::flow::Sayings;
use airlock_core::id::ToolName;
use serde_json::Value;
use tokio::time::Instant;

use super::*;
use crate::broker::checks::AllChecks;
use crate::broker::roster::Roster;
use crate::broker::shelf::Opened;
use crate::broker::sources::Sources;
use crate::config::{PolicyConfig, Secrets, Server, UnknownKeys};
use crate::listing_file::Listings;
use crate::scratch::Scratch;
use crate::upstream::Era;
use crate::upstream::era::EraChoice;
use crate::upstream::tests::fake::{Connected, Fake, Say, legacy, text, words};

const IDLE: Duration = Duration::from_secs(60);
const MOMENT: Duration = Duration::from_secs(1);

struct Stage {
    servers: Arc<Servers>,
    connected: Connected,
    _scratch: Scratch,
}

impl Stage {
    fn new(mut fake: Fake, idle: Option<Duration>) -> Self {
        fake.spec.era = EraChoice::Pinned(Era::Legacy);
        let scratch = Scratch::new();
        let server = Server {
            idle,
            ..Server::new(fake.spec.clone())
        };
        let listings = Listings::new(scratch.path());
        let roster = Roster::new(vec![server], None, Secrets::default(), listings);
        let sources = Sources {
            own: Vec::new(),
            sayings: Arc::new(Sayings::default()),
            policies: PolicyConfig::default(),
            rules: Vec::new(),
            approver_is_there: false,
        };
        let opened = Opened::open(None).unwrap();
        let checks = AllChecks::new(UnknownKeys::Warn);
        let shelf = Shelf::new(sources, roster, opened, checks).unwrap();
        let (connected, server) = fake.server();
        let upstream = Upstream::of_fakes(vec![server]);
        let idle = [(name(), idle)].into_iter();
        Self {
            servers: Servers::new(upstream, shelf, idle, Handle::current()),
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

/// Answers each call after so long.
fn answering(after: Duration) -> Fake {
    Fake::calling(move |_, message| vec![Say::After(after, text(message, "done"))])
}

#[tokio::test(start_paused = true)]
async fn a_server_that_nobody_calls_is_left_and_connected_to_again_at_need() {
    let stage = Stage::new(answering(Duration::ZERO), Some(IDLE));
    assert_eq!(stage.state(), ServerState::OnDemand);
    for connects in 1..=3 {
        stage.joined().await;
        assert_eq!(stage.connected.dials(), connects);
        sleep(IDLE - MOMENT).await;
        assert_eq!(stage.state(), ServerState::Connected);
        sleep(2 * MOMENT).await;
        assert_eq!(stage.state(), ServerState::OnDemand);
        // It stays so, and its tools stay known.
        sleep(10 * IDLE).await;
        assert_eq!(stage.connected.dials(), connects);
        let known = stage.servers.shelf.last().1;
        assert_eq!(known.servers[0].tools, Some(1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_with_a_call_in_flight_is_not_idle_and_its_time_begins_with_the_answer() {
    const TAKES: Duration = Duration::from_secs(10 * IDLE.as_secs());
    let stage = Stage::new(answering(TAKES), Some(IDLE));
    stage.joined().await;
    sleep(IDLE - MOMENT).await;
    let call = tokio::spawn(stage.call(2 * TAKES));
    // It stands still only for calls: one may be under way for as long as it takes.
    sleep(TAKES - MOMENT).await;
    assert_eq!(stage.state(), ServerState::Connected);
    assert_eq!(words(&call.await.unwrap()), "done");
    sleep(IDLE - 2 * MOMENT).await;
    assert_eq!(stage.state(), ServerState::Connected);
    // It is looked at again after the time that was left when it was last looked at.
    sleep(IDLE + 2 * MOMENT).await;
    assert_eq!(stage.state(), ServerState::OnDemand);
    assert_eq!(stage.connected.dials(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_comes_when_the_server_is_left_starts_it_again_and_is_made_once() {
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

/// Ends each connection at once, as often as it is said, and notes when.
fn failing(times: usize) -> (Fake, Arc<Lock<Vec<Instant>>>) {
    let dialled: Arc<Lock<Vec<Instant>>> = Arc::default();
    let noted = Arc::clone(&dialled);
    let fake = Fake::new(move |_, message: &Value| {
        if message["method"] == "initialize" {
            let mut noted = noted.lock().unwrap();
            noted.push(Instant::now());
            if noted.len() <= times {
                return vec![Say::Die];
            }
        }
        legacy(message).unwrap_or_default()
    });
    (fake, dialled)
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_is_tried_later_and_later_until_it_is_there() {
    const FAILURES: usize = 12;
    let (fake, dialled) = failing(FAILURES);
    let stage = Stage::new(fake, None);
    assert_eq!(stage.state(), ServerState::Starting);
    stage.servers.start();
    sleep(MOMENT).await;
    assert!(matches!(stage.state(), ServerState::Unavailable(_)));
    // More than all pauses together.
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
async fn a_server_on_demand_that_cannot_be_reached_is_left_alone_until_somebody_needs_it() {
    let (fake, dialled) = failing(1);
    let stage = Stage::new(fake, Some(IDLE));
    assert!(stage.servers.join(&name()).await.is_err());
    assert!(matches!(stage.state(), ServerState::Unavailable(_)));
    sleep(RETRY_LAST).await;
    assert_eq!(dialled.lock().unwrap().len(), 1);
    stage.joined().await;
    assert_eq!(dialled.lock().unwrap().len(), 2);
}
