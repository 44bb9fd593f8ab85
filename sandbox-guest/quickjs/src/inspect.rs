//! Formats values for the console. No getter, `toString` or proxy trap of the script runs.

use guest_common::inspect::{self, DEPTH_MAX, ITEMS_MAX, VALUE_CHARS_MAX, wrap};
use guest_common::text::cut;
use rquickjs::promise::PromiseState;
use rquickjs::{Object, Result, Value};

use crate::intrinsics::Kind;
use crate::raw::{self, OwnProperty};
use crate::run::Run;
use crate::{failure, native, quiet};

/// Formats one line of the console: the values side by side, or a format and its values.
pub(crate) fn line(values: &[Value<'_>], run: &Run) -> Result<String> {
    let mut line = String::new();
    let mut rest = values;
    if let Some((first, others)) = values.split_first()
        && first.is_string()
        && !others.is_empty()
    {
        let format = quiet::lossy(first);
        if format.contains('%') {
            let used = formatted(&format, others, &mut line, run)?;
            rest = others.get(used..).unwrap_or_default();
            if rest.is_empty() {
                return Ok(line);
            }
            line.push(' ');
        }
    }
    for (at, value) in rest.iter().enumerate() {
        if at > 0 {
            line.push(' ');
        }
        if value.is_string() {
            line.push_str(&quiet::lossy(value));
        } else {
            line.push_str(&one(value, run)?);
        }
    }
    Ok(line)
}

/// Applies a format; returns the number of used values.
fn formatted(format: &str, values: &[Value<'_>], line: &mut String, run: &Run) -> Result<usize> {
    let mut failed = Ok(());
    let used = inspect::fill(format, values.len(), line, |letter, at| {
        let Some(value) = values.get(at).filter(|_| failed.is_ok()) else {
            return String::new();
        };
        match (letter, value.as_number()) {
            ('s', _) if value.is_string() => quiet::lossy(value),
            ('i', Some(number)) => number.trunc().to_string(),
            _ => one(value, run).unwrap_or_else(|error| {
                failed = Err(error);
                String::new()
            }),
        }
    });
    failed.map(|()| used)
}

/// Formats one value. Fails if the stack has no room left.
pub(crate) fn one(value: &Value<'_>, run: &Run) -> Result<String> {
    let mut view = View {
        open: Vec::new(),
        run,
    };
    let text = view.value(value, 0)?;
    Ok(cut(&text, VALUE_CHARS_MAX))
}

struct View<'a, 'js> {
    open: Vec<Value<'js>>,
    run: &'a Run,
}

impl<'js> View<'_, 'js> {
    fn value(&mut self, value: &Value<'js>, depth: usize) -> Result<String> {
        if let Some(object) = value.as_object() {
            return self.object(object, depth);
        }
        Ok(plain(value))
    }

    fn object(&mut self, object: &Object<'js>, depth: usize) -> Result<String> {
        let value = object.as_value();
        if self.open.contains(value) {
            return Ok("[Circular]".to_owned());
        }
        if value.is_proxy() {
            return Ok(match value.is_function() {
                true => "[Function]".to_owned(),
                false => "[Proxy]".to_owned(),
            });
        }
        if value.is_function() {
            let name = quiet::text(object, "name", 100).filter(|name| !name.is_empty());
            return Ok(match name {
                Some(name) => format!("[Function: {name}]"),
                None => "[Function]".to_owned(),
            });
        }
        if failure::is_error(value) {
            return failure::headline_and_stack(object, self.run);
        }
        let kept = self.run.kept()?;
        match kept.kind(value) {
            Kind::Date => {
                let text = kept.to_iso(value)?;
                return Ok(text.map_or("Invalid Date".to_owned(), |text| quiet::lossy(&text)));
            }
            Kind::Regex => return kept.regex_text(value),
            _ => {}
        }
        if depth >= DEPTH_MAX {
            return Ok(if value.is_array() {
                "[Array]"
            } else {
                "[Object]"
            }
            .to_owned());
        }
        self.open.push(value.clone());
        let text = self.composite(object, depth);
        self.open.pop();
        text
    }

    fn composite(&mut self, object: &Object<'js>, depth: usize) -> Result<String> {
        let value = object.as_value();
        if let Some(promise) = value.as_promise() {
            let result = || match promise.result::<Value<'js>>() {
                Some(Ok(value)) => value,
                Some(Err(error)) => native::caught(object.ctx(), error),
                None => native::undefined(object.ctx()),
            };
            let state = match promise.state() {
                PromiseState::Pending => "<pending>".to_owned(),
                PromiseState::Resolved => self.value(&result(), depth + 1)?,
                PromiseState::Rejected => {
                    format!("<rejected> {}", self.value(&result(), depth + 1)?)
                }
            };
            return Ok(format!("Promise {{ {state} }}"));
        }
        if value.is_array() || raw::is_typed_array(value) {
            return self.array(object, depth);
        }
        let kept = self.run.kept()?;
        match kept.kind(value) {
            Kind::Map => {
                let entries = kept.entries(value)?;
                let shown = entries.iter().take(ITEMS_MAX).map(|(key, value)| {
                    let key = self.value(key, depth + 1)?;
                    Ok(format!("{key} => {}", self.value(value, depth + 1)?))
                });
                let parts = shown.collect::<Result<_>>()?;
                let open = format!("Map({}) {{", entries.len());
                Ok(wrap(&open, parts, entries.len(), "}", depth))
            }
            Kind::Set => {
                let items = kept.items(value)?;
                let shown = items.iter().take(ITEMS_MAX);
                let shown = shown.map(|item| self.value(item, depth + 1));
                let parts = shown.collect::<Result<_>>()?;
                let open = format!("Set({}) {{", items.len());
                Ok(wrap(&open, parts, items.len(), "}", depth))
            }
            _ => self.record(object, depth),
        }
    }

    fn array(&mut self, array: &Object<'js>, depth: usize) -> Result<String> {
        // The items of a typed array are not properties, and reading them runs no script either.
        let typed = !array.as_value().is_array();
        let length = if typed {
            self.run.kept()?.typed_length(array.as_value())?
        } else {
            let length = quiet::read(array, "length").and_then(|length| length.as_number());
            length.unwrap_or(0.0) as usize
        };
        let mut parts = Vec::new();
        for index in 0..length.min(ITEMS_MAX) {
            let key = Value::new_number(array.ctx().clone(), index as f64);
            let part = self.property(array, &key, depth)?;
            parts.push(part.unwrap_or_else(|| "<empty>".to_owned()));
        }
        let open = if typed {
            let name = constructor_name(array).unwrap_or_default();
            format!("{name}({length}) [")
        } else {
            "[".to_owned()
        };
        Ok(wrap(&open, parts, length, "]", depth))
    }

    fn record(&mut self, object: &Object<'js>, depth: usize) -> Result<String> {
        let mut keys = raw::shown_keys(object);
        // The characters of a `new String` are not members that the script added.
        if self.run.kept()?.kind(object.as_value()) == Kind::Text {
            keys.retain(|key| !is_index(key));
        }
        let mut parts = Vec::new();
        for key in keys.iter().take(ITEMS_MAX) {
            let value = self.property(object, key, depth)?.unwrap_or_default();
            parts.push(format!("{}: {value}", shown_key(key)));
        }
        let name = constructor_name(object).filter(|name| name != "Object" && !name.is_empty());
        let open = match name {
            Some(name) => format!("{name} {{"),
            None => "{".to_owned(),
        };
        Ok(wrap(&open, parts, keys.len(), "}", depth))
    }

    fn property(
        &mut self,
        object: &Object<'js>,
        key: &Value<'js>,
        depth: usize,
    ) -> Result<Option<String>> {
        match raw::own(object, key) {
            Some(OwnProperty::Value(value)) => self.value(&value, depth + 1).map(Some),
            Some(OwnProperty::Accessor) => Ok(Some("[Getter]".to_owned())),
            None => Ok(None),
        }
    }
}

