//! The native parts of the prelude's additions to ECMAScript: URLs, text encodings, identifiers,
//! the time since the start, and the collation of texts.

use std::rc::Rc;

use guest_common::collation::{self, CollationOptions};
use guest_common::text::of_utf8;
use guest_common::{base64, rng, urls};
use rquickjs::convert::Coerced;
use rquickjs::object::Property;
use rquickjs::{Array, Ctx, FromJs, Result, TypedArray, Value};

use crate::intrinsics::Kind;
use crate::native::{self, Native};
use crate::run::Run;
use crate::{clock, quiet, raw};

pub(crate) const NATIVES: [(&str, Native, usize); 13] = [
    ("urlParse", url_parse, 2),
    ("urlPart", url_part, 2),
    ("urlWith", url_with, 3),
    ("formParse", form_parse, 1),
    ("formText", form_text, 0),
    ("utf8Encode", utf8_encode, 1),
    ("utf8Decode", utf8_decode, 2),
    ("base64Encode", base64_encode, 1),
    ("base64Decode", base64_decode, 1),
    ("fillRandom", fill_random, 1),
    ("randomUUID", random_uuid, 0),
    ("elapsed", elapsed, 0),
    ("collate", collate, 3),
];

/// Converts an argument to text as JavaScript does.
fn text<'js>(ctx: &Ctx<'js>, args: &[Value<'js>], index: usize) -> Result<String> {
    let value = native::arg(ctx, args, index);
    if value.is_string() {
        return Ok(quiet::lossy(&value));
    }
    let converted = Coerced::<rquickjs::String<'js>>::from_js(ctx, value)?;
    Ok(quiet::lossy(converted.0.as_value()))
}

/// Returns a text, or null.
fn or_null<'js>(ctx: &Ctx<'js>, text: Option<String>) -> Result<Value<'js>> {
    match text {
        Some(text) => native::string(ctx, &text),
        None => Ok(Value::new_null(ctx.clone())),
    }
}

/// `urlParse(text, base?)`: returns the URL in its normal form, or null.
fn url_parse<'js>(ctx: &Ctx<'js>, _: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let given = text(ctx, args, 0)?;
    let base = if native::arg(ctx, args, 1).is_undefined() {
        None
    } else {
        Some(text(ctx, args, 1)?)
    };
    or_null(ctx, urls::parse(&given, base.as_deref()))
}

fn of_url<'js>(ctx: &Ctx<'js>, run: &Run, text: Option<String>) -> Result<Value<'js>> {
    match text {
        Some(text) => native::string(ctx, &text),
        None => Err(native::throw_type(ctx, run, "invalid URL")),
    }
}

/// `urlPart(href, name)`: returns one part of a URL, such as its host.
fn url_part<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let (href, name) = (text(ctx, args, 0)?, text(ctx, args, 1)?);
    of_url(ctx, run, urls::part(&href, &name))
}

/// `urlWith(href, name, value)`: the URL with one part changed. An invalid value leaves the part
/// unchanged.
fn url_with<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let (href, name) = (text(ctx, args, 0)?, text(ctx, args, 1)?);
    let value = text(ctx, args, 2)?;
    of_url(ctx, run, urls::with(&href, &name, &value))
}

/// `formParse(text)`: names and values alternately.
fn form_parse<'js>(ctx: &Ctx<'js>, _: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let given = text(ctx, args, 0)?;
    let parts = Array::new(ctx.clone())?;
    for (at, part) in (0_u32..).zip(urls::form_parts(&given)) {
        let part = Property::from(part).writable().enumerable().configurable();
        parts.as_object().prop(at, part)?;
    }
    Ok(parts.into_value())
}

/// `formText(name, value, …)`
fn form_text<'js>(ctx: &Ctx<'js>, _: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let mut pairs = Vec::with_capacity(args.len() / 2);
    for pair in args.chunks(2) {
        pairs.push((text(ctx, pair, 0)?, text(ctx, pair, 1)?));
    }
    native::string(ctx, &urls::form_text(pairs))
}

fn utf8_encode<'js>(ctx: &Ctx<'js>, _: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let given = text(ctx, args, 0)?;
    Ok(TypedArray::<u8>::new_copy(ctx.clone(), given.as_bytes())?.into_value())
}

