//! Tests of whole runs through the real sandbox, with in-process tools.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use airlock_core::decide::{Answer, Question};
use airlock_core::journal;
use airlock_core::report::{ReportedOutcome, Status};
use serde_json::{Value, json};
use tokio::sync::{Barrier, Notify};

use super::*;
use crate::tempdir::TempDir;

fn tool<F, Fut>(name: &str, function: F) -> InProcessTool
where
    F: Fn(Value) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Value, ToolFailure>> + 'static,
{
    let description = json!({"name": name, "inputSchema": {"type": "object"}});
    InProcessTool::new("t", description, function)
}

fn echo() -> InProcessTool {
    tool("echo", async |args: Value| Ok(args))
}

async fn allowing(scratch: &TempDir, tools: impl IntoIterator<Item = InProcessTool>) -> Broker {
    let builder = Broker::builder()
        .state_dir(scratch.path())
        .allow("t.*")
        .unwrap();
    tools
        .into_iter()
        .fold(builder, Builder::tool)
        .build()
        .await
        .unwrap()
}

async fn report(broker: &Broker, script: &str) -> Report {
    broker.run(Script::body(script)).report().await
}

fn value(report: &Report) -> Value {
    let text = report.value.as_ref().map_or("null", |value| value.get());
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn concurrent_calls_reach_tools_concurrently() {
    let scratch = TempDir::new();
    let barrier = Arc::new(Barrier::new(10));
    let meet = tool("meet", move |args| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            Ok(args)
        }
    });
    let broker = allowing(&scratch, [meet]).await;
    let script = "const all = [...Array(10).keys()].map((n) => t.meet({ n }));
        return (await Promise.all(all)).map((it) => it.n)";
    let report = report(&broker, script).await;
    assert_eq!(
        value(&report),
        json!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        "{report:?}"
    );
}

#[tokio::test]
async fn tool_failure_is_thrown_and_uncaught_error_ends_run() {
    let scratch = TempDir::new();
    let bad = tool("bad", async |_| Err(ToolFailure::new("no luck")));
    let broker = allowing(&scratch, [bad, echo()]).await;
    let caught =
        "try { await t.bad() } catch (e) { return [e.code, e.message, e instanceof ToolError] }";
    assert_eq!(
        value(&report(&broker, caught).await),
        json!(["tool-failed", "no luck", true])
    );

    let report = report(&broker, "await t.echo({})\nawait t.bad()").await;
    let error = report.error.as_ref().unwrap();
    assert_eq!(
        (report.status, report.code, error.line),
        (Status::Failed, Some(Code::ToolFailed), Some(2))
    );
    let outcomes: Vec<_> = report.calls.iter().map(|call| call.outcome).collect();
    assert_eq!(
        outcomes,
        [ReportedOutcome::Returned, ReportedOutcome::Failed]
    );
}

#[tokio::test]
async fn call_without_allow_rule_is_denied_and_not_sent() {
    let scratch = TempDir::new();
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let count = tool("count", move |args| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok(args) }
    });
    let broker = Broker::builder()
        .state_dir(scratch.path())
        .tool(count)
        .build()
        .await
        .unwrap();
    let report = report(&broker, "await t.count()").await;
    assert_eq!(
        (report.code, calls.load(Ordering::SeqCst)),
        (Some(Code::Denied), 0)
    );
}

