//! Writes JSON text for guests, independent of their engine's values: up to a size limit, and with
//! the path of a value that JSON cannot express.
//!
//! | Value | Arguments | Value of a script |
//! | --- | --- | --- |
//! | `undefined` in an object | omitted | omitted |
//! | `undefined` or a hole in an array | `null` | `null` |
//! | `NaN`, `±Infinity` | refused | `null` |
//! | `-0` | `0` | `0` |
//! | BigInt | number when exact in a double, else refused | number when exact, else string |
//! | function, symbol | refused | omitted, `null` in an array |
//! | promise | refused | refused |
//! | `Date` | ISO text (its `toJSON`) | the same |
//! | `Map` | object when all keys are strings, else array of entries | the same |
//! | `Set`, typed array | array | the same |
//! | `RegExp` | its text | its text |
//! | error | object of its own members with `name` and `message` | the same |
//! | lone surrogate in a text | refused | U+FFFD |
//! | cycle | refused, naming the path | refused, naming the path |
//! | anything with `toJSON` | what that returns | the same |

/// Largest integer up to which a double represents every integer exactly.
const EXACT_MAX: u64 = 9_007_199_254_740_991;

/// Maximum number of named parts of a path, and of characters of each.
const PARTS_MAX: usize = 20;
const PART_CHARS_MAX: usize = 60;

/// The purpose of the JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Arguments,
    Value,
}

#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub bytes_max: usize,
    pub depth_max: u32,
}

/// Why there is no text. `E` is the type of a script's exception.
#[derive(Debug)]
pub enum Refusal<E> {
    /// A getter or `toJSON` threw.
    Thrown(E),
    /// A value that JSON cannot express; the message names its path.
    Unsayable(String),
    TooLarge,
    TooDeep(String),
}

impl<E> From<E> for Refusal<E> {
    fn from(error: E) -> Self {
        Self::Thrown(error)
    }
}

/// A step from a value to a value inside it. `N` is the engine's type for names.
#[derive(Debug)]
pub enum PathPart<N> {
    Name(N),
    Index(usize),
}

/// Writes the path of a value as a script would; `text` converts a name.
pub fn path<N>(parts: &[PathPart<N>], text: impl Fn(&N) -> String) -> String {
    let mut path = String::new();
    for (at, part) in parts.iter().take(PARTS_MAX).enumerate() {
        match part {
            PathPart::Name(name) => {
                if at > 0 {
                    path.push('.');
                }
                path.extend(text(name).chars().take(PART_CHARS_MAX));
            }
            PathPart::Index(index) => path.push_str(&format!("[{index}]")),
        }
    }
    path
}

/// Returns the error for a value at a path that is nested too deeply.
pub fn too_deep<E>(path: &str, bounds: Bounds) -> Refusal<E> {
    let levels = bounds.depth_max;
    Refusal::TooDeep(format!("`{path}` is nested more than {levels} levels deep"))
}

/// Appends bytes, unless the text would exceed the size limit.
pub fn push<E>(out: &mut Vec<u8>, bytes: &[u8], bounds: Bounds) -> Result<(), Refusal<E>> {
    if out.len() + bytes.len() > bounds.bytes_max {
        return Err(Refusal::TooLarge);
    }
    out.extend_from_slice(bytes);
    Ok(())
}

/// Appends a text with its quotes.
pub fn push_text<E>(out: &mut Vec<u8>, text: &str, bounds: Bounds) -> Result<(), Refusal<E>> {
    let mut push = |bytes: &[u8]| push::<E>(out, bytes, bounds);
    push(b"\"")?;
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        push(text.as_bytes().get(plain..at).unwrap_or_default())?;
        plain = at + 1;
        match byte {
            b'"' => push(b"\\\"")?,
            b'\\' => push(b"\\\\")?,
            b'\n' => push(b"\\n")?,
            b'\r' => push(b"\\r")?,
            b'\t' => push(b"\\t")?,
            8 => push(b"\\b")?,
            12 => push(b"\\f")?,
            _ => push(format!("\\u{byte:04x}").as_bytes())?,
        }
    }
    push(text.as_bytes().get(plain..).unwrap_or_default())?;
    push(b"\"")
}

/// Returns the text for a BigInt with these digits, or the predicate of a message that refuses the
/// value.
pub fn big_int(digits: String, purpose: Purpose) -> Result<String, &'static str> {
    let magnitude = digits.trim_start_matches('-').parse::<u64>();
    if magnitude.is_ok_and(|magnitude| magnitude <= EXACT_MAX) {
        Ok(digits)
    } else if purpose == Purpose::Value {
        Ok(format!("\"{digits}\""))
    } else {
        Err("is a BigInt that no JSON number holds exactly")
    }
}

/// Returns the text for a number that is not finite, or the predicate of a message that refuses the
/// number.
pub fn not_finite(number: f64, purpose: Purpose) -> Result<&'static str, String> {
    match purpose {
        Purpose::Arguments => Err(format!("is {number}, which is not JSON")),
        Purpose::Value => Ok("null"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        bytes_max: 12,
        depth_max: 3,
    };

    fn text(text: &str) -> Option<String> {
        let mut out = Vec::new();
        let pushed: Result<(), Refusal<()>> = push_text(&mut out, text, BOUNDS);
        pushed.ok().map(|()| String::from_utf8(out).unwrap())
    }

    #[test]
    fn texts_are_escaped_up_to_the_bound() {
        assert_eq!(text("a\"\\\n\u{1}"), None);
        assert_eq!(text("a\"\\\n").as_deref(), Some("\"a\\\"\\\\\\n\""));
        assert_eq!(text("ä\u{1}").as_deref(), Some("\"ä\\u0001\""));
        assert_eq!(text("1234567890").as_deref(), Some("\"1234567890\""));
        assert_eq!(text("12345678901"), None);
    }

    #[test]
    fn a_path_is_written_as_a_script_would() {
        let parts = [
            PathPart::Name("value"),
            PathPart::Index(3),
            PathPart::Name("name"),
        ];
        assert_eq!(path(&parts, |name| (*name).to_owned()), "value[3].name");
        let many: Vec<PathPart<&str>> = (0..30).map(PathPart::Index).collect();
        assert!(path(&many, |name| (*name).to_owned()).ends_with("[19]"));
    }

    #[test]
    fn numbers_that_no_double_holds_are_texts_or_refused() {
        for (digits, value) in [
            ("9007199254740991", "9007199254740991"),
            ("-9007199254740991", "-9007199254740991"),
            ("9007199254740992", "\"9007199254740992\""),
            ("-99999999999999999999999", "\"-99999999999999999999999\""),
        ] {
            let said = |purpose| big_int(digits.to_owned(), purpose);
            assert_eq!(said(Purpose::Value).as_deref(), Ok(value));
            assert_eq!(said(Purpose::Arguments).is_ok(), digits == value);
        }
        assert_eq!(not_finite(f64::NAN, Purpose::Value), Ok("null"));
        let refused = not_finite(f64::NEG_INFINITY, Purpose::Arguments).unwrap_err();
        assert_eq!(refused, "is -inf, which is not JSON");
    }
}
