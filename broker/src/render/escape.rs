//! Makes text from servers and scripts safe to show on a terminal. Characters that could move the
//! cursor, or hide, reorder or smuggle text, are shown as escapes.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

/// Escapes text within a line, so that every character is visible.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// Escapes text of several lines. Line ends and tabs stay.
#[must_use]
pub fn block(text: &str) -> Cow<'_, str> {
    escape(text, |c| matches!(c, '\n' | '\t'))
}

/// Escapes the text of a message to a host. JSON text stays JSON text with the same value; in all
/// other text, line ends and tabs stay.
#[must_use]
pub fn message(text: &str) -> Cow<'_, str> {
    match block(text) {
        Cow::Owned(_) if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() => json(text),
        shown => shown,
    }
}

/// Escapes all texts in a value for a host that shows them, and all names of members. Recursion is
/// safe because the value has bounded depth.
pub(crate) fn texts(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(shown) = block(text) {
                *text = shown;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(texts),
        Value::Object(members) => {
            for (at, (key, mut value)) in std::mem::take(members).into_iter().enumerate() {
                texts(&mut value);
                let mut shown = line(&key).into_owned();
                // Keys that are equal after escaping get a number, so that they stay distinct.
                while members.contains_key(&shown) {
                    shown.push_str(&format!(" ({at})"));
                }
                members.insert(shown, value);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Escapes JSON text with JSON's own escapes, so that it still means the same value.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            // These characters occur only between values, where they have no meaning.
            '\n' | '\t' => out.push(c),
            '\r' if rest.peek() == Some(&'\n') => {}
            '\r' => out.push('\n'),
            c if is_unsafe(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Escapes text as one line of at most `chars_max` characters, and marks where it was cut.
#[must_use]
pub fn brief(text: &str, chars_max: usize) -> String {
    let shown = line(text);
    match shown.char_indices().nth(chars_max) {
        None => shown.into_owned(),
        Some((end, _)) => format!("{}…", shown.get(..end).unwrap_or_default()),
    }
}

/// Maximum number of characters that are quoted.
const QUOTED_CHARS_MAX: usize = 4_000;

/// Quotes a server's text for a person. Each line has a mark, so that no line can imitate airlock's
/// own. Long text is cut, with a note. The last line ends with a line break too.
pub(crate) fn quoted(text: &str) -> String {
    let shown = block(text);
    let cut: String = shown.chars().take(QUOTED_CHARS_MAX).collect();
    let lines = cut.lines();
    let mut quoted: String = lines.map(|line| format!("> {line}\n")).collect();
    let more = shown.chars().skip(QUOTED_CHARS_MAX).count();
    if more > 0 {
        quoted.push_str(&format!(
            "… and {more} more characters that are not shown\n"
        ));
    }
    quoted
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(|c| is_unsafe(c) && !keep(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            // This is the line ending of Windows.
            '\r' if keep('\n') && rest.peek() == Some(&'\n') => out.push(c),
            c if keep(c) || !is_unsafe(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    Cow::Owned(out)
}

/// Whether a character must be escaped. The two variation selectors of emoji and text are not
/// escaped. They are common, and two characters are too few to hide data.
fn is_unsafe(c: char) -> bool {
    codegen::text::is_invisible(c) && !matches!(c, '\u{fe0e}' | '\u{fe0f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_removes_control_and_bidi_characters() {
        for (text, expected) in [
            ("plain, ünï, 日本, 🙂", "plain, ünï, 日本, 🙂"),
            ("\u{1b}[2Jgone", "\\u{1b}[2Jgone"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
            ("tag\u{e0041}", "tag\\u{e0041}"),
            ("one\r\ntwo\t", "one\\r\\ntwo\\t"),
            ("\u{9b}31m", "\\u{9b}31m"),
        ] {
            assert_eq!(line(text), expected);
        }
    }

    #[test]
    fn block_keeps_only_newlines_and_tabs() {
        assert_eq!(block("a\n\tb\r\u{7}"), "a\n\tb\\r\\u{7}");
        assert_eq!(block("a\r\nb\rc"), "a\r\nb\\rc");
    }

    #[test]
    fn escaped_json_keeps_its_value() {
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        for (text, expected) in [
            (
                "{\"a\":\"x\u{202e}y\u{e0041}\"}\n",
                "{\"a\":\"x\\u202ey\\udb40\\udc41\"}\n",
            ),
            ("{\r\n\t\"a\":\r1}", "{\n\t\"a\":\n1}"),
        ] {
            let shown = json(text);
            assert_eq!(shown, expected);
            assert_eq!(value(&shown), value(text));
        }
    }

    #[test]
    fn message_escapes_text_and_keeps_json() {
        assert_eq!(message("{\"a\":\"\u{202e}\"}"), "{\"a\":\"\\u202e\"}");
        assert_eq!(message("a: \u{202e}\n"), "a: \\u{202e}\n");
        assert!(matches!(message("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn every_quoted_line_has_its_mark_or_a_cut_notice() {
        assert_eq!(quoted("a\n\nb\u{202e}\rc"), "> a\n> \n> b\\u{202e}\\rc\n");
        assert_eq!(quoted(""), "");
        let long = quoted(&"x".repeat(QUOTED_CHARS_MAX + 7));
        let whole = format!("> {}\n", "x".repeat(QUOTED_CHARS_MAX));
        let cut = "… and 7 more characters that are not shown\n";
        assert_eq!(long, whole + cut);
    }

    #[test]
    fn brief_text_reports_truncation() {
        assert_eq!(brief("abc", 3), "abc");
        assert_eq!(brief("äbcd", 3), "äbc…");
    }
}
