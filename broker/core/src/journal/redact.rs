//! Masks secrets in an entry before it is written, and renews the digests of content that changed.

use std::fmt;
use std::sync::Arc;

use codegen::canonical;
use serde_json::{Map, Number, Value, json};

use crate::call::Args;
use crate::id::Digest;
use crate::json;
use crate::masked_names::MaskedNames;

/// The members of an entry that are written unredacted: airlock's own words, names and digests,
/// without which a journal could not be read. All other members are redacted, because they may
/// contain text from outside. That includes every new member that is not listed here.
const KEPT: [&str; 43] = [
    "about",
    "again",
    "answer",
    "args_digest",
    "asked_digest",
    "blocked_by",
    "call",
    "calls",
    "chain",
    "code",
    "decision",
    "description",
    "effects",
    "end",
    "from",
    "grant",
    "guest_digest",
    "guest_name",
    "input_digest",
    "inquiry",
    "kind",
    "labels",
    "limits",
    "masked",
    "near",
    "outcome",
    "outcome_of",
    "payload_digest",
    "program",
    "reads",
    "run",
    "same_servers",
    "script_digest",
    "seed",
    "servers",
    "shown",
    "stated",
    "status",
    "tool",
    "tools",
    "usage",
    "value_digest",
    "wants",
];

/// The members with content, each with the member that holds the digest of the content.
const CONTENT: [(&str, &str); 5] = [
    ("args", "args_digest"),
    ("input", "input_digest"),
    ("payload", "payload_digest"),
    ("script", "script_digest"),
    ("value", "value_digest"),
];

/// The members of facts that hold JSON pointers into the arguments.
const POINTERS: [&str; 2] = ["dest_unexplained", "lookalikes"];

