//! The approver of a case: gives the answers of the header in turn, and records the questions.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use airlock::Approver;
use airlock::core::decide::{Answer, Question};
use airlock::core::grant::{Condition, Terms};

use crate::case_file::{AnswerScope, ApproverReply};

#[derive(Debug)]
pub(super) struct Person {
    answers: Mutex<VecDeque<ApproverReply>>,
    shown: Mutex<Vec<String>>,
    /// The state directory, with the policies that one answer changes.
    state: PathBuf,
}

impl Person {
    pub(super) fn new(answers: Vec<ApproverReply>, state: &Path) -> Self {
        Self {
            answers: Mutex::new(answers.into()),
            shown: Mutex::default(),
            state: state.to_owned(),
        }
    }

    pub(super) fn approver(self: &Arc<Self>) -> impl Approver + use<> {
        let person = Arc::clone(self);
        move |question: Question| {
            let answer = person.answer(&question);
            async move {
                match answer {
                    Some(answer) => answer,
                    None => std::future::pending().await,
                }
            }
        }
    }

    /// Returns the recorded questions, one text each.
    pub(super) fn shown(&self) -> Vec<String> {
        self.shown
            .lock()
            .expect("the lock of the questions")
            .clone()
    }

    fn answer(&self, question: &Question) -> Option<Answer> {
        self.shown
            .lock()
            .expect("the lock of the questions")
            .push(text(question));
        let mut answers = self.answers.lock().expect("the lock of the answers");
        let told = match answers.front() {
            // An approver that does not answer once does not answer later questions either.
            Some(ApproverReply::Silence) => return None,
            _ => answers.pop_front(),
        };
        drop(answers);
        Some(match told.unwrap_or(ApproverReply::Nobody) {
            ApproverReply::Once => Answer::AllowOnce,
            ApproverReply::Refuse => Answer::Refuse,
            ApproverReply::Nobody => Answer::Unanswered,
            ApproverReply::Silence => return None,
            ApproverReply::Nonsense => Answer::Invalid {
                why: "the answer is not JSON".into(),
            },
            ApproverReply::OnceAfterChange => {
                self.permit_everything();
                Answer::AllowOnce
            }
            ApproverReply::UpTo {
                uses_max,
                scope,
                about,
            } => Answer::Allow(Terms {
                scope,
                condition: condition(about, question),
                ..Terms::up_to(uses_max)
            }),
        })
    }

    fn permit_everything(&self) {
        let rule = "@id(\"all\")\n@owner(\"eve\")\n@reason(\"because\")\npermit(principal, action, resource);\n";
        let folder = self.state.join("policies");
        for entry in std::fs::read_dir(&folder).expect("a policy folder") {
            std::fs::remove_file(entry.expect("a file").path()).expect("a policy file");
        }
        std::fs::write(folder.join("all.cedar"), rule).expect("a policy file");
    }
}

fn condition(about: AnswerScope, question: &Question) -> Option<Condition> {
    match about {
        AnswerScope::Proposed => None,
        AnswerScope::Keeping(fields) => {
            let mut condition = Condition::exactly(question.args.value()).expect("a condition");
            condition.keep(|field, _| fields.iter().any(|it| it == field));
            Some(condition)
        }
        AnswerScope::Args(args) => Condition::exactly(&args),
    }
}

/// Returns all parts of a question that a case can check.
fn text(question: &Question) -> String {
    let proposal = question.proposal.as_ref().map_or_else(
        || "alone".to_owned(),
        |it| format!("up to {} where {}", it.uses_max, it.condition),
    );
    let labels = question.facts.as_ref().map(|facts| facts.labels.to_texts());
    format!(
        "{} {} | {proposal} | {} | {} | read {labels:?} | so far {}",
        question.tool,
        question.args.text(),
        question.reasons.join("; "),
        question.prompts.join("; "),
        question.allowed_so_far
    )
}
