//! The error message for a text that is not JSON, the same in every guest: what was expected,
//! where, and what was found. It is computed only after a parser has refused the text.

use crate::text::cut;

/// Maximum number of the text's characters that are quoted.
const FOUND_MAX: usize = 20;

const END: &str = "unexpected end";
const CHARACTER: &str = "unexpected character";
const NUMBER: &str = "malformed number";
const ESCAPE: &str = "malformed escape";

/// Describes what is wrong with this text; `None` if it is JSON, however deeply nested.
pub fn describe(text: &[u8]) -> Option<String> {
    let mut look = JsonScanner { text, at: 0 };
    let what = look.whole().err()?;
    let (line, column) = look.place();
    let sentence = format!("{what} in JSON at line {line} column {column}");
    Some(match look.found() {
        Some(found) => format!("{sentence}: `{found}`"),
        None => sentence,
    })
}

struct JsonScanner<'a> {
    text: &'a [u8],
    at: usize,
}

type ScanResult = Result<(), &'static str>;

impl JsonScanner<'_> {
    /// Scans the whole text. Not recursive, because the text may nest deeper than the stack allows.
    fn whole(&mut self) -> ScanResult {
        let mut open = Vec::new();
        loop {
            self.spaces();
            let bracket = self.peek();
            if matches!(bracket, Some(b'[' | b'{')) {
                self.at += 1;
                open.push(bracket == Some(b'{'));
                self.spaces();
                if self.peek() != Some(closing(bracket == Some(b'{'))) {
                    if bracket == Some(b'{') {
                        self.name()?;
                    }
                    continue;
                }
            } else {
                self.plain()?;
            }
            // After a value, or at the end of an empty bracket.
            loop {
                self.spaces();
                let Some(&is_object) = open.last() else {
                    return self.end();
                };
                let next = self.peek();
                self.at += usize::from(matches!(next, Some(b',' | b']' | b'}')));
                if next == Some(closing(is_object)) {
                    open.pop();
                } else if next == Some(b',') {
                    if is_object {
                        self.spaces();
                        self.name()?;
                    }
                    break;
                } else {
                    self.at -= usize::from(matches!(next, Some(b']' | b'}')));
                    return Err(match is_object {
                        true => "expected `,` or `}`",
                        false => "expected `,` or `]`",
                    });
                }
            }
        }
    }

    fn end(&self) -> ScanResult {
        match self.peek() {
            Some(_) => Err("unexpected text after the value"),
            None => Ok(()),
        }
    }

    /// Scans `"name":`.
    fn name(&mut self) -> ScanResult {
        if self.peek() != Some(b'"') {
            return Err("expected a name in quotes");
        }
        self.string()?;
        self.spaces();
        if self.peek() != Some(b':') {
            return Err("expected `:`");
        }
        self.at += 1;
        Ok(())
    }

    fn plain(&mut self) -> ScanResult {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => Err(CHARACTER),
            None => Err(END),
        }
    }

    fn word(&mut self, word: &[u8]) -> ScanResult {
        if !self.rest().starts_with(word) {
            return Err(CHARACTER);
        }
        self.at += word.len();
        Ok(())
    }

    fn string(&mut self) -> ScanResult {
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape()?;
                }
                Some(0..0x20) => return Err("control character in a string"),
                Some(_) => self.at += 1,
                None => return Err("unexpected end of a string"),
            }
        }
    }

    fn escape(&mut self) -> ScanResult {
        let length = match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 1,
            Some(b'u') => {
                let digits = self.rest().get(1..5);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return Err(ESCAPE);
                }
                5
            }
            _ => return Err(ESCAPE),
        };
        self.at += length;
        Ok(())
    }

    fn number(&mut self) -> ScanResult {
        self.at += usize::from(self.peek() == Some(b'-'));
        let begins_with_zero = self.peek() == Some(b'0');
        if self.digits()? > 1 && begins_with_zero {
            return Err(NUMBER);
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<usize, &'static str> {
        let count = self.rest().iter().take_while(|c| c.is_ascii_digit());
        match count.count() {
            0 => Err(NUMBER),
            count => {
                self.at += count;
                Ok(count)
            }
        }
    }

    fn spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Returns the line and column, counted in characters.
    fn place(&self) -> (usize, usize) {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let lines = before.split(|byte| *byte == b'\n');
        let last = lines.clone().next_back().unwrap_or_default();
        let characters = last.iter().filter(|&&byte| byte & 0xc0 != 0x80);
        (lines.count(), characters.count() + 1)
    }

    /// Returns the rest of the line, shortened for a quotation.
    fn found(&self) -> Option<String> {
        let rest = self.rest();
        // Enough bytes for this many characters, and for one more that shows that the text
        // continues.
        let rest = rest.get(..4 * (FOUND_MAX + 1)).unwrap_or(rest);
        let line = String::from_utf8_lossy(rest);
        let line = line.lines().next().unwrap_or_default().trim_end();
        let line = line.replace(|c: char| c.is_control() || c == '`', "\u{fffd}");
        (!line.is_empty()).then(|| cut(&line, FOUND_MAX))
    }
}