#[tokio::test]
async fn approver_sees_arguments_and_grant_is_used_up() {
    let scratch = TempDir::new();
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let approve = move |question: Question| {
        assert_eq!(question.args.text(), r#"{"n":1}"#);
        count.fetch_add(1, Ordering::SeqCst);
        async { Answer::up_to(NonZeroU32::new(2).unwrap()) }
    };
    let builder = Broker::builder().state_dir(scratch.path()).tool(echo());
    let broker = builder
        .ask("t.*")
        .unwrap()
        .approver(approve)
        .build()
        .await
        .unwrap();
    let report = report(
        &broker,
        "for (let i = 0; i < 4; i++) await t.echo({ n: 1 }); return 'ok'",
    )
    .await;
    assert_eq!(
        (value(&report), asked.load(Ordering::SeqCst)),
        (json!("ok"), 2)
    );
}

#[tokio::test]
async fn cancel_stops_computing_and_waiting_scripts() {
    let scratch = TempDir::new();
    let hang = tool("hang", async |_| std::future::pending().await);
    let broker = allowing(&scratch, [hang]).await;
    for (script, outcomes) in [
        ("console.log('here'); while (true) {}", vec![]),
        ("await t.hang()", vec![ReportedOutcome::Unknown]),
    ] {
        let mut running = broker.run(Script::body(script));
        let cancel = running.cancel_handle();
        loop {
            match running.next_event().await {
                Some(RunEvent::CallDecided { .. }) => break,
                // The guest computes before it sends anything, so there is no event to wait for.
                Some(RunEvent::Started { .. }) if outcomes.is_empty() => break,
                Some(_) => {}
                None => panic!("the run ended by itself"),
            }
        }
        cancel.cancel("enough");
        let report = running.report().await;
        assert_eq!(
            (report.status, report.code),
            (Status::Cancelled, Some(Code::Cancelled))
        );
        assert_eq!(
            report
                .calls
                .iter()
                .map(|call| call.outcome)
                .collect::<Vec<_>>(),
            outcomes
        );
    }
}

#[tokio::test]
async fn unwritable_journal_sends_no_call() {
    let scratch = TempDir::new();
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let count = tool("count", move |args| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok(args) }
    });
    let blocked = scratch.file("state", "a file where a folder should be");
    let builder = Broker::builder().state_dir(blocked).tool(count);
    let broker = builder.allow("t.*").unwrap().build().await.unwrap();
    let report = report(&broker, "await t.count(); return 1").await;
    assert_eq!(
        (report.status, report.code),
        (Status::Stopped, Some(Code::JournalUnwritable))
    );
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn tool_receives_decided_and_journaled_arguments() {
    let scratch = TempDir::new();
    let text = tool("text", async |args: Value| Ok(json!(args.to_string())));
    let broker = allowing(&scratch, [text]).await;
    let script = "return await t.text({ b: 1, a: { d: -0, c: [0.5, 'é'] } })";
    let report = report(&broker, script).await;
    let seen = value(&report);
    assert_eq!(seen, r#"{"a":{"c":[0.5,"é"],"d":0},"b":1}"#);
    let journal = String::from_utf8(journal_of(&broker, &report)).unwrap();
    let args = format!(r#""args":{}"#, seen.as_str().unwrap());
    assert!(journal.contains(&args), "{journal}");
}

#[tokio::test]
async fn secret_in_tool_result_is_redacted_for_script_and_journal() {
    let scratch = TempDir::new();
    let leak = tool("leak", async |_| {
        Ok(json!({"said": "the token is t0ken-123"}))
    });
    let builder = Broker::builder()
        .state_dir(scratch.path())
        .tool(leak)
        .allow("t.*")
        .unwrap();
    let broker = builder
        .secrets(Secrets::new(["t0ken-123"]))
        .build()
        .await
        .unwrap();
    let report = report(&broker, "return (await t.leak()).said").await;
    assert_eq!(value(&report), json!("the token is ***"));
    let journal = journal_of(&broker, &report);
    assert!(!String::from_utf8(journal).unwrap().contains("t0ken-123"));
}

#[tokio::test]
async fn journal_verifies_after_run_and_next_run_works() {
    let scratch = TempDir::new();
    let broker = allowing(&scratch, [echo()]).await;
    let first = report(&broker, "return (await t.echo({ a: 1 })).a").await;
    let second = report(&broker, "return (await t.echo({ a: 2 })).a").await;
    assert_eq!((value(&first), value(&second)), (json!(1), json!(2)));
    for report in [&first, &second] {
        let verified = journal::read(&journal_of(&broker, report)).unwrap();
        assert!(
            verified.ended().is_some() && verified.in_doubt.is_empty() && verified.cut.is_none()
        );
    }
}

#[test]
fn run_is_cancelled_when_its_runtime_ends() {
    let scratch = TempDir::new();
    let hangs = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&hangs);
    let hang = tool("hang", move |_| {
        seen.fetch_add(1, Ordering::SeqCst);
        std::future::pending()
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let broker = runtime.block_on(allowing(&scratch, [hang]));
    let script = "setTimeout(() => {}, 20000); await t.hang({})";
    let running = broker.run(Script::body(script));
    while hangs.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    drop(runtime);
    let report = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(running.report());
    assert_eq!(
        (report.status, report.code),
        (Status::Cancelled, Some(Code::Cancelled))
    );
    let journal = journal::read(&journal_of(&broker, &report)).unwrap();
    assert!(journal.ended().is_some() && journal.in_doubt.is_empty());
}

#[tokio::test]
async fn hanging_tool_times_out_with_unknown_outcome() {
    // On a busy machine the call may not be sent within the shorter time.
    let mut told = hangs_within(20).await;
    if told != "outcome-unknown" {
        told = hangs_within(5_000).await;
    }
    assert_eq!(told, json!("outcome-unknown"));
}

/// Returns the error code of a call whose tool never returns.
async fn hangs_within(call_wall_ms_max: u64) -> Value {
    let scratch = TempDir::new();
    let notify = Arc::new(Notify::new());
    let hang = tool("hang", move |_| {
        let notify = Arc::clone(&notify);
        async move {
            notify.notified().await;
            Ok(Value::Null)
        }
    });
    let limits = Limits {
        call_wall_ms_max,
        ..Limits::default()
    };
    let builder = Broker::builder()
        .state_dir(scratch.path())
        .tool(hang)
        .limits(limits);
    let broker = builder.allow("t.*").unwrap().build().await.unwrap();
    let report = report(
        &broker,
        "try { await t.hang() } catch (e) { return e.code }",
    )
    .await;
    value(&report)
}

#[tokio::test]
async fn duplicate_or_invalid_server_name_is_refused() {
    let scratch = TempDir::new();
    let wrong = InProcessTool::new("no.dots", json!({"name": "x"}), async |args: Value| {
        Ok(args)
    });
    let built = Broker::builder()
        .state_dir(scratch.path())
        .tool(wrong)
        .build()
        .await;
    assert!(matches!(built, Err(BuildError::Name(_))));
    assert!(matches!(
        Broker::builder().build().await,
        Err(BuildError::NoStateDir)
    ));
}

fn journal_of(broker: &Broker, report: &Report) -> Vec<u8> {
    std::fs::read(broker.journal_path(&RunId(report.run.as_str().into()))).unwrap()
}

#[tokio::test]
async fn changed_tool_file_is_reloaded() {
    let scratch = TempDir::new();
    let folder = scratch.path().join("said");
    let file = folder.join("t/echo.json");
    let say = |text: &str| {
        std::fs::create_dir_all(folder.join("t")).unwrap();
        std::fs::write(&file, text).unwrap();
    };
    let saying = |words: &str| json!({"name": "echo", "description": words}).to_string();
    say(&saying("Says it again."));
    let broker = Broker::builder()
        .state_dir(scratch.path())
        .allow("t.*")
        .unwrap()
        .descriptions(&folder)
        .tool(echo())
        .build()
        .await
        .unwrap();
    let digest = |broker: &Broker| broker.catalog().tools().next().unwrap().description_digest;
    let text = |broker: &Broker| broker.declarations(Level::Full, &[]);
    let first = digest(&broker);
    assert!(text(&broker).contains("Says it again."));

    say(&saying("Repeats what it was given."));
    assert!(text(&broker).contains("Repeats what it was given."));
    assert_ne!(digest(&broker), first);
    let report = report(&broker, "return (await t.echo({ n: 1 })).n").await;
    assert_eq!(value(&report), json!(1));

    // A faulty file changes nothing until it is fixed. Until then, a problem is reported.
    say("{\"name\": \"echo\", \"descripton\": \"x\"}");
    assert!(text(&broker).contains("Repeats what it was given."));
    let told = broker.problems();
    assert!(
        told.iter().any(|it| it.why.contains("descripton")),
        "{told:?}"
    );
    say(&saying("Says it again."));
    assert_eq!((digest(&broker), broker.problems()), (first, Vec::new()));
}

#[tokio::test]
async fn unusable_tool_file_is_a_start_error() {
    let scratch = TempDir::new();
    scratch.file("x.json", "{}");
    let build = |folder: std::path::PathBuf| {
        let builder = Broker::builder().state_dir(scratch.path()).tool(echo());
        builder.descriptions(folder).build()
    };
    for folder in [scratch.path().to_owned(), scratch.path().join("none")] {
        let built = build(folder).await;
        assert!(matches!(built, Err(BuildError::ToolFiles(_))), "{built:?}");
    }
}
