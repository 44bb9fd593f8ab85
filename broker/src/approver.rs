//! Approvers ask a person about a call. Only the run machine sends questions to an approver. No
//! tool and no script can reach an approver, so the requester of a call can never approve it.

mod argument_lines;
mod command;
mod form;
mod keyboard;
mod question_rows;
mod question_text;
mod terminal;
mod web;
mod wire;

use std::future::Future;
use std::pin::Pin;

use airlock_core::decide::{Answer, Question};
use airlock_core::id::{CallId, RunId};
use airlock_core::report::ReportedOutcome;

pub use command::ApproverCommand;
pub(crate) use question_rows::{QuestionRow, rows};
pub(crate) use question_text::similar;
pub use terminal::Terminal;
pub use web::{LinkNotifier, Web};

/// Width at which no line is wrapped.
const WIDTH_WHOLE: usize = 10_000;

/// A pending answer. Dropping it withdraws the question.
pub type AnswerFuture<'a> = Pin<Box<dyn Future<Output = Answer> + 'a>>;

/// A person, or a program that acts for a person, who can allow or refuse a call.
///
/// Every async function from a [`Question`] to an [`Answer`] implements this trait.
pub trait Approver: Send + Sync {
    fn ask(&self, question: Question) -> AnswerFuture<'_>;

    /// Returns the name of the approver, which each grant records.
    fn who(&self) -> String {
        "the host".into()
    }

    /// Returns where a person answers, for the host's model: a text such as `on a web page`. It must
    /// not help anybody else to answer. `None` means that no question is ever answered.
    fn place(&self) -> Option<String> {
        Some(format!("at {}", self.who()))
    }

    /// Reminds the person of the questions of suspended runs, which wait without a process. Returns
    /// `false` if this approver takes no answers to them.
    fn remind(&self) -> bool {
        false
    }

    /// Called when a call that this approver was asked about has ended.
    fn settled(&self, _: &SettledCall<'_>) {}
}

/// The end of a call that a person was asked about.
#[derive(Debug, Clone, Copy)]
pub struct SettledCall<'a> {
    pub run: &'a RunId,
    pub call: CallId,
    pub outcome: ReportedOutcome,
}

impl<F, Fut> Approver for F
where
    F: Fn(Question) -> Fut + Send + Sync,
    Fut: Future<Output = Answer> + 'static,
{
    fn ask(&self, question: Question) -> AnswerFuture<'_> {
        Box::pin(self(question))
    }
}

/// An approver for runs without a person. It leaves every question unanswered, so calls that need
/// approval are not made.
#[derive(Debug, Clone, Copy)]
pub struct NeverApprover;

impl Approver for NeverApprover {
    fn ask(&self, _: Question) -> AnswerFuture<'_> {
        Box::pin(std::future::ready(Answer::Unanswered))
    }

    fn who(&self) -> String {
        "nobody".into()
    }

    fn place(&self) -> Option<String> {
        None
    }
}

/// An approver for runs that are suspended until a person answers. It answers no question.
#[derive(Debug, Clone, Copy)]
pub struct SuspendingApprover;

impl Approver for SuspendingApprover {
    fn ask(&self, _: Question) -> AnswerFuture<'_> {
        Box::pin(std::future::pending())
    }

    fn who(&self) -> String {
        "a person, later".into()
    }

    fn place(&self) -> Option<String> {
        Some("on this machine".into())
    }

    fn remind(&self) -> bool {
        true
    }
}

/// Formats a question as text for a terminal, with nothing left out.
pub(crate) fn whole_question(question: &Question) -> String {
    question_text::show(question, WIDTH_WHOLE, true)
}

/// Returns who answers through this process, as statements and answers are recorded: the place, and
/// the user of the process.
pub(crate) fn by_user(place: &str) -> String {
    let user = rustix::process::geteuid().as_raw();
    format!("{place}, user id {user}")
}

/// Returns 128 random bits in hex, which cannot be guessed.
fn nonce() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The forms of a question, for a test that compares them with the form of the host.
#[cfg(test)]
pub(crate) mod forms {
    use super::*;

    pub(crate) fn terminal(question: &Question) -> String {
        whole_question(question)
    }

    pub(crate) fn page(question: &Question) -> serde_json::Value {
        web::card(question)
    }

    pub(crate) fn questions() -> [Question; 2] {
        [
            question_rows::tests::hostile(),
            wire::tests::asked(r#"{"to":"x"}"#),
        ]
    }

    /// Returns the question what became of an earlier call.
    pub(crate) fn about_outcome() -> Question {
        Question {
            outcome_of: Some(wire::tests::unknown_call()),
            ..wire::tests::asked(r#"{"to":"x"}"#)
        }
    }
}
