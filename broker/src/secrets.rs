//! The values that must never be shown, stored or given to a script, and how they are masked in
//! texts from other sources. Configured secrets are found in all their usual encodings, other
//! credentials by the shapes of well-known services.

mod forms;
mod json;
mod shapes;
mod structure;

use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};
use serde_json::Value;

use forms::Form;

const MASK: &str = "***";

/// Finds credentials in texts. By default, it also recognises credentials that it does not know by
/// their shape. Cheap to clone.
#[derive(Clone, Default)]
pub struct Secrets {
    known: Arc<KnownSecrets>,
    shapes: Shapes,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Shapes {
    #[default]
    Recognised,
    Ignored,
}

/// The configured secrets, in all the forms that they can have in texts.
#[derive(Default)]
struct KnownSecrets {
    forms: Vec<Form>,
    /// Finds the forms. `None` if there are none, or if it could not be built.
    automaton: Option<AhoCorasick>,
    /// Whether one of the secrets is a number.
    has_number: bool,
    /// Whether one of the secrets contains a character that JSON escapes.
    has_escape: bool,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let forms = self.known.forms.len();
        write!(f, "Secrets({forms} forms, shapes {:?})", self.shapes)
    }
}

impl Secrets {
    /// Minimum length of a secret in bytes. Shorter values are not masked, because that would only
    /// make texts unreadable.
    pub const BYTES_MIN: usize = 4;

    pub fn new<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> Self {
        let (mut found, mut has_number) = (Vec::new(), false);
        for value in values {
            let value = value.as_ref();
            // A value like `Bearer abc` is configured as a whole, but a server may repeat only the
            // token.
            let token = value.rsplit(' ').next().unwrap_or(value);
            for secret in [value, token] {
                if secret.len() >= Self::BYTES_MIN {
                    found.extend(forms::of(secret));
                    has_number |= secret.parse::<f64>().is_ok();
                }
            }
        }
        found.sort();
        found.dedup_by(|a, b| a.text == b.text);
        Self {
            known: Arc::new(KnownSecrets::new(found, has_number)),
            shapes: Shapes::Recognised,
        }
    }

    /// Returns the same secrets, without recognising any other credential.
    #[must_use]
    pub fn known_only(&self) -> Self {
        Self {
            known: Arc::clone(&self.known),
            shapes: Shapes::Ignored,
        }
    }

