//! The native halves of what the prelude offers beyond ECMAScript: URLs, text
//! encodings, identifiers, the time since the start, and the order of texts.

use std::rc::Rc;

use rquickjs::convert::Coerced;
use rquickjs::object::Property;
use rquickjs::{Array, Ctx, FromJs, Result, TypedArray, Value};
use url::{Url, form_urlencoded, quirks};

use crate::collation::{self, How};
use crate::kept::Kind;
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

/// Bytes that one request for randomness may ask for, as elsewhere.
const RANDOM_BYTES_MAX: usize = 65_536;

/// An argument as text, as the language converts it.
fn text<'js>(ctx: &Ctx<'js>, args: &[Value<'js>], index: usize) -> Result<String> {
    let value = native::arg(ctx, args, index);
    if value.is_string() {
        return Ok(quiet::lossy(&value));
    }
    let converted = Coerced::<rquickjs::String<'js>>::from_js(ctx, value)?;
    Ok(quiet::lossy(converted.0.as_value()))
}

/// `urlParse(text, base?)`: the URL in its normal form, or null.
fn url_parse<'js>(ctx: &Ctx<'js>, _: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let given = text(ctx, args, 0)?;
    let parsed = if native::arg(ctx, args, 1).is_undefined() {
        Url::parse(&given)
    } else {
        let base = text(ctx, args, 1)?;
        Url::parse(&base).and_then(|base| base.join(&given))
    };
    match parsed {
        Ok(url) => native::string(ctx, quirks::href(&url)),
        Err(_) => Ok(Value::new_null(ctx.clone())),
    }
}

fn known<'js>(ctx: &Ctx<'js>, run: &Run, args: &[Value<'js>]) -> Result<(Url, String)> {
    match Url::parse(&text(ctx, args, 0)?) {
        Ok(url) => Ok((url, text(ctx, args, 1)?)),
        Err(_) => Err(native::throw_type(ctx, run, "invalid URL")),
    }
}

/// `urlPart(href, name)`
fn url_part<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let (url, name) = known(ctx, run, args)?;
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
    native::string(ctx, part)
}

/// `urlWith(href, name, value)`: the URL with one part changed; what cannot be
/// set stays as it is.
fn url_with<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let (mut url, name) = known(ctx, run, args)?;
    let value = text(ctx, args, 2)?;
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
        return Ok(native::arg(ctx, args, 0));
    }
    native::string(ctx, quirks::href(&url))
}

/// `formParse(text)`: names and values, one after the other.
fn form_parse<'js>(ctx: &Ctx<'js>, _: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let given = text(ctx, args, 0)?;
    let parts = Array::new(ctx.clone())?;
    let parsed = form_urlencoded::parse(given.as_bytes());
    for (at, part) in (0_u32..).zip(parsed.flat_map(|(name, value)| [name, value])) {
        let part = Property::from(&*part)
            .writable()
            .enumerable()
            .configurable();
        parts.as_object().prop(at, part)?;
    }
    Ok(parts.into_value())
}

/// `formText(name, value, …)`
fn form_text<'js>(ctx: &Ctx<'js>, _: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let mut out = form_urlencoded::Serializer::new(String::new());
    for pair in args.chunks(2) {
        out.append_pair(&text(ctx, pair, 0)?, &text(ctx, pair, 1)?);
    }
    native::string(ctx, &out.finish())
}

fn utf8_encode<'js>(ctx: &Ctx<'js>, _: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let given = text(ctx, args, 0)?;
    Ok(TypedArray::<u8>::new_copy(ctx.clone(), given.as_bytes())?.into_value())
}

/// Does something with the bytes that an `ArrayBuffer` or a view of one shows.
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
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let fatal = native::arg(ctx, args, 1).as_bool() == Some(true);
    if fatal && std::str::from_utf8(bytes).is_err() {
        return Err(native::throw_type(ctx, run, "the bytes are not UTF-8"));
    }
    native::string(ctx, &String::from_utf8_lossy(bytes))
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// `base64Encode(text)`; null when a character has no byte.
fn base64_encode<'js>(ctx: &Ctx<'js>, _: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let given = text(ctx, args, 0)?;
    let bytes: std::result::Result<Vec<u8>, _> =
        given.chars().map(|c| u8::try_from(u32::from(c))).collect();
    let Ok(bytes) = bytes else {
        return Ok(Value::new_null(ctx.clone()));
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
    native::string(ctx, &out)
}

/// `base64Decode(text)`: a text of one character per byte, or null.
fn base64_decode<'js>(ctx: &Ctx<'js>, _: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let given = text(ctx, args, 0)?;
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
        return Ok(Value::new_null(ctx.clone()));
    }
    let mut decoded = String::with_capacity(digits.len());
    let (mut word, mut bits) = (0_u32, 0);
    for digit in digits {
        let Some(value) = BASE64.iter().position(|other| *other == digit) else {
            return Ok(Value::new_null(ctx.clone()));
        };
        word = (word << 6) | u32::try_from(value).unwrap_or(0);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            decoded.push(char::from((word >> bits) as u8));
        }
    }
    native::string(ctx, &decoded)
}

/// `fillRandom(view)`
fn fill_random<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let value = native::arg(ctx, args, 0);
    if !raw::is_typed_array(&value) {
        let message = "expected an integer typed array";
        return Err(native::throw_type(ctx, run, message));
    }
    let (_, _, length) = run.kept()?.typed_view(&value)?;
    if length > RANDOM_BYTES_MAX {
        let message = format!("at most {RANDOM_BYTES_MAX} random bytes at once");
        return Err(native::throw_range(ctx, run, &message));
    }
    let fill = |bytes: &mut [u8]| run.chance.borrow_mut().fill(bytes);
    with_bytes_of(ctx, run, &value, fill)?;
    Ok(value)
}

/// `randomUUID()`, version 4.
fn random_uuid<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, _: &[Value<'js>]) -> Result<Value<'js>> {
    let (high, low) = {
        let mut chance = run.chance.borrow_mut();
        (chance.word(), chance.word())
    };
    let uuid = format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        0x8000 | (low >> 48) & 0x3fff,
        low & 0xffff_ffff_ffff
    );
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
    let how = How(u32::try_from(how).unwrap_or(0));
    let plain = collation::compare_plain(one.as_bytes(), other.as_bytes(), how);
    let order = plain.unwrap_or_else(|| collation::compare(one.chars(), other.chars(), how));
    Ok(Value::new_int(ctx.clone(), order as i32))
}
