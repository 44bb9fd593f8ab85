//! What a header says. One may carry what headers cannot, between `=?base64?` and `?=`.

use axum::http::HeaderMap;

pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// None also where it cannot be decoded.
pub(super) fn decoded(headers: &HeaderMap, name: &str) -> Option<String> {
    let said = text(headers, name)?;
    let coded = said
        .strip_prefix("=?base64?")
        .and_then(|it| it.strip_suffix("?="));
    match coded {
        None => Some(said.to_owned()),
        Some(coded) => String::from_utf8(from_base64(coded)?).ok(),
    }
}

/// With its padding, and with nothing that is no letter of it.
fn from_base64(text: &str) -> Option<Vec<u8>> {
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
        let decoded = |text: &str| from_base64(text).and_then(|it| String::from_utf8(it).ok());
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
}
