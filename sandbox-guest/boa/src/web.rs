//! The native parts of the prelude's additions to ECMAScript: URLs, text encodings, identifiers,
//! the time since the start, and the collation of texts.

use std::cmp::Ordering;

use boa_engine::object::builtins::{JsArray, JsArrayBuffer, JsTypedArray, JsUint8Array};
use boa_engine::string::JsStrVariant;
use boa_engine::{
    Context, JsArgs, JsError, JsNativeError, JsObject, JsResult, JsString, JsValue, js_string,
};
use guest_common::collation::{self, CollationOptions};
use guest_common::text::of_utf8;
use guest_common::{base64, rng, urls};

use crate::builtin;
use crate::run::Run;

type Native = fn(&JsValue, &[JsValue], &mut Context) -> JsResult<JsValue>;

pub(crate) const NATIVES: [(&str, Native); 13] = [
    ("urlParse", url_parse),
    ("urlPart", url_part),
    ("urlWith", url_with),
    ("formParse", form_parse),
    ("formText", form_text),
    ("utf8Encode", utf8_encode),
    ("utf8Decode", utf8_decode),
    ("base64Encode", base64_encode),
    ("base64Decode", base64_decode),
    ("fillRandom", fill_random),
    ("randomUUID", random_uuid),
    ("elapsed", elapsed),
    ("collate", collate),
];

fn text(args: &[JsValue], index: usize, context: &mut Context) -> JsResult<String> {
    Ok(args
        .get_or_undefined(index)
        .to_string(context)?
        .to_std_string_lossy())
}

/// Returns a text, or null.
fn or_null(text: Option<String>) -> JsValue {
    text.map_or(JsValue::null(), |text| js_string!(text).into())
}

/// `urlParse(text, base?)`: returns the URL in its normal form, or null.
fn url_parse(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let given = text(args, 0, context)?;
    let base = if args.get_or_undefined(1).is_undefined() {
        None
    } else {
        Some(text(args, 1, context)?)
    };
    Ok(or_null(urls::parse(&given, base.as_deref())))
}

fn no_url() -> JsError {
    JsNativeError::typ().with_message("invalid URL").into()
}

/// `urlPart(href, name)`: returns one part of a URL, such as its host.
fn url_part(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let (href, name) = (text(args, 0, context)?, text(args, 1, context)?);
    let part = urls::part(&href, &name).ok_or_else(no_url)?;
    Ok(js_string!(part).into())
}

/// `urlWith(href, name, value)`: the URL with one part changed. An invalid value leaves the part
/// unchanged.
fn url_with(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let (href, name) = (text(args, 0, context)?, text(args, 1, context)?);
    let value = text(args, 2, context)?;
    let changed = urls::with(&href, &name, &value).ok_or_else(no_url)?;
    Ok(js_string!(changed).into())
}

/// `formParse(text)`: names and values alternately.
fn form_parse(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let parts = urls::form_parts(&text(args, 0, context)?);
    let parts: Vec<JsValue> = parts
        .into_iter()
        .map(|part| js_string!(part).into())
        .collect();
    Ok(JsArray::from_iter(parts, context).into())
}

/// `formText(name, value, …)`
fn form_text(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let mut pairs = Vec::with_capacity(args.len() / 2);
    for pair in args.chunks(2) {
        pairs.push((text(pair, 0, context)?, text(pair, 1, context)?));
    }
    Ok(js_string!(urls::form_text(pairs)).into())
}

fn utf8_encode(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let given = text(args, 0, context)?;
    bytes_object(given.into_bytes(), context)
}

fn bytes_object(bytes: Vec<u8>, context: &mut Context) -> JsResult<JsValue> {
    Ok(JsUint8Array::from_iter(bytes, context)?.into())
}

/// Returns the bytes of an `ArrayBuffer` or of a view.
fn bytes_of(value: &JsValue, context: &mut Context) -> JsResult<Vec<u8>> {
    let not_bytes =
        || JsNativeError::typ().with_message("expected an ArrayBuffer or a view of one");
    let object = value.as_object().ok_or_else(not_bytes)?;
    if let Ok(buffer) = JsArrayBuffer::from_object(object.clone()) {
        return Ok(buffer.to_vec().unwrap_or_default());
    }
    let (buffer, offset, length) = view(&object, context)?;
    let bytes = JsArrayBuffer::from_object(buffer)?
        .to_vec()
        .unwrap_or_default();
    Ok(bytes
        .get(offset..offset + length)
        .unwrap_or_default()
        .to_vec())
}

