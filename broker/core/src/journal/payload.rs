//! The outcome of a call as text in the journal, and back.

use std::borrow::Cow;

use sandbox_protocol::{Failure, Outcome};
use serde_json::{Value, json};

use super::{DecidedEntry, SettledEntry};
use crate::json;
use crate::report::ReportedOutcome;

impl SettledEntry {
    /// Returns the outcome as the guest got it. `None` if it is not recorded whole.
    #[must_use]
    pub fn recorded(&self) -> Option<Outcome> {
        let text = self.payload.as_ref().filter(|_| !self.masked)?;
        match self.outcome {
            ReportedOutcome::Returned => Some(Outcome::Value(text.clone().into_bytes())),
            _ => Some(Outcome::Failure(failure(text)?)),
        }
    }
}

impl DecidedEntry {
    /// Returns the failure with which the promise of a denied call rejected.
    #[must_use]
    pub fn denial(&self) -> Option<Outcome> {
        Some(Outcome::Failure(Failure {
            code: self.code?.as_str().into(),
            tool: self.tool.to_string(),
            message: self.told.clone()?,
            retryable: false,
            content: Vec::new(),
            structured_content: Vec::new(),
        }))
    }
}

fn failure(text: &str) -> Option<Failure> {
    let members = json::parse(text.as_bytes()).ok()?;
    let text = |name: &str| Some(members.get(name)?.as_str()?.to_owned());
    Some(Failure {
        code: text("code")?,
        tool: text("tool")?,
        message: text("message")?,
        retryable: members.get("retryable")?.as_bool()?,
        content: text("content").unwrap_or_default().into_bytes(),
        structured_content: text("structured_content").unwrap_or_default().into_bytes(),
    })
}

/// Returns the payload of the settled promise as text: the value itself, or the failure's fields.
#[must_use]
pub fn payload(outcome: &Outcome) -> Cow<'_, str> {
    match outcome {
        // A value is JSON and therefore UTF-8, so checking is enough and faster than a lossy
        // conversion.
        Outcome::Value(text) => match std::str::from_utf8(text) {
            Ok(text) => text.into(),
            Err(_) => String::from_utf8_lossy(text),
        },
        Outcome::Failure(failure) => failure_json(failure).to_string().into(),
    }
}

fn failure_json(failure: &Failure) -> Value {
    json!({
        "code": failure.code,
        "content": as_text(&failure.content),
        "message": failure.message,
        "retryable": failure.retryable,
        "structured_content": as_text(&failure.structured_content),
        "tool": failure.tool,
    })
}

/// Keeps JSON inside JSON as text, so that a replay passes on the same bytes.
fn as_text(json: &[u8]) -> Option<String> {
    (!json.is_empty()).then(|| String::from_utf8_lossy(json).into_owned())
}
