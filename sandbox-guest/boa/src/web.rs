//! The native halves of what the prelude offers beyond ECMAScript: URLs, text
//! encodings, identifiers, the time since the start, and the order of texts.

use std::cmp::Ordering;

use boa_engine::object::builtins::{JsArray, JsArrayBuffer, JsTypedArray, JsUint8Array};
use boa_engine::string::JsStrVariant;
use boa_engine::{
    Context, JsArgs, JsNativeError, JsObject, JsResult, JsString, JsValue, js_string,
};
use url::{Url, form_urlencoded, quirks};

use crate::builtin;
use crate::collation::{self, How};
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

/// Bytes that one request for randomness may ask for, as elsewhere.
const RANDOM_BYTES_MAX: usize = 65_536;

fn text(args: &[JsValue], index: usize, context: &mut Context) -> JsResult<String> {
    Ok(args
        .get_or_undefined(index)
        .to_string(context)?
        .to_std_string_lossy())
}

/// `urlParse(text, base?)`: the URL in its normal form, or null.
fn url_parse(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let given = text(args, 0, context)?;
    let parsed = if args.get_or_undefined(1).is_undefined() {
        Url::parse(&given)
    } else {
        let base = text(args, 1, context)?;
        Url::parse(&base).and_then(|base| base.join(&given))
    };
    Ok(parsed.map_or(JsValue::null(), |url| js_string!(quirks::href(&url)).into()))
}

fn known(args: &[JsValue], context: &mut Context) -> JsResult<(Url, String)> {
    let url = Url::parse(&text(args, 0, context)?)
        .map_err(|_| JsNativeError::typ().with_message("invalid URL"))?;
    Ok((url, text(args, 1, context)?))
}

/// `urlPart(href, name)`
fn url_part(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let (url, name) = known(args, context)?;
    let origin;
    let part = match name.as_str() {
        "protocol" => quirks::protocol(&url),
        "username" => quirks::username(&url),
        "password" => quirks::password(&url),
        "host" => quirks::host(&url),
        "hostname" => quirks::hostname(&url),
        "port" => quirks::port(&url),
        "pathname" => quirks::pathname(&url),
        "search" => quirks::search(&url),
        "hash" => quirks::hash(&url),
        "origin" => {
            origin = quirks::origin(&url);
            &origin
        }
        _ => "",
    };
    Ok(js_string!(part).into())
}

/// `urlWith(href, name, value)`: the URL with one part changed; what cannot be
/// set stays as it is.
fn url_with(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let (mut url, name) = known(args, context)?;
    let value = text(args, 2, context)?;
    let refused = match name.as_str() {
        "protocol" => quirks::set_protocol(&mut url, &value).is_err(),
        "username" => quirks::set_username(&mut url, &value).is_err(),
        "password" => quirks::set_password(&mut url, &value).is_err(),
        "host" => quirks::set_host(&mut url, &value).is_err(),
        "hostname" => quirks::set_hostname(&mut url, &value).is_err(),
        "port" => quirks::set_port(&mut url, &value).is_err(),
        "pathname" => {
            quirks::set_pathname(&mut url, &value);
            false
        }
        "search" => {
            quirks::set_search(&mut url, &value);
            false
        }
        "hash" => {
            quirks::set_hash(&mut url, &value);
            false
        }
        _ => true,
    };
    if refused {
        return Ok(args.get_or_undefined(0).clone());
    }
    Ok(js_string!(quirks::href(&url)).into())
}

/// `formParse(text)`: names and values, one after the other.
fn form_parse(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let given = text(args, 0, context)?;
    let parts: Vec<JsValue> = form_urlencoded::parse(given.as_bytes())
        .flat_map(|(name, value)| [js_string!(&*name).into(), js_string!(&*value).into()])
        .collect();
    Ok(JsArray::from_iter(parts, context).into())
}

