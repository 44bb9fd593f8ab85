//! Functions of the engine that may make much at once and call nothing of the script's. They stay
//! as they are; but before each it is asked whether the heap is full of what nobody has any more.

use boa_engine::object::JsObject;
use boa_engine::{Context, JsResult, JsValue, js_string};

use crate::builtin;

const OF_ARRAYS: [&str; 6] = ["concat", "slice", "flat", "toReversed", "toSpliced", "with"];
const OF_OBJECTS: [&str; 5] = ["assign", "entries", "fromEntries", "keys", "values"];

pub(crate) fn install(context: &mut Context) -> JsResult<()> {
    let arrays = builtin::prototype_of("Array", context)?;
    let objects = context.intrinsics().constructors().object().constructor();
    let of_arrays = OF_ARRAYS.map(|name| (&arrays, name));
    let of_objects = OF_OBJECTS.map(|name| (&objects, name));
    for (holder, name) in of_arrays.into_iter().chain(of_objects) {
        builtin::replace(holder, js_string!(name), handed_on, context)?;
    }
    Ok(())
}

/// Whoever replaces a function has it asked.
fn handed_on(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    original.call(this, args, context)
}
