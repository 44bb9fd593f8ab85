//! A JSON value that is parsed either at once, or from a text on first access. A search over a
//! thousand stored descriptions needs their names and sentences, but hardly any schema.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

/// Parses a text into a value. A text that cannot be parsed becomes `null`, which describes
/// nothing.
pub type ReadFn = fn(&str) -> Value;

/// A JSON value, parsed when it is first dereferenced. Cheap to clone.
#[derive(Clone)]
pub struct LazyJson(Arc<LazyState>);

enum LazyState {
    There(Value),
    Text {
        text: JsonText,
        value: OnceLock<Value>,
    },
}

/// A part of a text that is one JSON value.
#[derive(Clone)]
pub struct JsonText {
    whole: Arc<str>,
    part: Range<usize>,
    read: ReadFn,
}

impl JsonText {
    /// Wraps a text that is one JSON value from its first byte to its last.
    #[must_use]
    pub fn new(whole: Arc<str>, read: ReadFn) -> Self {
        let part = 0..whole.len();
        Self { whole, part, read }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        self.whole.get(self.part.clone()).unwrap_or_default()
    }

    /// Returns `inner` as a part of this text; `None` if `inner` is not a slice of this text.
    #[must_use]
    pub fn part(&self, inner: &str) -> Option<Self> {
        let own = self.as_str();
        let before = (inner.as_ptr() as usize).checked_sub(own.as_ptr() as usize)?;
        let from = self.part.start + before;
        let part = from..from + inner.len();
        let is_within = part.end <= self.part.end && self.whole.get(part.clone()).is_some();
        is_within.then(|| Self {
            whole: Arc::clone(&self.whole),
            part,
            read: self.read,
        })
    }

    /// Returns the whole text that this text is a part of.
    #[must_use]
    pub fn whole(&self) -> &Arc<str> {
        &self.whole
    }

    /// Parses the value.
    #[must_use]
    pub fn value(&self) -> Value {
        (self.read)(self.as_str())
    }
}

impl LazyJson {
    /// Whether this text equals `value`. A text in airlock's own spelling is compared without
    /// parsing.
    #[must_use]
    pub fn is(&self, value: &Value) -> bool {
        self.is_spelt_as(value) || **self == *value
    }

    fn is_spelt_as(&self, value: &Value) -> bool {
        let LazyState::Text { text, .. } = &*self.0 else {
            return false;
        };
        let spelt = value.to_string();
        text.as_str() == spelt
    }

    /// Returns the text if the value has not been accessed yet.
    #[must_use]
    pub fn unread(&self) -> Option<&str> {
        match &*self.0 {
            LazyState::Text { text, value } if value.get().is_none() => Some(text.as_str()),
            _ => None,
        }
    }

    /// Returns the text for storage.
    #[must_use]
    pub fn text(&self) -> String {
        match &*self.0 {
            LazyState::There(value) => value.to_string(),
            LazyState::Text { text, .. } => text.as_str().to_owned(),
        }
    }
}

impl Deref for LazyJson {
    type Target = Value;

    fn deref(&self) -> &Value {
        match &*self.0 {
            LazyState::There(value) => value,
            LazyState::Text { text, value } => value.get_or_init(|| text.value()),
        }
    }
}

impl From<Value> for LazyJson {
    fn from(value: Value) -> Self {
        Self(Arc::new(LazyState::There(value)))
    }
}

impl From<JsonText> for LazyJson {
    fn from(text: JsonText) -> Self {
        let value = OnceLock::new();
        Self(Arc::new(LazyState::Text { text, value }))
    }
}

impl PartialEq for LazyJson {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl fmt::Debug for LazyJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn read(text: &str) -> Value {
        serde_json::from_str(text).unwrap_or_default()
    }

    #[test]
    fn lazy_text_is_parsed_once_on_first_access() {
        static READ: AtomicUsize = AtomicUsize::new(0);
        let counted = |text: &str| {
            READ.fetch_add(1, Ordering::SeqCst);
            read(text)
        };
        let text = JsonText::new(r#"{"a":[1,2],"b":"c"}"#.into(), counted);
        let later = LazyJson::from(text);
        let other = later.clone();
        assert!(later.is(&json!({"a": [1, 2], "b": "c"})));
        assert_eq!(later.text(), r#"{"a":[1,2],"b":"c"}"#);
        assert_eq!(READ.load(Ordering::SeqCst), 0);
        assert_eq!(later["a"][1], 2);
        assert_eq!(other, LazyJson::from(json!({"b": "c", "a": [1, 2]})));
        assert_eq!(READ.load(Ordering::SeqCst), 1);
        assert!(other.is(&json!({"b": "c", "a": [1, 2]})) && !other.is(&json!({"a": [1, 2]})));
    }

    #[test]
    fn part_belongs_to_its_own_text() {
        let text = JsonText::new(r#"["é",{"a":7}]"#.into(), read);
        let inner = text.as_str().get(6..13).unwrap();
        let part = text.part(inner).unwrap();
        assert_eq!(part.value(), json!({"a": 7}));
        assert_eq!(part.part(part.as_str()).unwrap().as_str(), inner);
        assert!(part.part(text.as_str()).is_none());
        assert!(text.part("elsewhere").is_none());
        assert_eq!(
            *LazyJson::from(JsonText::new("{".into(), read)),
            Value::Null
        );
    }
}
