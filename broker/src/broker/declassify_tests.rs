//! Tests of results that a person declassifies in the answer to a question.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use airlock_core::decide::{Answer, Question};
use airlock_core::journal::{self, AnswerWord, Body};
use airlock_core::labels::{Label, Labels};
use airlock_core::report::Status;
use serde_json::{Value, json};

use super::*;
use crate::config::FlowConfig;
use crate::tempdir::TempDir;

fn flow() -> FlowConfig {
    let mail = Label::parse("private:mail").unwrap();
    let labels = Labels::from_iter([mail, Label::untrusted()]);
    let table = airlock_core::flow::LabelRule {
        server: "t".into(),
        tools: None,
        reads: Some(labels),
        writes: None,
        destinations: None,
        fixed_destination: None,
        paths: None,
        origin: String::new(),
    };
    FlowConfig {
        label_config: airlock_core::flow::LabelConfig(vec![table]),
        ..FlowConfig::default()
    }
}

/// Runs a script that reads twice. Each answer is for one question, in order.
async fn read_twice(scratch: &TempDir, answers: [Answer; 2]) -> (Broker, Report) {
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let approver = move |question: Question| {
        assert_eq!(
            question.reads.to_texts(),
            ["private", "private:mail", "untrusted"]
        );
        let at = count.fetch_add(1, Ordering::SeqCst) as usize;
        let answer = answers[at].clone();
        async { answer }
    };
    let description = json!({"name": "read", "description": "reads",
        "inputSchema": {"type": "object"}});
    let tool = InProcessTool::new("t", description, async |args: Value| Ok(args));
    let builder = Broker::builder()
        .state_dir(scratch.path())
        .flow(flow())
        .approver(approver)
        .tool(tool);
    let broker = builder.ask("t.*").unwrap().build().await.unwrap();
    let script = Script::body("await t.read({}); await t.read({ again: true }); return 1");
    let report = broker.run(script).report().await;
    assert_eq!(report.status, Status::Done, "{report:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    (broker, report)
}

#[tokio::test]
async fn declassified_result_adds_no_labels_and_is_recorded() {
    let scratch = TempDir::new();
    let answers = [Answer::AllowDeclassified, Answer::AllowDeclassified];
    let (broker, report) = read_twice(&scratch, answers).await;
    assert!(
        report.flow.as_ref().unwrap().labels.is_empty(),
        "{report:?}"
    );
    let reasons = report.calls[0].reasons.join("; ");
    let expected = "answered: allow-once; its result is declassified: private, private:mail, \
                    untrusted removed";
    assert!(reasons.contains(expected), "{reasons}");
    let path = broker.journal_path(&RunId(report.run.as_str().into()));
    let lines = journal::read(&std::fs::read(path).unwrap()).unwrap().lines;
    let answered = lines.into_iter().filter_map(|line| match line.body {
        Body::Answered(answered) => Some(answered.answer),
        _ => None,
    });
    let answered: Vec<AnswerWord> = answered.collect();
    assert_eq!(answered, [AnswerWord::AllowDeclassified; 2]);
}

/// The answer applies to one result only, so another result still adds its labels.
#[tokio::test]
async fn declassification_of_one_result_leaves_others_labelled() {
    for answers in [
        [Answer::AllowDeclassified, Answer::AllowOnce],
        [Answer::AllowOnce, Answer::AllowDeclassified],
    ] {
        let (_, report) = read_twice(&TempDir::new(), answers).await;
        let labels = report.flow.unwrap().labels;
        assert!(labels.is_untrusted() && labels.is_private(), "{labels:?}");
    }
}