/// Formats a value that is not an object.
fn plain(value: &Value<'_>) -> String {
    if value.is_string() {
        return inspect::quoted(&quiet::lossy(value));
    }
    if value.is_big_int() {
        return format!("{}n", quiet::lossy(value));
    }
    if let Some(symbol) = value.as_symbol() {
        return format!("Symbol({})", raw::description(symbol.as_value()));
    }
    match value.as_number() {
        Some(number) if number == 0.0 && number.is_sign_negative() => "-0".to_owned(),
        Some(_) => quiet::lossy(value),
        None if value.is_null() => "null".to_owned(),
        None => match value.as_bool() {
            Some(truth) => truth.to_string(),
            None => "undefined".to_owned(),
        },
    }
}

fn constructor_name(object: &Object<'_>) -> Option<String> {
    let constructor = quiet::read(object, "constructor")?.into_object()?;
    quiet::text(&constructor, "name", 60)
}

fn is_index(key: &Value<'_>) -> bool {
    key.is_string() && quiet::lossy(key).bytes().all(|byte| byte.is_ascii_digit())
}

fn shown_key(key: &Value<'_>) -> String {
    if let Some(symbol) = key.as_symbol() {
        return format!("[Symbol({})]", raw::description(symbol.as_value()));
    }
    inspect::shown_name(&quiet::lossy(key))
}
