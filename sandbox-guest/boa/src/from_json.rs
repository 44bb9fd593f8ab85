//! Parses JSON text directly into values of the engine: without an intermediate tree, with keys
//! created once and dense arrays.

mod key_cache;
mod scan;

use boa_engine::builtins::object::OrdinaryObject;
use boa_engine::object::builtins::JsArray;
use boa_engine::property::{PropertyDescriptor, PropertyKey};
use boa_engine::{Context, JsObject, JsString, JsValue};

use crate::gc_budget;
use key_cache::KeyCache;
use scan::PlainRun;
pub(crate) use scan::plain;

/// Number of bytes that are read to estimate the number of objects in a text.
const SAMPLE_BYTES: usize = 16 * 1024;
/// Number of bytes that the engine counts for one object.
const OBJECT_BYTES: usize = 112;

/// Why a text is not JSON, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotJson {
    pub(crate) what: &'static str,
    /// Byte offset of the error.
    pub(crate) at: usize,
}

pub(crate) fn decode(
    text: &[u8],
    depth_max: u32,
    context: &mut Context,
) -> Result<JsValue, NotJson> {
    gc_budget::make(objects_bytes(text));
    let mut decoder = Decoder {
        text,
        at: 0,
        depth_left: depth_max,
        known: KeyCache::new(text),
        object_prototype: context.intrinsics().constructors().object().prototype(),
    };
    decoder.spaces();
    let value = decoder.value(context)?;
    decoder.spaces();
    if decoder.at < text.len() {
        return Err(decoder.refuse("unexpected text after the value"));
    }
    Ok(value)
}

/// Estimates the number of bytes that the objects of a text need on the engine's heap, without
/// their content. The estimate is based on the beginning of the text and never exceeds the text's
/// own size.
fn objects_bytes(text: &[u8]) -> usize {
    let sample = text.get(..SAMPLE_BYTES.min(text.len())).unwrap_or(text);
    let opened = sample
        .iter()
        .filter(|&&byte| matches!(byte, b'{' | b'['))
        .count();
    let of_sample = opened * OBJECT_BYTES;
    let times = text.len() / sample.len().max(1);
    of_sample.saturating_mul(times).min(text.len())
}

struct Decoder<'a> {
    text: &'a [u8],
    at: usize,
    depth_left: u32,
    known: KeyCache<'a>,
    object_prototype: JsObject,
}

type DecodeResult<T> = Result<T, NotJson>;

impl<'a> Decoder<'a> {
    fn refuse(&self, what: &'static str) -> NotJson {
        NotJson { what, at: self.at }
    }

    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn spaces(&mut self) {
        while matches!(self.peek(), b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
    }

    fn value(&mut self, context: &mut Context) -> DecodeResult<JsValue> {
        match self.peek() {
            b'"' => self.string().map(JsValue::from),
            b'{' => self.nested(context, Self::object),
            b'[' => self.nested(context, Self::array),
            b't' => self.word(b"true", JsValue::from(true)),
            b'f' => self.word(b"false", JsValue::from(false)),
            b'n' => self.word(b"null", JsValue::null()),
            b'-' | b'0'..=b'9' => self.number(),
            _ if self.at >= self.text.len() => Err(self.refuse("unexpected end")),
            _ => Err(self.refuse("unexpected character")),
        }
    }

    fn nested(
        &mut self,
        context: &mut Context,
        inside: fn(&mut Self, &mut Context) -> DecodeResult<JsValue>,
    ) -> DecodeResult<JsValue> {
        self.depth_left = self
            .depth_left
            .checked_sub(1)
            .ok_or_else(|| self.refuse("nested too deeply"))?;
        self.at += 1;
        let value = inside(self, context);
        self.depth_left += 1;
        value
    }

    fn word(&mut self, word: &[u8], value: JsValue) -> DecodeResult<JsValue> {
        if self
            .text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(word))
        {
            self.at += word.len();
            Ok(value)
        } else {
            Err(self.refuse("unexpected character"))
        }
    }

