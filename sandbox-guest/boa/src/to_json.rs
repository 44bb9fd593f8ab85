//! Converts values of the engine to JSON text, exactly once: the arguments of a call and the value
//! of a script. Each getter and each `toJSON` runs at most once, and all later steps use these
//! bytes. [`guest_common::json`] defines the text for each kind of value.

use boa_engine::builtins::error::Error;
use boa_engine::error::JsNativeError;
use boa_engine::object::builtins::{JsRegExp, JsTypedArray};
use boa_engine::property::PropertyKey;
use boa_engine::value::JsVariant;
use boa_engine::{Context, JsError, JsObject, JsResult, JsString, JsValue, js_string};
use guest_common::json::{self, Bounds, PathPart, Purpose, Refusal};

use crate::collections;
use crate::intrinsics::Intrinsics;
use crate::regex;
use crate::tool_error;

type EncodeResult<T> = Result<T, Refusal<JsError>>;

/// Converts a refusal to an exception of the script.
pub(crate) fn exception(refusal: Refusal<JsError>, what: &str) -> JsError {
    match refusal {
        Refusal::Thrown(error) => error,
        Refusal::Unsayable(sentence) | Refusal::TooDeep(sentence) => {
            JsNativeError::typ().with_message(sentence).into()
        }
        Refusal::TooLarge => JsNativeError::range()
            .with_message(format!("{what} is too large"))
            .into(),
    }
}

/// Returns the JSON text of `value`; `None` for `undefined` and values treated as such.
pub(crate) fn encode(
    value: &JsValue,
    name: &str,
    purpose: Purpose,
    bounds: Bounds,
    context: &mut Context,
) -> EncodeResult<Option<Vec<u8>>> {
    let mut encoder = Encoder {
        out: Vec::with_capacity(256),
        purpose,
        bounds,
        open: Vec::new(),
        path: vec![PathPart::Name(js_string!(name))],
    };
    let said = encoder.value(value, context)?;
    Ok(said.then_some(encoder.out))
}

struct Encoder {
    out: Vec<u8>,
    purpose: Purpose,
    bounds: Bounds,
    /// The objects that contain the current value.
    open: Vec<JsObject>,
    path: Vec<PathPart<JsString>>,
}

impl Encoder {
    fn path(&self) -> String {
        json::path(&self.path, JsString::to_std_string_lossy)
    }

    fn refuse(&self, what: &str) -> Refusal<JsError> {
        Refusal::Unsayable(format!("`{}` {what}", self.path()))
    }

    fn push(&mut self, bytes: &[u8]) -> EncodeResult<()> {
        json::push(&mut self.out, bytes, self.bounds)
    }

    /// Writes `value`; returns false if there is nothing to write.
    fn value(&mut self, value: &JsValue, context: &mut Context) -> EncodeResult<bool> {
        match value.variant() {
            JsVariant::Null => self.push(b"null")?,
            JsVariant::Undefined => return Ok(false),
            JsVariant::Boolean(true) => self.push(b"true")?,
            JsVariant::Boolean(false) => self.push(b"false")?,
            JsVariant::Integer32(number) => self.push(number.to_string().as_bytes())?,
            JsVariant::Float64(number) => self.number(number)?,
            JsVariant::String(text) => self.text(&text)?,
            JsVariant::BigInt(number) => {
                let digits = number.to_string_radix(10);
                let said = json::big_int(digits, self.purpose);
                self.push(said.map_err(|what| self.refuse(what))?.as_bytes())?;
            }
            JsVariant::Symbol(_) => return self.without_meaning("is a symbol"),
            JsVariant::Object(object) => return self.object(&object, context),
        }
        Ok(true)
    }

    fn without_meaning(&self, what: &str) -> EncodeResult<bool> {
        match self.purpose {
            Purpose::Arguments => Err(self.refuse(what)),
            Purpose::Value => Ok(false),
        }
    }

    fn number(&mut self, number: f64) -> EncodeResult<()> {
        if !number.is_finite() {
            let said = json::not_finite(number, self.purpose);
            return self.push(said.map_err(|what| self.refuse(&what))?.as_bytes());
        }
        if number == 0.0 {
            return self.push(b"0");
        }
        let mut digits = ryu_js::Buffer::new();
        self.push(digits.format_finite(number).as_bytes())
    }

