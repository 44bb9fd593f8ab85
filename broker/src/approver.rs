//! Approvers ask a person about a call. Only the run machine sends questions to an approver. No
//! tool and no script can reach an approver, so the requester of a call can never approve it.

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

pub use command::ApproverCommand;
pub(crate) use question_rows::{QuestionRow, rows};
pub use terminal::Terminal;
pub use web::{LinkNotifier, Web};

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
        question_text::show(question, 10_000, true)
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
}
