//! Splits a rule's text into tokens with their positions. Tokens only serve to find places and
//! fixes; no decision depends on them.

use std::ops::Range;

use super::source::{Mark, Scan, string_bytes};

/// Two-character operators; every other operator is one character.
const LONG_SIGNS: [&str; 7] = ["::", "==", "!=", "<=", ">=", "&&", "||"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    pub at: usize,
    /// A word, a number, a string with its quotes, or an operator.
    pub text: &'a str,
}

pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut scan = Scan::new(text);
    let mut seen = 0;
    while let Some((at, mark)) = scan.next() {
        if at < seen || matches!(mark, Mark::Comment { .. }) {
            continue;
        }
        let rest = text.get(at..).unwrap_or_default();
        let token = rest.get(..bytes(rest)).unwrap_or(rest);
        seen = at + token.len();
        found.push(Token { at, text: token });
    }
    found
}

fn bytes(rest: &str) -> usize {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    let sign = || LONG_SIGNS.iter().any(|sign| rest.starts_with(sign));
    match rest.chars().next() {
        Some('"') => string_bytes(rest),
        Some(c) if is_word(c) => word,
        Some(_) if sign() => 2,
        Some(c) => c.len_utf8(),
        None => 0,
    }
}

impl Token<'_> {
    pub fn range(&self) -> Range<usize> {
        self.at..self.at + self.text.len()
    }

    /// Returns 1 for an opening bracket, -1 for a closing one, else 0.
    pub fn depth(&self) -> i32 {
        match self.text {
            "(" | "[" | "{" => 1,
            ")" | "]" | "}" => -1,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_kinds_are_distinguished() {
        let text = "a.b_1==\"x \\\" // y\" // c\n&& -3::[é]";
        let found: Vec<_> = tokens(text).iter().map(|it| it.text).collect();
        let expected = [
            "a",
            ".",
            "b_1",
            "==",
            "\"x \\\" // y\"",
            "&&",
            "-",
            "3",
            "::",
            "[",
            "é",
            "]",
        ];
        assert_eq!(found, expected);
        for token in tokens(text) {
            assert_eq!(&text[token.range()], token.text);
        }
    }
}
