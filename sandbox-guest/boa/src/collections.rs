//! Maps and sets: deletion, iteration, and access to the members. The engine's own `delete` moves
//! all members after the deleted one, unless an iteration is in progress or was not finished; then
//! it leaves an empty place, and each new iteration visits all such places.
//!
//! Here a deleted member first leaves an empty place ([`place`]). Once there are more empty places
//! than members, the map is rebuilt, and each iteration continues at its position ([`walk`]).

mod place;
mod walk;

use boa_engine::builtins::map::ordered_map::OrderedMap;
use boa_engine::builtins::set::ordered_set::OrderedSet;
use boa_engine::object::JsObject;
use boa_engine::{Context, JsResult, JsValue, js_string};

use crate::builtin;
use place::{Empty, Members};

pub(crate) fn install(context: &mut Context) -> JsResult<()> {
    let maps = builtin::prototype_of("Map", context)?;
    let sets = builtin::prototype_of("Set", context)?;
    let empty = Empty::new(context)?;
    context.insert_data(std::rc::Rc::new(empty));
    builtin::replace(
        &maps,
        js_string!("delete"),
        delete::<OrderedMap<JsValue>>,
        context,
    )?;
    builtin::replace(&sets, js_string!("delete"), delete::<OrderedSet>, context)?;
    builtin::replace(
        &maps,
        js_string!("clear"),
        clear::<OrderedMap<JsValue>>,
        context,
    )?;
    builtin::replace(&sets, js_string!("clear"), clear::<OrderedSet>, context)?;
    walk::install(&maps, &sets, context)
}

fn delete<M: Members>(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let Some(object) = this.as_object().filter(JsObject::is::<M>) else {
        return original.call(this, args, context);
    };
    let empty = Empty::of(context)?;
    let before = place::ready::<M>(&object, &empty);
    let was_there = original.call(this, args, context)?;
    place::deleted::<M>(&object, before, &empty);
    Ok(was_there)
}

fn clear<M: Members>(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let cleared = original.call(this, args, context)?;
    if let Some(object) = this.as_object().filter(JsObject::is::<M>) {
        place::cleared(&object);
    }
    Ok(cleared)
}

/// Returns the entries of a map; `None` for any other object.
pub(crate) fn entries(object: &JsObject) -> Option<Vec<(JsValue, JsValue)>> {
    let map = object.downcast_ref::<OrderedMap<JsValue>>()?;
    let both = |(key, value): (&JsValue, &JsValue)| (key.clone(), value.clone());
    Some(map.iter().map(both).collect())
}

/// Returns the items of a set; `None` for any other object.
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

    fn run_script(script: &str) -> String {
        let mut guest = Guest::new().unwrap();
        let value = guest.context().eval(Source::from_bytes(script)).unwrap();
        value.as_string().unwrap().to_std_string_escaped()
    }

    /// In the engine, each of these takes time quadratic in the size, which would be far too long
    /// here.
    #[test]
    fn what_comes_first_is_deleted_as_quickly_as_any_other() {
        let script = "
            const n = 100000, m = new Map(), s = new Set(), out = [];
            for (let i = 0; i < n; i++) { m.set(i, i); s.add(i) }
            for (let i = 0; i < n; i++) m.delete(i);
            for (let i = 0; i < n; i++) { m.set(i, i); if (m.size > 10) m.delete(m.keys().next().value) }
            let sum = 0;
            while (s.size > 0) { const [first] = s; s.delete(first); sum += first }
            String([m.size, [...m.keys()], sum])";
        let rest: Vec<String> = (99_990..100_000).map(|key| key.to_string()).collect();
        assert_eq!(
            run_script(script),
            format!("10,{},4999950000", rest.join(","))
        );
    }

    /// In the engine, these iterations would not see the later members.
    #[test]
    fn what_comes_after_everything_was_deleted_is_seen_by_who_had_begun() {
        let script = "
            const s = new Set([1, 2, 3]), goes = s.values(); goes.next(); goes.next();
            s.clear(); s.add(4); s.add(5); String([...goes])";
        assert_eq!(run_script(script), "4,5");
    }
}
