//! Texts: cut where they are too long to be shown or kept, and made of bytes.

use std::borrow::Cow;

/// The first `chars_max` characters, with a mark when there were more.
pub fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
    }
}

/// As much of the text as fits, in whole characters.
pub fn beginning(text: &str, bytes_max: u64) -> &str {
    let mut cut = usize::try_from(bytes_max)
        .unwrap_or(usize::MAX)
        .min(text.len());
    while !text.is_char_boundary(cut) {
        cut -= 1;
    }
    text.get(..cut).unwrap_or_default()
}

/// What bytes say, without the mark that some texts begin with; `None` where they are no UTF-8
/// and that is fatal.
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
