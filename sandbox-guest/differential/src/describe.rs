//! Describes a value as text: everything that a script could observe about the value, determined
//! without running any of the script's functions.

use std::fmt::Write;

use boa_engine::builtins::error::Error;
use boa_engine::builtins::map::ordered_map::OrderedMap;
use boa_engine::builtins::proxy::Proxy;
use boa_engine::builtins::set::ordered_set::OrderedSet;
use boa_engine::object::builtins::JsRegExp;
use boa_engine::property::{PropertyDescriptor, PropertyKey};
use boa_engine::value::JsVariant;
use boa_engine::{Context, JsError, JsObject, JsResult, JsString, JsSymbol, JsValue, js_string};

/// Maximum number of members described for one object, and maximum depth of objects.
const MEMBERS_MAX: usize = 200;
const DEPTH_MAX: usize = 12;

/// How a script ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptEnd {
    Value(String),
    Threw(String),
    /// It was stopped by something that a script cannot catch.
    Stopped(String),
}

impl ScriptEnd {
    pub fn of(ended: JsResult<JsValue>, context: &mut Context) -> Self {
        match ended {
            Ok(value) => Self::Value(tell(&value, context)),
            Err(error) => Self::of_error(error, context),
        }
    }

    fn of_error(error: JsError, context: &mut Context) -> Self {
        if let Some(engine) = error.as_engine() {
            return Self::Stopped(engine.to_string());
        }
        match error.into_opaque(context) {
            Ok(value) => Self::Threw(tell(&value, context)),
            Err(error) => Self::Stopped(error.to_string()),
        }
    }
}

impl std::fmt::Display for ScriptEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value(told) => write!(f, "{told}"),
            Self::Threw(told) => write!(f, "threw {told}"),
            Self::Stopped(why) => write!(f, "stopped: {why}"),
        }
    }
}

/// Describes a value with all its properties.
pub fn tell(value: &JsValue, context: &mut Context) -> String {
    let mut teller = Describer {
        told: String::new(),
        seen: Vec::new(),
        depth: 0,
    };
    teller.value(value, context);
    teller.told
}

struct Describer {
    told: String,
    /// Objects that were already described; their index identifies them.
    seen: Vec<JsObject>,
    depth: usize,
}

impl Describer {
    fn push(&mut self, text: &str) {
        self.told.push_str(text);
    }

    fn value(&mut self, value: &JsValue, context: &mut Context) {
        match value.variant() {
            JsVariant::Undefined => self.push("undefined"),
            JsVariant::Null => self.push("null"),
            JsVariant::Boolean(is_true) => self.push(if is_true { "true" } else { "false" }),
            JsVariant::Integer32(number) => self.number(f64::from(number)),
            JsVariant::Float64(number) => self.number(number),
            JsVariant::String(text) => self.text(&text),
            JsVariant::BigInt(number) => self.push(&format!("{number}n")),
            JsVariant::Symbol(symbol) => self.symbol(&symbol),
            JsVariant::Object(object) => self.object(&object, context),
        }
    }

    fn number(&mut self, number: f64) {
        let _ = write!(self.told, "{number:?}");
    }

    fn text(&mut self, text: &JsString) {
        self.push("'");
        for unit in text.iter() {
            match u8::try_from(unit) {
                Ok(byte) if (0x20..0x7f).contains(&byte) && byte != b'\'' && byte != b'\\' => {
                    self.told.push(char::from(byte));
                }
                _ => {
                    let _ = write!(self.told, "\\u{unit:04x}");
                }
            }
        }
        self.push("'");
    }

    fn symbol(&mut self, symbol: &JsSymbol) {
        let text = symbol.descriptive_string().to_std_string_escaped();
        self.push(&text);
    }

    fn object(&mut self, object: &JsObject, context: &mut Context) {
        if let Some(place) = self.seen.iter().position(|it| JsObject::equals(it, object)) {
            let _ = write!(self.told, "#{place}");
            return;
        }
        self.seen.push(object.clone());
        if self.depth >= DEPTH_MAX {
            self.push("…");
            return;
        }
        self.depth += 1;
        self.kind(object, context);
        // A proxy's members are not read, because its traps would run the script.
        if !object.is::<Proxy>() {
            self.members(object, context);
            self.entries(object, context);
        }
        self.depth -= 1;
    }