/// Passes the bytes of an `ArrayBuffer` or of a view to a function.
fn with_bytes_of<'js, R>(
    ctx: &Ctx<'js>,
    run: &Run,
    value: &Value<'js>,
    use_them: impl FnOnce(&mut [u8]) -> R,
) -> Result<R> {
    let kept = run.kept()?;
    let found = if kept.kind(value) == Kind::Buffer {
        raw::with_bytes(value, use_them)
    } else if raw::is_typed_array(value) {
        let (buffer, offset, length) = kept.typed_view(value)?;
        raw::with_bytes(&buffer, |bytes| {
            let shown = bytes.get_mut(offset..offset.saturating_add(length));
            use_them(shown.unwrap_or_default())
        })
    } else {
        None
    };
    let message = "expected an ArrayBuffer or a view of one";
    found.ok_or_else(|| native::throw_type(ctx, run, message))
}

/// `utf8Decode(bytes, fatal)`
fn utf8_decode<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let bytes = match native::arg(ctx, args, 0) {
        value if value.is_undefined() => Vec::new(),
        value => with_bytes_of(ctx, run, &value, |bytes| bytes.to_vec())?,
    };
    let fatal = native::arg(ctx, args, 1).as_bool() == Some(true);
    match of_utf8(&bytes, fatal) {
        Some(text) => native::string(ctx, &text),
        None => Err(native::throw_type(ctx, run, "the bytes are not UTF-8")),
    }
}

/// `base64Encode(text)`: returns base64, or null if a character is above U+00FF.
fn base64_encode<'js>(ctx: &Ctx<'js>, _: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let given = text(ctx, args, 0)?;
    let bytes: std::result::Result<Vec<u8>, _> =
        given.chars().map(|c| u8::try_from(u32::from(c))).collect();
    or_null(ctx, bytes.ok().map(|bytes| base64::encode(&bytes)))
}

/// `base64Decode(text)`: returns one character per byte, or null if `text` is not base64.
fn base64_decode<'js>(ctx: &Ctx<'js>, _: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let bytes = base64::decode(&text(ctx, args, 0)?);
    let text = bytes.map(|bytes| bytes.into_iter().map(char::from).collect());
    or_null(ctx, text)
}

/// `fillRandom(view)`: fills a typed array with random values.
fn fill_random<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let value = native::arg(ctx, args, 0);
    if !raw::is_typed_array(&value) {
        let message = "expected an integer typed array";
        return Err(native::throw_type(ctx, run, message));
    }
    let (_, _, length) = run.kept()?.typed_view(&value)?;
    if length > rng::BYTES_MAX {
        return Err(native::throw_range(ctx, run, &rng::too_many_bytes()));
    }
    let fill = |bytes: &mut [u8]| run.chance.borrow_mut().fill(bytes);
    with_bytes_of(ctx, run, &value, fill)?;
    Ok(value)
}

/// `randomUUID()`, version 4.
fn random_uuid<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, _: &[Value<'js>]) -> Result<Value<'js>> {
    let uuid = run.chance.borrow_mut().uuid();
    native::string(ctx, &uuid)
}

/// Milliseconds since the run's start.
fn elapsed<'js>(ctx: &Ctx<'js>, _: &Rc<Run>, _: &[Value<'js>]) -> Result<Value<'js>> {
    Ok(Value::new_number(ctx.clone(), clock::elapsed_ms() as f64))
}

/// `collate(text, other, how)`: less than, equal to, or greater than zero.
fn collate<'js>(ctx: &Ctx<'js>, _: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let one = text(ctx, args, 0)?;
    let other = text(ctx, args, 1)?;
    let how = native::arg(ctx, args, 2).as_int().unwrap_or(0);
    let how = CollationOptions(u32::try_from(how).unwrap_or(0));
    let plain = collation::compare_plain(one.as_bytes(), other.as_bytes(), how);
    let order = plain.unwrap_or_else(|| collation::compare(one.chars(), other.chars(), how));
    Ok(Value::new_int(ctx.clone(), order as i32))
}
