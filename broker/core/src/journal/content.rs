//! Compares the digests in a journal with the content that the journal holds. The digest of content
//! that is not recorded, such as a long result, cannot be checked.

use std::collections::BTreeMap;

use super::{AnswerWord, Body, EndedEntry, RunStartedEntry, SettledEntry};
use crate::call::Args;
use crate::facts::Facts;
use crate::id::{CallId, CallRef, Digest, ToolId};

/// The statements of earlier entries with which later entries must agree.
#[derive(Default)]
pub(super) struct ContentCheck {
    payload_bytes_max: u64,
    asked: BTreeMap<CallId, AskedCall>,
    decided: u64,
}

struct AskedCall {
    tool: ToolId,
    args: Digest,
    shown: Digest,
    outcome_of: Option<CallRef>,
}

impl ContentCheck {
    /// Returns why the entry contradicts its content or an earlier entry.
    pub(super) fn take(&mut self, body: &Body) -> Result<(), String> {
        match body {
            Body::RunStarted(started) => self.started(started),
            Body::Asked(asked) => {
                of_args(&asked.args, asked.args_digest, asked.facts.as_deref())?;
                let call = AskedCall {
                    tool: asked.tool.clone(),
                    args: asked.args_digest,
                    shown: asked.shown,
                    outcome_of: asked.outcome_of.clone(),
                };
                self.asked.insert(asked.call, call);
                Ok(())
            }
            Body::Answered(answered) => {
                let allows = [
                    AnswerWord::AllowOnce,
                    AnswerWord::AllowDeclassified,
                    AnswerWord::AllowTool,
                    AnswerWord::Stated,
                ];
                let asked = self.asked.get(&answered.call);
                match asked.is_some_and(|asked| asked.shown == answered.shown) {
                    false if allows.contains(&answered.answer) => {
                        Err("the answer belongs to another question".into())
                    }
                    _ => Ok(()),
                }
            }
            Body::Stated(stated) => {
                let asked = self.asked.get(&stated.call);
                let is_asked = asked.is_some_and(|asked| {
                    asked.shown == stated.statement.shown
                        && asked.outcome_of.as_ref() == Some(&stated.statement.about)
                });
                match is_asked {
                    true => Ok(()),
                    false => Err("the statement belongs to another question".into()),
                }
            }
            Body::Reused(_) => {
                self.decided += 1;
                Ok(())
            }
            Body::Decided(decided) => {
                self.decided += 1;
                if let Some(args) = &decided.args {
                    of_args(args, decided.args_digest, decided.facts.as_deref())?;
                }
                match self.asked.get(&decided.call) {
                    Some(asked)
                        if asked.tool != decided.tool || asked.args != decided.args_digest =>
                    {
                        Err(format!(
                            "call {} was asked about with another tool or other arguments",
                            decided.call.0
                        ))
                    }
                    _ => Ok(()),
                }
            }
            Body::Settled(settled) => self.settled(settled),
            Body::Ended(ended) => self.ended(ended),
            _ => Ok(()),
        }
    }

    fn started(&mut self, started: &RunStartedEntry) -> Result<(), String> {
        self.payload_bytes_max = u64::from(started.limits.journal_payload_bytes_max);
        let script = started.script.as_deref();
        of_text("script", script, started.script_digest)?;
        of_text("input", started.input.as_deref(), started.input_digest)
    }

    fn settled(&self, settled: &SettledEntry) -> Result<(), String> {
        let bytes = settled.payload_bytes;
        let payload = match &settled.payload {
            Some(payload) => payload.as_str(),
            None if bytes > self.payload_bytes_max => return Ok(()),
            None if settled.told => {
                return Err("the payload is missing, and it is short enough to be recorded".into());
            }
            None => "",
        };
        if payload.len() as u64 != bytes {
            return Err(format!(
                "the payload has {} bytes; expected {bytes}",
                payload.len()
            ));
        }
        of_text("payload", Some(payload), settled.payload_digest)
    }

    fn ended(&self, ended: &EndedEntry) -> Result<(), String> {
        if let Some(digest) = ended.value_digest {
            of_text("value", ended.value.as_deref(), digest)?;
        }
        let usage = &ended.usage;
        match u64::from(usage.calls) == self.decided {
            true => Ok(()),
            false => Err(format!(
                "the run ended with {} calls; {} are recorded",
                usage.calls, self.decided
            )),
        }
    }
}

fn of_text(what: &str, text: Option<&str>, digest: Digest) -> Result<(), String> {
    match text {
        Some(text) if Digest::sha256(text.as_bytes()) != digest => Err(format!(
            "the digest of the {what} does not match the recorded {what}"
        )),
        _ => Ok(()),
    }
}

fn of_args(args: &Args, digest: Digest, facts: Option<&Facts>) -> Result<(), String> {
    if args.digest() != digest {
        return Err("the digest of the arguments does not match the recorded arguments".into());
    }
    let texts = facts.into_iter().flat_map(|facts| &facts.large_texts);
    for (pointer, large) in texts {
        let text = args.value().pointer(pointer).and_then(|it| it.as_str());
        if text.is_some_and(|text| {
            text.len() as u64 != large.bytes || Digest::sha256(text.as_bytes()) != large.digest
        }) {
            return Err(format!(
                "the digest of `{pointer}` does not match the recorded arguments"
            ));
        }
    }
    Ok(())
}
