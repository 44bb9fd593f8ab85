//! Reads JSON text without decoding it: returns members as raw text, and removes `_meta`. Numbers
//! keep their digits and objects keep their order.

use std::borrow::Cow;

/// The reason why a text is invalid. It never repeats the text; serde's messages would quote the
/// whole text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RawJsonError {
    #[error("not a JSON object")]
    NoObject,
    #[error("not valid JSON (line {line}, column {column})")]
    Syntax { line: usize, column: usize },
    #[error("a member is missing or has the wrong type (line {line}, column {column})")]
    Member { line: usize, column: usize },
}

impl From<serde_json::Error> for RawJsonError {
    fn from(error: serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        if error.is_data() {
            Self::Member { line, column }
        } else {
            Self::Syntax { line, column }
        }
    }
}

/// Deserializes an object. Arrays are refused, because serde would read their items as members in
/// order.
pub(crate) fn read_object<'a, T: serde::Deserialize<'a>>(text: &'a str) -> Result<T, RawJsonError> {
    if !text.trim_start().starts_with('{') {
        return Err(RawJsonError::NoObject);
    }
    Ok(serde_json::from_str(text)?)
}

/// Returns the text without members named `_meta` at any depth, and without white space between
/// tokens. The text must be valid JSON of bounded depth, because the walk is recursive.
pub(crate) fn without_meta(text: &str) -> Cow<'_, str> {
    // A key with escapes, such as `\u005fmeta`, is not found here. That does no harm, because the
    // member contains only data of the server itself.
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

    /// Skips white space and a comma. At the closing bracket or the end, skips it and returns
    /// `false`.
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

    /// Returns a string with its quotes. Always advances, so that the copy ends for every text.
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
    fn parse_error_does_not_quote_input() {
        #[derive(Debug, serde::Deserialize)]
        struct Named {
            #[expect(dead_code, reason = "the test only parses it")]
            name: String,
        }
        for (text, expected) in [
            ("\"private\"", "not a JSON object"),
            ("[\"private\"]", "not a JSON object"),
            (
                "{\"name\":[\"private\"]}",
                "a member is missing or has the wrong type (line 1, column 8)",
            ),
            ("{\"private\" x", "not valid JSON (line 1, column 12)"),
        ] {
            let error = read_object::<Named>(text).unwrap_err().to_string();
            assert_eq!(error, expected, "{text}");
        }
    }

    #[test]
    fn meta_is_removed_at_every_depth_without_respelling() {
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
    fn invalid_json_ends_the_walk() {
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
