//! Shortens texts for display or storage, and decodes bytes.

use std::borrow::Cow;

/// Returns the first `chars_max` characters, with a mark if the text was longer.
pub fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
    }
}

/// Returns the beginning of the text, up to `bytes_max` bytes, in whole characters.
pub fn beginning(text: &str, bytes_max: u64) -> &str {
    let mut cut = usize::try_from(bytes_max)
        .unwrap_or(usize::MAX)
        .min(text.len());
    while !text.is_char_boundary(cut) {
        cut -= 1;
    }
    text.get(..cut).unwrap_or_default()
}

/// Decodes bytes without a leading byte order mark; `None` if the bytes are not UTF-8 and `fatal`
/// is set.
pub fn of_utf8(bytes: &[u8], fatal: bool) -> Option<Cow<'_, str>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if fatal {
        return std::str::from_utf8(bytes).ok().map(Cow::Borrowed);
    }
    Some(String::from_utf8_lossy(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_a_text_without_the_mark_before_it() {
        assert_eq!(of_utf8(b"\xef\xbb\xbf\xc3\xa4", true).as_deref(), Some("ä"));
        assert_eq!(of_utf8(b"a\xff", false).as_deref(), Some("a\u{fffd}"));
        assert_eq!(of_utf8(b"a\xff", true), None);
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("größer", 6), "größer");
        assert_eq!(cut("größer", 3), "grö…");
        assert_eq!(beginning("größer", 3), "gr");
        assert_eq!(beginning("größer", 4), "grö");
        assert_eq!(beginning("größer", u64::MAX), "größer");
    }
}
