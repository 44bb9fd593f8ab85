//! Turns entries into lines. Each line contains its number and the digest of the previous line, so
//! a changed, dropped or swapped line is detected.

use codegen::canonical;
use serde_json::Value;

use super::{Entry, Redact, VERSION};
use crate::id::Digest;

/// Seals the entries of one run, in order.
#[derive(Debug)]
pub struct Chain {
    seq: u64,
    prev: Option<Digest>,
    redact: Redact,
}

#[derive(Debug, thiserror::Error)]
#[error("an entry cannot be written as JSON: {0}")]
pub struct SealError(String);

impl Chain {
    #[must_use]
    pub fn new(redact: Redact) -> Self {
        Self {
            seq: 0,
            prev: None,
            redact,
        }
    }

    /// Returns one line in canonical form, including its newline. The caller must write the lines
    /// in this order or not at all.
    pub fn seal(&mut self, entry: &Entry) -> Result<String, SealError> {
        let mut body = match serde_json::to_value(&entry.body) {
            Ok(Value::Object(members)) => members,
            Ok(_) => return Err(SealError("not an object".into())),
            Err(error) => return Err(SealError(error.to_string())),
        };
        self.redact.entry(&mut body);
        body.insert("v".into(), VERSION.into());
        body.insert("seq".into(), self.seq.into());
        body.insert("at_ms".into(), entry.at_ms.into());
        let prev = self
            .prev
            .map_or(Value::Null, |digest| digest.to_string().into());
        body.insert("prev".into(), prev);
        let mut line = canonical::canonical(&Value::Object(body));
        self.prev = Some(Digest::sha256(&line));
        self.seq += 1;
        line.push(b'\n');
        String::from_utf8(line).map_err(|error| SealError(error.to_string()))
    }

    /// Returns the digest of the latest line. With it a reader can detect that the end of the
    /// journal was cut off.
    #[must_use]
    pub fn head(&self) -> Option<Digest> {
        self.prev
    }

    /// Returns the number of entries so far.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.seq
    }
}
