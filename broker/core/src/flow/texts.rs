//! Visits the strings, keys and numbers of a JSON text without parsing it into a value. Results may
//! be large, so only their beginning is read.

use crate::json;

/// Maximum number of bytes read from one result.
pub(super) const BYTES_MAX: usize = 256 * 1024;

/// Visits every string, key and number within the first [`BYTES_MAX`] bytes.
pub(super) fn each(text: &[u8], mut heard: impl FnMut(&str)) {
    let text = text.get(..BYTES_MAX).unwrap_or(text);
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        match byte {
            b'"' => {
                let long = string_long(after);
                let quoted = rest.get(..long + 2).unwrap_or(rest);
                if let Some(string) = json::typed::<String>(quoted) {
                    heard(&string);
                } else {
                    heard(&String::from_utf8_lossy(after.get(..long).unwrap_or(after)));
                }
                rest = after.get(long + 1..).unwrap_or_default();
            }
            b'0'..=b'9' => {
                let long = rest.iter().take_while(|b| b.is_ascii_digit()).count();
                heard(&String::from_utf8_lossy(
                    rest.get(..long).unwrap_or_default(),
                ));
                rest = rest.get(long..).unwrap_or_default();
            }
            _ => rest = after,
        }
    }
}

/// Returns the number of bytes up to the closing quote.
fn string_long(text: &[u8]) -> usize {
    let mut escaped = false;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let mut found = Vec::new();
        each(text.as_bytes(), |text| found.push(text.to_owned()));
        assert_eq!(found, expected);
    }

    #[test]
    fn texts_of_result_are_unescaped() {
        check(
            r#"{"a":["b\n\"c\"",-12.5],"d":null}"#,
            &["a", "b\n\"c\"", "12", "5", "d"],
        );
        check(r#""plain""#, &["plain"]);
        check(r#"["open"#, &["open"]);
        check("", &[]);
    }
}
