//! The values that must never be shown, stored or given to a script, and how they are masked in
//! texts from other sources. Configured secrets are found in all their usual encodings, other
//! credentials by the shapes of well-known services.

mod forms;
mod json;
mod shapes;
mod structure;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};
use airlock_core::journal::{Piece, Redact};
use airlock_core::masked_names::{MASK, MaskedNames};
use serde_json::{Number, Value};

use forms::Form;

/// The secrets that came into being while this process runs, such as the tokens of logins. They are
/// masked by every [`Secrets`], also by those made earlier, until the process ends.
static LEARNED: RwLock<Option<LearnedSecrets>> = RwLock::new(None);
/// Whether there is any learned secret.
static HAS_LEARNED: AtomicBool = AtomicBool::new(false);

struct LearnedSecrets {
    values: BTreeSet<String>,
    known: Arc<KnownSecrets>,
}

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
    /// The forms that can be written as a number of JSON.
    numbers: BTreeSet<String>,
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
    /// Minimum length of a secret in bytes. Shorter values are not masked, because masking them
    /// would only make texts unreadable.
    pub const BYTES_MIN: usize = 4;

    pub fn new<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> Self {
        Self {
            known: Arc::new(KnownSecrets::of(values)),
            shapes: Shapes::Recognised,
        }
    }

    /// Adds secrets for the rest of this process, everywhere.
    pub(crate) fn learn<S: AsRef<str>>(values: impl IntoIterator<Item = S>) {
        let values = values.into_iter();
        let values: Vec<String> = values.map(|it| it.as_ref().to_owned()).collect();
        let is_known = |learned: &Option<LearnedSecrets>| {
            let learned = learned.as_ref();
            learned.is_some_and(|it| values.iter().all(|value| it.values.contains(value)))
        };
        if values.is_empty() || is_known(&LEARNED.read().unwrap_or_else(PoisonError::into_inner)) {
            return;
        }
        let mut learned = LEARNED.write().unwrap_or_else(PoisonError::into_inner);
        let mut all = learned.take().map(|it| it.values).unwrap_or_default();
        all.extend(values);
        *learned = Some(LearnedSecrets {
            known: Arc::new(KnownSecrets::of(&all)),
            values: all,
        });
        HAS_LEARNED.store(true, Ordering::Release);
    }

    /// Returns the configured and the learned secrets.
    fn all_known(&self) -> impl Iterator<Item = Arc<KnownSecrets>> {
        let learned = HAS_LEARNED.load(Ordering::Acquire).then(|| {
            let learned = LEARNED.read().unwrap_or_else(PoisonError::into_inner);
            learned.as_ref().map(|it| Arc::clone(&it.known))
        });
        std::iter::once(Arc::clone(&self.known)).chain(learned.flatten())
    }

    fn has_number(&self) -> bool {
        self.all_known().any(|it| it.has_number())
    }

    fn is_known_number(&self, number: &str) -> bool {
        self.all_known().any(|it| it.is_number(number))
    }

    fn has_escape(&self) -> bool {
        self.all_known().any(|it| it.has_escape)
    }

    /// Returns the first place after `from` at which a known secret may begin.
    fn next_known(&self, text: &str, from: usize) -> Option<usize> {
        self.all_known().filter_map(|it| it.next(text, from)).min()
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
        self.all_known().all(|it| it.forms.is_empty()) && self.shapes == Shapes::Ignored
    }

    /// Returns the length of the longest secret in bytes, in its longest form.
    pub(crate) fn longest_bytes(&self) -> usize {
        let longest = self.all_known().filter_map(|known| {
            let lengths = known.forms.iter().map(|form| form.text.len());
            lengths.max()
        });
        longest.max().unwrap_or(0)
    }

    /// Returns the text with its secrets masked, or `None` if it contains none.
    #[must_use]
    pub fn redact(&self, text: &str) -> Option<String> {
        self.redact_with(text, shapes::find)
    }

    /// Returns the text of a member with its secrets masked. The name of the member may show that
    /// the text is a credential.
    fn redact_member(&self, name: &str, text: &str) -> Option<String> {
        self.redact_with(text, |text| shapes::find_in_member(name, text))
    }

    /// Returns the masking of secrets in journals.
    pub(crate) fn redaction(&self) -> Redact {
        if self.is_empty() {
            return Redact::nothing();
        }
        let secrets = self.clone();
        Redact::new(move |piece| secrets.redact_piece(piece))
    }

    /// Returns what replaces a piece of a journal entry, or `None` if it contains no secret.
    fn redact_piece(&self, piece: Piece<'_>) -> Option<String> {
        match piece {
            Piece::Text(text) => self.redact(text),
            Piece::Member { name, text } => self.redact_member(name, text),
            Piece::Number(number) => self.is_number(number).then(|| MASK.to_owned()),
        }
    }

    fn redact_with(
        &self,
        text: &str,
        find_shapes: impl Fn(&str) -> Vec<Range<usize>>,
    ) -> Option<String> {
        let redacted = masked(
            text,
            self.all_known().flat_map(|it| it.find(text)).collect(),
        );
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

    /// Returns whether a number is a secret.
    fn is_number(&self, number: &Number) -> bool {
        self.has_number() && self.is_known_number(&number.to_string())
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
                if self.is_number(number) {
                    *value = MASK.into();
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Masks secrets in every text and member name. Returns whether a member name contained a
    /// secret.
    pub(crate) fn redact_whole(&self, value: &mut Value) -> bool {
        if self.is_empty() {
            return false;
        }
        self.redact_value(value);
        let is_in_name = self.is_in_names(value);
        if is_in_name {
            self.redact_names(value, &mut MaskedNames::with_earlier_masks());
        }
        is_in_name
    }

    fn is_in_names(&self, value: &Value) -> bool {
        match value {
            Value::Array(items) => items.iter().any(|item| self.is_in_names(item)),
            Value::Object(members) => members
                .iter()
                .any(|(name, member)| self.redact(name).is_some() || self.is_in_names(member)),
            _ => false,
        }
    }

    fn redact_names(&self, value: &mut Value, names: &mut MaskedNames) {
        match value {
            Value::Array(items) => items
                .iter_mut()
                .for_each(|item| self.redact_names(item, names)),
            Value::Object(members) => {
                for (name, mut member) in std::mem::take(members) {
                    let shown = names.replacement(&name, self.redact(&name));
                    self.redact_names(&mut member, names);
                    members.insert(shown.unwrap_or(name), member);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn redact_text(&self, text: &mut String) {
        if let Some(redacted) = self.redact(text) {
            *text = redacted;
        }
    }

    /// Masks the configured secrets in the texts of a tool that only people and models read.
    /// Returns `false` if a secret is at a place where a mask would change the tool's name or its
    /// accepted arguments.
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

    /// Returns whether a secret is at a place in a schema where a mask would change what the schema
    /// accepts.
    pub(crate) fn is_in_schema(&self, schema: &Value) -> bool {
        structure::is_in_schema(self, schema)
    }
}

impl KnownSecrets {
    fn of<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> Self {
        let mut found = Vec::new();
        for value in values {
            let value = value.as_ref();
            // A value like `Bearer abc` is configured as a whole, but a server may repeat only the
            // token.
            let secrets = std::iter::once(value).chain(shapes::token_after_scheme(value));
            for secret in secrets.filter(|it| it.len() >= Secrets::BYTES_MIN) {
                found.extend(forms::of(secret));
            }
        }
        found.sort();
        found.dedup_by(|a, b| a.text == b.text);
        Self::new(found)
    }

    fn new(forms: Vec<Form>) -> Self {
        if forms.is_empty() {
            return Self::default();
        }
        let is_number = |form: &&Form| {
            let is_first = |byte: u8| byte == b'-' || byte.is_ascii_digit();
            form.text.bytes().next().is_some_and(is_first) && form.text.parse::<f64>().is_ok()
        };
        let numbers = forms.iter().filter(is_number);
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(forms.iter().map(|form| &form.text));
        Self {
            automaton: automaton.ok(),
            numbers: numbers.map(|form| form.text.clone()).collect(),
            has_escape: forms.iter().any(|form| form.text.contains('\\')),
            forms,
        }
    }

    /// Returns whether a number can be a secret.
    fn has_number(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// Returns whether a number, as it is written in JSON, is a secret.
    fn is_number(&self, number: &str) -> bool {
        self.numbers.contains(number)
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

    /// Returns the places of all secrets, in order. They can overlap. If the text cannot be
    /// searched, the whole text counts as secret.
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
    fn token_after_known_scheme_is_a_secret_and_other_last_words_are_not() {
        for (secret, token) in [
            ("Bearer tok-12345", Some("tok-12345")),
            ("basic dXNlcjpwYXNz", Some("dXNlcjpwYXNz")),
            ("Token  tok-12345", Some("tok-12345")),
            ("correct horse battery staple", None),
            ("Bearer of the ring", None),
            ("hunter production", None),
            ("Bearer ", None),
        ] {
            let secrets = Secrets::new([secret]);
            let is_masked = |text: &str| secrets.known_only().redact(text).is_some();
            assert!(is_masked(secret), "{secret}");
            let last = secret.rsplit(' ').next().unwrap();
            assert_eq!(is_masked(last), token.is_some(), "{secret}");
        }
    }

    #[test]
    fn number_is_masked_among_any_others() {
        let numbers = vec!["1"; 200_000].join(",");
        let mut json = format!("[{numbers},123456]").into_bytes();
        Secrets::new(["123456"]).redact_json(&mut json);
        assert!(json.ends_with(b",1,\"***\"]"));
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
                    // The remaining text encodes at most the bytes around the secret.
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
