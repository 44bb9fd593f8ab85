//! Reads objects without running code of the script: only data properties along the prototypes, no
//! getters, no proxies.

use boa_engine::property::PropertyKey;
use boa_engine::{JsObject, JsValue, js_string};
use guest_common::text::cut;

/// Maximum number of prototypes walked.
const PROTOTYPES_MAX: usize = 32;

/// Returns the value of a data property, own or inherited.
pub(crate) fn read(object: &JsObject, name: &str) -> Option<JsValue> {
    let key = PropertyKey::from(js_string!(name));
    let mut holder = Some(object.clone());
    for _ in 0..PROTOTYPES_MAX {
        let present = holder?;
        if let Some(property) = present.borrow().properties().get(&key) {
            return property.value().cloned();
        }
        holder = present.prototype();
    }
    None
}

/// Returns a list's own item at an index.
pub(crate) fn item(list: &JsObject, at: usize) -> Option<JsValue> {
    let key = PropertyKey::from(u32::try_from(at).ok()?);
    list.borrow().properties().get(&key)?.value().cloned()
}

/// Returns a data property that is a string; at most `chars_max` characters of it.
pub(crate) fn text(object: &JsObject, name: &str, chars_max: usize) -> Option<String> {
    let value = read(object, name)?;
    let text = value.as_string()?;
    Some(cut(&text.to_std_string_lossy(), chars_max))
}