    fn text(&mut self, text: &JsString) -> EncodeResult<()> {
        let owned = match text.to_std_string() {
            Ok(owned) => owned,
            Err(_) if self.purpose == Purpose::Value => text.to_std_string_lossy(),
            Err(_) => return Err(self.refuse("contains a lone surrogate")),
        };
        json::push_text(&mut self.out, &owned, self.bounds)
    }

    fn object(&mut self, object: &JsObject, context: &mut Context) -> EncodeResult<bool> {
        if self.open.len() >= self.bounds.depth_max as usize {
            return Err(json::too_deep(&self.path(), self.bounds));
        }
        if self.open.iter().any(|open| JsObject::equals(open, object)) {
            return Err(self.refuse("contains itself"));
        }
        let to_json = object.get(js_string!("toJSON"), context)?;
        if let Some(to_json) = to_json.as_callable() {
            let key = match self.path.last() {
                Some(PathPart::Name(name)) if self.path.len() > 1 => name.clone(),
                Some(PathPart::Index(index)) => js_string!(index.to_string()),
                _ => js_string!(""),
            };
            let value = to_json.call(&object.clone().into(), &[key.into()], context)?;
            // `toJSON` is called once: `toJSON` of the returned value is not called.
            return match value.as_object() {
                Some(inner) if inner.is_callable() => self.without_meaning("is a function"),
                Some(inner) if self.open.iter().any(|open| JsObject::equals(open, &inner)) => {
                    Err(self.refuse("contains itself"))
                }
                Some(inner) => self.members(&inner, context),
                None => self.value(&value, context),
            };
        }
        if object.is_callable() {
            return self.without_meaning("is a function");
        }
        self.members(object, context)
    }

    fn members(&mut self, object: &JsObject, context: &mut Context) -> EncodeResult<bool> {
        if let Some(primitive) = boxed_primitive(object) {
            return self.value(&primitive, context);
        }
        if JsValue::from(object.clone()).is_promise() {
            return Err(self.refuse("is a promise; await it first"));
        }
        self.open.push(object.clone());
        if object.is_ordinary() {
            self.record(object, context)?;
        } else if object.is_array() {
            self.array(object, context)?;
        } else if let Some(entries) = collections::entries(object) {
            self.map(entries, context)?;
        } else if let Some(items) = collections::items(object) {
            self.items(&items, context)?;
        } else if JsTypedArray::from_object(object.clone()).is_ok() {
            self.array(object, context)?;
        } else if let Ok(regex) = JsRegExp::from_object(object.clone()) {
            let text = regex::text(&regex, context)?;
            self.text(&js_string!(text))?;
        } else if object.is::<Error>() || tool_error::is(object) {
            self.error(object, context)?;
        } else if is_array_behind_proxy(object, context)? {
            self.array(object, context)?;
        } else {
            self.record(object, context)?;
        }
        self.open.pop();
        Ok(true)
    }

    fn array(&mut self, array: &JsObject, context: &mut Context) -> EncodeResult<()> {
        let length = array
            .get(js_string!("length"), context)?
            .to_length(context)?;
        self.push(b"[")?;
        for index in 0..length {
            if index > 0 {
                self.push(b",")?;
            }
            let item = array.get(index, context)?;
            self.item(index, &item, context)?;
        }
        self.push(b"]")
    }