    fn array(&mut self, context: &mut Context) -> DecodeResult<JsValue> {
        let mut items = Vec::new();
        self.spaces();
        if self.peek() == b']' {
            self.at += 1;
            return Ok(JsArray::from_iter(items, context).into());
        }
        loop {
            self.spaces();
            items.push(self.value(context)?);
            self.spaces();
            match self.peek() {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Ok(JsArray::from_iter(items, context).into());
                }
                _ => return Err(self.refuse("expected `,` or `]`")),
            }
        }
    }

    fn object(&mut self, context: &mut Context) -> DecodeResult<JsValue> {
        let object = JsObject::new(
            context.root_shape(),
            Some(self.object_prototype.clone()),
            OrdinaryObject,
        )
        .upcast();
        self.spaces();
        if self.peek() == b'}' {
            self.at += 1;
            return Ok(object.into());
        }
        loop {
            self.spaces();
            if self.peek() != b'"' {
                return Err(self.refuse("expected a name in quotes"));
            }
            let key = self.key()?;
            self.spaces();
            if self.peek() != b':' {
                return Err(self.refuse("expected `:`"));
            }
            self.at += 1;
            self.spaces();
            let value = self.value(context)?;
            object.insert_property(
                key,
                PropertyDescriptor::builder()
                    .value(value)
                    .writable(true)
                    .enumerable(true)
                    .configurable(true),
            );
            self.spaces();
            match self.peek() {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(object.into());
                }
                _ => return Err(self.refuse("expected `,` or `}`")),
            }
        }
    }

    fn key(&mut self) -> DecodeResult<PropertyKey> {
        let rest = self.text.get(self.at + 1..).unwrap_or_default();
        if let Some((key, length)) = self.known.following(rest) {
            self.at += length + 2;
            return Ok(key);
        }
        let PlainRun { length, .. } = plain(rest);
        let raw = rest.get(..length).unwrap_or_default();
        if rest.get(length) != Some(&b'"') {
            return self.string().map(PropertyKey::from);
        }
        if let Some(key) = self.known.key(raw) {
            self.at += length + 2;
            return Ok(key);
        }
        let key = PropertyKey::from(self.string()?);
        self.known.remember(raw, &key);
        Ok(key)
    }

    fn string(&mut self) -> DecodeResult<JsString> {
        let start = self.at + 1;
        let rest = self.text.get(start..).unwrap_or_default();
        let PlainRun { length, is_ascii } = plain(rest);
        if rest.get(length) != Some(&b'"') {
            return self.escaped_string(start);
        }
        let raw = rest.get(..length).unwrap_or_default();
        let string = if is_ascii {
            self.known.ascii(raw)
        } else {
            let text = std::str::from_utf8(raw).map_err(|_| self.refuse("text is not UTF-8"))?;
            JsString::from(text)
        };
        self.at = start + length + 1;
        Ok(string)
    }

    /// Builds a string with escapes as UTF-16, because escapes may be lone surrogates.
    fn escaped_string(&mut self, start: usize) -> DecodeResult<JsString> {
        let mut units: Vec<u16> = Vec::new();
        self.at = start;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let end = self.at + plain(rest).length;
            let raw = self.text.get(self.at..end).unwrap_or_default();
            let text = std::str::from_utf8(raw).map_err(|_| self.refuse("text is not UTF-8"))?;
            units.extend(text.encode_utf16());
            self.at = end;
            match self.text.get(end) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(from_units(&units));
                }
                Some(b'\\') => {
                    self.at += 1;
                    let unit = self.escape()?;
                    units.push(unit);
                }
                Some(_) => return Err(self.refuse("control character in a string")),
                None => return Err(self.refuse("unexpected end of a string")),
            }
        }
    }

    fn escape(&mut self) -> DecodeResult<u16> {
        let byte = self.peek();
        let unit = match byte {
            b'"' | b'\\' | b'/' => u16::from(byte),
            b'b' => 8,
            b'f' => 12,
            b'n' => 10,
            b'r' => 13,
            b't' => 9,
            b'u' => {
                let digits = self.text.get(self.at + 1..self.at + 5);
                let unit = digits
                    .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
                    .and_then(|digits| std::str::from_utf8(digits).ok())
                    .and_then(|digits| u16::from_str_radix(digits, 16).ok())
                    .ok_or_else(|| self.refuse("malformed escape"))?;
                self.at += 4;
                unit
            }
            _ => return Err(self.refuse("malformed escape")),
        };
        self.at += 1;
        Ok(unit)
    }

    fn number(&mut self) -> DecodeResult<JsValue> {
        let start = self.at;
        let negative = self.peek() == b'-';
        if negative {
            self.at += 1;
        }
        let digits_start = self.at;
        let mut small: i64 = 0;
        while let digit @ b'0'..=b'9' = self.peek() {
            small = small.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
            self.at += 1;
        }
        let digits = self.at - digits_start;
        if digits == 0 || (digits > 1 && self.text.get(digits_start) == Some(&b'0')) {
            return Err(self.refuse("malformed number"));
        }
        let whole = !matches!(self.peek(), b'.' | b'e' | b'E');
        if whole && digits <= 9 && !(negative && small == 0) {
            let small = if negative { -small } else { small };
            return Ok(JsValue::from(i32::try_from(small).unwrap_or(0)));
        }
        self.fraction_and_exponent()?;
        let raw = self.text.get(start..self.at).unwrap_or_default();
        let number: f64 = std::str::from_utf8(raw)
            .ok()
            .and_then(|raw| raw.parse().ok())
            .ok_or_else(|| self.refuse("malformed number"))?;
        Ok(JsValue::from(number))
    }

    fn fraction_and_exponent(&mut self) -> DecodeResult<()> {
        if self.peek() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> DecodeResult<()> {
        if !self.peek().is_ascii_digit() {
            return Err(self.refuse("malformed number"));
        }
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        Ok(())
    }
}

fn from_units(units: &[u16]) -> JsString {
    match String::from_utf16(units) {
        Ok(text) => JsString::from(text.as_str()),
        Err(_) => JsString::from(units),
    }
}
