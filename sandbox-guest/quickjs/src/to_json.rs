//! Converts values of the engine to JSON text, exactly once: the arguments of a call and the value
//! of a script. Each getter and each `toJSON` runs at most once, and all later steps use these
//! bytes. `engine/write.h` writes values that are entirely plain, for which no code can run. This
//! module writes all other values, and the messages about values that JSON cannot express.
//! [`guest_common::json`] defines the text for each kind of value.

use guest_common::json::{self, Bounds, PathPart, Purpose, Refusal};
use rquickjs::function::This;
use rquickjs::object::Filter;
use rquickjs::{Atom, Error, Object, Value};

use crate::intrinsics::Kind;
use crate::run::Run;
use crate::{failure, native, quiet, raw};

type EncodeResult<T> = Result<T, Refusal<Error>>;

/// Returns the JSON text of `value`; `None` for `undefined` and values treated as such.
pub(crate) fn encode(
    value: &Value<'_>,
    name: &str,
    purpose: Purpose,
    bounds: Bounds,
    run: &Run,
) -> EncodeResult<Option<Vec<u8>>> {
    if value.is_object() {
        let plain = raw::plain_json(value, bounds.bytes_max, bounds.depth_max)?;
        if plain.is_some() {
            return Ok(plain);
        }
    }
    let mut encoder = Encoder {
        out: Vec::with_capacity(256),
        purpose,
        bounds,
        open: Vec::new(),
        path: vec![PathPart::Name(name.to_owned())],
        run,
    };
    let said = encoder.value(value)?;
    Ok(said.then_some(encoder.out))
}

