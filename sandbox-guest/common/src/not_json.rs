//! The words for a text that is no JSON, the same in every guest: what was expected, where, and
//! what stands there. It is looked for only when a reader has refused the text.

use crate::text::cut;

/// Characters of the text that are told.
const FOUND_MAX: usize = 20;

const END: &str = "unexpected end";
const CHARACTER: &str = "unexpected character";
const NUMBER: &str = "malformed number";
const ESCAPE: &str = "malformed escape";

/// What is wrong with this text; nothing when it is JSON, however deeply it nests.
pub fn describe(text: &[u8]) -> Option<String> {
    let mut look = Look { text, at: 0 };
    let what = look.whole().err()?;
    let (line, column) = look.place();
    let sentence = format!("{what} in JSON at line {line} column {column}");
    Some(match look.found() {
        Some(found) => format!("{sentence}, where `{found}` stands"),
        None => sentence,
    })
}

struct Look<'a> {
    text: &'a [u8],
    at: usize,
}

type Looked = Result<(), &'static str>;

impl Look<'_> {
    /// No call for a bracket within a bracket: the text may nest deeper than a stack is.
    fn whole(&mut self) -> Looked {
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
            // Behind a value, or at the end of an empty bracket.
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

    fn end(&self) -> Looked {
        match self.peek() {
            Some(_) => Err("unexpected text after the value"),
            None => Ok(()),
        }
    }

    /// `"name":`
    fn name(&mut self) -> Looked {
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

    fn plain(&mut self) -> Looked {
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

    fn word(&mut self, word: &[u8]) -> Looked {
        if !self.rest().starts_with(word) {
            return Err(CHARACTER);
        }
        self.at += word.len();
        Ok(())
    }

    fn string(&mut self) -> Looked {
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

    fn escape(&mut self) -> Looked {
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

    fn number(&mut self) -> Looked {
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

    /// Line and column, counted in characters.
    fn place(&self) -> (usize, usize) {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let lines = before.split(|byte| *byte == b'\n');
        let last = lines.clone().next_back().unwrap_or_default();
        let characters = last.iter().filter(|&&byte| byte & 0xc0 != 0x80);
        (lines.count(), characters.count() + 1)
    }

    /// The rest of the line, as far as it is told.
    fn found(&self) -> Option<String> {
        let rest = self.rest();
        // Enough for as many characters, and one more that says that there are more.
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
            "unexpected character in JSON at line 1 column 1, where `Sorry, no result` stands",
        );
        check(
            "{\n  \"é\": [1, 2,],\n  \"b\": 3\n}",
            "unexpected character in JSON at line 2 column 14, where `],` stands",
        );
        check(
            "{'a': 1}",
            "expected a name in quotes in JSON at line 1 column 2, where `'a': 1}` stands",
        );
        check(
            "{\"a\" 1}",
            "expected `:` in JSON at line 1 column 6, where `1}` stands",
        );
        check(
            "[1 2]",
            "expected `,` or `]` in JSON at line 1 column 4, where `2]` stands",
        );
        check(
            "[1}",
            "expected `,` or `]` in JSON at line 1 column 3, where `}` stands",
        );
        check(
            "{\"a\":1]",
            "expected `,` or `}` in JSON at line 1 column 7, where `]` stands",
        );
        check(
            "{} and then some more text",
            "unexpected text after the value in JSON at line 1 column 4, where `and then some more t…` stands",
        );
        check(
            "[01]",
            "malformed number in JSON at line 1 column 4, where `]` stands",
        );
        check(
            "\"a\\x\"",
            "malformed escape in JSON at line 1 column 4, where `x\"` stands",
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
            "unexpected character in JSON at line 1 column 1, where `\u{fffd}[2J\u{fffd}x` stands",
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
