//! Texts that may be read as something else than they are: by a person, or by
//! a server that decodes, folds or trims what we do not.

/// For a destination or a path. Says nothing about whether it is harmful.
pub(super) fn is_doubtful(text: &str) -> bool {
    text != text.trim()
        || text.chars().any(is_odd)
        || mixes_scripts(text)
        || has_encoded_separator(text)
        || has_odd_segment(text)
}

fn is_odd(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\\'
            // Combining marks: the composed letter looks the same.
            | '\u{300}'..='\u{36f}'
            // Invisible, and what turns the direction of writing.
            | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202f}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e01ef}'
            // Dots, slashes and letters in other clothes.
            | '\u{2024}'..='\u{2026}' | '\u{2044}' | '\u{2215}' | '\u{29f8}' | '\u{3002}'
            | '\u{ff00}'..='\u{ffef}' | '\u{1d400}'..='\u{1d7ff}'
            // Spaces that are none of ours.
            | '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{205f}' | '\u{3000}')
}

/// Latin letters beside ones that look like them.
fn mixes_scripts(text: &str) -> bool {
    let latin = text.chars().any(|c| c.is_ascii_alphabetic());
    let other = |c: char| matches!(c, '\u{370}'..='\u{52f}' | '\u{13a0}'..='\u{13ff}');
    latin && text.chars().any(other)
}

/// `%2e`, `%2F`, `%5c`, `%00`, `%25`: somebody may decode them.
fn has_encoded_separator(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["%2e", "%2f", "%5c", "%00", "%25", "%40", "%0a", "%0d"]
        .iter()
        .any(|code| lower.contains(code))
}

/// `a.`, `a `, `a::$DATA`: names that some file systems take for others.
fn has_odd_segment(text: &str) -> bool {
    let trimmed = |segment: &str| {
        let is_dots = segment.chars().all(|c| c == '.') && segment.len() <= 2;
        !is_dots && segment.ends_with(['.', ' '])
    };
    text.split('/').any(trimmed) || text.contains("::$")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_read_as_something_else_is_doubtful() {
        for text in [
            "pаypal.example",
            "e\u{301}",
            "/srv/%2e%2e/x",
            "/srv/data./x",
            "a\\b",
            " x",
            "a\u{202e}b",
            "ｅvil.example",
            "a@corp.example\n",
        ] {
            assert!(is_doubtful(text), "{text:?}");
        }
        for text in [
            "/srv/data/../x.txt",
            "boss@corp.example",
            "https://docs.rs/a%20b",
            "Überweisung",
            "данные",
            ".",
            "notes/2026-11.md",
        ] {
            assert!(!is_doubtful(text), "{text:?}");
        }
    }
}
