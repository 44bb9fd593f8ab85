//! Base64 as defined for `atob` and `btoa`.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .fold(0_u32, |word, byte| (word << 8) | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            if place > chunk.len() {
                out.push('=');
            } else {
                let index = (word >> (18 - 6 * place)) as usize & 63;
                out.push(DIGITS.get(index).map_or('=', |digit| char::from(*digit)));
            }
        }
    }
    out
}

/// Decodes a text; `None` if it is not valid base64. White space is ignored, and the final padding
/// may be missing.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    if digits.len().is_multiple_of(4) {
        for _ in 0..2 {
            if digits.last() == Some(&b'=') {
                digits.pop();
            }
        }
    }
    if digits.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    let (mut word, mut bits) = (0_u32, 0);
    for digit in digits {
        let value = DIGITS.iter().position(|other| *other == digit)?;
        word = (word << 6) | u32::try_from(value).ok()?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let texts = [
            "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy",
        ];
        for (length, text) in texts.into_iter().enumerate() {
            let bytes = &b"foobar"[..length];
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text).as_deref(), Some(bytes));
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
    }

    #[test]
    fn blanks_and_missing_ends_are_taken_and_other_characters_are_not() {
        assert_eq!(decode(" Z\ng").as_deref(), Some(&b"f"[..]));
        for text in ["Z", "Zm9vY", "Zg=", "Z===", "Zm9-", "ä"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
