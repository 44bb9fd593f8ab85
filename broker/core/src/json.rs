//! Reads JSON texts from outside within bounds: one pass measures size, depth and nodes before any
//! value is built.
//!
//! [`parse_strict`] is for texts on which a decision depends. It also refuses ambiguous texts,
//! which two parsers could read differently: texts with a duplicate key, or with a number that no
//! double represents exactly.

mod number;
mod value;

use serde_json::Value;

/// The maximum size, depth and number of nodes of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub bytes_max: u32,
    pub depth_max: u32,
    pub nodes_max: u32,
}

impl Bounds {
    /// The widest bounds that any run's limits may have. Used for a text that was already measured,
    /// or that a person supplied.
    pub const WIDEST: Self = Self {
        bytes_max: 256 * 1024 * 1024,
        depth_max: 512,
        nodes_max: 100_000_000,
    };
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadJson {
    #[error("{bytes} bytes; the limit is {bytes_max}")]
    TooLarge { bytes: usize, bytes_max: u32 },
    #[error("nested deeper than {depth_max} levels")]
    TooDeep { depth_max: u32 },
    #[error("more than {nodes_max} values")]
    TooManyNodes { nodes_max: u32 },
    #[error("not JSON: {why}")]
    NotJson { why: String },
    #[error("an object with the duplicate key `{key}`")]
    KeyTwice { key: String },
    #[error("the number {number} cannot be represented exactly")]
    Inexact { number: String },
}

impl BadJson {
    /// Whether a bound was exceeded; otherwise the text is invalid or ambiguous.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        matches!(
            self,
            Self::TooLarge { .. } | Self::TooDeep { .. } | Self::TooManyNodes { .. }
        )
    }
}

/// Checks the bounds without building anything. This does not check whether the text is JSON.
pub fn measure(text: &[u8], bounds: Bounds) -> Result<(), BadJson> {
    scan(text, bounds, |_| Ok(()))
}

/// Parses one value within bounds, and refuses ambiguous texts.
pub fn parse_strict(text: &[u8], bounds: Bounds) -> Result<Value, BadJson> {
    scan(text, bounds, number::check)?;
    value::parse(text)
}

/// Parses one value within bounds, as most readers do: the last of several equal keys counts, and a
/// number becomes the nearest double.
pub fn read(text: &[u8], bounds: Bounds) -> Result<Value, BadJson> {
    measure(text, bounds)?;
    value::lenient(text)
}

/// Parses one value of a text that [`measure`] found within bounds.
pub(crate) fn parse(text: &[u8]) -> Result<Value, BadJson> {
    value::lenient(text)
}

/// Deserializes any JSON inside one of airlock's own formats, for manual `Deserialize`
/// implementations.
pub(crate) fn embedded<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Value, D::Error> {
    value::embedded(deserializer)
}

/// Deserializes a type that is not a [`Value`] and contains none, from a text within bounds.
#[expect(
    clippy::disallowed_methods,
    reason = "these types contain raw texts and plain members, but no `Value`"
)]
pub(crate) fn typed<'a, T: serde::Deserialize<'a>>(text: &'a [u8]) -> Option<T> {
    serde_json::from_slice(text).ok()
}

/// Whether a text within bounds is one JSON value, and therefore UTF-8.
pub(crate) fn is_one_value(text: &[u8]) -> bool {
    typed::<&serde_json::value::RawValue>(text).is_some()
}

fn scan(
    text: &[u8],
    bounds: Bounds,
    number: impl Fn(&[u8]) -> Result<(), BadJson>,
) -> Result<(), BadJson> {
    if text.len() > bounds.bytes_max as usize {
        return Err(BadJson::TooLarge {
            bytes: text.len(),
            bytes_max: bounds.bytes_max,
        });
    }
    let (mut depth, mut nodes, mut rest) = (0_u32, 1_u32, text);
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => rest = after_string(after),
            b'[' | b'{' => {
                depth += 1;
                nodes = nodes.saturating_add(1);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => nodes = nodes.saturating_add(1),
            b'-' | b'0'..=b'9' => {
                let long = 1 + after.iter().take_while(|b| number::continues(**b)).count();
                let from = text.len() - after.len() - 1;
                number(text.get(from..from + long).unwrap_or_default())?;
                rest = after.get(long - 1..).unwrap_or_default();
            }
            _ => {}
        }
        if depth > bounds.depth_max {
            return Err(BadJson::TooDeep {
                depth_max: bounds.depth_max,
            });
        }
        if nodes > bounds.nodes_max {
            return Err(BadJson::TooManyNodes {
                nodes_max: bounds.nodes_max,
            });
        }
    }
    Ok(())
}

