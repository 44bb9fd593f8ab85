//! Makes text that others wrote safe to show on a terminal: what could move the
//! cursor, hide, reorder or smuggle is shown as what it is.

use std::borrow::Cow;
use std::fmt::Write as _;

/// For text inside a line: nothing is left that is not visible.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// For text of several lines: line ends and tabs stay.
#[must_use]
pub fn block(text: &str) -> Cow<'_, str> {
    escape(text, |c| matches!(c, '\n' | '\t'))
}

/// For JSON text: the same characters in JSON's own spelling, so that it still reads as the same value.
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

/// Text of one line, at most `chars_max` characters, and a mark where it was cut.
#[must_use]
pub fn brief(text: &str, chars_max: usize) -> String {
    let shown = line(text);
    match shown.char_indices().nth(chars_max) {
        None => shown.into_owned(),
        Some((end, _)) => format!("{}…", shown.get(..end).unwrap_or_default()),
    }
}

/// Characters of somebody else's text that are shown to a person.
const QUOTED_CHARS_MAX: usize = 4_000;

/// Somebody else's text for a person: each line behind a mark, so that none passes for one of
/// ours, and what is too long cut and said to be. Every line ends.
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

/// The two variation selectors of emoji and text stay: they are everywhere, and too few to hide in.
fn is_unsafe(c: char) -> bool {
    codegen::text::is_invisible(c) && !matches!(c, '\u{fe0e}' | '\u{fe0f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_hides_or_reorders_reaches_the_terminal() {
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
    fn a_block_keeps_its_lines_and_tabs_and_nothing_else() {
        assert_eq!(block("a\n\tb\r\u{7}"), "a\n\tb\\r\\u{7}");
    }

    #[test]
    fn json_stays_the_same_value() {
        let text = "{\"a\":\"x\u{202e}y\u{e0041}\"}\n";
        let shown = json(text);
        assert_eq!(shown, "{\"a\":\"x\\u202ey\\udb40\\udc41\"}\n");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&shown), value(text));
    }

    #[test]
    fn no_line_of_a_quoted_text_is_without_its_mark_unless_it_says_that_it_was_cut() {
        assert_eq!(quoted("a\n\nb\u{202e}\rc"), "> a\n> \n> b\\u{202e}\\rc\n");
        assert_eq!(quoted(""), "");
        let long = quoted(&"x".repeat(QUOTED_CHARS_MAX + 7));
        let whole = format!("> {}\n", "x".repeat(QUOTED_CHARS_MAX));
        let cut = "… and 7 more characters that are not shown\n";
        assert_eq!(long, whole + cut);
    }

    #[test]
    fn a_brief_text_says_that_it_was_cut() {
        assert_eq!(brief("abc", 3), "abc");
        assert_eq!(brief("äbcd", 3), "äbc…");
    }
}
