//! Formats values for the console. No getter, `toString` or proxy trap of the script runs.

use boa_engine::builtins::error::Error;
use boa_engine::builtins::promise::PromiseState;
use boa_engine::object::builtins::{JsDate, JsProxy, JsRegExp, JsTypedArray};
use boa_engine::property::PropertyKey;
use boa_engine::value::JsVariant;
use boa_engine::{Context, JsObject, JsValue};
use guest_common::inspect::{self, DEPTH_MAX, ITEMS_MAX, VALUE_CHARS_MAX, wrap};
use guest_common::text::cut;

use crate::collections;
use crate::failure;
use crate::pure_reads;
use crate::regex;
use crate::tool_error;

/// Formats one line of the console: the values side by side, or a format and its values.
pub(crate) fn line(values: &[JsValue], context: &mut Context) -> String {
    let mut line = String::new();
    let mut rest = values;
    if let Some((first, others)) = values.split_first()
        && let Some(format) = first.as_string()
        && !others.is_empty()
        && format.contains(b'%')
    {
        let used = formatted(&format.to_std_string_lossy(), others, &mut line, context);
        rest = others.get(used..).unwrap_or_default();
        if rest.is_empty() {
            return line;
        }
        line.push(' ');
    }
    for (at, value) in rest.iter().enumerate() {
        if at > 0 {
            line.push(' ');
        }
        match value.as_string() {
            Some(text) => line.push_str(&text.to_std_string_lossy()),
            None => line.push_str(&one(value, context)),
        }
    }
    line
}

/// Applies a format; returns the number of used values.
fn formatted(format: &str, values: &[JsValue], line: &mut String, context: &mut Context) -> usize {
    inspect::fill(format, values.len(), line, |letter, at| {
        let Some(value) = values.get(at) else {
            return String::new();
        };
        match (letter, value.as_string(), value.as_number()) {
            ('s', Some(text), _) => text.to_std_string_lossy(),
            ('i', _, Some(number)) => number.trunc().to_string(),
            _ => one(value, context),
        }
    })
}

/// Formats one value.
pub(crate) fn one(value: &JsValue, context: &mut Context) -> String {
    let mut view = View { open: Vec::new() };
    let text = view.value(value, 0, context);
    cut(&text, VALUE_CHARS_MAX)
}

struct View {
    open: Vec<JsObject>,
}

impl View {
    fn value(&mut self, value: &JsValue, depth: usize, context: &mut Context) -> String {
        match value.variant() {
            JsVariant::String(text) => inspect::quoted(&text.to_std_string_lossy()),
            JsVariant::BigInt(number) => format!("{}n", number.to_string_radix(10)),
            JsVariant::Object(object) => self.object(&object, depth, context),
            JsVariant::Float64(number) if number == 0.0 && number.is_sign_negative() => {
                "-0".to_owned()
            }
            JsVariant::Symbol(symbol) => {
                let description = symbol.description().unwrap_or_default();
                format!("Symbol({})", description.to_std_string_lossy())
            }
            JsVariant::Float64(number) => ryu_js::Buffer::new().format(number).to_owned(),
            JsVariant::Integer32(number) => number.to_string(),
            JsVariant::Boolean(truth) => truth.to_string(),
            JsVariant::Null => "null".to_owned(),
            JsVariant::Undefined => "undefined".to_owned(),
        }
    }

    fn object(&mut self, object: &JsObject, depth: usize, context: &mut Context) -> String {
        if self.open.iter().any(|open| JsObject::equals(open, object)) {
            return "[Circular]".to_owned();
        }
        if object.is_callable() {
            return match pure_reads::text(object, "name", 100).filter(|name| !name.is_empty()) {
                Some(name) => format!("[Function: {name}]"),
                None => "[Function]".to_owned(),
            };
        }
        if object.is::<Error>() || tool_error::is(object) {
            return failure::headline_and_stack(object, context);
        }
        if let Ok(date) = JsDate::from_object(object.clone()) {
            let text = date
                .to_iso_string(context)
                .ok()
                .and_then(|text| text.as_string());
            return text.map_or("Invalid Date".to_owned(), |text| text.to_std_string_lossy());
        }
        if let Ok(regex) = JsRegExp::from_object(object.clone()) {
            return regex::text(&regex, context).unwrap_or_default();
        }
        if JsProxy::from_object(object.clone()).is_ok() {
            return "[Proxy]".to_owned();
        }
        if depth >= DEPTH_MAX {
            return if object.is_array() {
                "[Array]"
            } else {
                "[Object]"
            }
            .to_owned();
        }
        self.open.push(object.clone());
        let text = self.composite(object, depth, context);
        self.open.pop();
        text
    }

