//! Makes text from servers safe to show in a declaration or on a terminal.
//!
//! Descriptions are written by servers and read by models and people. Nothing in them may end a
//! comment, be invisible, or change the order in which text appears.

use serde_json::Value;

/// Puts a text on one line: folds white space and removes invisible characters. Every visible
/// character is kept.
#[must_use]
pub fn neutralise(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut gap = false;
    for c in text.chars() {
        if c.is_whitespace() {
            gap = true;
            continue;
        }
        if !c.is_ascii_graphic() && is_invisible(c) {
            continue;
        }
        if gap && !out.is_empty() {
            out.push(' ');
        }
        gap = false;
        out.push(c);
    }
    out
}

/// Changes a neutralised text so that it cannot end a `/* */` comment.
#[must_use]
pub fn in_comment(text: &str) -> String {
    text.replace("*/", "*\\/")
}

/// Returns the first sentence of a text, neutralised, at most `chars_max` characters long.
#[must_use]
pub fn first_sentence(text: &str, chars_max: usize) -> String {
    let paragraph = text.trim_start().split("\n\n").next().unwrap_or_default();
    let folded = neutralise(paragraph);
    clip(sentence_of(&folded), chars_max)
}

/// Cuts a text to at most `chars_max` characters; a cut text ends in an ellipsis.
#[must_use]
pub fn clip(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(chars_max.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Writes a string literal in double quotes whose value is exactly `text`. Invisible characters are
/// written as escapes.
#[must_use]
pub fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            ' ' => out.push(' '),
            c if c.is_whitespace() || is_invisible(c) => push_escape(c, &mut out),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Writes a JSON value as compact text that is also a TypeScript literal, with no invisible
/// characters.
#[must_use]
pub fn json(value: &Value) -> String {
    match value {
        Value::String(string) => literal(string),
        Value::Array(items) => format!(
            "[{}]",
            items.iter().map(json).collect::<Vec<_>>().join(", ")
        ),
        Value::Object(members) => {
            let member =
                |(key, value): (&String, &Value)| format!("{}: {}", literal(key), json(value));
            format!(
                "{{{}}}",
                members.iter().map(member).collect::<Vec<_>>().join(", ")
            )
        }
        other => other.to_string(),
    }
}

/// Writes invisible characters of a multi-line JSON text as escapes, so that a reviewer sees
/// everything that a model reads.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && is_invisible(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

fn push_escape(c: char, out: &mut String) {
    let code = u32::from(c);
    out.push_str(&if code > 0xffff {
        format!("\\u{{{code:x}}}")
    } else {
        format!("\\u{code:04x}")
    });
}

/// Returns the text up to the first full stop, question or exclamation mark before a space or the
/// end. A mark after an initial or an `e.g.` does not count.
fn sentence_of(text: &str) -> &str {
    let marks = text
        .char_indices()
        .filter(|(_, c)| matches!(c, '.' | '!' | '?' | '。'));
    for (at, mark) in marks {
        let end = at + mark.len_utf8();
        let (before, after) = (
            text.get(..at).unwrap_or_default(),
            text.get(end..).unwrap_or_default(),
        );
        let ends = after.is_empty() || after.starts_with(' ') || mark == '。';
        if ends && !is_abbreviation(before) {
            return text.get(..end).unwrap_or(text);
        }
    }
    text
}

/// Splits a neutralised text into sentences. Joined with spaces, they give the text again.
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let sentence = sentence_of(rest);
        rest = rest.get(sentence.len()..).unwrap_or_default();
        rest = rest.strip_prefix(' ').unwrap_or(rest);
        (!sentence.is_empty()).then_some(sentence)
    })
}

fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit([' ', '(']).next().unwrap_or_default();
    let short = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    short
        || ["e.g", "i.e", "etc", "vs", "cf", "approx"]
            .iter()
            .any(|it| word.eq_ignore_ascii_case(it))
}

/// Whether a character is itself invisible but can change or hide the text around it.
#[must_use]
pub fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c),
            0xad | 0x34f | 0x61c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x3164 | 0xfeff | 0xffa0
            | 0x180b..=0x180f       // Mongolian selectors
            | 0x200b..=0x200f       // zero-width, direction marks
            | 0x2028..=0x202e       // line and paragraph separators, direction embeddings
            | 0x2060..=0x206f       // joiners, isolates, deprecated format characters
            | 0xfe00..=0xfe0f       // variation selectors can encode hidden bytes
            | 0xfff0..=0xfffb
            | 0x1bca0..=0x1bca3
            | 0x1d173..=0x1d17a
            | 0xe0000..=0xe0fff) // tags, further variation selectors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_stays_on_one_line_and_in_comment() {
        let check = |text: &str, expected: &str| assert_eq!(neutralise(text), expected);
        check("line1\nline2 end", "line1 line2 end");
        check("  a\u{2028}b\r\n\tc  ", "a b c");
        check(
            "ev\u{202e}il \u{e0041}\u{e0042}tag\u{1b}[31m",
            "evil tag[31m",
        );
        check("日本語 naïve", "日本語 naïve");
        assert_eq!(
            in_comment(&neutralise("a *\u{200b}/ **/ b")),
            "a *\\/ **\\/ b"
        );
    }

    #[test]
    fn first_sentence_ends_at_sentence_end() {
        let check = |text: &str, expected: &str| assert_eq!(first_sentence(text, 60), expected);
        check("Reads a file. Then more.", "Reads a file.");
        check("Uses e.g. git. More", "Uses e.g. git.");
        check("Version 1.2 of it", "Version 1.2 of it");
        check("Title line\n\nBody.", "Title line");
        check("Gets\na thing! Now", "Gets a thing!");
        check("", "");
        assert_eq!(first_sentence("abcdefghij", 5), "abcd…");
    }

    #[test]
    fn literal_round_trips_and_hides_nothing() {
        assert_eq!(literal("a\"b\\c\n\u{2028}"), r#""a\"b\\c\n\u2028""#);
        assert_eq!(
            literal("\u{e0041}\u{202e}\u{a0}"),
            r#""\u{e0041}\u202e\u00a0""#
        );
    }
}
