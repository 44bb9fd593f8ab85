//! Tests of whole runs with grants: uses are counted under load and across brokers, a session
//! shares its grants, and a grant becomes void when its script or its tool's description changes.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use airlock_core::decide::{Answer, Question};
use airlock_core::grant::{Grant, Scope, Terms};
use airlock_core::id::GrantId;
use airlock_core::journal::{self, Body};
use airlock_core::labels::Labels;
use airlock_core::report::Status;
use airlock_core::shared_state::SessionName;
use serde_json::{Value, json};

use super::*;
use crate::tempdir::TempDir;

const FIFTY: &str = "const all = [...Array(50).keys()].map((n) => t.write({ to: 'ops', n }));
    const settled = await Promise.allSettled(all);
    return settled.filter((it) => it.status === 'fulfilled').length";

/// Returns a tool with this description that counts its calls.
fn write(reached: &Arc<AtomicU32>, description: &str) -> InProcessTool {
    let reached = Arc::clone(reached);
    let description =
        json!({"name": "write", "description": description, "inputSchema": {"type": "object"}});
    InProcessTool::new("t", description, move |args: Value| {
        reached.fetch_add(1, Ordering::SeqCst);
        async { Ok(args) }
    })
}

fn session() -> SessionName {
    SessionName::parse("work").unwrap()
}

fn builder(scratch: &TempDir, reached: &Arc<AtomicU32>) -> Builder {
    let builder = Broker::builder().state_dir(scratch.path());
    let limits = Limits {
        calls_in_flight_max: 64,
        ask_wall_ms_max: 500,
        ..Limits::default()
    };
    let builder = builder.tool(write(reached, "writes")).limits(limits);
    builder.ask("t.*").unwrap()
}

async fn run(builder: Builder, script: &str) -> (Broker, Report) {
    let broker = builder.build().await.unwrap();
    let report = broker.run(Script::body(script)).report().await;
    (broker, report)
}

/// Returns an approver that grants the first question in this scope with `uses` uses, and answers
/// no other question.
fn once(uses: u32, scope: Scope) -> impl Approver {
    let asked = AtomicU32::new(0);
    move |_: Question| {
        let is_first = asked.fetch_add(1, Ordering::SeqCst) == 0;
        let terms = Terms {
            scope,
            ..Terms::up_to(NonZeroU32::new(uses).unwrap())
        };
        async move {
            if is_first {
                return Answer::Allow(terms);
            }
            std::future::pending().await
        }
    }
}