    fn composite(&mut self, object: &JsObject, depth: usize, context: &mut Context) -> String {
        if let Some(promise) = JsValue::from(object.clone()).as_promise() {
            let state = match promise.state() {
                PromiseState::Pending => "<pending>".to_owned(),
                PromiseState::Fulfilled(value) => self.value(&value, depth + 1, context),
                PromiseState::Rejected(value) => {
                    format!("<rejected> {}", self.value(&value, depth + 1, context))
                }
            };
            return format!("Promise {{ {state} }}");
        }
        if let Some(entries) = collections::entries(object) {
            let parts = entries.iter().take(ITEMS_MAX).map(|(key, value)| {
                let key = self.value(key, depth + 1, context);
                format!("{key} => {}", self.value(value, depth + 1, context))
            });
            let parts = parts.collect();
            return wrap(
                &format!("Map({}) {{", entries.len()),
                parts,
                entries.len(),
                "}",
                depth,
            );
        }
        if let Some(items) = collections::items(object) {
            let parts = items
                .iter()
                .take(ITEMS_MAX)
                .map(|item| self.value(item, depth + 1, context));
            let parts = parts.collect();
            return wrap(
                &format!("Set({}) {{", items.len()),
                parts,
                items.len(),
                "}",
                depth,
            );
        }
        if object.is_array() || JsTypedArray::from_object(object.clone()).is_ok() {
            return self.array(object, depth, context);
        }
        self.record(object, depth, context)
    }

    fn array(&mut self, array: &JsObject, depth: usize, context: &mut Context) -> String {
        // The items of a typed array are not properties, and reading them runs no script either.
        let typed = !array.is_array();
        let length = match JsTypedArray::from_object(array.clone()) {
            Ok(array) => array.length(context).unwrap_or_default(),
            Err(_) => {
                let length =
                    pure_reads::read(array, "length").and_then(|length| length.as_number());
                length.unwrap_or(0.0) as usize
            }
        };
        let mut parts = Vec::new();
        for index in 0..length.min(ITEMS_MAX) {
            let key = PropertyKey::from(index);
            let part = if typed {
                let item = array.get(key, context).unwrap_or_default();
                self.value(&item, depth + 1, context)
            } else {
                self.property(array, &key, depth, context)
                    .unwrap_or_else(|| "<empty>".to_owned())
            };
            parts.push(part);
        }
        let name = if typed {
            constructor_name(array).unwrap_or_default()
        } else {
            String::new()
        };
        let open = if typed {
            format!("{name}({length}) [")
        } else {
            "[".to_owned()
        };
        wrap(&open, parts, length, "]", depth)
    }

    fn record(&mut self, object: &JsObject, depth: usize, context: &mut Context) -> String {
        let keys = object.own_property_keys(context).unwrap_or_default();
        let keys: Vec<_> = keys
            .into_iter()
            .filter(|key| {
                let borrowed = object.borrow();
                let property = borrowed.properties().get(key);
                property.is_some_and(|property| property.enumerable().unwrap_or(false))
            })
            .collect();
        let mut parts = Vec::new();
        for key in keys.iter().take(ITEMS_MAX) {
            let value = self
                .property(object, key, depth, context)
                .unwrap_or_default();
            parts.push(format!("{}: {value}", shown_key(key)));
        }
        let name = constructor_name(object).filter(|name| name != "Object" && !name.is_empty());
        let open = match (name, object.prototype()) {
            (Some(name), _) => format!("{name} {{"),
            (None, _) => "{".to_owned(),
        };
        wrap(&open, parts, keys.len(), "}", depth)
    }

    fn property(
        &mut self,
        object: &JsObject,
        key: &PropertyKey,
        depth: usize,
        context: &mut Context,
    ) -> Option<String> {
        let property = object.borrow().properties().get(key)?;
        match property.value() {
            Some(value) => Some(self.value(value, depth + 1, context)),
            None => Some("[Getter]".to_owned()),
        }
    }
}

fn constructor_name(object: &JsObject) -> Option<String> {
    let constructor = pure_reads::read(object, "constructor")?.as_object()?;
    pure_reads::text(&constructor, "name", 60)
}

fn shown_key(key: &PropertyKey) -> String {
    match key {
        PropertyKey::String(name) => inspect::shown_name(&name.to_std_string_lossy()),
        PropertyKey::Index(index) => format!("'{}'", index.get()),
        PropertyKey::Symbol(symbol) => {
            let description = symbol.description().unwrap_or_default();
            format!("[Symbol({})]", description.to_std_string_lossy())
        }
    }
}
