//! More runs than the capacity allows, and messages that are too long.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::host::{TestServer, tool};
use super::*;
use crate::broker::Broker;
use airlock_sandbox::budget::BudgetLimits;

fn full() -> ServeSettings {
    ServeSettings {
        disclosure: Disclosure::Full,
        ..ServeSettings::default()
    }
}

/// Returns a server with capacity for one run, and a count of the runs in `clock.wait`.
async fn narrow() -> (TestServer, Arc<Semaphore>) {
    let waiting = Arc::new(Semaphore::new(0));
    let waits = Arc::clone(&waiting);
    let wait = tool("clock", "wait", "Waits for ever.", move |_| {
        waits.add_permits(1);
        std::future::pending()
    });
    let budget = BudgetLimits {
        runs_max: 1,
        queue_wall_ms_max: 20,
        ..BudgetLimits::default()
    };
    let builder = Broker::builder().tool(wait).budget(budget);
    (TestServer::built(builder, full()).await, waiting)
}

#[tokio::test]
async fn a_run_without_room_is_refused_and_the_model_is_told_when_to_come_again() {
    for way in WAYS {
        let (server, waiting) = narrow().await;
        let mut first = server.host(way, json!({})).await;
        let args = json!({"name": "run_script", "arguments": {"code": "await clock.wait({})"}});
        let run = first.begin("tools/call", args).await;
        waiting.acquire().await.unwrap().forget();
        let mut second = server.host(way, json!({})).await;
        let refused = second.run("return 1").await;
        assert!(is_error(&refused), "{refused}");
        let said = text(&refused);
        for part in [
            "error: the run was not started",
            "limit `runs`",
            "next: run it again in ",
            "code: busy",
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
        let error = &refused["structuredContent"]["error"];
        assert_eq!(error["code"], "busy");
        assert!(error["retry_after_ms"].as_u64() >= Some(1_000));
        first.cancel(run).await;
        // Retries until the first run has ended.
        let since = std::time::Instant::now();
        loop {
            let result = second.run("return 1").await;
            if !is_error(&result) {
                break;
            }
            assert!(since.elapsed() < Duration::from_secs(600), "{result}");
        }
    }
}

#[tokio::test]
async fn a_script_that_is_too_long_is_refused_unread() {
    for way in WAYS {
        let server = TestServer::built(Broker::builder(), full()).await;
        let mut host = server.host(way, json!({})).await;
        // If this script were checked, each of these calls would be reported.
        let long = format!("{}(", "nobody.knows();".repeat(100_000));
        let refused = host.run(&long).await;
        let said = text(&refused);
        assert!(is_error(&refused), "{said}");
        for part in [
            "the script is longer than 1048576 bytes",
            "code: limit-source",
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
        assert_eq!(
            refused["structuredContent"]["error"]["code"],
            "limit-source"
        );
    }
}

#[tokio::test]
async fn a_message_has_room_for_a_script_and_its_input_and_no_more() {
    let settings = ServeSettings {
        message_bytes_max: 10_000,
        ..full()
    };
    for way in WAYS {
        let server = TestServer::built(Broker::builder(), settings.clone()).await;
        let mut host = server.host(way, json!({})).await;
        assert!(!is_error(&host.run(&"1;".repeat(3_000)).await));
        let long = json!({"name": "run_script", "arguments": {"code": "1;".repeat(6_000)}});
        host.begin("tools/call", long).await;
        let refused = host.hear().await;
        let error = &refused["error"];
        assert_eq!(error["code"], -32_600, "{refused}");
        assert_eq!(error["data"]["code"], "limit-payload");
        let said = error["message"].as_str().unwrap();
        assert!(said.contains("longer than 10000 bytes"), "{said}");
    }
}
