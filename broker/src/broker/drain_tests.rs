//! Tests of calls whose outcome comes late, through the real sandbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use airlock_core::limits::Limits;
use airlock_core::report::ReportedOutcome;
use serde_json::json;
use tokio::sync::{Barrier, Semaphore};

use super::*;
use crate::tempdir::TempDir;

async fn broker_with(scratch: &TempDir, tool: InProcessTool) -> Broker {
    let builder = Broker::builder().state_dir(scratch.path()).tool(tool);
    builder.allow("t.*").unwrap().build().await.unwrap()
}

fn described() -> serde_json::Value {
    json!({"name": "create", "inputSchema": {"type": "object"}})
}

#[tokio::test]
async fn failed_fan_out_records_results_of_all_other_calls() {
    let scratch = TempDir::new();
    let (barrier, late) = (Arc::new(Barrier::new(8)), Arc::new(Semaphore::new(0)));
    let open = Arc::clone(&late);
    let create = InProcessTool::new("t", described(), move |args| {
        let (barrier, late) = (Arc::clone(&barrier), Arc::clone(&late));
        async move {
            barrier.wait().await;
            if args["n"] == 0 {
                return Err(ToolFailure::new("no"));
            }
            drop(late.acquire().await);
            Ok(args)
        }
    });
    let broker = broker_with(&scratch, create).await;
    let script = "await Promise.all([...Array(8).keys()].map((n) => t.create({ n })))";
    let mut run = broker.run(Script::body(script));
    while let Some(event) = run.next_event().await {
        if matches!(event, RunEvent::CallSettled { .. }) {
            // The other calls return only after the script has failed.
            open.add_permits(8);
        }
    }
    let report = run.report().await;
    let outcomes: Vec<_> = report.calls.iter().map(|call| call.outcome).collect();
    assert_eq!(report.code, Some(Code::ToolFailed), "{report:?}");
    assert_eq!(outcomes[0], ReportedOutcome::Failed);
    assert!(
        outcomes[1..]
            .iter()
            .all(|it| *it == ReportedOutcome::Returned),
        "{outcomes:?}"
    );
    assert_eq!(report.can_resume.unwrap().recorded, 7);
    let run = RunId(report.run.as_str().into());
    let bytes = std::fs::read(broker.journal_path(&run)).unwrap();
    let journal = airlock_core::journal::read(&bytes).unwrap();
    for call in 2..=8 {
        let settled = journal.settled(airlock_core::id::CallId(call)).unwrap();
        let payload = format!(r#"{{"n":{}}}"#, call - 1);
        assert_eq!(settled.payload.as_deref(), Some(payload.as_str()));
    }
}

#[tokio::test]
async fn script_that_retries_unknown_call_makes_it_once() {
    let scratch = TempDir::new();
    let made = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&made);
    let create = InProcessTool::new("t", described(), move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        std::future::pending()
    });
    let broker = broker_with(&scratch, create).await;
    let script = r#"const codes = [];
        for (let n = 0; n < 3; n++) {
          try { return await t.create({ title: "pay" }) } catch (e) { codes.push(e.code) }
        }
        return codes"#;
    let limits = Limits {
        call_wall_ms_max: 200,
        ..Limits::default()
    };
    let script = Script::body(script).with_limits(limits);
    let report = broker.run(script).report().await;
    let value = report.value.as_ref().map(|value| value.get());
    let unknown = "outcome-unknown";
    let expected = json!([unknown, unknown, unknown]).to_string();
    assert_eq!(value, Some(expected.as_str()), "{report:?}");
    assert_eq!(made.load(Ordering::SeqCst), 1);
    assert_eq!(report.indeterminate.len(), 1);
}
