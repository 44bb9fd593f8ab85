//! The values that must never be shown, stored, or given to a script, and how
//! they are struck out of texts that somebody else wrote.

mod json;

use std::sync::Arc;

use serde_json::Value;

const STRUCK: &str = "***";

/// All known secrets, as they look in plain text and inside JSON text. Cheap to clone.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Vec<String>>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({} patterns)", self.0.len())
    }
}

impl Secrets {
    /// A shorter value would only make texts unreadable, and stays in them.
    pub const BYTES_MIN: usize = 4;

    pub fn new<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> Self {
        let mut patterns = Vec::new();
        for value in values {
            let value = value.as_ref();
            // `Bearer abc` is configured whole; a server may repeat only the token.
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
        // The longest first, so that one secret inside another leaves nothing of it behind.
        patterns.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        patterns.dedup();
        Self(Arc::new(patterns))
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How long the longest of them is, as it may stand in a text.
    pub(crate) fn longest_bytes(&self) -> usize {
        self.0.first().map_or(0, String::len)
    }

    /// The text without the secrets; none when it holds none.
    #[must_use]
    pub fn strike(&self, text: &str) -> Option<String> {
        let mut struck: Option<String> = None;
        for pattern in self.0.iter() {
            let current = struck.as_deref().unwrap_or(text);
            if current.contains(pattern.as_str()) {
                struck = Some(current.replace(pattern.as_str(), STRUCK));
            }
        }
        struck
    }

    /// Whether the text is a secret and nothing else.
    fn is_one(&self, text: &str) -> bool {
        self.0.iter().any(|pattern| pattern == text)
    }

    /// The same in place, for JSON text, which it stays. Bytes that are not UTF-8 are no
    /// JSON, and whoever reads them next refuses them.
    pub(crate) fn strike_json(&self, bytes: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        if let Some(struck) = std::str::from_utf8(bytes)
            .ok()
            .and_then(|text| json::strike(self, text))
        {
            *bytes = struck.into_bytes();
        }
    }

    /// The same for every text in a value; names of members stay.
    pub(crate) fn strike_value(&self, value: &mut Value) {
        match value {
            _ if self.is_empty() => {}
            Value::String(text) => self.strike_text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.strike_value(item)),
            Value::Object(members) => members
                .values_mut()
                .for_each(|member| self.strike_value(member)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The same with the names of members; whether one of them held a secret.
    pub(crate) fn strike_whole(&self, value: &mut Value) -> bool {
        let mut names_struck = 0;
        if !self.is_empty() {
            self.strike_value(value);
            self.strike_names(value, &mut names_struck);
        }
        names_struck > 0
    }

    fn strike_names(&self, value: &mut Value, names_struck: &mut usize) {
        let members = match value {
            Value::Array(items) => {
                for item in items {
                    self.strike_names(item, names_struck);
                }
                return;
            }
            Value::Object(members) => members,
            _ => return,
        };
        for member in members.values_mut() {
            self.strike_names(member, names_struck);
        }
        if members.keys().all(|name| self.strike(name).is_none()) {
            return;
        }
        // Two names can become one, and no member may be lost by that.
        for (name, member) in std::mem::take(members) {
            let name = match self.strike(&name) {
                None => name,
                Some(struck) => {
                    *names_struck += 1;
                    match *names_struck {
                        1 => struck,
                        number => format!("{struck}#{number}"),
                    }
                }
            };
            members.insert(name, member);
        }
    }

    pub(crate) fn strike_text(&self, text: &mut String) {
        if let Some(struck) = self.strike(text) {
            *text = struck;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_struck_out_plain_and_as_json_has_them() {
        let secrets = Secrets::new(["Bearer tok-123", "with \"quote\"", "abc"]);
        for (text, expected) in [
            ("sent 'Bearer tok-123'", Some("sent '***'")),
            ("tok-123, tok-123", Some("***, ***")),
            (r#"{"a":"with \"quote\""}"#, Some(r#"{"a":"***"}"#)),
            ("abc is too short to be a secret", None),
            ("nothing", None),
        ] {
            assert_eq!(secrets.strike(text).as_deref(), expected);
        }
    }

    #[test]
    fn names_of_members_lose_them_too_and_no_member_is_lost() {
        let secrets = Secrets::new(["tok-123"]);
        let mut value =
            json!({"a": ["tok-123"], "b": {"tok-123": 1, "tok-123!": {"x tok-123": 2}}});
        assert!(secrets.strike_whole(&mut value));
        let members = value["b"].as_object().unwrap();
        assert_eq!((members.len(), &value["a"]), (2, &json!(["***"])));
        assert!(!value.to_string().contains("tok-123"), "{value}");
        let mut value = json!({"a": "tok-123"});
        assert!(!secrets.strike_whole(&mut value));
    }

    #[test]
    fn a_secret_inside_another_leaves_nothing_behind() {
        assert_eq!(
            Secrets::new(["12345", "x12345y"])
                .strike("x12345y")
                .as_deref(),
            Some("***")
        );
    }
}
