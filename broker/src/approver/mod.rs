//! Asking a human. Whoever asks can never answer: an approver hears questions
//! from the run machine only, and no tool and no script can reach one.

mod command;
mod form;
mod keyboard;
mod question_text;
mod terminal;
mod web;
mod wire;

use std::future::Future;
use std::pin::Pin;

use airlock_core::decide::{Answer, Question};

pub use command::Command;
pub use terminal::Terminal;
pub use web::{Told, Web};

/// An answer that is on its way. Dropping it withdraws the question.
pub type Asking<'a> = Pin<Box<dyn Future<Output = Answer> + 'a>>;

/// Somebody, or something that speaks for somebody, who may say yes or no.
///
/// An async function from a [`Question`] to an [`Answer`] is one.
pub trait Approver: Send + Sync {
    fn ask(&self, question: Question) -> Asking<'_>;

    /// Who answers, as it stands on record with each grant.
    fn who(&self) -> String {
        "the host".into()
    }
}

impl<F, Fut> Approver for F
where
    F: Fn(Question) -> Fut + Send + Sync,
    Fut: Future<Output = Answer> + 'static,
{
    fn ask(&self, question: Question) -> Asking<'_> {
        Box::pin(self(question))
    }
}

/// For headless use: nobody is there, and what would be asked is not done.
#[derive(Debug, Clone, Copy)]
pub struct Never;

impl Approver for Never {
    fn ask(&self, _: Question) -> Asking<'_> {
        Box::pin(std::future::ready(Answer::Unanswered))
    }

    fn who(&self) -> String {
        "nobody".into()
    }
}

/// What nobody can guess: 128 bits of chance, in hex.
fn nonce() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
