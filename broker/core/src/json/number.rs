//! Checks whether a number literal is represented exactly by a double. A reader with exact decimals
//! and a reader with doubles then see the same number.

use super::BadJson;

pub(super) fn continues(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')
}

pub(super) fn check(literal: &[u8]) -> Result<(), BadJson> {
    // Up to fifteen decimal digits are always exact, and most numbers have fewer.
    if literal.len() <= 15
        && literal
            .iter()
            .all(|b| matches!(b, b'0'..=b'9' | b'.' | b'-'))
    {
        return Ok(());
    }
    let text = String::from_utf8_lossy(literal);
    let exact = match text.parse::<f64>() {
        Ok(double) if double.is_finite() => is_same_decimal(&text, double),
        // Not a number. The parser runs next and reports the error with a position.
        Err(_) => return Ok(()),
        Ok(_) => false,
    };
    if exact {
        return Ok(());
    }
    Err(BadJson::Inexact {
        number: text.chars().take(40).collect(),
    })
}

/// Whether the literal, its canonical spelling and the double are the same number.
fn is_same_decimal(text: &str, double: f64) -> bool {
    let mut buffer = ryu_js::Buffer::new();
    let canonical = buffer.format_finite(double);
    // Above 2^53, the shortest spelling of a double can be an integer other than the double's exact
    // value.
    let is_integer = canonical.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    Decimal::parse(text) == Decimal::parse(canonical)
        && (!is_integer || canonical.parse::<i128>() == Ok(double as i128))
}

const FAR: i64 = 1 << 40;

/// A decimal number: its sign, the digits without zeros at either end, and the power of ten of the
/// last digit.
#[derive(PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    fn parse(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits: Vec<u8> = whole
            .bytes()
            .chain(fraction.bytes())
            .filter(u8::is_ascii_digit)
            .collect();
        // A number with such an exponent is zero or not finite, so the exact exponent does not
        // matter.
        let written = exponent.trim_start_matches('+').parse::<i64>();
        let written = written.unwrap_or(i64::MAX).clamp(-FAR, FAR);
        let mut exponent = written - fraction.len() as i64;
        while digits.last() == Some(&b'0') {
            digits.pop();
            exponent += 1;
        }
        let zeros = digits.iter().take_while(|d| **d == b'0').count();
        digits.drain(..zeros);
        if digits.is_empty() {
            return Self {
                negative: false,
                digits,
                exponent: 0,
            };
        }
        Self {
            negative: whole.starts_with('-'),
            digits,
            exponent,
        }
    }
}
