//! Turns entries into lines. Each line contains its number and the digest of the previous line, so
//! a changed, dropped or swapped line is detected.

use std::fmt;
use std::sync::Arc;

use codegen::canonical;
use serde_json::{Map, Value, json};

use super::{Entry, VERSION};
use crate::id::Digest;

/// The members of an entry that are written unredacted: airlock's own words, names and digests,
/// without which a journal could not be read. All other members are redacted, because they may
/// contain text from outside. That includes every new member that is not listed here.
const KEPT: [&str; 29] = [
    "answer",
    "args_digest",
    "asked_digest",
    "call",
    "calls",
    "code",
    "decision",
    "description",
    "end",
    "grant",
    "guest_digest",
    "guest_name",
    "input_digest",
    "inquiry",
    "kind",
    "limits",
    "outcome",
    "payload_digest",
    "run",
    "script_digest",
    "seed",
    "servers",
    "shown",
    "status",
    "tool",
    "tools",
    "usage",
    "value_digest",
    "wants",
];

/// The members with content, each with the member that holds the digest of the content.
const CONTENT: [(&str, &str); 4] = [
    ("args", "args_digest"),
    ("input", "input_digest"),
    ("payload", "payload_digest"),
    ("script", "script_digest"),
];

/// Replaces known secrets in one text; returns `None` if the text contains none.
#[derive(Clone)]
pub struct Redact(Arc<Replace>);

type Replace = dyn Fn(&str) -> Option<String> + Send + Sync;

impl Redact {
    pub fn new(redact: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(redact))
    }

    /// Returns a redaction for a run without secrets, which replaces nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self::new(|_| None)
    }

    /// Redacts a value, and returns whether it changed.
    fn value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => match (self.0)(text) {
                Some(redacted) => {
                    *text = redacted;
                    true
                }
                None => false,
            },
            Value::Array(items) => items
                .iter_mut()
                .fold(false, |changed, item| self.value(item) | changed),
            Value::Object(members) => self.members(members),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn members(&self, members: &mut Map<String, Value>) -> bool {
        let values = members.values_mut();
        let changed = values.fold(false, |changed, value| self.value(value) | changed);
        if !members.keys().any(|key| (self.0)(key).is_some()) {
            return changed;
        }
        for (key, value) in std::mem::take(members) {
            let mut key = (self.0)(&key).unwrap_or(key);
            // Redaction can make two keys equal. Keep both members.
            while members.contains_key(&key) {
                key.push('\'');
            }
            members.insert(key, value);
        }
        true
    }

    /// Redacts facts. Labels are words from the configuration, and digests are parsed again, so
    /// both stay unredacted. Destinations and field names are text from outside.
    fn facts(&self, facts: &mut Map<String, Value>) {
        for (name, value) in facts {
            match value {
                Value::Array(_) if name == "labels" => {}
                Value::Object(texts) if name == "large_texts" => {
                    for (pointer, large) in std::mem::take(texts) {
                        let pointer = (self.0)(&pointer).unwrap_or(pointer);
                        texts.insert(pointer, large);
                    }
                }
                value => _ = self.value(value),
            }
        }
    }

    /// Redacts findings. The severity and the code are airlock's own words; the rest quotes the
    /// script.
    fn findings(&self, findings: &mut [Value]) {
        for finding in findings.iter_mut().filter_map(Value::as_object_mut) {
            let said = finding.iter_mut();
            said.filter(|(name, _)| !["severity", "code"].contains(&name.as_str()))
                .for_each(|(_, value)| _ = self.value(value));
        }
    }

    fn entry(&self, body: &mut Map<String, Value>) {
        let mut changed = Vec::new();
        for (name, value) in body.iter_mut() {
            match value {
                // The code of an error is airlock's own word; the rest of the error is redacted.
                Value::Object(error) if name == "error" => {
                    let others = error.iter_mut().filter(|(name, _)| *name != "code");
                    others.for_each(|(_, value)| _ = self.value(value));
                }
                Value::Object(facts) if name == "facts" => self.facts(facts),
                Value::Array(findings) if name == "findings" => self.findings(findings),
                _ if KEPT.contains(&name.as_str()) => {}
                _ => {
                    if self.value(value) {
                        let of_content = CONTENT.iter().filter(|(content, _)| content == name);
                        changed.extend(of_content);
                    }
                }
            }
        }
        for (content, digest) in changed {
            renew_digest(body, content, digest);
        }
    }
}

/// Replaces the digest and the length of content that was redacted. The digest of the original
/// would let a reader of the journal test guesses of the secret.
fn renew_digest(body: &mut Map<String, Value>, content: &str, digest: &str) {
    let Some(value) = body.get(content).filter(|_| body.contains_key(digest)) else {
        return;
    };
    let bytes = match value {
        Value::String(text) => text.clone().into_bytes(),
        value => canonical::canonical(value),
    };
    body.insert(digest.into(), Digest::sha256(&bytes).to_string().into());
    if let Some(length) = body.get_mut("payload_bytes") {
        *length = bytes.len().into();
    }
    let texts = (body.get(content).cloned(), body.get_mut("facts"));
    if let (Some(args), Some(Value::Object(facts))) = texts {
        renew_large_texts(facts, &args);
    }
}

/// Replaces the digests of long texts by those of the redacted texts.
fn renew_large_texts(facts: &mut Map<String, Value>, args: &Value) {
    let Some(Value::Object(texts)) = facts.get_mut("large_texts") else {
        return;
    };
    for (pointer, large) in texts {
        if let Some(text) = args.pointer(pointer).and_then(Value::as_str) {
            let (bytes, digest) = (text.len(), Digest::sha256(text.as_bytes()));
            *large = json!({ "bytes": bytes, "digest": digest });
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
