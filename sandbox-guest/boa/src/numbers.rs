//! Converts numbers to text. The engine converts whole numbers digit by digit as if they were
//! fractions, loses digits of the smallest numbers in `toPrecision`, and rounds ties to even.

use boa_engine::object::JsObject;
use boa_engine::string::JsStr;
use boa_engine::{Context, JsArgs, JsResult, JsString, JsValue, js_string};

use crate::builtin;

pub(crate) fn install(context: &mut Context) -> JsResult<()> {
    let numbers = builtin::prototype_of("Number", context)?;
    builtin::replace(&numbers, js_string!("toString"), to_string, context)?;
    builtin::replace(&numbers, js_string!("toPrecision"), to_precision, context)?;
    builtin::replace(
        &numbers,
        js_string!("toExponential"),
        to_exponential,
        context,
    )?;
    Ok(())
}

fn to_string(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let radix = args.get_or_undefined(0).as_i32();
    let radix = radix.and_then(|radix| u64::try_from(radix).ok());
    let whole = this.as_number().and_then(whole);
    match (whole, radix) {
        (Some(number), Some(radix @ 2..=36)) => Ok(digits(number, radix).into()),
        _ => original.call(this, args, context),
    }
}

fn to_precision(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    match (fraction(this), count(args, 0)) {
        (Some(number), Some(count @ 1..=100)) => {
            let (digits, power) = rounded(number.abs(), count);
            let text = match power {
                -6..=-1 => format!("0.{}{digits}", zeros(power.unsigned_abs() - 1)),
                _ => match digits.split_at_checked(power.unsigned_abs() as usize + 1) {
                    Some((whole, "")) if power >= 0 => whole.to_owned(),
                    Some((whole, rest)) if power >= 0 => format!("{whole}.{rest}"),
                    _ => scientific(&digits, power),
                },
            };
            Ok(signed(number, &text))
        }
        _ => original.call(this, args, context),
    }
}

fn to_exponential(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    match (fraction(this), count(args, 0)) {
        (Some(number), Some(count @ 0..=100)) => {
            let (digits, power) = rounded(number.abs(), count + 1);
            Ok(signed(number, &scientific(&digits, power)))
        }
        _ => original.call(this, args, context),
    }
}

/// `numberText(number, least, most)`: formats a number for people, with at least `least` and at
/// most `most` decimals. Returns undefined if the prelude must format the number.
pub(crate) fn for_people(_: &JsValue, args: &[JsValue], _: &mut Context) -> JsResult<JsValue> {
    let number = args.get_or_undefined(0).as_number();
    Ok(match (number, count(args, 1), count(args, 2)) {
        (Some(number), Some(least), Some(most)) if number.is_finite() => {
            signed(number, &grouped(number.abs(), least, most))
        }
        _ => JsValue::undefined(),
    })
}

/// Returns the requested number of digits, if the argument is a number.
fn count(args: &[JsValue], at: usize) -> Option<usize> {
    let count = args.get_or_undefined(at).as_number()?.trunc();
    (0.0..=100.0).contains(&count).then_some(count as usize)
}

/// Returns a number that is finite.
fn fraction(this: &JsValue) -> Option<f64> {
    let number = this.as_number()?;
    (number.is_finite() && number != 0.0).then_some(number)
}

fn signed(number: f64, text: &str) -> JsValue {
    match number.is_sign_negative() {
        true => js_string!(format!("-{text}")).into(),
        false => js_string!(text).into(),
    }
}

fn zeros(count: u32) -> String {
    "0".repeat(count as usize)
}

fn scientific(digits: &str, power: i32) -> String {
    let (first, rest) = digits.split_at_checked(1).unwrap_or((digits, ""));
    let dot = if rest.is_empty() { "" } else { "." };
    let sign = if power < 0 { "" } else { "+" };
    format!("{first}{dot}{rest}e{sign}{power}")
}

/// Returns `count` digits of a number, and the power of ten of the first. Ties are rounded up.
fn rounded(number: f64, count: usize) -> (String, i32) {
    let nearest = written(number, count);
    let (longer, power) = written(number, count + 1);
    if !longer.ends_with('5') {
        return nearest;
    }
    // The maximum number of digits of a double.
    let (all, _) = written(number, 800);
    match all.trim_end_matches('0') == longer {
        true => next(&longer, count, power),
        false => nearest,
    }
}

/// Returns `count` digits of a number, and the power of ten of the first. Ties are rounded to even.
fn written(number: f64, count: usize) -> (String, i32) {
    let text = format!("{number:.*e}", count.saturating_sub(1));
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    (digits.replace('.', ""), power.parse().unwrap_or(0))
}

/// Returns the digits of a number in JavaScript, and how many of them are before the point.
fn shortest(number: f64) -> (String, i64) {
    let text = JsString::from(number).to_std_string_lossy();
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i64 = power.parse().unwrap_or(0);
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{decimals}");
    let digits = all.trim_start_matches('0');
    let zeros = i64::try_from(all.len() - digits.len()).unwrap_or(0);
    let point = i64::try_from(whole.len()).unwrap_or(0) + power - zeros;
    (digits.trim_end_matches('0').to_owned(), point)
}