/// A piece of an entry that may contain a secret.
#[derive(Debug, Clone, Copy)]
pub enum Piece<'a> {
    Text(&'a str),
    /// The text of a member, whose name can say that the text is a secret.
    Member {
        name: &'a str,
        text: &'a str,
    },
    Number(&'a Number),
}

/// Replaces known secrets in one piece; returns `None` if the piece contains none.
#[derive(Clone)]
pub struct Redact(Arc<Replace>);

type Replace = dyn Fn(Piece<'_>) -> Option<String> + Send + Sync;

impl Redact {
    pub fn new(redact: impl Fn(Piece<'_>) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(redact))
    }

    /// Returns a redaction for a run without secrets, which replaces nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self::new(|_| None)
    }

    /// Returns the digest that the journal records for arguments, and whether they contain a secret
    /// that is masked there.
    #[must_use]
    pub fn args_digest(&self, args: &Args) -> (Digest, bool) {
        let mut value = args.value().clone();
        match self.args(&mut value) {
            true => (Digest::sha256(&canonical::canonical(&value)), true),
            false => (args.digest(), false),
        }
    }

    /// Whether JSON text contains a secret.
    #[must_use]
    pub fn is_secret(&self, text: &str) -> bool {
        self.json_text(&mut text.into())
    }

    /// Redacts arguments, and returns whether they changed.
    fn args(&self, args: &mut Value) -> bool {
        let has_number = self.numbers(args);
        self.value(args) | has_number
    }

    /// Redacts JSON text, which stays JSON, and returns whether it changed.
    fn json_text(&self, text: &mut Value) -> bool {
        let parsed = text.as_str().map(|it| json::parse(it.as_bytes()));
        let Some(Ok(mut value)) = parsed else {
            return self.value(text);
        };
        let is_changed = self.args(&mut value);
        if is_changed {
            *text = value.to_string().into();
        }
        is_changed
    }

    fn text(&self, text: &str) -> Option<String> {
        (self.0)(Piece::Text(text))
    }

    /// Redacts the texts and the names of members in a value, and returns whether it changed.
    fn value(&self, value: &mut Value) -> bool {
        let is_changed = self.texts(None, value);
        let is_in_name = self.is_in_names(value);
        if is_in_name {
            self.names(value, &mut MaskedNames::with_earlier_masks());
        }
        is_changed || is_in_name
    }

    /// Redacts the texts in a value. `name` is the member that holds the value.
    fn texts(&self, name: Option<&str>, value: &mut Value) -> bool {
        let redacted = match value {
            Value::String(text) => match name {
                Some(name) => (self.0)(Piece::Member { name, text }),
                None => self.text(text),
            },
            Value::Array(items) => {
                let items = items.iter_mut();
                return items.fold(false, |changed, item| self.texts(None, item) | changed);
            }
            Value::Object(members) => {
                let members = members.iter_mut();
                return members.fold(false, |changed, (name, member)| {
                    self.texts(Some(name), member) | changed
                });
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        };
        let is_changed = redacted.is_some();
        if let Some(redacted) = redacted {
            *value = redacted.into();
        }
        is_changed
    }

    /// Redacts the numbers in a value, and returns whether it changed.
    fn numbers(&self, value: &mut Value) -> bool {
        let each = |changed: bool, item: &mut Value| self.numbers(item) | changed;
        match value {
            Value::Array(items) => items.iter_mut().fold(false, each),
            Value::Object(members) => members.values_mut().fold(false, each),
            Value::Number(number) => match (self.0)(Piece::Number(number)) {
                Some(redacted) => {
                    *value = redacted.into();
                    true
                }
                None => false,
            },
            Value::Null | Value::Bool(_) | Value::String(_) => false,
        }
    }

    fn is_in_names(&self, value: &Value) -> bool {
        match value {
            Value::Array(items) => items.iter().any(|item| self.is_in_names(item)),
            Value::Object(members) => members
                .iter()
                .any(|(name, member)| self.text(name).is_some() || self.is_in_names(member)),
            _ => false,
        }
    }

    fn names(&self, value: &mut Value, names: &mut MaskedNames) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.names(item, names)),
            Value::Object(members) => {
                for (name, mut member) in std::mem::take(members) {
                    let shown = names.replacement(&name, self.text(&name));
                    self.names(&mut member, names);
                    members.insert(shown.unwrap_or(name), member);
                }
            }
            _ => {}
        }
    }

    /// Redacts facts. Labels are words from the configuration, and digests are parsed again, so
    /// both stay unredacted. Destinations and the names in JSON pointers are text from outside.
    fn facts(&self, facts: &mut Map<String, Value>, pointers: &Pointers<'_>) {
        for (name, value) in facts {
            match value {
                Value::Array(_) if name == "labels" => {}
                Value::Array(fields) if POINTERS.contains(&name.as_str()) => {
                    fields.iter_mut().for_each(|field| pointers.redact(field));
                }
                Value::Array(shares) if name == "shares" => {
                    let fields = shares.iter_mut().filter_map(|it| it.get_mut("field"));
                    fields.for_each(|field| pointers.redact(field));
                }
                Value::Object(texts) if name == "large_texts" => {
                    for (pointer, large) in std::mem::take(texts) {
                        texts.insert(pointers.redacted(&pointer), large);
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

    /// Redacts how servers are reached. Their names are parsed again, so they stay unredacted.
    fn targets(&self, servers: &mut [Value]) {
        let targets = servers.iter_mut().filter_map(|it| it.get_mut("target"));
        targets.for_each(|target| _ = self.value(target));
    }

    /// Redacts the members of an entry.
    pub(super) fn entry(&self, body: &mut Map<String, Value>) {
        let exact_args = body
            .get("args")
            .filter(|_| body.contains_key("facts"))
            .cloned();
        let mut changed = Vec::new();
        for (name, value) in body.iter_mut() {
            match value {
                // The code of an error is airlock's own word; the rest of the error is redacted.
                Value::Object(error) if name == "error" => {
                    let others = error.iter_mut().filter(|(name, _)| *name != "code");
                    others.for_each(|(_, value)| _ = self.value(value));
                }
                Value::Object(_) if name == "facts" => {}
                Value::Array(findings) if name == "findings" => self.findings(findings),
                Value::Array(servers) if name == "servers" => self.targets(servers),
                _ if KEPT.contains(&name.as_str()) => {}
                _ => {
                    // All other numbers are airlock's own, such as times, and are parsed again.
                    let is_changed = match name.as_str() {
                        "args" => self.args(value),
                        "value" => self.json_text(value),
                        _ => self.value(value),
                    };
                    if is_changed {
                        let of_content = CONTENT.iter().filter(|(content, _)| content == name);
                        changed.extend(of_content);
                    }
                }
            }
        }
        if let Some(Value::Object(mut facts)) = body.remove("facts") {
            let pointers = Pointers {
                redact: self,
                exact: exact_args.as_ref(),
                masked: body.get("args"),
            };
            self.facts(&mut facts, &pointers);
            body.insert("facts".into(), facts.into());
        }
        for (content, digest) in changed {
            renew_digest(body, content, digest);
            body.insert("masked".into(), true.into());
        }
    }
}

/// Redacts JSON pointers into arguments, so that they lead to the same places of the masked
/// arguments.
struct Pointers<'a> {
    redact: &'a Redact,
    exact: Option<&'a Value>,
    masked: Option<&'a Value>,
}

impl Pointers<'_> {
    fn redact(&self, field: &mut Value) {
        if let Value::String(pointer) = field {
            *pointer = self.redacted(pointer);
        }
    }

    fn redacted(&self, pointer: &str) -> String {
        let (mut exact, mut masked) = (self.exact, self.masked);
        let mut out = String::new();
        for (number, step) in pointer.split('/').enumerate() {
            if number > 0 {
                out.push('/');
            }
            let name = step.replace("~1", "/").replace("~0", "~");
            let shown = match (exact, masked) {
                // Masking keeps the order of members.
                (Some(Value::Object(from)), Some(Value::Object(to))) if number > 0 => {
                    let place = from.keys().position(|it| *it == name);
                    place.and_then(|place| to.keys().nth(place)).cloned()
                }
                _ => None,
            };
            let shown = shown
                .or_else(|| self.redact.text(&name))
                .unwrap_or(name.clone());
            if number > 0 {
                exact = exact.and_then(|it| child(it, &name));
                masked = masked.and_then(|it| child(it, &shown));
            }
            out.push_str(&shown.replace('~', "~0").replace('/', "~1"));
        }
        out
    }
}

fn child<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Object(members) => members.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
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
