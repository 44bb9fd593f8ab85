//! Splits a Rust file into the tokens that imports need: names, `::` and single characters.
//! Comments, strings, numbers and lifetimes are skipped.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    /// A name, `::`, or one character.
    pub(super) text: &'a str,
    /// Line number, from 1.
    pub(super) line: usize,
}

impl Token<'_> {
    pub(super) fn is_name(&self) -> bool {
        self.text.starts_with(is_name_start)
    }
}

pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(c) = rest.chars().next() {
        let (length, is_token) = if c.is_whitespace() {
            (c.len_utf8(), false)
        } else if let Some(length) = comment(rest).or_else(|| literal(rest)) {
            (length, false)
        } else if is_name_start(c) {
            (name_bytes(rest), true)
        } else if c.is_ascii_digit() {
            (name_bytes(rest), false)
        } else if rest.starts_with("::") {
            (2, true)
        } else {
            (c.len_utf8(), true)
        };
        let (passed, after) = rest.split_at(length.min(rest.len()));
        if is_token {
            found.push(Token {
                text: passed.strip_prefix("r#").unwrap_or(passed),
                line,
            });
        }
        line += passed.matches('\n').count();
        rest = after;
    }
    found
}

fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// Returns the length of a name or a number, with a leading `r#`.
fn name_bytes(text: &str) -> usize {
    let raw = if text.starts_with("r#") { 2 } else { 0 };
    let name = text.get(raw..).unwrap_or_default();
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
    raw + end.unwrap_or(name.len())
}

fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if !text.starts_with("/*") {
        return None;
    }
    let (mut depth, mut at) = (0, 0);
    loop {
        let rest = text.get(at..).unwrap_or_default();
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
        } else {
            at += rest.chars().next().map_or(0, char::len_utf8);
        }
        if depth == 0 || at >= text.len() {
            return Some(at);
        }
    }
}

/// Returns the length of a string, a character or a lifetime.
fn literal(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r"]
        .into_iter()
        .find(|it| {
            text.strip_prefix(it)
                .is_some_and(|rest| rest.starts_with(['"', '\'', '#']))
        })
        .unwrap_or_default();
    let rest = text.get(prefix.len()..)?;
    if prefix.ends_with('r') {
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        let body = rest.get(hashes..)?.strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        let length = body.find(&end).map_or(body.len(), |at| at + end.len());
        return Some(prefix.len() + hashes + 1 + length);
    }
    if rest.starts_with('"') {
        return Some(prefix.len() + quoted(rest, '"'));
    }
    let body = rest.strip_prefix('\'')?;
    let mut chars = body.chars();
    let (first, second) = (chars.next()?, chars.next());
    if first != '\\' && second != Some('\'') {
        // A lifetime.
        return Some(1 + name_bytes(body));
    }
    Some(prefix.len() + quoted(rest, '\''))
}

/// Returns the length of a quoted text, including both quotes.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}