fn value(report: &Report) -> Value {
    let text = report.value.as_ref().map_or("null", |value| value.get());
    serde_json::from_str(text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_concurrent_calls_use_grant_exactly_n_times() {
    for scope in [Scope::Run, Scope::Session, Scope::Project] {
        let scratch = TempDir::new();
        let reached = Arc::default();
        let builder = builder(&scratch, &reached)
            .session(session())
            .project(scratch.path())
            .approver(once(20, scope));
        let (_, report) = run(builder, FIFTY).await;
        assert_eq!(value(&report), json!(20), "{scope}: {report:?}");
        assert_eq!(reached.load(Ordering::SeqCst), 20, "{scope}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn session_grant_counts_over_its_runs_only() {
    let scratch = TempDir::new();
    let reached = Arc::default();
    let first = builder(&scratch, &reached)
        .session(session())
        .approver(once(60, Scope::Session));
    let (_, report) = run(first, FIFTY).await;
    assert_eq!(value(&report), json!(50), "{report:?}");
    let (_, report) = run(builder(&scratch, &reached).session(session()), FIFTY).await;
    assert_eq!(value(&report), json!(10), "{report:?}");
    let other = SessionName::parse("other").unwrap();
    let (_, report) = run(builder(&scratch, &reached).session(other), FIFTY).await;
    assert_eq!(value(&report), json!(0), "{report:?}");
    assert_eq!(reached.load(Ordering::SeqCst), 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_script_description_or_rule_voids_grant_in_journal() {
    let scratch = TempDir::new();
    let reached = Arc::default();
    let script = "return (await t.write({ n: 1 })).n";
    let given = builder(&scratch, &reached)
        .session(session())
        .approver(once(9, Scope::Session));
    assert_eq!(value(&run(given, script).await.1), json!(1));
    let same = || builder(&scratch, &reached).session(session());
    assert_eq!(value(&run(same(), script).await.1), json!(1));

    let longer = format!("{script} ");
    let ruled = same().deny("t.other").unwrap();
    let plain = Broker::builder()
        .state_dir(scratch.path())
        .session(session());
    let described = plain
        .tool(write(&reached, "writes more"))
        .ask("t.*")
        .unwrap();
    let before = reached.load(Ordering::SeqCst);
    for (builder, script, why) in [
        (same(), longer.as_str(), "another script"),
        (ruled, script, "rules"),
        (described, script, "description"),
        // The run in which the tool had another description has ended the stored grant.
        (same(), script, ""),
    ] {
        let (broker, report) = run(builder, script).await;
        assert_eq!(report.code, Some(Code::Unanswered), "{why}: {report:?}");
        let bytes = std::fs::read(broker.journal_path(&RunId(report.run.as_str().into()))).unwrap();
        let lines = journal::read(&bytes).unwrap().lines;
        let voided = lines.iter().find_map(|line| match &line.body {
            Body::GrantVoided(voided) => Some(voided.why.clone()),
            _ => None,
        });
        let voided = voided.unwrap_or_default();
        assert!(voided.contains(why), "{why}: {voided}");
    }
    assert_eq!(reached.load(Ordering::SeqCst), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn run_grant_does_not_apply_to_next_run() {
    let scratch = TempDir::new();
    let reached = Arc::default();
    let script = "return (await t.write({ n: 1 })).n";
    let broker = builder(&scratch, &reached).approver(once(9, Scope::Run));
    let broker = broker.build().await.unwrap();
    let report = broker.run(Script::body(script)).report().await;
    assert_eq!(value(&report), json!(1));
    let report = broker.run(Script::body(script)).report().await;
    assert_eq!(report.code, Some(Code::Unanswered), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unanswered_question_names_sufficient_grant() {
    let scratch = TempDir::new();
    let reached = Arc::default();
    let (_, report) = run(builder(&scratch, &reached), FIFTY).await;
    assert_eq!(value(&report), json!(0));
    let [needed] = &report.grants_needed[..] else {
        panic!("{report:?}")
    };
    assert_eq!(needed.uses_max.get(), 50);
    let condition = needed.condition.to_string();
    assert_eq!(condition, "/to = \"ops\"; /n may be anything");
    let signed = Grant {
        id: GrantId("file-1".into()),
        by: "Ada".into(),
        ..needed.clone()
    };
    let (_, report) = run(builder(&scratch, &reached).grants([signed]), FIFTY).await;
    assert_eq!(value(&report), json!(50), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tampered_session_state_refuses_to_run() {
    let scratch = TempDir::new();
    let reached = Arc::default();
    let broker = builder(&scratch, &reached).session(session());
    let broker = broker.allow("t.*").unwrap().build().await.unwrap();
    let script = || Script::body("return (await t.write({})) && 1");
    let _ = broker.run(script()).report().await;
    let path = scratch.path().join("sessions/work.state");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("bytes", "bites")).unwrap();
    let before = reached.load(Ordering::SeqCst);
    let report = broker.run(script()).report().await;
    assert_eq!(report.code, Some(Code::StateUnreadable), "{report:?}");
    assert_eq!(report.status, Status::Stopped);
    assert_eq!(reached.load(Ordering::SeqCst), before);
    let again = builder(&scratch, &reached).session(session()).build().await;
    assert!(matches!(again, Err(BuildError::Shared(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn session_carries_labels_of_its_runs() {
    let scratch = TempDir::new();
    let reached = Arc::default();
    let build = || {
        builder(&scratch, &reached)
            .session(session())
            .allow("t.*")
            .unwrap()
    };
    let labels = |report: &Report| report.flow.as_ref().unwrap().labels.clone();
    let (_, report) = run(build(), "return 1").await;
    assert_eq!(labels(&report), Labels::default());
    let yes = build().approver(once(1, Scope::Run));
    let (_, report) = run(yes, "return await t.write({})").await;
    assert_eq!(labels(&report), Labels::worst());
    let (_, report) = run(build(), "return 1").await;
    assert_eq!(
        labels(&report),
        Labels::worst(),
        "the second run added the labels"
    );
}
