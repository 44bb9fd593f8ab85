//! Tests of the budget that all runs of a broker share, with the real sandbox.

use std::sync::Arc;

use airlock_core::report::{Report, Status};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};

use super::*;
use crate::tempdir::TempDir;
use airlock_sandbox::budget::{BASE_BYTES, BudgetLimits};

const MIB: u64 = 1024 * 1024;

/// A time that is longer than any test takes on any machine.
const PATIENT_MS: u64 = 600_000;

struct Fixture {
    broker: Broker,
    /// Counts the runs that wait in `t.wait`.
    waiting: Arc<Semaphore>,
    /// Ends the waiting of those runs.
    go_on: Arc<Notify>,
    scratch: TempDir,
}

impl Fixture {
    async fn new(budget: BudgetLimits) -> Self {
        let scratch = TempDir::new();
        let (waiting, go_on) = (Arc::new(Semaphore::new(0)), Arc::new(Notify::new()));
        let (waits, goes_on) = (Arc::clone(&waiting), Arc::clone(&go_on));
        let description = json!({"name": "wait", "inputSchema": {"type": "object"}});
        let wait = InProcessTool::new("t", description, move |args: Value| {
            let (waits, goes_on) = (Arc::clone(&waits), Arc::clone(&goes_on));
            async move {
                let goes_on = goes_on.notified();
                waits.add_permits(1);
                goes_on.await;
                Ok(args)
            }
        });
        let broker = Broker::builder()
            .state_dir(scratch.path())
            .allow("t.*")
            .unwrap()
            .tool(wait)
            .budget(budget)
            .limits(Limits {
                run_wall_ms_max: PATIENT_MS,
                guest_cpu_ms_max: PATIENT_MS,
                ..Limits::default()
            })
            .build()
            .await
            .unwrap();
        Self {
            broker,
            waiting,
            go_on,
            scratch,
        }
    }

    /// Starts a run and returns when it waits in `t.wait`.
    async fn waits(&self) -> RunHandle {
        let running = self.broker.run(Script::body("return await t.wait({})"));
        self.waiting.acquire().await.unwrap().forget();
        running
    }

    async fn run(&self, script: &str) -> Report {
        self.broker.run(Script::body(script)).report().await
    }

    fn journals(&self) -> usize {
        let runs = std::fs::read_dir(self.scratch.path().join("runs"));
        runs.map_or(0, Iterator::count)
    }
}

fn one_run(queue_wall_ms_max: u64) -> BudgetLimits {
    BudgetLimits {
        runs_max: 1,
        queue_wall_ms_max,
        ..BudgetLimits::default()
    }
}

#[tokio::test]
async fn a_run_for_which_there_is_no_room_is_refused_and_leaves_no_journal() {
    let fixture = Fixture::new(one_run(20)).await;
    let first = fixture.waits().await;
    let cancel = Cancel::new();
    let script = Script::body("return 1");
    let here = fixture.broker.run_here(script, &cancel, |_| {});
    for report in [fixture.run("return 1").await, here.await] {
        assert_eq!(
            (report.status, report.code),
            (Status::Stopped, Some(Code::Busy))
        );
        assert!(report.retry_after_ms >= Some(1_000), "{report:?}");
        let said = report.error.unwrap().message;
        assert!(said.contains("limit `runs`"), "{said}");
    }
    let check = fixture.broker.check(&Script::body("return 1")).await;
    assert_eq!(check.findings[0].code, "busy");
    assert_eq!(fixture.journals(), 1);
    fixture.go_on.notify_waiters();
    assert_eq!(first.report().await.status, Status::Done);
    assert_eq!(fixture.run("return 1").await.status, Status::Done);
    let usage = fixture.broker.budget_usage();
    assert_eq!((usage.runs, usage.memory_bytes, usage.refused), (0, 0, 3));
}

#[tokio::test]
async fn a_run_waits_for_room_and_has_its_whole_time_afterwards() {
    let fixture = Fixture::new(one_run(PATIENT_MS)).await;
    let first = fixture.waits().await;
    let limits = Limits {
        run_wall_ms_max: 10_000,
        ..Limits::default()
    };
    let second = Script::body("return Date.now()").with_limits(limits);
    let second = fixture.broker.run(second);
    while fixture.broker.budget_usage().waiting == 0 {
        tokio::task::yield_now().await;
    }
    fixture.go_on.notify_waiters();
    assert_eq!(first.report().await.status, Status::Done);
    let second = second.report().await;
    assert_eq!(second.status, Status::Done);
    assert!(second.usage.wall_ms < 10_000);
}

#[tokio::test]
async fn a_run_that_waits_for_room_can_be_cancelled_alone_and_with_all_others() {
    let fixture = Fixture::new(one_run(PATIENT_MS)).await;
    let first = fixture.waits().await;
    let second = fixture.broker.run(Script::body("return 1"));
    second.cancel_handle().cancel("enough");
    let report = second.report().await;
    assert_eq!(report.status, Status::Cancelled);
    assert_eq!(report.error.unwrap().message, "enough");
    let third = fixture.broker.run(Script::body("return 1"));
    fixture.broker.end_runs("the end").await;
    for run in [first, third] {
        assert_eq!(run.report().await.status, Status::Cancelled);
    }
    assert_eq!(fixture.broker.budget_usage().runs, 0);
}

#[tokio::test]
async fn runs_that_all_want_much_memory_come_to_their_end_one_after_the_other() {
    let fixture = Fixture::new(BudgetLimits {
        memory_bytes_max: Some(300 * MIB),
        queue_wall_ms_max: PATIENT_MS,
        ..BudgetLimits::default()
    })
    .await;
    let script = "const all = [];
        for (let n = 0; n < 12; n++) all.push(new Uint8Array(10 << 20));
        return all.length";
    let runs = (0..12).map(|_| fixture.run(script));
    for report in join_all(runs).await {
        assert_eq!(report.status, Status::Done, "{report:?}");
        assert!(report.usage.memory_bytes_peak > 120 * MIB);
    }
    assert_eq!(fixture.broker.budget_usage().memory_bytes, 0);
}

