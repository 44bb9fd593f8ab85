//! What a new session costs beside many others.

use std::time::{Duration, Instant};

use super::host::{HostTransport, TestServer};
use super::*;
use crate::broker::Broker;
use crate::host_record::tests::write_sessions;
use airlock_sandbox::clock::Clock;

/// Number of new sessions that are measured.
const NEW: usize = 101;

/// Measures new sessions beside 10 others and beside `AIRLOCK_SESSIONS` others. They cost the same.
#[tokio::test]
async fn new_session_costs_the_same_beside_many_others() {
    let many = std::env::var("AIRLOCK_SESSIONS").ok();
    let many = many.map_or(1_000, |it| it.parse::<usize>().unwrap());
    let mut measured = Vec::new();
    for _ in 0..3 {
        let (beside_few, beside_many) = (median(10).await, median(many).await);
        println!("new session: {beside_few:?} beside 10 others, {beside_many:?} beside {many}");
        if beside_many <= beside_few * 3 / 2 {
            return;
        }
        measured.push((beside_few, beside_many));
    }
    panic!("{measured:?}");
}

/// Returns the median time in which a new client begins a session over HTTP, with a handshake and
/// the records on disk.
async fn median(others: usize) -> Duration {
    let builder = || Broker::builder().allow("*.*").unwrap();
    let empty = TestServer::built(builder(), settings()).await;
    write_sessions(&empty.state(), others, Clock::start().now_ms());
    let server = empty.second(builder()).await;
    let way = HostKind {
        over: HostTransport::Http,
        ..LEGACY
    };
    let mut times = Vec::new();
    for number in 0..NEW {
        let name = format!("new {number}");
        let begun = Instant::now();
        server.host_named(&name, way, json!({})).await;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    times[NEW / 2]
}