    /// Returns whether no text can contain a credential.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.forms.is_empty() && self.shapes == Shapes::Ignored
    }

    /// Returns the length of the longest secret in bytes, in its longest form.
    pub(crate) fn longest_bytes(&self) -> usize {
        let lengths = self.known.forms.iter().map(|form| form.text.len());
        lengths.max().unwrap_or(0)
    }

    /// Returns the text with its secrets masked, or `None` if it contains none.
    #[must_use]
    pub fn redact(&self, text: &str) -> Option<String> {
        self.redact_with(text, shapes::find)
    }

    /// Returns the text of a member with its secrets masked. The name of the member can say that
    /// the text is a credential.
    fn redact_member(&self, name: &str, text: &str) -> Option<String> {
        self.redact_with(text, |text| shapes::find_in_member(name, text))
    }

    fn redact_with(
        &self,
        text: &str,
        find_shapes: impl Fn(&str) -> Vec<Range<usize>>,
    ) -> Option<String> {
        let redacted = masked(text, self.known.find(text));
        if self.shapes == Shapes::Ignored {
            return redacted;
        }
        let current = redacted.as_deref().unwrap_or(text);
        masked(current, find_shapes(current)).or(redacted)
    }

    /// Returns the first place after `from` at which a credential of a known shape may begin.
    fn next_shape(&self, text: &str, from: usize) -> Option<usize> {
        match self.shapes {
            Shapes::Recognised => shapes::next_start(text, from),
            Shapes::Ignored => None,
        }
    }

    /// Returns whether the whole text is a secret.
    fn is_one(&self, text: &str) -> bool {
        self.known.forms.iter().any(|form| form.text == text)
    }

    /// Masks secrets in JSON text, which stays valid JSON. Bytes that are not UTF-8 are not JSON,
    /// and the next reader refuses them.
    pub fn redact_json(&self, bytes: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        if let Some(redacted) = std::str::from_utf8(bytes)
            .ok()
            .and_then(|text| json::redact(self, text))
        {
            *bytes = redacted.into_bytes();
        }
    }

    /// Masks secrets in every text of a value. Member names stay unchanged.
    pub(crate) fn redact_value(&self, value: &mut Value) {
        match value {
            _ if self.is_empty() => {}
            Value::String(text) => self.redact_text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(members) => members.iter_mut().for_each(|(name, member)| match member {
                Value::String(text) => {
                    if let Some(redacted) = self.redact_member(name, text) {
                        *text = redacted;
                    }
                }
                member => self.redact_value(member),
            }),
            Value::Number(number) => {
                if self.known.has_number && self.is_one(&number.to_string()) {
                    *value = MASK.into();
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Masks secrets in every text and member name. Returns whether a member name contained a
    /// secret.
    pub(crate) fn redact_whole(&self, value: &mut Value) -> bool {
        let mut names_redacted = 0;
        if !self.is_empty() {
            self.redact_value(value);
            self.redact_names(value, &mut names_redacted);
        }
        names_redacted > 0
    }

    fn redact_names(&self, value: &mut Value, names_redacted: &mut usize) {
        let members = match value {
            Value::Array(items) => {
                for item in items {
                    self.redact_names(item, names_redacted);
                }
                return;
            }
            Value::Object(members) => members,
            _ => return,
        };
        for member in members.values_mut() {
            self.redact_names(member, names_redacted);
        }
        if members.keys().all(|name| self.redact(name).is_none()) {
            return;
        }
        // Two names can become equal, and no member may be lost by that.
        for (name, member) in std::mem::take(members) {
            let name = match self.redact(&name) {
                None => name,
                Some(redacted) => {
                    *names_redacted += 1;
                    match *names_redacted {
                        1 => redacted,
                        number => format!("{redacted}#{number}"),
                    }
                }
            };
            members.insert(name, member);
        }
    }

    pub(crate) fn redact_text(&self, text: &mut String) {
        if let Some(redacted) = self.redact(text) {
            *text = redacted;
        }
    }

    /// Masks the configured secrets in the texts of a tool that only people and models read. Returns
    /// `false` if one stands where a mask would change what the tool is called or accepts.
    pub(crate) fn redact_tool(&self, tool: &mut Value) -> bool {
        let known = self.known_only();
        if known.is_empty() {
            return true;
        }
        let is_clean = !structure::contains_secret(&known, tool);
        if is_clean {
            known.redact_whole(tool);
        }
        is_clean
    }

    /// Returns whether a secret stands in a schema where a mask would change what it accepts.
    pub(crate) fn is_in_schema(&self, schema: &Value) -> bool {
        structure::is_in_schema(self, schema)
    }
}

impl KnownSecrets {
    fn new(forms: Vec<Form>, has_number: bool) -> Self {
        if forms.is_empty() {
            return Self::default();
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(forms.iter().map(|form| &form.text));
        Self {
            automaton: automaton.ok(),
            has_number,
            has_escape: forms.iter().any(|form| form.text.contains('\\')),
            forms,
        }
    }

    /// Returns the first place after `from` at which a secret may begin.
    fn next(&self, text: &str, from: usize) -> Option<usize> {
        match &self.automaton {
            Some(automaton) => automaton
                .find(Input::new(text).range(from..))
                .map(|it| it.start()),
            None => (!self.forms.is_empty()).then_some(from),
        }
    }

    /// Returns the places of all secrets, in order. They can overlap. If they cannot be searched,
    /// the whole text counts as secret.
    fn find(&self, text: &str) -> Vec<Range<usize>> {
        let Some(automaton) = &self.automaton else {
            let is_unknown = !self.forms.is_empty() && !text.is_empty();
            return is_unknown.then_some(0..text.len()).into_iter().collect();
        };
        let mut places = Vec::new();
        let mut input = Input::new(text);
        while let Some(found) = automaton.find(input.clone()) {
            let form = self.forms.get(found.pattern().as_usize());
            places.push(match form {
                Some(form) if form.is_base64 => with_edges(text.as_bytes(), found.range()),
                _ => found.range(),
            });
            // The next secret can begin within this one.
            input.set_start(found.start() + 1);
        }
        places
    }
}

/// Extends a place in base64 text by the characters that share bits with the bytes around it, and
/// by the padding.
fn with_edges(text: &[u8], place: Range<usize>) -> Range<usize> {
    let is_base64 = |at: usize| text.get(at).is_some_and(|it| forms::is_base64(*it));
    let before = place.start.saturating_sub(1);
    let start = match place.start > 0 && is_base64(before) {
        true => before,
        false => place.start,
    };
    let mut end = place.end + usize::from(is_base64(place.end));
    while text.get(end) == Some(&b'=') {
        end += 1;
    }
    start..end
}

/// Returns the text with these places masked, or `None` if there are none. Places that overlap
/// become one mask.
fn masked(text: &str, mut places: Vec<Range<usize>>) -> Option<String> {
    if places.is_empty() {
        return None;
    }
    places.sort_by_key(|it| it.start);
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (number, place) in places.into_iter().enumerate() {
        if number == 0 || place.start >= done {
            let start = text.floor_char_boundary(place.start).max(done);
            out.push_str(text.get(done..start).unwrap_or_default());
            out.push_str(MASK);
        }
        done = done.max(text.ceil_char_boundary(place.end));
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn redact_replaces_plain_and_json_escaped_secrets() {
        let secrets = Secrets::new(["Bearer tok-123", "with \"quote\"", "abc"]);
        for (text, expected) in [
            ("sent 'Bearer tok-123'", Some("sent '***'")),
            ("tok-123, tok-123", Some("***, ***")),
            ("tok-123tok-123", Some("******")),
            (r#"{"a":"with \"quote\""}"#, Some(r#"{"a":"***"}"#)),
            ("abc is too short to be a secret", None),
            ("nothing", None),
        ] {
            assert_eq!(secrets.redact(text).as_deref(), expected);
        }
    }

    #[test]
    fn encoded_secret_is_redacted_at_every_alignment() {
        use base64::Engine as _;
        use base64::engine::general_purpose::{
            STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD,
        };
        let secret = "t0ken~>?-ÿ1";
        let secrets = Secrets::new([secret]);
        for before in ["", "a", "ab", "abc", "user:", "{\"k\":\""] {
            for after in ["", "z", "zz", "zzz"] {
                let whole = format!("{before}{secret}{after}");
                for encoded in [
                    STANDARD.encode(&whole),
                    STANDARD_NO_PAD.encode(&whole),
                    URL_SAFE.encode(&whole),
                    URL_SAFE_NO_PAD.encode(&whole),
                ] {
                    let shown = secrets.redact(&format!("<{encoded}>"));
                    let shown = shown.unwrap_or_else(|| panic!("{encoded}"));
                    // What is left encodes at most the bytes around the secret.
                    let left = shown.replace("***", "").len() - 2;
                    let around = before.len() + after.len();
                    assert!(left <= around.div_ceil(3) * 4 + 1, "{encoded}: {shown}");
                }
            }
        }
        for text in [
            "74306b656e7e3e3f2dc3bf31",
            "74306B656E7E3E3F2DC3BF31",
            "t0ken~%3E%3F-%C3%BF1",
            "t0ken%7e%3e%3f-%c3%bf1",
        ] {
            assert_eq!(secrets.redact(text).as_deref(), Some("***"), "{text}");
        }
    }

    #[test]
    fn redact_replaces_member_names_and_keeps_every_member() {
        let secrets = Secrets::new(["tok-123"]);
        let mut value =
            json!({"a": ["tok-123"], "b": {"tok-123": 1, "tok-123!": {"x tok-123": 2}}});
        assert!(secrets.redact_whole(&mut value));
        let members = value["b"].as_object().unwrap();
        assert_eq!((members.len(), &value["a"]), (2, &json!(["***"])));
        assert!(!value.to_string().contains("tok-123"), "{value}");
        let mut value = json!({"a": "tok-123"});
        assert!(!secrets.redact_whole(&mut value));
    }

    #[test]
    fn numeric_secret_is_redacted_in_values() {
        let mut value = json!({"pin": 123_456, "other": 1_234_567});
        Secrets::new(["123456"]).redact_value(&mut value);
        assert_eq!(value, json!({"pin": "***", "other": 1_234_567}));
    }

    #[test]
    fn nested_and_overlapping_secrets_are_redacted_completely() {
        let check = |secrets: [&str; 2], text: &str, expected: &str| {
            let found = Secrets::new(secrets).redact(text);
            assert_eq!(found.as_deref(), Some(expected));
        };
        check(["12345", "x12345y"], "x12345y", "***");
        check(["abcd1234", "1234efgh"], "abcd1234efgh", "***");
    }

    #[test]
    fn known_only_ignores_shapes() {
        let secrets = Secrets::new(["tok-123"]);
        let text = "tok-123 redis://:pw@host";
        let all = secrets.redact(text);
        assert_eq!(all.as_deref(), Some("*** redis://:***@host"));
        let known = secrets.known_only().redact(text);
        assert_eq!(known.as_deref(), Some("*** redis://:pw@host"));
        assert!(!Secrets::default().is_empty());
        assert!(Secrets::default().known_only().is_empty());
    }
}
