//! A JSON value that is there, or that stands in a text and is read when somebody
//! first looks into it. Of a thousand descriptions that are remembered from the
//! last time a search needs the names and the sentences, and hardly any schema.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

/// How a text becomes a value; what cannot be read becomes `null`, which describes nothing.
pub type Read = fn(&str) -> Value;

/// Looks like the value that it is. Cheap to clone.
#[derive(Clone)]
pub struct Later(Arc<Kept>);

enum Kept {
    There(Value),
    Text { text: Text, value: OnceLock<Value> },
}

/// A part of a text that spells one value.
#[derive(Clone)]
pub struct Text {
    whole: Arc<str>,
    part: Range<usize>,
    read: Read,
}

impl Text {
    /// A text that spells one value from its first byte to its last.
    #[must_use]
    pub fn new(whole: Arc<str>, read: Read) -> Self {
        let part = 0..whole.len();
        Self { whole, part, read }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        self.whole.get(self.part.clone()).unwrap_or_default()
    }

    /// `inner` as a part of this text; nothing when it stands elsewhere.
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

    /// The text that this is a part of.
    #[must_use]
    pub fn whole(&self) -> &Arc<str> {
        &self.whole
    }

    /// What it spells, read now.
    #[must_use]
    pub fn value(&self) -> Value {
        (self.read)(self.as_str())
    }
}

impl Later {
    /// Whether this is `value`. A text that spells it as we would is not read for that.
    #[must_use]
    pub fn is(&self, value: &Value) -> bool {
        self.is_spelt_as(value) || **self == *value
    }

    fn is_spelt_as(&self, value: &Value) -> bool {
        let Kept::Text { text, .. } = &*self.0 else {
            return false;
        };
        let spelt = value.to_string();
        text.as_str() == spelt
    }

    /// Its text, as long as nobody has looked into it.
    #[must_use]
    pub fn unread(&self) -> Option<&str> {
        match &*self.0 {
            Kept::Text { text, value } if value.get().is_none() => Some(text.as_str()),
            _ => None,
        }
    }

    /// The text as which it can be stored.
    #[must_use]
    pub fn text(&self) -> String {
        match &*self.0 {
            Kept::There(value) => value.to_string(),
            Kept::Text { text, .. } => text.as_str().to_owned(),
        }
    }
}

impl Deref for Later {
    type Target = Value;

    fn deref(&self) -> &Value {
        match &*self.0 {
            Kept::There(value) => value,
            Kept::Text { text, value } => value.get_or_init(|| text.value()),
        }
    }
}

impl From<Value> for Later {
    fn from(value: Value) -> Self {
        Self(Arc::new(Kept::There(value)))
    }
}

impl From<Text> for Later {
    fn from(text: Text) -> Self {
        let value = OnceLock::new();
        Self(Arc::new(Kept::Text { text, value }))
    }
}

impl PartialEq for Later {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Debug for Text {
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
    fn a_text_is_read_when_it_is_first_looked_into_and_once() {
        static READ: AtomicUsize = AtomicUsize::new(0);
        let counted = |text: &str| {
            READ.fetch_add(1, Ordering::SeqCst);
            read(text)
        };
        let text = Text::new(r#"{"a":[1,2],"b":"c"}"#.into(), counted);
        let later = Later::from(text);
        let other = later.clone();
        assert!(later.is(&json!({"a": [1, 2], "b": "c"})));
        assert_eq!(later.text(), r#"{"a":[1,2],"b":"c"}"#);
        assert_eq!(READ.load(Ordering::SeqCst), 0);
        assert_eq!(later["a"][1], 2);
        assert_eq!(other, Later::from(json!({"b": "c", "a": [1, 2]})));
        assert_eq!(READ.load(Ordering::SeqCst), 1);
        assert!(other.is(&json!({"b": "c", "a": [1, 2]})) && !other.is(&json!({"a": [1, 2]})));
    }

    #[test]
    fn a_part_is_a_part_of_this_text_and_of_no_other() {
        let text = Text::new(r#"["é",{"a":7}]"#.into(), read);
        let inner = text.as_str().get(6..13).unwrap();
        let part = text.part(inner).unwrap();
        assert_eq!(part.value(), json!({"a": 7}));
        assert_eq!(part.part(part.as_str()).unwrap().as_str(), inner);
        assert!(part.part(text.as_str()).is_none());
        assert!(text.part("elsewhere").is_none());
        assert_eq!(*Later::from(Text::new("{".into(), read)), Value::Null);
    }
}
