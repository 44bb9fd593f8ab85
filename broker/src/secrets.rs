//! The values that must never be shown, stored or given to a script, and how they are masked in
//! texts from other sources.

mod json;

use std::sync::Arc;

use serde_json::Value;

const MASK: &str = "***";

/// All known secrets, in the forms that they have in plain text and in JSON text. Cheap to clone.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Vec<String>>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({} patterns)", self.0.len())
    }
}

impl Secrets {
    /// Minimum length of a secret in bytes. Shorter values are not masked, because that would only
    /// make texts unreadable.
    pub const BYTES_MIN: usize = 4;

    pub fn new<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> Self {
        let mut patterns = Vec::new();
        for value in values {
            let value = value.as_ref();
            // A value like `Bearer abc` is configured as a whole, but a server may repeat only the
            // token.
            let token = value.rsplit(' ').next().unwrap_or(value);
            for plain in [value, token] {
                let quoted = Value::from(plain).to_string();
                let escaped = quoted
                    .trim_start_matches('"')
                    .strip_suffix('"')
                    .unwrap_or(plain);
                patterns.extend([plain.to_owned(), escaped.to_owned()]);
            }
        }
        patterns.retain(|pattern| pattern.len() >= Self::BYTES_MIN);
        // Longer secrets come first, so that a secret that contains another one is masked
        // completely.
        patterns.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        patterns.dedup();
        Self(Arc::new(patterns))
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the length of the longest secret in bytes, in its longest form.
    pub(crate) fn longest_bytes(&self) -> usize {
        self.0.first().map_or(0, String::len)
    }

    /// Returns the text with its secrets masked, or `None` if it contains none.
    #[must_use]
    pub fn redact(&self, text: &str) -> Option<String> {
        let mut redacted: Option<String> = None;
        for pattern in self.0.iter() {
            let current = redacted.as_deref().unwrap_or(text);
            if current.contains(pattern.as_str()) {
                redacted = Some(current.replace(pattern.as_str(), MASK));
            }
        }
        redacted
    }

    /// Returns whether the whole text is a secret.
    fn is_one(&self, text: &str) -> bool {
        self.0.iter().any(|pattern| pattern == text)
    }

    /// Masks secrets in JSON text, which stays valid JSON. Bytes that are not UTF-8 are not JSON,
    /// and the next reader refuses them.
    pub(crate) fn redact_json(&self, bytes: &mut Vec<u8>) {
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
            Value::Object(members) => members
                .values_mut()
                .for_each(|member| self.redact_value(member)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
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
            (r#"{"a":"with \"quote\""}"#, Some(r#"{"a":"***"}"#)),
            ("abc is too short to be a secret", None),
            ("nothing", None),
        ] {
            assert_eq!(secrets.redact(text).as_deref(), expected);
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
    fn nested_secret_is_redacted_completely() {
        assert_eq!(
            Secrets::new(["12345", "x12345y"])
                .redact("x12345y")
                .as_deref(),
            Some("***")
        );
    }
}