    fn items(&mut self, items: &[JsValue], context: &mut Context) -> EncodeResult<()> {
        self.push(b"[")?;
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.push(b",")?;
            }
            self.item(index as u64, item, context)?;
        }
        self.push(b"]")
    }

    fn item(&mut self, index: u64, item: &JsValue, context: &mut Context) -> EncodeResult<()> {
        self.path.push(PathPart::Index(
            usize::try_from(index).unwrap_or(usize::MAX),
        ));
        if !self.value(item, context)? {
            self.push(b"null")?;
        }
        self.path.pop();
        Ok(())
    }

    fn record(&mut self, object: &JsObject, context: &mut Context) -> EncodeResult<()> {
        self.push(b"{")?;
        let mut first = true;
        self.own_members(object, &[], &mut first, context)?;
        self.push(b"}")
    }

    fn own_members(
        &mut self,
        object: &JsObject,
        but: &[&str],
        first: &mut bool,
        context: &mut Context,
    ) -> EncodeResult<()> {
        for key in enumerable_keys(object, context)? {
            let is_said = |key: &PropertyKey| match key {
                PropertyKey::String(name) => but.iter().any(|said| name == *said),
                _ => false,
            };
            if is_said(&key) {
                continue;
            }
            let value = object.get(key.clone(), context)?;
            let name = match key {
                PropertyKey::String(name) => name,
                PropertyKey::Index(index) => js_string!(index.get().to_string()),
                PropertyKey::Symbol(_) => continue,
            };
            self.member(&name, &value, first, context)?;
        }
        Ok(())
    }

    fn member(
        &mut self,
        name: &JsString,
        value: &JsValue,
        first: &mut bool,
        context: &mut Context,
    ) -> EncodeResult<()> {
        let before = self.out.len();
        self.path.push(PathPart::Name(name.clone()));
        if !*first {
            self.push(b",")?;
        }
        self.text(name)?;
        self.push(b":")?;
        if self.value(value, context)? {
            *first = false;
        } else {
            self.out.truncate(before);
        }
        self.path.pop();
        Ok(())
    }

    fn map(&mut self, entries: Vec<(JsValue, JsValue)>, context: &mut Context) -> EncodeResult<()> {
        if entries.iter().all(|(key, _)| key.is_string()) {
            self.push(b"{")?;
            let mut first = true;
            for (key, value) in &entries {
                let name = key.as_string().unwrap_or_default();
                self.member(&name, value, &mut first, context)?;
            }
            return self.push(b"}");
        }
        self.push(b"[")?;
        for (index, (key, value)) in entries.into_iter().enumerate() {
            if index > 0 {
                self.push(b",")?;
            }
            self.path.push(PathPart::Index(index));
            self.items(&[key, value], context)?;
            self.path.pop();
        }
        self.push(b"]")
    }

    /// Writes an error: its name and message, then its other own properties.
    fn error(&mut self, error: &JsObject, context: &mut Context) -> EncodeResult<()> {
        self.push(b"{")?;
        let mut first = true;
        for name in ["name", "message"] {
            let name = js_string!(name);
            let value = error.get(name.clone(), context)?;
            self.member(&name, &value, &mut first, context)?;
        }
        // Many errors have an own `name` or `message`, which is already written.
        self.own_members(error, &["name", "message"], &mut first, context)?;
        self.push(b"}")
    }
}

fn is_array_behind_proxy(object: &JsObject, context: &mut Context) -> JsResult<bool> {
    let is_array = Intrinsics::of(context)?.is_array.clone();
    let answer = is_array.call(&JsValue::undefined(), &[object.clone().into()], context)?;
    Ok(answer.to_boolean())
}

fn boxed_primitive(object: &JsObject) -> Option<JsValue> {
    if let Some(number) = object.downcast_ref::<f64>() {
        return Some(JsValue::from(*number));
    }
    if let Some(text) = object.downcast_ref::<JsString>() {
        return Some(JsValue::from(text.clone()));
    }
    object
        .downcast_ref::<bool>()
        .map(|truth| JsValue::from(*truth))
}

/// Returns the own, enumerable keys in order. Code of the script runs only for a proxy.
pub(crate) fn enumerable_keys(
    object: &JsObject,
    context: &mut Context,
) -> JsResult<Vec<PropertyKey>> {
    if !object.is_ordinary() && !object.is::<Error>() && !tool_error::is(object) {
        let keys = Intrinsics::of(context)?.object_keys.clone();
        let keys = keys.call(&JsValue::undefined(), &[object.clone().into()], context)?;
        let Some(keys) = keys.as_object() else {
            return Ok(Vec::new());
        };
        let length = keys
            .get(js_string!("length"), context)?
            .to_length(context)?;
        let mut names = Vec::new();
        for index in 0..length {
            names.push(keys.get(index, context)?.to_property_key(context)?);
        }
        return Ok(names);
    }
    let mut keys = object.own_property_keys(context)?;
    let borrowed = object.borrow();
    keys.retain(|key| {
        !matches!(key, PropertyKey::Symbol(_))
            && borrowed
                .properties()
                .get(key)
                .is_some_and(|property| property.enumerable().unwrap_or(false))
    });
    Ok(keys)
}

#[cfg(test)]
mod tests;
