//! Makes text from servers and scripts safe to show on a terminal. Characters that could move the
//! cursor, or hide, reorder or smuggle text, are shown as escapes.

use std::borrow::Cow;
use std::fmt::Write as _;

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

/// Escapes JSON text with JSON's own escapes, so that it still means the same value.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unsafe(c) && c != '\n' {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
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
    for c in text.chars() {
        match c {
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

/// Whether a character must be escaped. The two variation selectors of emoji and text stay: they
/// are common, and too few to hide data in.
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
    }

    #[test]
    fn escaped_json_keeps_its_value() {
        let text = "{\"a\":\"x\u{202e}y\u{e0041}\"}\n";
        let shown = json(text);
        assert_eq!(shown, "{\"a\":\"x\\u202ey\\udb40\\udc41\"}\n");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&shown), value(text));
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
