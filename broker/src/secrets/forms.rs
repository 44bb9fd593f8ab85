//! The forms in which a configured secret can appear in a text: as it is, escaped as in JSON, and
//! encoded as base64, as hex digits or for a URL. A form may contain more than the secret's own
//! bytes at its edges, because in base64 three bytes share four characters.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::Value;

/// Minimum length of a secret that is also searched in encoded forms, in bytes. The base64 form of
/// a shorter secret could occur in any image by chance.
const ENCODED_BYTES_MIN: usize = 6;

const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// One text to search for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Form {
    pub(super) text: String,
    /// Whether the characters next to the text may contain bits of the secret, as in base64.
    pub(super) is_base64: bool,
}

/// Returns all forms of a secret.
pub(super) fn of(secret: &str) -> Vec<Form> {
    let quoted = Value::from(secret).to_string();
    let escaped = quoted.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    let mut texts = vec![secret.to_owned(), escaped.unwrap_or(secret).to_owned()];
    let mut forms = Vec::new();
    if secret.len() >= ENCODED_BYTES_MIN {
        texts.extend([hex(secret, LOWER), hex(secret, UPPER)]);
        texts.extend(in_urls(secret));
        forms.extend(in_base64(secret));
    }
    let plain = |text| Form {
        text,
        is_base64: false,
    };
    forms.extend(texts.into_iter().map(plain));
    forms
}

/// Returns whether a character belongs to one of the two alphabets of base64.
pub(super) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// Returns the base64 forms of a secret that follows 0, 1 or 2 other bytes, in both alphabets.
/// Characters that depend on the bytes around the secret are left out.
fn in_base64(secret: &str) -> impl Iterator<Item = Form> {
    let text = move |before: usize, is_for_urls: bool| {
        let mut bytes = vec![0; before];
        bytes.extend(secret.as_bytes());
        let encoded = match is_for_urls {
            true => URL_SAFE_NO_PAD.encode(&bytes),
            false => STANDARD_NO_PAD.encode(&bytes),
        };
        let from = (before * 8).div_ceil(6);
        let to = bytes.len() * 8 / 6;
        encoded.get(from..to).unwrap_or_default().to_owned()
    };
    let both = move |before| [text(before, false), text(before, true)];
    (0..3).flat_map(both).map(|text| Form {
        text,
        is_base64: true,
    })
}

fn hex(secret: &str, digits: &[u8; 16]) -> String {
    let digit = |value: u8| digits.get(usize::from(value)).map(|it| char::from(*it));
    let both = |byte: u8| [digit(byte >> 4), digit(byte & 15)];
    secret.bytes().flat_map(both).flatten().collect()
}

/// Returns the percent-encoded forms. Encoders differ in which characters they keep, in how they
/// write a space, and in the case of the digits.
fn in_urls(secret: &str) -> Vec<String> {
    // The characters that these encoders keep: RFC 3986, a component in JavaScript, a whole address
    // in JavaScript, a path in Python, a form, and an encoder that keeps none.
    const KEPT: [Option<&str>; 6] = [
        Some("-._~"),
        Some("-._~!*'()"),
        Some("-._~!*'();/?:@&=+$,#"),
        Some("-._~/"),
        Some("-._*"),
        None,
    ];
    let mut forms = Vec::new();
    for kept in KEPT {
        let is_kept = |c: char| kept.is_some_and(|it| c.is_ascii_alphanumeric() || it.contains(c));
        if secret.chars().all(is_kept) {
            continue;
        }
        for digits in [LOWER, UPPER] {
            let mut form = String::with_capacity(3 * secret.len());
            for c in secret.chars() {
                if is_kept(c) {
                    form.push(c);
                    continue;
                }
                for byte in hex(c.encode_utf8(&mut [0; 4]), digits).as_bytes().chunks(2) {
                    form.push('%');
                    form.extend(byte.iter().map(|digit| char::from(*digit)));
                }
            }
            forms.push(form.replace("%20", "+"));
            forms.push(form);
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(secret: &str) -> Vec<String> {
        of(secret).into_iter().map(|form| form.text).collect()
    }

    #[test]
    fn forms_of_a_secret_are_its_usual_encodings() {
        let forms = texts("p@ss wörd/1");
        for form in [
            "p@ss wörd/1",
            "704073732077c3b672642f31",
            "704073732077C3B672642F31",
            "p%40ss%20w%C3%B6rd%2F1",
            "p%40ss%20w%c3%b6rd%2f1",
            "p%40ss+w%C3%B6rd%2F1",
            "p%40ss%20w%C3%B6rd/1",
            "p@ss%20w%C3%B6rd/1",
            "%70%40%73%73%20%77%C3%B6%72%64%2F%31",
            "cEBzcyB3w7ZyZC8x",
            "BAc3Mgd8O2cmQvM",
        ] {
            assert!(forms.iter().any(|it| it == form), "{form}: {forms:?}");
        }
    }

    #[test]
    fn short_secret_has_no_encoded_form() {
        assert_eq!(texts("ab\"1"), ["ab\"1", "ab\\\"1"]);
    }
}
