//! Iteration over maps and sets: the iterators of `keys`, `values` and `entries`, and `forEach`.

use boa_engine::builtins::iterable::create_iter_result_object;
use boa_engine::builtins::map::ordered_map::OrderedMap;
use boa_engine::builtins::set::ordered_set::OrderedSet;
use boa_engine::object::JsObject;
use boa_engine::object::builtins::JsArray;
use boa_engine::property::PropertyKey;
use boa_engine::{
    Context, Finalize, JsArgs, JsData, JsResult, JsString, JsSymbol, JsValue, Trace, js_string,
};

use super::place::{Members, Place};
use crate::builtin;
use crate::globals;

/// The value that an iterator returns for each member.
#[derive(Debug, Clone, Copy)]
enum IteratorKind {
    Key,
    Value,
    Both,
}

/// An iterator.
#[derive(Debug, Trace, Finalize, JsData)]
struct Walk {
    object: JsObject,
    #[unsafe_ignore_trace]
    what: IteratorKind,
    /// `None` after the end was reached.
    #[unsafe_ignore_trace]
    place: Option<Place>,
}

type Map = OrderedMap<JsValue>;
type Set = OrderedSet;

pub(super) fn install(maps: &JsObject, sets: &JsObject, context: &mut Context) -> JsResult<()> {
    let [keys, values, entries, each] =
        ["keys", "values", "entries", "forEach"].map(JsString::from);
    builtin::replace(maps, keys.clone(), map_keys, context)?;
    builtin::replace(maps, values.clone(), map_values, context)?;
    let of_maps = builtin::replace(maps, entries.clone(), map_entries, context)?;
    builtin::replace(maps, each.clone(), for_each::<Map>, context)?;
    let of_sets = builtin::replace(sets, values, set_values, context)?;
    builtin::replace(sets, entries, set_entries, context)?;
    builtin::replace(sets, each, for_each::<Set>, context)?;
    // Other names of the same functions.
    again(maps, JsSymbol::iterator(), of_maps);
    again(sets, keys, of_sets.clone());
    again(sets, JsSymbol::iterator(), of_sets);
    let prototypes = context.intrinsics().objects().iterator_prototypes();
    let (of_maps, of_sets) = (prototypes.map(), prototypes.set());
    builtin::replace(&of_maps, js_string!("next"), next::<Map>, context)?;
    builtin::replace(&of_sets, js_string!("next"), next::<Set>, context)?;
    Ok(())
}

fn again(holder: &JsObject, key: impl Into<PropertyKey>, function: JsObject) {
    globals::define_as(holder, key, function.into());
}

fn map_keys(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    begin::<Map>(IteratorKind::Key, this, args, original, context)
}

fn map_values(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    begin::<Map>(IteratorKind::Value, this, args, original, context)
}

fn map_entries(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    begin::<Map>(IteratorKind::Both, this, args, original, context)
}

fn set_values(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    begin::<Set>(IteratorKind::Value, this, args, original, context)
}

fn set_entries(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    begin::<Set>(IteratorKind::Both, this, args, original, context)
}

/// Creates an iterator. If the object is not a map or set, the engine throws its own error.
fn begin<M: Members + IteratorResult>(
    what: IteratorKind,
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let Some(object) = this.as_object().filter(JsObject::is::<M>) else {
        return original.call(this, args, context);
    };
    let place = Some(Place::first_of(&object));
    let walk = Walk {
        object,
        what,
        place,
    };
    let prototype = M::prototype(context);
    Ok(JsObject::new(context.root_shape(), prototype, walk)
        .upcast()
        .into())
}

trait IteratorResult {
    fn prototype(context: &Context) -> JsObject;
}

impl IteratorResult for Map {
    fn prototype(context: &Context) -> JsObject {
        context.intrinsics().objects().iterator_prototypes().map()
    }
}

impl IteratorResult for Set {
    fn prototype(context: &Context) -> JsObject {
        context.intrinsics().objects().iterator_prototypes().set()
    }
}

/// Advances an iterator. If the iterator is of another kind, the engine throws its own error.
fn next<M: Members>(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let object = this.as_object();
    let walk = object.as_ref().and_then(JsObject::downcast_mut::<Walk>);
    let Some(mut walk) = walk.filter(|walk| walk.object.is::<M>()) else {
        return original.call(this, args, context);
    };
    let Some((key, value)) = walk.step::<M>() else {
        // The end was reached, so later members are not visited.
        walk.place = None;
        return Ok(create_iter_result_object(
            JsValue::undefined(),
            true,
            context,
        ));
    };
    let value = match walk.what {
        IteratorKind::Key => key,
        IteratorKind::Value => value,
        IteratorKind::Both => JsArray::from_iter([key, value], context).into(),
    };
    Ok(create_iter_result_object(value, false, context))
}

impl Walk {
    fn step<M: Members>(&self) -> Option<(JsValue, JsValue)> {
        let members = self.object.downcast_ref::<M>()?;
        self.place.as_ref()?.next(&*members)
    }
}

fn for_each<M: Members>(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let object = this.as_object().filter(JsObject::is::<M>);
    let call = args.get_or_undefined(0).as_callable();
    let (Some(object), Some(call)) = (object, call) else {
        return original.call(this, args, context);
    };
    let place = Place::first_of(&object);
    let next = || place.next(&*object.downcast_ref::<M>()?);
    while let Some((key, value)) = next() {
        let args_of_it = [value, key, this.clone()];
        call.call(args.get_or_undefined(1), &args_of_it, context)?;
    }
    Ok(JsValue::undefined())
}
