//! JSON text without decoding it: its members as they are, and the same text
//! without `_meta`. Numbers keep their digits and objects their order.

use std::borrow::Cow;

/// Why a text could not be read. It never repeats the text: serde's own words quote it whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("it is not a JSON object")]
    NoObject,
    #[error("it is not valid JSON (line {line}, column {column})")]
    Syntax { line: usize, column: usize },
    #[error("a member is missing or is not what it should be (line {line}, column {column})")]
    Member { line: usize, column: usize },
}

impl From<serde_json::Error> for Unreadable {
    fn from(error: serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        if error.is_data() {
            Self::Member { line, column }
        } else {
            Self::Syntax { line, column }
        }
    }
}

/// Decodes an object. Of an array serde would take the members by their order.
pub(crate) fn read_object<'a, T: serde::Deserialize<'a>>(text: &'a str) -> Result<T, Unreadable> {
    if !text.trim_start().starts_with('{') {
        return Err(Unreadable::NoObject);
    }
    Ok(serde_json::from_str(text)?)
}

/// The text without any member named `_meta`, at whatever depth, and without
/// white space between tokens. The text must be valid JSON of bounded depth:
/// the walk is recursive.
pub(crate) fn without_meta(text: &str) -> Cow<'_, str> {
    // An escaped spelling of the key would get past this test; it hides
    // nothing but the server's own remark.
    if !text.contains("\"_meta\"") {
        return Cow::Borrowed(text);
    }
    let mut copier = Copier {
        rest: text,
        out: String::with_capacity(text.len()),
    };
    copier.value();
    Cow::Owned(copier.out)
}

struct Copier<'a> {
    rest: &'a str,
    out: String,
}

impl<'a> Copier<'a> {
    fn value(&mut self) {
        self.white();
        match self.rest.as_bytes().first() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => {
                let text = self.string();
                self.out.push_str(text);
            }
            _ => {
                let text = self.scalar();
                self.out.push_str(text);
            }
        }
    }

    fn object(&mut self) {
        self.open('{');
        let mut first = true;
        while self.inside(b'}') {
            let key = self.string();
            self.white();
            self.take(1);
            if key == "\"_meta\"" {
                let kept = self.out.len();
                self.value();
                self.out.truncate(kept);
            } else {
                self.separate(&mut first);
                self.out.push_str(key);
                self.out.push(':');
                self.value();
            }
        }
        self.out.push('}');
    }

    fn array(&mut self) {
        self.open('[');
        let mut first = true;
        while self.inside(b']') {
            self.separate(&mut first);
            self.value();
        }
        self.out.push(']');
    }

    fn open(&mut self, bracket: char) {
        self.take(1);
        self.out.push(bracket);
    }

    fn separate(&mut self, first: &mut bool) {
        if !std::mem::take(first) {
            self.out.push(',');
        }
    }

    /// Steps over white space and a comma; false, and past it, at the closing bracket or the end.
    fn inside(&mut self, closing: u8) -> bool {
        self.white();
        if self.rest.starts_with(',') {
            self.take(1);
            self.white();
        }
        match self.rest.as_bytes().first() {
            None => false,
            Some(byte) if *byte == closing => {
                self.take(1);
                false
            }
            Some(_) => true,
        }
    }

    fn white(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    /// A string with its quotes. Always moves on, so that no text can hold the walk.
    fn string(&mut self) -> &'a str {
        let mut bytes = self.rest.as_bytes().iter();
        bytes.next();
        skip_string(&mut bytes);
        let length = self.rest.len() - bytes.as_slice().len();
        self.take(length)
    }

    fn scalar(&mut self) -> &'a str {
        let end = self
            .rest
            .find([',', ']', '}', ' ', '\t', '\n', '\r'])
            .unwrap_or(self.rest.len());
        self.take(end.max(1))
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (head, rest) = self
            .rest
            .split_at_checked(length)
            .unwrap_or((self.rest, ""));
        self.rest = rest;
        head
    }
}

fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_not_repeated() {
        #[derive(Debug, serde::Deserialize)]
        struct Named {
            #[expect(dead_code, reason = "only its reading is looked at")]
            name: String,
        }
        for (text, expected) in [
            ("\"private\"", "it is not a JSON object"),
            ("[\"private\"]", "it is not a JSON object"),
            (
                "{\"name\":[\"private\"]}",
                "a member is missing or is not what it should be (line 1, column 8)",
            ),
            ("{\"private\" x", "it is not valid JSON (line 1, column 12)"),
        ] {
            let error = read_object::<Named>(text).unwrap_err().to_string();
            assert_eq!(error, expected, "{text}");
        }
    }

    #[test]
    fn meta_is_left_out_at_every_depth_and_the_rest_keeps_its_spelling() {
        for (text, expected) in [
            (r#"{"a":1}"#, r#"{"a":1}"#),
            (r#"{"_meta":{"x":[1,2]}}"#, "{}"),
            (
                r#"{ "_meta" : 1 , "a" : 18446744073709551616123 }"#,
                r#"{"a":18446744073709551616123}"#,
            ),
            (
                r#"[{"a":1e400,"_meta":"]}"},{"_meta":null,"b":"_meta"}]"#,
                r#"[{"a":1e400},{"b":"_meta"}]"#,
            ),
            (
                r#"[{"resource":{"uri":"x","_meta":{}},"\"_meta\"":"\\"}]"#,
                r#"[{"resource":{"uri":"x"},"\"_meta\"":"\\"}]"#,
            ),
        ] {
            assert_eq!(without_meta(text), expected);
        }
    }

    #[test]
    fn a_text_that_is_not_json_ends_the_walk_all_the_same() {
        for text in [
            r#"{"_meta""#,
            r#"[}"_meta"]"#,
            r#"{x "_meta" }}"#,
            r#""_meta"#,
        ] {
            let _ = without_meta(text);
        }
    }
}
