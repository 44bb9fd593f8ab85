//! Entries into lines: each line carries its number and the digest of the line
//! before it, so none can be changed, dropped or swapped without a trace.

use std::fmt;
use std::sync::Arc;

use codegen::canonical;
use serde_json::{Map, Value};

use super::{Entry, VERSION};
use crate::id::Digest;

/// The members of an entry whose texts are somebody else's. All others are our
/// own words, names and digests, without which a journal could not be read.
const FREE_TEXTS: [&str; 10] = [
    "args",
    "error",
    "input",
    "payload",
    "reasons",
    "rules",
    "script",
    "script_name",
    "told",
    "why",
];

/// Replaces known secrets in one text; none when there is nothing to replace.
/// Digests in the entries stay those of the true bytes.
#[derive(Clone)]
pub struct Redact(Arc<Replace>);

type Replace = dyn Fn(&str) -> Option<String> + Send + Sync;

impl Redact {
    pub fn new(redact: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(redact))
    }

    /// For a run that knows no secrets.
    #[must_use]
    pub fn nothing() -> Self {
        Self::new(|_| None)
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(redacted) = (self.0)(text) {
                    *text = redacted;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(members) => self.members(members),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn members(&self, members: &mut Map<String, Value>) {
        members.values_mut().for_each(|value| self.value(value));
        if members.keys().any(|key| (self.0)(key).is_some()) {
            let old = std::mem::take(members);
            members.extend(
                old.into_iter()
                    .map(|(key, value)| ((self.0)(&key).unwrap_or(key), value)),
            );
        }
    }
}

impl fmt::Debug for Redact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redact")
    }
}

/// Seals the entries of one run, in order.
#[derive(Debug)]
pub struct Chain {
    seq: u64,
    prev: Option<Digest>,
    redact: Redact,
}

#[derive(Debug, thiserror::Error)]
#[error("an entry cannot be written as JSON: {0}")]
pub struct Unsealable(String);

impl Chain {
    #[must_use]
    pub fn new(redact: Redact) -> Self {
        Self {
            seq: 0,
            prev: None,
            redact,
        }
    }

    /// One line in canonical form, its newline included. The caller writes the
    /// lines in this order or not at all.
    pub fn seal(&mut self, entry: &Entry) -> Result<String, Unsealable> {
        let mut body = match serde_json::to_value(&entry.body) {
            Ok(Value::Object(members)) => members,
            Ok(_) => return Err(Unsealable("not an object".into())),
            Err(error) => return Err(Unsealable(error.to_string())),
        };
        let is_free = |key: &str| FREE_TEXTS.contains(&key);
        let texts = body.iter_mut().filter(|(key, _)| is_free(key));
        texts.for_each(|(_, value)| self.redact.value(value));
        body.insert("v".into(), VERSION.into());
        body.insert("seq".into(), self.seq.into());
        body.insert("at_ms".into(), entry.at_ms.into());
        let prev = self
            .prev
            .map_or(Value::Null, |digest| digest.to_string().into());
        body.insert("prev".into(), prev);
        let mut line = canonical::canonical(&Value::Object(body));
        self.prev = Some(Digest::of(&line));
        self.seq += 1;
        line.push(b'\n');
        String::from_utf8(line).map_err(|error| Unsealable(error.to_string()))
    }

    /// The digest of the latest line: whoever keeps it can tell if the end was cut off.
    #[must_use]
    pub fn head(&self) -> Option<Digest> {
        self.prev
    }
}
