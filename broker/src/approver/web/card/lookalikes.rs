//! Detects misleading texts: letters of two alphabets in one word, and invisible characters. Every
//! field is checked.

use serde_json::Value;

use crate::render::escape;

const WORD_CHARS_MAX: usize = 40;

/// Returns warnings about the appearance of a value.
pub(super) fn marks(value: &Value) -> Vec<String> {
    let mut texts = Texts::default();
    texts.collect(value);
    let mut marks = Vec::new();
    if texts.hides {
        marks.push(
            "contains characters that are invisible or reverse the text; they are shown as \
             \\u{…} or \\n"
                .to_owned(),
        );
    }
    if let Some(word) = texts.mixed {
        marks.push(format!(
            "`{word}` has letters of different alphabets that look alike"
        ));
    }
    marks
}

#[derive(Default)]
struct Texts {
    hides: bool,
    mixed: Option<String>,
}

impl Texts {
    fn collect(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.look_at(text),
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            Value::Object(members) => {
                for (name, value) in members {
                    self.look_at(name);
                    self.collect(value);
                }
            }
            _ => {}
        }
    }

    fn look_at(&mut self, text: &str) {
        let ends = |c: char| matches!(c, '\n' | '\r' | '\t');
        self.hides |= text.split(ends).any(|part| escape::line(part) != part);
        if self.mixed.is_none() {
            let mut words = text.split(|c: char| !c.is_alphanumeric());
            let mixed = words.find(|word| mixes_alphabets(word));
            self.mixed = mixed.map(|word| escape::brief(word, WORD_CHARS_MAX));
        }
    }
}

/// Whether a word mixes Latin letters with Greek, Cyrillic, Armenian or Cherokee letters.
fn mixes_alphabets(word: &str) -> bool {
    let other = |c: char| matches!(c, '\u{370}'..='\u{58f}' | '\u{13a0}'..='\u{13ff}');
    word.chars().any(|c| c.is_ascii_alphabetic()) && word.chars().any(other)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mixed_scripts_and_invisible_characters_are_marked() {
        for (value, expected) in [
            (json!("plain\n\ttext, ünï, 日本"), 0),
            (json!("Привет, boss"), 0),
            (json!("b\u{43e}ss@corp.example"), 1),
            (json!({"deep": ["a\u{200b}b"]}), 1),
            (json!({"na\u{202e}me": "b\u{43e}ss"}), 2),
            (json!(7), 0),
        ] {
            assert_eq!(marks(&value).len(), expected, "{value}");
        }
    }
}