/// Returns the first digits, with one added to the last of them.
fn next(digits: &str, count: usize, power: i32) -> (String, i32) {
    let kept = digits.get(..count).unwrap_or(digits);
    let below = kept.trim_end_matches('9');
    let nines = kept.len() - below.len();
    let mut made = String::with_capacity(count + 1);
    let carried = match below.char_indices().next_back() {
        Some((at, last)) => {
            made.push_str(below.get(..at).unwrap_or_default());
            made.extend(
                last.to_digit(10)
                    .and_then(|digit| char::from_digit(digit + 1, 10)),
            );
            0
        }
        None => {
            made.push('1');
            1
        }
    };
    made.push_str(&"0".repeat(nines));
    made.truncate(count.max(1));
    (made, power + carried)
}

/// Formats a number like the prelude: rounds the shortest decimal that names it, with ties away
/// from zero, and groups digits with commas.
fn grouped(number: f64, least: usize, most: usize) -> String {
    let (mut digits, mut point) = match number == 0.0 {
        true => (String::new(), 0),
        false => shortest(number),
    };
    let kept = point + i64::try_from(most).unwrap_or(i64::MAX);
    if kept < i64::try_from(digits.len()).unwrap_or(i64::MAX) {
        let at = usize::try_from(kept).ok();
        let first = at.and_then(|at| digits.as_bytes().get(at).copied());
        let count = at.unwrap_or(0);
        if first.is_some_and(|digit| digit >= b'5') {
            let (made, carried) = next(&digits, count, 0);
            (digits, point) = (made, point + i64::from(carried));
        } else {
            digits.truncate(count);
        }
        digits.truncate(digits.trim_end_matches('0').len());
    }
    let whole = usize::try_from(point).unwrap_or(0);
    let (before, after) = digits.split_at_checked(whole).unwrap_or((&digits, ""));
    let mut text = String::new();
    for place in 0..whole.max(1) {
        if place > 0 && (whole - place) % 3 == 0 {
            text.push(',');
        }
        text.push(
            before
                .as_bytes()
                .get(place)
                .map_or('0', |&digit| char::from(digit)),
        );
    }
    let zeros = usize::try_from(-point).unwrap_or(0);
    let decimals = match after.is_empty() {
        true => 0,
        false => zeros + after.len(),
    };
    if decimals.max(least) > 0 {
        text.push('.');
        if decimals > 0 {
            text.push_str(&"0".repeat(zeros));
            text.push_str(after);
        }
        text.push_str(&"0".repeat(least.saturating_sub(decimals)));
    }
    text
}
/// Returns the integer, if it is in the range in which doubles represent every integer.
fn whole(number: f64) -> Option<i64> {
    const MAX: f64 = ((1_u64 << 53) - 1) as f64;
    let is_whole = number.abs() <= MAX && number.trunc() == number;
    is_whole.then_some(number as i64)
}

fn digits(number: i64, radix: u64) -> JsString {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    // A sign and 53 bits.
    let mut text = [0_u8; 54];
    let mut begin = text.len();
    let mut rest = number.unsigned_abs();
    for (place, slot) in text.iter_mut().enumerate().rev() {
        let digit = usize::try_from(rest % radix).unwrap_or(0);
        *slot = DIGITS.get(digit).copied().unwrap_or(b'0');
        begin = place;
        rest /= radix;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        begin -= 1;
        if let Some(slot) = text.get_mut(begin) {
            *slot = b'-';
        }
    }
    JsString::from(JsStr::latin1(text.get(begin..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::{grouped, next, rounded};

    #[test]
    fn the_middle_goes_up() {
        for (number, count, digits, power) in [
            (2.5, 1, "3", 0),
            (8.5, 1, "9", 0),
            (9.5, 1, "1", 1),
            (99.5, 2, "10", 2),
            (1.005, 3, "100", 0),
            (1.25, 2, "13", 0),
            (1e-101, 3, "100", -101),
            (5e-324, 4, "4941", -324),
            (123_456.0, 2, "12", 5),
            (f64::MAX, 3, "180", 308),
            (25.0, 1, "3", 1),
        ] {
            assert_eq!(
                rounded(number, count),
                (digits.to_owned(), power),
                "{number}"
            );
        }
        assert_eq!(next("999", 3, 0), ("100".to_owned(), 1));
        assert_eq!(next("5", 0, 0), ("1".to_owned(), 1));
    }

    #[test]
    fn numbers_are_grouped_and_rounded_as_decimals() {
        for (number, least, most, text) in [
            (0.0, 0, 3, "0"),
            (1_234_567.891_5, 0, 3, "1,234,567.892"),
            (999.999_5, 0, 3, "1,000"),
            (0.000_5, 0, 3, "0.001"),
            (0.000_49, 0, 3, "0"),
            (1.005, 2, 2, "1.01"),
            (5.0, 2, 2, "5.00"),
            (0.05, 2, 2, "0.05"),
            (0.5, 0, 0, "1"),
            (1e21, 0, 3, "1,000,000,000,000,000,000,000"),
            (1e-7, 0, 3, "0"),
            (99.9, 0, 0, "100"),
            (123.0, 0, 3, "123"),
            (153_982_114_791_870.12, 2, 2, "153,982,114,791,870.12"),
            (1_000.1, 0, 3, "1,000.1"),
        ] {
            assert_eq!(grouped(number, least, most), text, "{number}");
        }
    }
}
