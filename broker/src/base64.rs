//! Bytes as letters, with the alphabet that `+` and `/` belong to.

use std::fmt::Write as _;

/// With its padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = [0; 4];
        for (place, byte) in group.iter_mut().skip(1).zip(chunk) {
            *place = *byte;
        }
        let group = u32::from_be_bytes(group);
        for place in 0..4 {
            let sextet = (group >> (18 - 6 * place) & 63) as usize;
            let letter = LETTERS
                .get(sextet)
                .copied()
                .filter(|_| place <= chunk.len());
            let _ = text.write_char(letter.map_or('=', char::from));
        }
    }
    text
}

/// With its padding, and with nothing that is no letter of it.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let bare = text.strip_suffix("==").or_else(|| text.strip_suffix('='));
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0_u32);
    for byte in bare.unwrap_or(text).bytes() {
        held = held << 6 | u32::from(value(byte)?);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits & 0xff).ok()?);
            held &= (1 << bits) - 1;
        }
    }
    // What is left over says nothing.
    (held == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_base64_is_decoded() {
        let decoded = |text: &str| decode(text).and_then(|it| String::from_utf8(it).ok());
        for (text, expected) in [
            ("", Some("")),
            ("YQ==", Some("a")),
            ("YWI=", Some("ab")),
            ("YWJj", Some("abc")),
            ("w6k=", Some("é")),
            ("YQ", None),
            ("YQ=", None),
            ("YR==", None),
            ("Y===", None),
            ("====", None),
            ("YW I", None),
            ("YWJ-", None),
        ] {
            assert_eq!(decoded(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn what_was_encoded_is_decoded() {
        for length in 0..70_u8 {
            let bytes: Vec<u8> = (0..length).map(|it| it.wrapping_mul(37)).collect();
            assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }
}
