//! Whoever is asked in a case: says what the header has them say, in turn, and
//! keeps what they were shown.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use airlock::Approver;
use airlock::core::decide::{Answer, Question};
use airlock::core::grant::{Condition, Terms};

use crate::case_file::{About, Told};

#[derive(Debug)]
pub(super) struct Person {
    answers: Mutex<VecDeque<Told>>,
    shown: Mutex<Vec<String>>,
    /// The state directory, with the policies that one answer changes.
    state: PathBuf,
}

impl Person {
    pub(super) fn new(answers: Vec<Told>, state: &Path) -> Self {
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

    /// What they were shown, one text per question.
    pub(super) fn shown(&self) -> Vec<String> {
        self.shown.lock().expect("the questions").clone()
    }

    fn answer(&self, question: &Question) -> Option<Answer> {
        self.shown
            .lock()
            .expect("the questions")
            .push(text(question));
        let mut answers = self.answers.lock().expect("the answers");
        let told = match answers.front() {
            // Whoever is silent stays so.
            Some(Told::Silence) => return None,
            _ => answers.pop_front(),
        };
        drop(answers);
        Some(match told.unwrap_or(Told::Nobody) {
            Told::Once => Answer::AllowOnce,
            Told::Refuse => Answer::Refuse,
            Told::Nobody => Answer::Unanswered,
            Told::Silence => return None,
            Told::Nonsense => Answer::Invalid {
                why: "it is not JSON".into(),
            },
            Told::OnceAfterChange => {
                self.permit_everything();
                Answer::AllowOnce
            }
            Told::UpTo {
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
        for entry in std::fs::read_dir(&folder).expect("the case has policies") {
            std::fs::remove_file(entry.expect("a file").path()).expect("a file of the case");
        }
        std::fs::write(folder.join("all.cedar"), rule).expect("a file of the case");
    }
}

fn condition(about: About, question: &Question) -> Option<Condition> {
    match about {
        About::Proposed => None,
        About::Keeping(fields) => {
            let mut condition = Condition::exactly(question.args.value()).expect("few fields");
            condition.keep(|field, _| fields.iter().any(|it| it == field));
            Some(condition)
        }
        About::Args(args) => Condition::exactly(&args),
    }
}

/// Everything of a question that a case may look for.
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