/// `formText(name, value, …)`
fn form_text(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let mut out = form_urlencoded::Serializer::new(String::new());
    for pair in args.chunks(2) {
        out.append_pair(&text(pair, 0, context)?, &text(pair, 1, context)?);
    }
    Ok(js_string!(out.finish()).into())
}

fn utf8_encode(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let given = text(args, 0, context)?;
    bytes_object(given.into_bytes(), context)
}

fn bytes_object(bytes: Vec<u8>, context: &mut Context) -> JsResult<JsValue> {
    Ok(JsUint8Array::from_iter(bytes, context)?.into())
}

/// The bytes that an `ArrayBuffer` or a view of one shows.
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
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let fatal = args.get_or_undefined(1).to_boolean();
    if fatal && std::str::from_utf8(bytes).is_err() {
        return Err(JsNativeError::typ()
            .with_message("the bytes are not UTF-8")
            .into());
    }
    Ok(js_string!(&*String::from_utf8_lossy(bytes)).into())
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// `base64Encode(text)`; null when a character has no byte.
fn base64_encode(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let given = args.get_or_undefined(0).to_string(context)?;
    let bytes: Result<Vec<u8>, _> = given.iter().map(u8::try_from).collect();
    let Ok(bytes) = bytes else {
        return Ok(JsValue::null());
    };
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .fold(0_u32, |word, byte| (word << 8) | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            if place > chunk.len() {
                out.push('=');
            } else {
                let index = (word >> (18 - 6 * place)) as usize & 63;
                out.push(BASE64.get(index).map_or('=', |digit| char::from(*digit)));
            }
        }
    }
    Ok(js_string!(out).into())
}

/// `base64Decode(text)`: a text of one character per byte, or null.
fn base64_decode(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let given = text(args, 0, context)?;
    let mut digits: Vec<u8> = given
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    if digits.len().is_multiple_of(4) {
        for _ in 0..2 {
            if digits.last() == Some(&b'=') {
                digits.pop();
            }
        }
    }
    if digits.len() % 4 == 1 {
        return Ok(JsValue::null());
    }
    let mut units: Vec<u16> = Vec::with_capacity(digits.len() * 3 / 4);
    let (mut word, mut bits) = (0_u32, 0);
    for digit in digits {
        let Some(value) = BASE64.iter().position(|other| *other == digit) else {
            return Ok(JsValue::null());
        };
        word = (word << 6) | u32::try_from(value).unwrap_or(0);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            units.push(((word >> bits) & 0xff) as u16);
        }
    }
    Ok(js_string!(units.as_slice()).into())
}

/// `fillRandom(view)`
fn fill_random(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let value = args.get_or_undefined(0);
    let object = value
        .as_object()
        .ok_or_else(|| JsNativeError::typ().with_message("expected an integer typed array"))?;
    let (buffer, offset, length) = view(&object, context)?;
    if length > RANDOM_BYTES_MAX {
        return Err(JsNativeError::range()
            .with_message(format!("at most {RANDOM_BYTES_MAX} random bytes at once"))
            .into());
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
    let run = Run::of(context)?;
    let mut chance = run.chance.borrow_mut();
    let (high, low) = (chance.word(), chance.word());
    let uuid = format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        0x8000 | (low >> 48) & 0x3fff,
        low & 0xffff_ffff_ffff
    );
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
    let how = How(args.get_or_undefined(2).to_u32(context)?);
    Ok(JsValue::from(order(&one, &other, how) as i8))
}

fn order(one: &JsString, other: &JsString, how: How) -> Ordering {
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

/// Puts in front of the prelude's `localeCompare` what compares two texts without options.
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
            Ok(JsValue::from(order(&one, &other, How::ALL) as i8))
        }
        _ => original.call(this, args, context),
    }
}

fn chars(text: &JsString) -> impl Iterator<Item = char> + Clone {
    let units = char::decode_utf16(text.iter());
    units.map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER))
}
