//! `toString` of whole numbers. The engine's own divides as if there were a fraction.

use boa_engine::object::JsObject;
use boa_engine::string::JsStr;
use boa_engine::{Context, JsArgs, JsResult, JsString, JsValue, js_string};

use crate::builtin;

pub(crate) fn install(context: &mut Context) -> JsResult<()> {
    let numbers = builtin::prototype_of("Number", context)?;
    builtin::replace(&numbers, js_string!("toString"), to_string, context)?;
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

/// A number that is one of those between which none is missing.
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
