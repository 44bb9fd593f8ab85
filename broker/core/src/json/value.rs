//! Parses a JSON text into a value. The strict form refuses duplicate keys. The caller has bounded
//! the depth, so serde's own fixed bound is switched off.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::BadJson;

const TWICE: &str = "\u{0}twice\u{0}";

pub(super) fn parse(text: &[u8]) -> Result<Value, BadJson> {
    read(text, Reader { refuse_twice: true })
}

/// Parses a value; the last of several equal keys counts.
pub(super) fn lenient(text: &[u8]) -> Result<Value, BadJson> {
    read(text, LENIENT)
}

/// Deserializes the JSON in a member of one of airlock's own formats, unchanged. `Value`'s own
/// deserializer misreads an object whose first key is one that serde_json reserves. That key can
/// come from outside, so nothing here uses `Value`'s deserializer.
pub(super) fn embedded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    LENIENT.deserialize(deserializer)
}

fn read(text: &[u8], reader: Reader) -> Result<Value, BadJson> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    deserializer.disable_recursion_limit();
    let value = reader.deserialize(&mut deserializer).map_err(bad)?;
    deserializer.end().map_err(bad)?;
    Ok(value)
}

fn bad(error: serde_json::Error) -> BadJson {
    let why = error.to_string();
    match why.split(TWICE).nth(1) {
        Some(key) => BadJson::KeyTwice {
            key: key.chars().take(80).collect(),
        },
        None => BadJson::NotJson { why },
    }
}

const LENIENT: Reader = Reader {
    refuse_twice: false,
};

#[derive(Clone, Copy)]
struct Reader {
    refuse_twice: bool,
}

impl<'de> DeserializeSeed<'de> for Reader {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if self.refuse_twice && members.contains_key(&key) {
                return Err(A::Error::custom(format!("{TWICE}{key}{TWICE}")));
            }
            members.insert(key, map.next_value_seed(self)?);
        }
        Ok(Value::Object(members))
    }
}
