//! Converts a JSON value to its canonical bytes (RFC 8785, JCS), and computes digests of it.
//!
//! Two functions write this form. [`exact`] is for values that are decided on, shown, hashed and
//! sent: it refuses an integer that a double cannot represent. [`canonical`] is for values that are
//! only hashed or stored: it writes such an integer with all its digits.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Number, Value};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest. Displayed as `sha256:` and lower-case hex.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    #[must_use]
    pub fn sha256(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Parses the text that `Display` writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("sha256:")?.as_bytes();
        let mut bytes = [0; 32];
        if hex.len() != 64 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            let [high, low] = *pair else { return None };
            *byte = hex_digit(high)? << 4 | hex_digit(low)?;
        }
        Some(Self(bytes))
    }
}

fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// Returns the lower-case digit of a number below 16.
fn digit(number: u8) -> u8 {
    match number {
        0..10 => b'0' + number,
        _ => b'a' + number - 10,
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PREFIX: &[u8; 7] = b"sha256:";
        // Journals contain many digests, so the text is made without allocating.
        let mut text = [0; PREFIX.len() + 64];
        let (prefix, hex) = text.split_at_mut(PREFIX.len());
        prefix.copy_from_slice(PREFIX);
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        f.write_str(str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a sha256 digest"))
    }
}

/// A number that no double represents exactly, and that therefore has no canonical form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the number {number} cannot be represented exactly")]
pub struct Inexact {
    pub number: String,
}

/// Returns the canonical bytes of a value whose numbers are all exact doubles.
pub fn exact(value: &Value) -> Result<Vec<u8>, Inexact> {
    match first_inexact(value) {
        Some(number) => Err(Inexact {
            number: number.to_string(),
        }),
        None => Ok(canonical(value)),
    }
}

/// Returns the canonical bytes of a value. Call arguments need [`exact`] instead, because this
/// function also accepts numbers that no double represents exactly.
#[must_use]
pub fn canonical(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write_value(value, &mut out);
    out
}

/// Returns the canonical bytes of an object with these members.
pub(crate) fn object<'a>(members: impl Iterator<Item = (&'a str, &'a Value)>) -> Vec<u8> {
    let mut out = Vec::with_capacity(4096);
    write_object(members.collect(), &mut out);
    out
}

/// Returns the digest of a value's canonical bytes.
#[must_use]
pub fn digest(value: &Value) -> Digest {
    Digest::sha256(&canonical(value))
}

fn first_inexact(value: &Value) -> Option<&Number> {
    match value {
        Value::Number(number) if !is_exact(number) => Some(number),
        Value::Array(items) => items.iter().find_map(first_inexact),
        Value::Object(members) => members.values().find_map(first_inexact),
        _ => None,
    }
}

fn is_exact(number: &Number) -> bool {
    const LAST: u64 = 1 << 53;
    match (number.as_u64(), number.as_i64()) {
        (Some(n), _) => n <= LAST || fits_mantissa(n),
        (None, Some(n)) => n.unsigned_abs() <= LAST || fits_mantissa(n.unsigned_abs()),
        (None, None) => number.as_f64().is_some_and(f64::is_finite),
    }
}

fn fits_mantissa(n: u64) -> bool {
    n.leading_zeros() + n.trailing_zeros() >= 11
}

fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_value(item, out);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| (key.as_str(), value));
            write_object(members.collect(), out);
        }
    }
}

fn write_object(mut members: Vec<(&str, &Value)>, out: &mut Vec<u8>) {
    members.sort_by(|(a, _), (b, _)| by_utf_16(a, b));
    out.push(b'{');
    for (i, (key, value)) in members.into_iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write_string(key, out);
        out.push(b':');
        write_value(value, out);
    }
    out.push(b'}');
}

/// Compares keys in the order of UTF-16 units. Nearly all keys are ASCII; their bytes have the same
/// order.
fn by_utf_16(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() {
        a.cmp(b)
    } else {
        a.encode_utf16().cmp(b.encode_utf16())
    }
}

fn write_number(number: &Number, out: &mut Vec<u8>) {
    match number.as_f64() {
        Some(double) if is_exact(number) => {
            out.extend_from_slice(ryu_js::Buffer::new().format_finite(double).as_bytes());
        }
        _ => out.extend_from_slice(number.to_string().as_bytes()),
    }
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    // Copies whole ranges at once. An escaped character is one ASCII byte, so it is never part of
    // another character.
    while let Some(at) = rest
        .iter()
        .position(|b| matches!(b, 0..=0x1f | b'"' | b'\\'))
    {
        let (run, tail) = rest.split_at(at);
        out.extend_from_slice(run);
        let Some((byte, after)) = tail.split_first() else {
            break;
        };
        write_escape(*byte, out);
        rest = after;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        0x8 => out.extend_from_slice(b"\\b"),
        0xc => out.extend_from_slice(b"\\f"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(value: &Value, expected: &str) {
        assert_eq!(String::from_utf8(exact(value).unwrap()).unwrap(), expected);
    }

    #[test]
    fn keys_sort_by_utf16_and_numbers_print_as_doubles() {
        check(
            &json!({"b": 1.0, "a": [1e21, -0.0, 1e-7]}),
            r#"{"a":[1e+21,0,1e-7],"b":1}"#,
        );
        check(
            &json!({"\u{fb33}": 1, "\u{1f600}": 2}),
            "{\"\u{1f600}\":2,\"\u{fb33}\":1}",
        );
        check(&json!("\u{1}\n\"\u{2028}"), "\"\\u0001\\n\\\"\u{2028}\"");
        check(
            &json!("\\a\u{8}ä\u{c}\r\t\u{7f}"),
            "\"\\\\a\\bä\\f\\r\\t\u{7f}\"",
        );
    }

    #[test]
    fn inexact_integer_is_refused_or_kept_in_digests() {
        let value = json!({"n": 9_007_199_254_740_993_u64});
        assert_eq!(
            exact(&value),
            Err(Inexact {
                number: "9007199254740993".into()
            })
        );
        assert_eq!(canonical(&value), br#"{"n":9007199254740993}"#);
        check(&json!(9_007_199_254_740_992_u64), "9007199254740992");
        check(&json!(1_u64 << 60), "1152921504606847000");
    }

    #[test]
    fn digest_parses_from_its_text() {
        let digest = digest(&json!({"a": 1}));
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
        assert_eq!(Digest::parse("sha256:zz"), None);
    }
}
