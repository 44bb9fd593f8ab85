//! The checker guest as a state machine: one request and its reply, then any number of questions
//! about the instrumented script.

use codegen_shared::message::{About, Question, Reply, Request};
use sandbox_protocol::codec::CodecError;

use crate::instrument::{self, InstrumentedScript, TracedScript};
use crate::{check, uses};

/// Answers requests, and keeps the instrumented script for the questions that follow.
#[derive(Debug, Default)]
pub struct Checker {
    subject: Option<Subject>,
}

#[derive(Debug)]
enum Subject {
    Instrumented(InstrumentedScript),
    Followed(TracedScript),
}

impl Checker {
    /// Answers a [`Request`].
    pub fn start(&mut self, frame: &[u8]) -> Result<Vec<u8>, CodecError> {
        let reply = match Request::decode(frame)? {
            Request::Check(request) => check::check(&request)?,
            Request::Uses { script } => Reply::Uses(uses::uses_in(script)),
            Request::Nesting { script } => Reply::Nesting(check::too_deep_at(script)),
            Request::Instrument {
                script,
                look,
                secret,
            } => {
                let instrumented = instrument::instrument(script, secret, look);
                let text = instrumented.map(|mut it| {
                    let text = std::mem::take(&mut it.text);
                    self.subject = Some(Subject::Instrumented(it));
                    text
                });
                Reply::Instrumented(text)
            }
            Request::Follow {
                script,
                from,
                secret,
            } => {
                let followed = instrument::follow(script, secret, from);
                let text = followed.map(|mut it| {
                    let text = std::mem::take(&mut it.text);
                    self.subject = Some(Subject::Followed(it));
                    text
                });
                Reply::Instrumented(text)
            }
        };
        reply.encode()
    }

    /// Answers a [`Question`].
    pub fn resume(&mut self, frame: &[u8]) -> Result<Vec<u8>, CodecError> {
        let Question { about, console } = Question::decode(frame)?;
        let console = console.into_iter();
        let reply = match (about, &self.subject) {
            (About::Error { name }, Some(Subject::Instrumented(it))) => {
                Reply::Failure(it.failure(console, name))
            }
            (About::Waits, Some(Subject::Instrumented(it))) => Reply::Wait(it.wait(console)),
            (About::Stop { is_recursion }, Some(Subject::Followed(it))) => {
                Reply::Stop(it.stop(console, is_recursion))
            }
            (About::Error { .. }, _) => Reply::Failure(None),
            (About::Waits, _) => Reply::Wait(None),
            (About::Stop { .. }, _) => Reply::Stop(None),
        };
        reply.encode()
    }
}