#[tokio::test]
async fn a_run_that_may_not_grow_in_time_is_stopped_as_busy() {
    let fixture = Fixture::new(BudgetLimits {
        memory_bytes_max: Some(280 * MIB),
        queue_wall_ms_max: 20,
        ..BudgetLimits::default()
    })
    .await;
    let large = "globalThis.all = new Uint8Array(150 << 20);";
    let first = fixture
        .broker
        .run(Script::body(format!("{large} return await t.wait({{}})")));
    fixture.waiting.acquire().await.unwrap().forget();
    let second = fixture.run(&format!("console.log('begun'); {large}")).await;
    assert_eq!(
        (second.status, second.code),
        (Status::Stopped, Some(Code::Busy))
    );
    assert!(second.error.unwrap().message.contains("`runs-memory`"));
    assert_eq!(second.console[0].text, "begun");
    assert!(second.retry_after_ms.is_some());
    // Small runs can still start.
    assert_eq!(fixture.run("return 1").await.status, Status::Done);
    fixture.go_on.notify_waiters();
    let first = first.report().await;
    assert_eq!(first.status, Status::Done, "{first:?}");
    let third = fixture.run(&format!("{large} return 1")).await;
    assert_eq!(third.status, Status::Done, "{third:?}");
}

#[tokio::test]
async fn a_run_alone_has_no_more_memory_than_all_may_have() {
    let fixture = Fixture::new(BudgetLimits {
        memory_bytes_max: Some(64 * MIB),
        ..BudgetLimits::default()
    })
    .await;
    let report = fixture.run("return new Uint8Array(100 << 20).length").await;
    assert_eq!(report.code, Some(Code::LimitMemory), "{report:?}");
    let said = report.error.unwrap().message;
    assert!(said.contains(&(64 * MIB).to_string()), "{said}");
}

#[tokio::test]
async fn a_short_run_passes_endless_loops() {
    let fixture = Fixture::new(BudgetLimits {
        computing_max: Some(1),
        ..BudgetLimits::default()
    })
    .await;
    let loops: Vec<_> = (0..8)
        .map(|_| fixture.broker.run(Script::body("for (;;) {}")))
        .collect();
    while fixture.broker.budget_usage().computing_later < 7 {
        tokio::task::yield_now().await;
    }
    for _ in 0..10 {
        let report = fixture.run("return 1 + 1").await;
        assert_eq!(report.status, Status::Done);
        assert_eq!(fixture.broker.budget_usage().runs, 8);
    }
    drop(loops);
    fixture.broker.end_runs("enough").await;
    assert_eq!(fixture.broker.budget_usage().computing, 0);
}

#[tokio::test]
async fn ordinary_runs_and_their_checks_need_no_more_than_what_every_run_has() {
    let limits = BudgetLimits {
        // A run that wanted more memory would wait until the test fails.
        memory_bytes_max: Some(16 * MIB),
        queue_wall_ms_max: PATIENT_MS,
        ..BudgetLimits::default()
    };
    let fixture = Fixture::new(limits).await;
    let holds = fixture.waits().await;
    let usage = fixture.broker.budget_usage();
    assert_eq!((usage.runs, usage.memory_bytes), (1, BASE_BYTES));
    fixture.go_on.notify_waiters();
    let report = holds.report().await;
    assert_eq!(report.status, Status::Done);
    assert!(report.usage.memory_bytes_peak <= BASE_BYTES, "{report:?}");
    let check = fixture.broker.check(&Script::body("return 1")).await;
    assert!(!check.has_error(), "{check:?}");
}

#[tokio::test]
async fn returning_memory_takes_nothing_from_runs_that_go_on() {
    let fixture = Fixture::new(BudgetLimits::default()).await;
    let script = "const all = 'memory '.repeat(400_000); await t.wait({}); return all.length";
    for _ in 0..2 {
        let running = fixture.broker.run(Script::body(script));
        fixture.waiting.acquire().await.unwrap().forget();
        fixture.broker.return_memory().await;
        fixture.go_on.notify_waiters();
        let report = running.report().await;
        assert_eq!(value(&report), json!(2_800_000), "{report:?}");
        // Now no run is active. The next runs must work like the first one.
        fixture.broker.return_memory().await;
        let report = fixture
            .run("return [typeof all, Object.keys(globalThis).length > 0]")
            .await;
        assert_eq!(value(&report)[0], "undefined", "{report:?}");
    }
}

fn value(report: &Report) -> Value {
    let value = report.value.as_ref();
    value.map_or(Value::Null, |it| serde_json::from_str(it.get()).unwrap())
}

/// A script of 10 MB is not read at all.
#[tokio::test]
async fn a_script_that_is_too_long_is_not_looked_at() {
    let fixture = Fixture::new(BudgetLimits::default()).await;
    let long = "a;".repeat(5_000_000);
    let before = fixture.broker.budget_usage();
    let uses = fixture
        .broker
        .uses(&Arc::default(), &long, &Cancel::new())
        .await;
    assert!(uses.unwrap().names.is_empty());
    let check = fixture.broker.check(&Script::body(long.clone())).await;
    assert_eq!(check.findings[0].code, "limit-source");
    assert!(check.has_error());
    let report = fixture.run(&long).await;
    assert_eq!(report.code, Some(Code::LimitSource));
    assert_eq!(report.usage.guest_ms, 0);
    assert_eq!(fixture.broker.budget_usage(), before);
}