fn closing(is_object: bool) -> u8 {
    match is_object {
        true => b'}',
        false => b']',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(describe(text.as_bytes()).as_deref(), Some(expected));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_stands_there() {
        check(
            "Sorry, no result",
            "unexpected character in JSON at line 1 column 1: `Sorry, no result`",
        );
        check(
            "{\n  \"é\": [1, 2,],\n  \"b\": 3\n}",
            "unexpected character in JSON at line 2 column 14: `],`",
        );
        check(
            "{'a': 1}",
            "expected a name in quotes in JSON at line 1 column 2: `'a': 1}`",
        );
        check("{\"a\" 1}", "expected `:` in JSON at line 1 column 6: `1}`");
        check(
            "[1 2]",
            "expected `,` or `]` in JSON at line 1 column 4: `2]`",
        );
        check("[1}", "expected `,` or `]` in JSON at line 1 column 3: `}`");
        check(
            "{\"a\":1]",
            "expected `,` or `}` in JSON at line 1 column 7: `]`",
        );
        check(
            "{} and then some more text",
            "unexpected text after the value in JSON at line 1 column 4: `and then some more t…`",
        );
        check("[01]", "malformed number in JSON at line 1 column 4: `]`");
        check(
            "\"a\\x\"",
            "malformed escape in JSON at line 1 column 4: `x\"`",
        );
    }

    #[test]
    fn at_the_end_nothing_stands() {
        check("", "unexpected end in JSON at line 1 column 1");
        check("[1,", "unexpected end in JSON at line 1 column 4");
        check("{\"a\":\n", "unexpected end in JSON at line 2 column 1");
        check("[", "unexpected end in JSON at line 1 column 2");
        check("{", "expected a name in quotes in JSON at line 1 column 2");
        check(
            "\"a",
            "unexpected end of a string in JSON at line 1 column 3",
        );
        check("-", "malformed number in JSON at line 1 column 2");
        check("1.", "malformed number in JSON at line 1 column 3");
        check("1e+", "malformed number in JSON at line 1 column 4");
    }

    #[test]
    fn nothing_of_it_reaches_a_terminal_raw() {
        check(
            "\u{1b}[2J`x",
            "unexpected character in JSON at line 1 column 1: `\u{fffd}[2J\u{fffd}x`",
        );
        check(
            "\"a\nb\"",
            "control character in a string in JSON at line 1 column 3",
        );
        let not_utf8 = describe(b"\xff\xfe").unwrap();
        assert!(not_utf8.contains('\u{fffd}'), "{not_utf8}");
    }

    #[test]
    fn what_is_json_has_nothing_wrong() {
        for text in [
            "null",
            " [ ] ",
            "{}",
            "[{}]",
            "[[],{\"a\":{},\"b\":[]}]",
            "[1,-0,1.5e-3,\"\\u00e9\\n\",true,false]",
            "{\"a\":{\"b\":[1,{\"c\":null}]},\"d\":\"\"}",
        ] {
            assert_eq!(describe(text.as_bytes()), None, "{text}");
        }
        let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert_eq!(describe(deep.as_bytes()), None);
    }
}
