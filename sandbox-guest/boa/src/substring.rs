//! Parts of texts: `slice`, `substring`, `substr`, and the three functions that trim. In the
//! engine, a part of a text keeps that text alive, and a part of a part keeps the whole chain
//! alive. A script that consumes a text from its front builds a chain with one link per step, and
//! releasing the chain takes as many nested calls.
//!
//! Here a part always refers to the original text. A part is copied if it is short, or if it would
//! keep much more memory alive than its own length.

mod parent_texts;

use std::cell::RefCell;

use boa_engine::object::JsObject;
use boa_engine::{Context, JsArgs, JsResult, JsString, JsValue, js_string};

use crate::builtin::{self, Native};
use crate::globals;
use parent_texts::ParentTexts;

thread_local! {
    static BELOW: RefCell<ParentTexts> = const { RefCell::new(ParentTexts::new()) };
}

pub(crate) fn install(context: &mut Context) -> JsResult<()> {
    let strings = builtin::prototype_of("String", context)?;
    let functions: [(&str, Native); 4] = [
        ("slice", slice),
        ("substring", substring),
        ("substr", substr),
        ("trim", trim),
    ];
    for (name, native) in functions {
        builtin::replace(&strings, js_string!(name), native, context)?;
    }
    // Each of these has a second name.
    for (name, second, native) in [
        ("trimStart", "trimLeft", trim_start as Native),
        ("trimEnd", "trimRight", trim_end),
    ] {
        let function = builtin::replace(&strings, js_string!(name), native, context)?;
        globals::define(&strings, second, function.into());
    }
    Ok(())
}

/// Returns the text between two positions, which must not exceed its length.
pub(crate) fn part(text: &JsString, from: usize, to: usize) -> JsString {
    if from >= to {
        return js_string!();
    }
    if from == 0 && to == text.len() {
        return text.clone();
    }
    if let Some(short) = parent_texts::short(text, from, to) {
        return short;
    }
    BELOW.with_borrow_mut(|below| below.part(text, from, to))
}

/// Releases texts that are kept for parts that are no longer used.
pub(crate) fn clear_out() {
    BELOW.with_borrow_mut(ParentTexts::clear_out);
}

fn slice(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let Some((text, [from, to])) = read(this, args, [0.0, f64::INFINITY]) else {
        return original.call(this, args, context);
    };
    let length = text.len() as f64;
    let place = |at: f64| {
        if at < 0.0 {
            (length + at).max(0.0)
        } else {
            at.min(length)
        }
    };
    Ok(part(&text, place(from) as usize, place(to) as usize).into())
}

fn substring(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let Some((text, places)) = read(this, args, [0.0, f64::INFINITY]) else {
        return original.call(this, args, context);
    };
    let [one, other] = places.map(|at| at.clamp(0.0, text.len() as f64) as usize);
    Ok(part(&text, one.min(other), one.max(other)).into())
}

fn substr(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let Some((text, [from, count])) = read(this, args, [0.0, f64::INFINITY]) else {
        return original.call(this, args, context);
    };
    let length = text.len() as f64;
    let from = if from < 0.0 {
        (length + from).max(0.0)
    } else {
        from.min(length)
    };
    let to = from + count.clamp(0.0, length - from);
    Ok(part(&text, from as usize, to as usize).into())
}

/// Reads a text and two whole numbers, which may be infinite. Returns `None` if code of the script
/// would have to convert an argument.
fn read(this: &JsValue, args: &[JsValue], missing: [f64; 2]) -> Option<(JsString, [f64; 2])> {
    let text = this.as_string()?;
    let whole = |at: usize, missing: f64| {
        let value = args.get_or_undefined(at);
        match value.as_number() {
            Some(number) if number.is_nan() => Some(0.0),
            Some(number) => Some(number.trunc()),
            None => value.is_undefined().then_some(missing),
        }
    };
    let [first, second] = missing;
    Some((text, [whole(0, first)?, whole(1, second)?]))
}

fn trim(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    trimmed(this, args, original, JsString::trim, context)
}

fn trim_start(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    trimmed(this, args, original, JsString::trim_start, context)
}

fn trim_end(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    trimmed(this, args, original, JsString::trim_end, context)
}

