//! What maps and sets hold. The engine's own walk through one never ends when a member was
//! deleted while a script is still going through it.

use boa_engine::builtins::map::ordered_map::OrderedMap;
use boa_engine::builtins::set::ordered_set::OrderedSet;
use boa_engine::{JsObject, JsValue};

/// The entries of a map; `None` for any other object.
pub(crate) fn entries(object: &JsObject) -> Option<Vec<(JsValue, JsValue)>> {
    let map = object.downcast_ref::<OrderedMap<JsValue>>()?;
    let both = |(key, value): (&JsValue, &JsValue)| (key.clone(), value.clone());
    Some(map.iter().map(both).collect())
}

/// The items of a set; `None` for any other object.
pub(crate) fn items(object: &JsObject) -> Option<Vec<JsValue>> {
    let set = object.downcast_ref::<OrderedSet>()?;
    Some(set.iter().cloned().collect())
}

#[cfg(test)]
mod tests {
    use boa_engine::Source;

    use super::*;
    use crate::Guest;

    fn made(script: &str) -> JsObject {
        let mut guest = Guest::new().unwrap();
        let value = guest.context().eval(Source::from_bytes(script)).unwrap();
        value.as_object().unwrap()
    }

    #[test]
    fn what_was_deleted_while_somebody_goes_through_is_not_there() {
        let map = made(
            "const m = new Map([['a', 1], ['b', 2], ['c', 3]]); globalThis.goes = m.keys(); \
             goes.next(); m.delete('a'); m.delete('b'); m",
        );
        let three = (boa_engine::js_string!("c").into(), JsValue::from(3));
        assert_eq!(entries(&map), Some(vec![three]));
        assert_eq!(items(&map), None);
        let set = made(
            "const s = new Set([1, 2]); globalThis.goes = s.keys(); goes.next(); s.delete(1); s",
        );
        assert_eq!(items(&set), Some(vec![JsValue::from(2)]));
        assert_eq!(entries(&set), None);
    }
}
