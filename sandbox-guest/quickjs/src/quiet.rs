//! Reads values without running code of the script: only data properties along the prototypes, no
//! getters, no proxies.

use guest_common::text::cut;
use rquickjs::{Object, Value};

use crate::native;
use crate::raw::{self, OwnProperty};

/// Maximum number of prototypes walked.
const PROTOTYPES_MAX: usize = 32;

/// Returns the value of a data property, own or inherited.
pub(crate) fn read<'js>(object: &Object<'js>, name: &str) -> Option<Value<'js>> {
    let key = native::quietly(object.ctx(), native::string(object.ctx(), name))?;
    let mut holder = Some(object.clone());
    for _ in 0..PROTOTYPES_MAX {
        let present = holder?;
        if present.as_value().is_proxy() {
            return None;
        }
        match raw::own(&present, &key) {
            Some(OwnProperty::Value(value)) => return Some(value),
            Some(OwnProperty::Accessor) => return None,
            None => {}
        }
        holder = present.get_prototype();
    }
    None
}

/// Returns a data property that is a string; at most `chars_max` characters of it.
pub(crate) fn text(object: &Object<'_>, name: &str, chars_max: usize) -> Option<String> {
    let value = read(object, name)?;
    value.is_string().then(|| cut(&lossy(&value), chars_max))
}

/// Converts a string, number or BigInt to text; lone surrogates become U+FFFD.
pub(crate) fn lossy(primitive: &Value<'_>) -> String {
    let bytes = raw::text_bytes(primitive);
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => mended(error.as_bytes()),
    }
}

/// Converts a string, number or BigInt to text; `None` if it contains a lone surrogate.
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
                // A lone surrogate takes three bytes.
                bytes = bad.get(3..).unwrap_or_default();
            }
        }
    }
}
