//! `JSON.stringify` of plain data: objects and arrays of the standard classes that contain only
//! data. A script cannot observe how they are read. If there is anything else, the engine
//! serialises the whole value instead.

use std::rc::Rc;

use boa_engine::object::{IndexProperties, JsObject};
use boa_engine::property::{PropertyDescriptor, PropertyKey};
use boa_engine::string::{JsStr, JsStrVariant};
use boa_engine::value::JsVariant;
use boa_engine::{Context, JsArgs, JsNativeError, JsResult, JsString, JsValue, js_string};
use rustc_hash::FxHashMap;

use crate::builtin;
use crate::from_json::plain;
use crate::string_builder::StringBuilder;

/// Maximum depth here; the engine handles deeper values and throws at its own limit.
const DEPTH_MAX: usize = 100;
const GAP_UNITS_MAX: usize = 10;

pub(crate) fn install(context: &mut Context) -> JsResult<()> {
    let json = context.global_object().get(js_string!("JSON"), context)?;
    let missing = || JsNativeError::typ().with_message("`JSON` is missing");
    let json = json.as_object().ok_or_else(missing)?;
    builtin::replace(&json, js_string!("stringify"), stringify, context)?;
    Ok(())
}

fn stringify(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    if let Some(mut writer) = Writer::new(args, context)
        && let Ok(written) = writer.value(args.get_or_undefined(0))
    {
        return Ok(match written {
            true => writer.out.finish().into(),
            false => JsValue::undefined(),
        });
    }
    original.call(this, args, context)
}

/// A value whose reading a script could observe, or that this module does not write.
struct Unusual;

/// Whether anything was written.
type WriteResult = Result<bool, Unusual>;

struct Writer {
    out: StringBuilder,
    /// One step of indentation; empty if everything is on one line.
    gap: Vec<u8>,
    /// The objects that contain the current value.
    open: Vec<JsObject>,
    shapes: FxHashMap<usize, Rc<[Member]>>,
    object_prototype: JsObject,
    array_prototype: JsObject,
    to_json: PropertyKey,
}

/// A member of all objects of one shape.
struct Member {
    key: PropertyKey,
    /// The key with its quotes and colon.
    quoted: JsString,
}

impl Writer {
    /// Creates a writer. Returns `None` if the arguments or prototypes would let a script observe
    /// the reading.
    fn new(args: &[JsValue], context: &Context) -> Option<Self> {
        if !args.get_or_undefined(1).is_null_or_undefined() {
            return None;
        }
        let constructors = context.intrinsics().constructors();
        let writer = Self {
            out: StringBuilder::default(),
            gap: gap(args.get_or_undefined(2))?,
            open: Vec::new(),
            shapes: FxHashMap::default(),
            object_prototype: constructors.object().prototype(),
            array_prototype: constructors.array().prototype(),
            to_json: js_string!("toJSON").into(),
        };
        let says = |object: &JsObject| {
            let object = object.borrow();
            object.properties().contains_key(&writer.to_json)
        };
        let is_said = says(&writer.object_prototype) || says(&writer.array_prototype);
        (!is_said).then_some(writer)
    }

    fn value(&mut self, value: &JsValue) -> WriteResult {
        match value.variant() {
            JsVariant::Null => self.out.push_narrow(b"null"),
            JsVariant::Boolean(true) => self.out.push_narrow(b"true"),
            JsVariant::Boolean(false) => self.out.push_narrow(b"false"),
            JsVariant::Integer32(number) => self.whole(number),
            JsVariant::Float64(number) => self.number(number),
            JsVariant::String(text) => quote(text.as_str(), &mut self.out),
            JsVariant::Object(object) => return self.object(&object).map(|()| true),
            JsVariant::Undefined | JsVariant::Symbol(_) => return Ok(false),
            JsVariant::BigInt(_) => return Err(Unusual),
        }
        Ok(true)
    }

