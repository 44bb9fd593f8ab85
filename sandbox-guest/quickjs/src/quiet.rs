//! Reading values without running a line of the script: data properties along
//! the prototypes, no getters, no proxies.

use guest_common::text::cut;
use rquickjs::{Object, Value};

use crate::native;
use crate::raw::{self, Own};

/// Prototypes that are walked before giving up.
const PROTOTYPES_MAX: usize = 32;

/// The value of a data property, the object's own or inherited.
pub(crate) fn read<'js>(object: &Object<'js>, name: &str) -> Option<Value<'js>> {
    let key = native::quietly(object.ctx(), native::string(object.ctx(), name))?;
    let mut holder = Some(object.clone());
    for _ in 0..PROTOTYPES_MAX {
        let present = holder?;
        if present.as_value().is_proxy() {
            return None;
        }
        match raw::own(&present, &key) {
            Some(Own::Value(value)) => return Some(value),
            Some(Own::Accessor) => return None,
            None => {}
        }
        holder = present.get_prototype();
    }
    None
}

/// The same, when it is a string; at most `chars_max` characters of it.
pub(crate) fn text(object: &Object<'_>, name: &str, chars_max: usize) -> Option<String> {
    let value = read(object, name)?;
    value.is_string().then(|| cut(&lossy(&value), chars_max))
}

/// A string, number or BigInt as text; halves of surrogate pairs become U+FFFD.
pub(crate) fn lossy(primitive: &Value<'_>) -> String {
    let bytes = raw::text_bytes(primitive);
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => mended(error.as_bytes()),
    }
}

/// The same, when it holds no half of a surrogate pair.
pub(crate) fn exact(primitive: &Value<'_>) -> Option<String> {
    String::from_utf8(raw::text_bytes(primitive)).ok()
}

fn mended(mut bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    loop {
        match std::str::from_utf8(bytes) {
            Ok(rest) => {
                text.push_str(rest);
                return text;
            }
            Err(error) => {
                let (good, bad) = bytes
                    .split_at_checked(error.valid_up_to())
                    .unwrap_or_default();
                text.push_str(&String::from_utf8_lossy(good));
                text.push('\u{fffd}');
                // Half a pair is three bytes.
                bytes = bad.get(3..).unwrap_or_default();
            }
        }
    }
}