fn view(object: &JsObject, context: &mut Context) -> JsResult<(JsObject, usize, usize)> {
    let view = JsTypedArray::from_object(object.clone())?;
    let buffer = view
        .buffer(context)?
        .as_object()
        .ok_or_else(|| JsNativeError::typ().with_message("the view has no buffer"))?;
    Ok((
        buffer,
        view.byte_offset(context)?,
        view.byte_length(context)?,
    ))
}

/// `utf8Decode(bytes, fatal)`
fn utf8_decode(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let bytes = match args.get_or_undefined(0) {
        value if value.is_undefined() => Vec::new(),
        value => bytes_of(value, context)?,
    };
    let fatal = args.get_or_undefined(1).to_boolean();
    let text = of_utf8(&bytes, fatal)
        .ok_or_else(|| JsNativeError::typ().with_message("the bytes are not UTF-8"))?;
    Ok(js_string!(&*text).into())
}

/// `base64Encode(text)`: returns base64, or null if a character is above U+00FF.
fn base64_encode(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let given = args.get_or_undefined(0).to_string(context)?;
    let bytes: Result<Vec<u8>, _> = given.iter().map(u8::try_from).collect();
    Ok(or_null(bytes.ok().map(|bytes| base64::encode(&bytes))))
}

/// `base64Decode(text)`: returns one character per byte, or null if `text` is not base64.
fn base64_decode(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let Some(bytes) = base64::decode(&text(args, 0, context)?) else {
        return Ok(JsValue::null());
    };
    let units: Vec<u16> = bytes.into_iter().map(u16::from).collect();
    Ok(js_string!(units.as_slice()).into())
}

/// `fillRandom(view)`: fills a typed array with random values.
fn fill_random(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let value = args.get_or_undefined(0);
    let object = value
        .as_object()
        .ok_or_else(|| JsNativeError::typ().with_message("expected an integer typed array"))?;
    let (buffer, offset, length) = view(&object, context)?;
    if length > rng::BYTES_MAX {
        let message = rng::too_many_bytes();
        return Err(JsNativeError::range().with_message(message).into());
    }
    let run = Run::of(context)?;
    let buffer = JsArrayBuffer::from_object(buffer)?;
    if let Some(mut bytes) = buffer.data_mut()
        && let Some(bytes) = bytes.get_mut(offset..offset + length)
    {
        run.chance.borrow_mut().fill(bytes);
    }
    Ok(value.clone())
}

/// `randomUUID()`, version 4.
fn random_uuid(_: &JsValue, _: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let uuid = Run::of(context)?.chance.borrow_mut().uuid();
    Ok(js_string!(uuid).into())
}

/// Milliseconds since the run's start.
fn elapsed(_: &JsValue, _: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    Ok(JsValue::from(Run::of(context)?.clock.elapsed_ms() as f64))
}

/// `collate(text, other, how)`: less than, equal to, or greater than zero.
fn collate(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let one = args.get_or_undefined(0).to_string(context)?;
    let other = args.get_or_undefined(1).to_string(context)?;
    let how = CollationOptions(args.get_or_undefined(2).to_u32(context)?);
    Ok(JsValue::from(order(&one, &other, how) as i8))
}

fn order(one: &JsString, other: &JsString, how: CollationOptions) -> Ordering {
    if one == other {
        return Ordering::Equal;
    }
    let plain = match (one.variant(), other.variant()) {
        (JsStrVariant::Latin1(one), JsStrVariant::Latin1(other)) => {
            collation::compare_plain(one, other, how)
        }
        _ => None,
    };
    plain.unwrap_or_else(|| collation::compare(chars(one), chars(other), how))
}

/// Makes `localeCompare` compare two texts without options directly, before the prelude's function.
pub(crate) fn install(context: &mut Context) -> JsResult<()> {
    let strings = builtin::prototype_of("String", context)?;
    builtin::replace(
        &strings,
        js_string!("localeCompare"),
        locale_compare,
        context,
    )?;
    Ok(())
}

fn locale_compare(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    match (this.as_string(), args) {
        (Some(one), [other]) if other.is_string() => {
            let other = other.as_string().unwrap_or_default();
            Ok(JsValue::from(
                order(&one, &other, CollationOptions::ALL) as i8
            ))
        }
        _ => original.call(this, args, context),
    }
}

fn chars(text: &JsString) -> impl Iterator<Item = char> + Clone {
    let units = char::decode_utf16(text.iter());
    units.map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER))
}