/// Returns the bytes after the closing quote, or nothing if there is no closing quote.
fn after_string(mut rest: &[u8]) -> &[u8] {
    loop {
        let Some(at) = memchr::memchr2(b'"', b'\\', rest) else {
            return &[];
        };
        let skip = if rest.get(at) == Some(&b'"') { 1 } else { 2 };
        let closed = skip == 1;
        rest = rest.get(at + skip..).unwrap_or_default();
        if closed {
            return rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        bytes_max: 64,
        depth_max: 3,
        nodes_max: 8,
    };

    fn check(text: &str, expected: Result<&str, &str>) {
        let found = parse_strict(text.as_bytes(), BOUNDS);
        match (found, expected) {
            (Ok(value), Ok(json)) => assert_eq!(value.to_string(), json, "{text}"),
            (Err(bad), Err(why)) => assert!(bad.to_string().contains(why), "{text}: {bad}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn json_is_read_within_bounds() {
        check(r#"{"a":[1,"]]]]\"[[[["]}"#, Ok(r#"{"a":[1,"]]]]\"[[[["]}"#));
        check("[[[[]]]]", Err("deeper than 3"));
        check("[1,2,3,4,5,6,7]", Ok("[1,2,3,4,5,6,7]"));
        check("[1,2,3,4,5,6,7,8]", Err("more than 8"));
        check(&format!("\"{}\"", "x".repeat(70)), Err("72 bytes"));
    }

    /// serde_json parses the text inside an object that starts with this key, instead of the object
    /// itself.
    const RESERVED: &str = "$serde_json::private::RawValue";

    #[test]
    fn special_keys_are_plain_data() {
        for text in [
            format!(r#"{{"{RESERVED}":"1"}}"#),
            format!(r#"{{"a":[{{"{RESERVED}":"[1]"}}]}}"#),
            format!(r#"{{"{RESERVED}":2}}"#),
        ] {
            let strict = parse_strict(text.as_bytes(), BOUNDS).unwrap();
            let lenient = read(text.as_bytes(), BOUNDS).unwrap();
            assert_eq!(
                (strict.to_string(), lenient.to_string()),
                (text.clone(), text)
            );
        }
        assert_eq!(read(br#"{"a":1,"a":2}"#, BOUNDS).unwrap()["a"], 2);
        assert!(read(b"[[[[]]]]", BOUNDS).is_err());
    }

    #[test]
    fn ambiguous_json_is_refused() {
        check(r#"{"a":1,"a":2}"#, Err("duplicate key `a`"));
        check(r#"{"a":1,"\u0061":2}"#, Err("duplicate key `a`"));
        check(r#""\ud800""#, Err("not JSON"));
        check("[1,]", Err("not JSON"));
        check("1 2", Err("not JSON"));
        check("", Err("not JSON"));
        check("\"open", Err("not JSON"));
        for number in [
            "9007199254740993",
            "18446744073709551617",
            "1e309",
            "1e-400",
            "0.12345678901234567891",
            "-9007199254740993",
        ] {
            check(number, Err(number));
        }
        for zero in [
            "0e9223372036854775807",
            "0.5e-9223372036854775808",
            "10e9223372036854775807",
        ] {
            let _ = parse_strict(zero.as_bytes(), BOUNDS);
        }
        for number in [
            "0.1",
            "1e21",
            "9007199254740992",
            "-5",
            "250.00004",
            "1.0",
            "5e-324",
            "0",
        ] {
            assert!(parse_strict(number.as_bytes(), BOUNDS).is_ok(), "{number}");
        }
    }
}