    fn whole(&mut self, number: i32) {
        let mut digits = [0_u8; 10];
        let mut rest = number.unsigned_abs();
        let mut from = digits.len();
        for place in digits.iter_mut().rev() {
            *place = b'0' + (rest % 10) as u8;
            rest /= 10;
            from -= 1;
            if rest == 0 {
                break;
            }
        }
        if number < 0 {
            self.out.push_narrow(b"-");
        }
        self.out.push_narrow(digits.get(from..).unwrap_or_default());
    }

    fn number(&mut self, number: f64) {
        if !number.is_finite() {
            self.out.push_narrow(b"null");
        } else if number == 0.0 {
            self.out.push_narrow(b"0");
        } else {
            let mut digits = ryu_js::Buffer::new();
            self.out
                .push_narrow(digits.format_finite(number).as_bytes());
        }
    }

    fn object(&mut self, object: &JsObject) -> Result<(), Unusual> {
        let is_this = |open: &JsObject| JsObject::equals(open, object);
        if self.open.len() >= DEPTH_MAX || self.open.iter().any(is_this) {
            return Err(Unusual);
        }
        let prototype = object.prototype();
        self.open.push(object.clone());
        if object.is_array() && prototype.as_ref() == Some(&self.array_prototype) {
            self.array(object)?;
        } else if object.is_ordinary()
            && prototype.is_none_or(|prototype| prototype == self.object_prototype)
        {
            self.record(object)?;
        } else {
            return Err(Unusual);
        }
        self.open.pop();
        Ok(())
    }

    fn array(&mut self, array: &JsObject) -> Result<(), Unusual> {
        let array = array.borrow();
        let properties = array.properties();
        let length = properties.get(&js_string!("length").into());
        let length = length.as_ref().and_then(PropertyDescriptor::value);
        let items = properties.index_properties();
        let has_all = length.and_then(JsValue::as_number) == Some(items.len() as f64);
        if !has_all || properties.contains_key(&self.to_json) {
            return Err(Unusual);
        }
        self.out.push_narrow(b"[");
        let mut first = true;
        match items {
            IndexProperties::DenseI32(items) => {
                for (_, item) in items {
                    self.next(&mut first);
                    self.whole(*item);
                }
            }
            IndexProperties::DenseF64(items) => {
                for (_, item) in items {
                    self.next(&mut first);
                    self.number(*item);
                }
            }
            IndexProperties::DenseElement(items) => {
                for (_, item) in items {
                    self.next(&mut first);
                    if !self.value(item)? {
                        self.out.push_narrow(b"null");
                    }
                }
            }
            _ => return Err(Unusual),
        }
        self.close(b"]", first);
        Ok(())
    }

    fn record(&mut self, object: &JsObject) -> Result<(), Unusual> {
        let object = object.borrow();
        let properties = object.properties();
        self.out.push_narrow(b"{");
        let mut first = true;
        let mut indexed: Vec<_> = properties.index_properties().collect();
        indexed.sort_unstable_by_key(|(index, _)| *index);
        for (index, property) in indexed {
            let quoted = js_string!(format!("\"{index}\":"));
            self.member(&quoted, &property, &mut first)?;
        }
        let shape = object.shape().to_addr_usize();
        let members = match self.shapes.get(&shape) {
            Some(members) => Rc::clone(members),
            None => {
                let members = Rc::from(self.members(&object.shape().keys())?);
                self.shapes.insert(shape, Rc::clone(&members));
                members
            }
        };
        for Member { key, quoted } in members.iter() {
            let property = properties.get(key).ok_or(Unusual)?;
            self.member(quoted, &property, &mut first)?;
        }
        self.close(b"}", first);
        Ok(())
    }

    fn members(&self, keys: &[PropertyKey]) -> Result<Vec<Member>, Unusual> {
        let mut members = Vec::new();
        for key in keys {
            if *key == self.to_json {
                return Err(Unusual);
            }
            if let PropertyKey::String(name) = key {
                let mut quoted = StringBuilder::default();
                quote(name.as_str(), &mut quoted);
                quoted.push_narrow(b":");
                members.push(Member {
                    key: key.clone(),
                    quoted: quoted.finish(),
                });
            }
        }
        Ok(members)
    }