    fn kind(&mut self, object: &JsObject, context: &mut Context) {
        let kind = if object.is::<Proxy>() {
            "proxy"
        } else if object.is_callable() {
            "function"
        } else if object.is_array() {
            "array"
        } else if object.is::<Error>() {
            "error"
        } else if JsRegExp::from_object(object.clone()).is_ok() {
            "expression"
        } else if object.is_ordinary() {
            "object"
        } else {
            "exotic"
        };
        self.push(kind);
        if kind != "proxy" {
            self.class(object, context);
            let is_extensible = object.is_extensible(context).unwrap_or(true);
            self.push(if is_extensible { "" } else { " closed" });
        }
    }

    /// Describes the class by the name of the prototype's constructor.
    fn class(&mut self, object: &JsObject, context: &mut Context) {
        let Some(prototype) = object.prototype() else {
            return self.push(" of nothing");
        };
        let standard = context.intrinsics().constructors();
        if prototype == standard.object().prototype()
            || prototype == standard.array().prototype()
            || prototype == standard.function().prototype()
        {
            return;
        }
        let class = data(&prototype, js_string!("constructor").into())
            .and_then(|class| class.as_object())
            .filter(|class| !class.is::<Proxy>())
            .and_then(|class| data(&class, js_string!("name").into()))
            .and_then(|name| name.as_string());
        self.push(" of ");
        match class {
            Some(name) => self.text(&name),
            None => self.push("?"),
        }
    }

    fn members(&mut self, object: &JsObject, context: &mut Context) {
        let Ok(keys) = object.own_property_keys(context) else {
            return self.push(" without keys");
        };
        self.push(" {");
        let is_function = object.is_callable();
        let count = keys.len();
        let stack = PropertyKey::from(js_string!("stack"));
        let prototype = PropertyKey::from(js_string!("prototype"));
        for key in keys.into_iter().take(MEMBERS_MAX) {
            // The columns of stacks differ.
            let is_stack = object.is::<Error>() && key == stack;
            let is_prototype = is_function && key == prototype;
            if is_stack || is_prototype {
                continue;
            }
            let property = object.borrow().properties().get(&key);
            self.key(&key);
            self.push(": ");
            match property {
                Some(property) => self.property(&property, context),
                // An element of a typed array or a character of a text.
                None => match object.get(key, context) {
                    Ok(value) => self.value(&value, context),
                    Err(_) => self.push("?"),
                },
            }
            self.push(", ");
        }
        if count > MEMBERS_MAX {
            let _ = write!(self.told, "and {count} in all");
        }
        self.push("}");
    }

    fn key(&mut self, key: &PropertyKey) {
        match key {
            PropertyKey::String(name) => self.text(name),
            PropertyKey::Symbol(symbol) => self.symbol(symbol),
            PropertyKey::Index(index) => self.push(&index.get().to_string()),
        }
    }

    fn property(&mut self, property: &PropertyDescriptor, context: &mut Context) {
        for (flag, is_set) in [
            ("fixed ", property.writable() != Some(false)),
            ("hidden ", property.enumerable() != Some(false)),
            ("lasting ", property.configurable() != Some(false)),
        ] {
            self.push(if is_set { "" } else { flag });
        }
        match property.value() {
            Some(value) => self.value(value, context),
            None => {
                let is_there = |function: Option<&JsValue>| {
                    function.is_some_and(|function| !function.is_undefined())
                };
                self.push(if is_there(property.get()) { "get " } else { "" });
                self.push(if is_there(property.set()) { "set" } else { "" });
            }
        }
    }

    /// Describes the entries of a map or a set.
    fn entries(&mut self, object: &JsObject, context: &mut Context) {
        let entries: Vec<JsValue> = if let Some(map) = object.downcast_ref::<OrderedMap<JsValue>>()
        {
            let both = map.iter().flat_map(|(key, value)| [key, value]);
            both.cloned().collect()
        } else if let Some(set) = object.downcast_ref::<OrderedSet>() {
            set.iter().cloned().collect()
        } else {
            return;
        };
        self.push(" [");
        for entry in entries {
            self.value(&entry, context);
            self.push(", ");
        }
        self.push("]");
    }
}

fn data(object: &JsObject, key: PropertyKey) -> Option<JsValue> {
    object.borrow().properties().get(&key)?.value().cloned()
}
