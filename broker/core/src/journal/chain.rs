//! Turns entries into lines. Each line contains its number and the digest of the previous line, so
//! a changed, dropped or swapped line is detected.

use codegen::canonical;
use serde_json::{Map, Value};

use super::{Body, Entry, Redact, VERSION};
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
        let mut body = members(&entry.body)?;
        self.redact.entry(&mut body);
        let mut line = text_of(body, (self.seq, self.prev), entry.at_ms);
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

/// Whether a text is exactly the line that [`Chain::seal`] writes for an entry at this place:
/// canonical, and with the members of its kind alone.
pub(super) fn is_text_of(
    text: &[u8],
    body: &Body,
    place: (u64, Option<Digest>),
    at_ms: u64,
) -> bool {
    members(body).is_ok_and(|body| text_of(body, place, at_ms) == text)
}

fn members(body: &Body) -> Result<Map<String, Value>, SealError> {
    match serde_json::to_value(body) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(SealError("not an object".into())),
        Err(error) => Err(SealError(error.to_string())),
    }
}

/// Returns the text of a line. Its place is its number and the digest of the line before.
fn text_of(
    mut members: Map<String, Value>,
    (seq, prev): (u64, Option<Digest>),
    at_ms: u64,
) -> Vec<u8> {
    members.insert("v".into(), VERSION.into());
    members.insert("seq".into(), seq.into());
    members.insert("at_ms".into(), at_ms.into());
    let prev = prev.map_or(Value::Null, |digest| digest.to_string().into());
    members.insert("prev".into(), prev);
    canonical::canonical(&Value::Object(members))
}
