//! Finds texts that a person may misread, or that a server may change by decoding, case folding or
//! trimming.

/// Whether a destination or a path may be misread. A doubtful text is not always harmful.
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
            // Invisible characters, and characters that change the writing direction.
            | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202f}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e01ef}'
            // Variants of dots, slashes and letters.
            | '\u{2024}'..='\u{2026}' | '\u{2044}' | '\u{2215}' | '\u{29f8}' | '\u{3002}'
            | '\u{ff00}'..='\u{ffef}' | '\u{1d400}'..='\u{1d7ff}'
            // Spaces other than the ASCII space.
            | '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{205f}' | '\u{3000}')
}

/// Whether the text mixes Latin letters with letters that look like them.
fn mixes_scripts(text: &str) -> bool {
    let latin = text.chars().any(|c| c.is_ascii_alphabetic());
    let other = |c: char| matches!(c, '\u{370}'..='\u{52f}' | '\u{13a0}'..='\u{13ff}');
    latin && text.chars().any(other)
}

/// Whether the text contains codes such as `%2e`, `%2F`, `%5c`, `%00` or `%25`, which a server may
/// decode.
fn has_encoded_separator(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["%2e", "%2f", "%5c", "%00", "%25", "%40", "%0a", "%0d"]
        .iter()
        .any(|code| lower.contains(code))
}

/// Whether a segment is a name that some file systems treat as another name: `a.`, `a `,
/// `a::$DATA`.
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
    fn lookalike_text_is_doubtful() {
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