/// Trims a text. The engine decides which characters are white space; the part is then located.
fn trimmed(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    trim: fn(&JsString) -> JsString,
    context: &mut Context,
) -> JsResult<JsValue> {
    let Some(text) = this.as_string() else {
        return original.call(this, args, context);
    };
    let left = trim(&text);
    match parent_texts::place(&left, &text) {
        Some(from) => Ok(part(&text, from, from + left.len()).into()),
        None => Ok(left.into()),
    }
}

#[cfg(test)]
mod tests {
    use boa_engine::Source;

    use crate::Guest;

    fn check(script: &str, expected: &str) {
        let mut guest = Guest::new().unwrap();
        let told = format!("String((() => {{ {script} }})())");
        let found = guest.context().eval(Source::from_bytes(&told)).unwrap();
        let found = found.as_string().map(|text| text.to_std_string_escaped());
        assert_eq!(found.as_deref(), Some(expected), "{script}");
    }

    /// Each of these texts was a chain of parts that was released all at once.
    #[test]
    fn a_text_can_be_eaten_bite_by_bite() {
        for (eat, bites) in [
            ("s.slice(2)", 40_000),
            ("s.slice(0, -2)", 40_000),
            ("s.substring(2)", 40_000),
            ("s.substr(2)", 40_000),
            ("s.trim().slice(2)", 40_000),
            ("(' ' + s).trimStart().slice(2)", 2_000),
            ("(s + ' ').trimEnd().slice(2)", 2_000),
            ("/^(..)(.*)$/.exec(s)[2]", 2_000),
        ] {
            for letters in ["ab", "a€"] {
                check(
                    &format!(
                        "let s = '{letters}'.repeat({bites}), bites = 0; \
                         while (s.length > 0) {{ s = {eat}; bites += 1 }} return bites"
                    ),
                    &bites.to_string(),
                );
            }
        }
        check(
            "let s = 'a line\\n'.repeat(20000), lines = 0; for (let at; (at = s.indexOf('\\n')) >= 0; lines++) \
             { if (s.slice(0, at) !== 'a line') return s; s = s.slice(at + 1) } return lines",
            "20000",
        );
    }

    /// The only text in the tests that is long enough for its parts not to be copied.
    #[test]
    fn parts_of_parts_are_what_they_should_be() {
        for letter in ["a", "€"] {
            check(
                &format!(
                    "const whole = Array.from({{ length: 5000 }}, (_, i) => '{letter}' + i).join(' '); \
                     const units = whole.split(''); \
                     let part = whole, from = 0, to = whole.length, chance = 7; const wrong = []; \
                     for (let i = 0; i < 300; i++) {{ \
                       chance = chance * 16807 % 2147483647; \
                       if (to - from < 40) {{ part = whole; from = 0; to = whole.length }} \
                       const length = to - from, a = chance % 23, b = chance % 19; \
                       [part, from, to] = [ \
                         () => [part.slice(a, length - b), from + a, to - b], \
                         () => [part.substring(length - b, a), from + a, to - b], \
                         () => [part.slice(-length + a), from + a, to], \
                         () => [part.substr(a, length - a - b), from + a, to - b], \
                         () => [part.slice(0, Math.ceil(length / 2)), from, from + Math.ceil(length / 2)], \
                       ][i % 60 === 59 ? 4 : i % 4](); \
                       if (part !== units.slice(from, to).join('')) wrong.push(i); \
                     }} return wrong.join() + '.'"
                ),
                ".",
            );
        }
    }

    #[test]
    fn trimming_takes_what_is_blank_and_nothing_else() {
        check(
            "const s = '\\u00a0 \\n' + 'x y'.repeat(400) + '\\t\\ufeff'; \
             return [s.trim().length, s.trimStart().length, s.trimEnd().length, s.trim() === 'x y'.repeat(400)]",
            "1200,1202,1203,true",
        );
        check(
            "const s = ' \\u2003' + '€'.repeat(900); return [s.trim().length, s.trimEnd() === s, ' '.repeat(900).trim()]",
            "900,true,",
        );
        check(
            "const of = String.prototype; return [of.trimLeft === of.trimStart, of.trimRight === of.trimEnd, of.trimLeft.name]",
            "true,true,trimStart",
        );
    }
}