/// Returns the nesting depth of a JSON text; brackets inside strings do not count.
pub(crate) fn depth_of(text: &[u8]) -> u32 {
    let (mut depth, mut deepest) = (0_u32, 0);
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                depth = depth.saturating_add(1);
                deepest = depth.max(deepest);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => {
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'\\' => drop(bytes.next()),
                        b'"' => break,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    deepest
}

struct Encoder<'a, 'js> {
    out: Vec<u8>,
    purpose: Purpose,
    bounds: Bounds,
    /// The objects that contain the current value.
    open: Vec<Value<'js>>,
    path: Vec<PathPart<String>>,
    run: &'a Run,
}

impl<'js> Encoder<'_, 'js> {
    fn path(&self) -> String {
        json::path(&self.path, String::clone)
    }

    fn refuse(&self, what: &str) -> Refusal<Error> {
        Refusal::Unsayable(format!("`{}` {what}", self.path()))
    }

    fn push(&mut self, bytes: &[u8]) -> EncodeResult<()> {
        json::push(&mut self.out, bytes, self.bounds)
    }

    /// Writes `value`; returns false if there is nothing to write.
    fn value(&mut self, value: &Value<'js>) -> EncodeResult<bool> {
        if value.is_undefined() {
            return Ok(false);
        }
        if value.is_null() {
            self.push(b"null")?;
        } else if let Some(truth) = value.as_bool() {
            self.push(if truth { b"true" } else { b"false" })?;
        } else if let Some(number) = value.as_int() {
            self.push(number.to_string().as_bytes())?;
        } else if let Some(number) = value.as_float() {
            self.number(number, value)?;
        } else if value.is_string() {
            self.text(value)?;
        } else if value.is_big_int() {
            self.big_int(value)?;
        } else if value.is_symbol() {
            return self.without_meaning("is a symbol");
        } else if let Some(object) = value.as_object() {
            return self.object(object);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn without_meaning(&self, what: &str) -> EncodeResult<bool> {
        match self.purpose {
            Purpose::Arguments => Err(self.refuse(what)),
            Purpose::Value => Ok(false),
        }
    }

    fn number(&mut self, number: f64, value: &Value<'js>) -> EncodeResult<()> {
        if !number.is_finite() {
            let said = json::not_finite(number, self.purpose);
            return self.push(said.map_err(|what| self.refuse(&what))?.as_bytes());
        }
        if number == 0.0 {
            return self.push(b"0");
        }
        self.push(&raw::text_bytes(value))
    }

    fn big_int(&mut self, value: &Value<'js>) -> EncodeResult<()> {
        let said = json::big_int(quiet::lossy(value), self.purpose);
        self.push(said.map_err(|what| self.refuse(what))?.as_bytes())
    }

    fn text(&mut self, text: &Value<'js>) -> EncodeResult<()> {
        let owned = match quiet::exact(text) {
            Some(owned) => owned,
            None if self.purpose == Purpose::Value => quiet::lossy(text),
            None => return Err(self.refuse("contains a lone surrogate")),
        };
        self.quoted(&owned)
    }

    fn quoted(&mut self, text: &str) -> EncodeResult<()> {
        json::push_text(&mut self.out, text, self.bounds)
    }

    fn object(&mut self, object: &Object<'js>) -> EncodeResult<bool> {
        if self.open.len() >= self.bounds.depth_max as usize {
            return Err(json::too_deep(&self.path(), self.bounds));
        }
        let value = object.as_value();
        if self.open.contains(value) {
            return Err(self.refuse("contains itself"));
        }
        let to_json: Value<'js> = object.get("toJSON")?;
        if let Some(to_json) = to_json.as_function() {
            let key = match self.path.last() {
                Some(PathPart::Name(name)) if self.path.len() > 1 => name.clone(),
                Some(PathPart::Index(index)) => index.to_string(),
                _ => String::new(),
            };
            let replaced: Value<'js> = to_json.call((This(value.clone()), key))?;
            return self.replaced(&replaced);
        }
        self.as_it_is(object)
    }

    /// Calls `toJSON` exactly once: `toJSON` of the returned value is not called.
    fn replaced(&mut self, value: &Value<'js>) -> EncodeResult<bool> {
        match value.as_object() {
            Some(inner) if self.open.contains(inner.as_value()) => {
                Err(self.refuse("contains itself"))
            }
            Some(inner) => self.as_it_is(inner),
            None => self.value(value),
        }
    }

    fn as_it_is(&mut self, object: &Object<'js>) -> EncodeResult<bool> {
        let value = object.as_value();
        if value.is_function() {
            return self.without_meaning("is a function");
        }
        let kept = self.run.kept()?;
        let kind = kept.kind(value);
        if let Some(primitive) = kept.unboxed(value, kind)? {
            return self.value(&primitive);
        }
        if value.is_promise() {
            return Err(self.refuse("is a promise; await it first"));
        }
        self.open.push(value.clone());
        match kind {
            Kind::Map => self.map(&kept.entries(value)?)?,
            Kind::Set => self.items(&kept.items(value)?)?,
            Kind::Regex => self.quoted(&kept.regex_text(value)?)?,
            _ if value.is_array() || raw::is_typed_array(value) => self.array(object)?,
            _ if failure::is_error(value) => self.error(object)?,
            _ if value.is_proxy() && kept.is_array(value)? => self.array(object)?,
            _ => self.record(object)?,
        }
        self.open.pop();
        Ok(true)
    }

    fn array(&mut self, array: &Object<'js>) -> EncodeResult<()> {
        let length: f64 = array.get::<_, rquickjs::convert::Coerced<f64>>("length")?.0;
        self.push(b"[")?;
        // Each item takes at least one byte, so an overlong array ends at the limit.
        for index in 0..length as u64 {
            if index > 0 {
                self.push(b",")?;
            }
            let item: Value<'js> = match u32::try_from(index) {
                Ok(index) => array.get(index)?,
                Err(_) => native::undefined(array.ctx()),
            };
            self.item(index as usize, &item)?;
        }
        self.push(b"]")
    }

    fn items(&mut self, items: &[Value<'js>]) -> EncodeResult<()> {
        self.push(b"[")?;
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.push(b",")?;
            }
            self.item(index, item)?;
        }
        self.push(b"]")
    }

    fn item(&mut self, index: usize, item: &Value<'js>) -> EncodeResult<()> {
        self.path.push(PathPart::Index(index));
        if !self.value(item)? {
            self.push(b"null")?;
        }
        self.path.pop();
        Ok(())
    }

    fn record(&mut self, object: &Object<'js>) -> EncodeResult<()> {
        self.push(b"{")?;
        let mut first = true;
        self.own_members(object, &mut first, &[])?;
        self.push(b"}")
    }

    /// Writes the own members that are not yet written. Code of the script runs only for a proxy.
    fn own_members(
        &mut self,
        object: &Object<'js>,
        first: &mut bool,
        said: &[&str],
    ) -> EncodeResult<()> {
        let shown = Filter::new().string().enum_only();
        let keys: Result<Vec<Atom<'js>>, Error> = object.own_keys(shown).collect();
        for key in keys? {
            let name = key.to_value()?;
            if !said.is_empty() && said.contains(&quiet::lossy(&name).as_str()) {
                continue;
            }
            let value: Value<'js> = object.get(key)?;
            self.member(&name, &value, first)?;
        }
        Ok(())
    }

    fn member(
        &mut self,
        name: &Value<'js>,
        value: &Value<'js>,
        first: &mut bool,
    ) -> EncodeResult<()> {
        let before = self.out.len();
        self.path.push(PathPart::Name(quiet::lossy(name)));
        if !*first {
            self.push(b",")?;
        }
        self.text(name)?;
        self.push(b":")?;
        if self.value(value)? {
            *first = false;
        } else {
            self.out.truncate(before);
        }
        self.path.pop();
        Ok(())
    }

    fn map(&mut self, entries: &[(Value<'js>, Value<'js>)]) -> EncodeResult<()> {
        if entries.iter().all(|(key, _)| key.is_string()) {
            self.push(b"{")?;
            let mut first = true;
            for (key, value) in entries {
                self.member(key, value, &mut first)?;
            }
            return self.push(b"}");
        }
        self.push(b"[")?;
        for (index, (key, value)) in entries.iter().enumerate() {
            if index > 0 {
                self.push(b",")?;
            }
            self.path.push(PathPart::Index(index));
            self.items(&[key.clone(), value.clone()])?;
            self.path.pop();
        }
        self.push(b"]")
    }

    /// Writes an error: its name and message, then its other own properties.
    fn error(&mut self, error: &Object<'js>) -> EncodeResult<()> {
        self.push(b"{")?;
        let mut first = true;
        const SAID: [&str; 2] = ["name", "message"];
        for name in SAID {
            let value: Value<'js> = error.get(name)?;
            self.member(&native::string(error.ctx(), name)?, &value, &mut first)?;
        }
        self.own_members(error, &mut first, &SAID)?;
        self.push(b"}")
    }
}