    fn member(
        &mut self,
        quoted: &JsString,
        property: &PropertyDescriptor,
        first: &mut bool,
    ) -> Result<(), Unusual> {
        if property.enumerable() != Some(true) {
            return Ok(());
        }
        let value = property.value().ok_or(Unusual)?;
        if value.is_undefined() || value.is_symbol() {
            return Ok(());
        }
        self.next(first);
        self.out.push(quoted.as_str());
        if !self.gap.is_empty() {
            self.out.push_narrow(b" ");
        }
        self.value(value).map(drop)
    }

    /// Writes the separator and indentation before an item or member.
    fn next(&mut self, first: &mut bool) {
        if !std::mem::take(first) {
            self.out.push_narrow(b",");
        }
        self.line(self.open.len());
    }

    fn close(&mut self, bracket: &[u8], is_empty: bool) {
        if !is_empty {
            self.line(self.open.len().saturating_sub(1));
        }
        self.out.push_narrow(bracket);
    }

    fn line(&mut self, depth: usize) {
        if self.gap.is_empty() {
            return;
        }
        self.out.push_narrow(b"\n");
        for _ in 0..depth {
            self.out.push_narrow(&self.gap);
        }
    }
}

/// Returns one step of indentation; `None` if the argument is an object or a wide string.
fn gap(space: &JsValue) -> Option<Vec<u8>> {
    if let Some(number) = space.as_number() {
        // The conversion saturates; a non-number becomes 0.
        return Some(vec![b' '; (number as usize).min(GAP_UNITS_MAX)]);
    }
    if let Some(text) = space.as_string() {
        return match text.variant() {
            JsStrVariant::Latin1(bytes) => {
                Some(bytes.iter().copied().take(GAP_UNITS_MAX).collect())
            }
            JsStrVariant::Utf16(_) => None,
        };
    }
    (!space.is_object()).then(Vec::new)
}

fn quote(text: JsStr<'_>, out: &mut StringBuilder) {
    out.push_narrow(b"\"");
    match text.variant() {
        JsStrVariant::Latin1(bytes) => quote_narrow(bytes, out),
        JsStrVariant::Utf16(units) => quote_wide(units, out),
    }
    out.push_narrow(b"\"");
}

fn quote_narrow(mut bytes: &[u8], out: &mut StringBuilder) {
    while let Some((run, rest)) = bytes.split_at_checked(plain(bytes).length) {
        out.push_narrow(run);
        let Some((byte, rest)) = rest.split_first() else {
            return;
        };
        escape(*byte, out);
        bytes = rest;
    }
}

fn quote_wide(units: &[u16], out: &mut StringBuilder) {
    for unit in char::decode_utf16(units.iter().copied()) {
        match unit {
            Ok(character) => match u8::try_from(character) {
                Ok(byte) if byte < 0x20 || byte == b'"' || byte == b'\\' => escape(byte, out),
                _ => out.push_wide(character.encode_utf16(&mut [0; 2])),
            },
            Err(half) => {
                let half = format!("\\u{:04x}", half.unpaired_surrogate());
                out.push_narrow(half.as_bytes());
            }
        }
    }
}

fn escape(byte: u8, out: &mut StringBuilder) {
    match byte {
        b'"' => out.push_narrow(b"\\\""),
        b'\\' => out.push_narrow(b"\\\\"),
        b'\n' => out.push_narrow(b"\\n"),
        b'\r' => out.push_narrow(b"\\r"),
        b'\t' => out.push_narrow(b"\\t"),
        8 => out.push_narrow(b"\\b"),
        12 => out.push_narrow(b"\\f"),
        _ => out.push_narrow(format!("\\u{byte:04x}").as_bytes()),
    }
}
