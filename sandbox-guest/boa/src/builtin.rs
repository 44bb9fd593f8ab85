//! Taking the place of the engine's functions. The engine's own stays reachable
//! for the one that replaces it, which hands on whatever is unusual.

use boa_engine::object::{FunctionObjectBuilder, JsObject};
use boa_engine::property::{PropertyDescriptor, PropertyKey};
use boa_engine::{
    Context, JsArgs, JsNativeError, JsResult, JsString, JsValue, NativeFunction, js_string,
};

/// What is called instead, with the engine's own function behind the arguments.
pub(crate) type Native = fn(&JsValue, &[JsValue], &JsObject, &mut Context) -> JsResult<JsValue>;

pub(crate) fn prototype_of(class: &str, context: &mut Context) -> JsResult<JsObject> {
    let class = context.global_object().get(js_string!(class), context)?;
    let prototype = match class.as_object() {
        Some(class) => class.get(js_string!("prototype"), context)?,
        None => JsValue::undefined(),
    };
    let missing = || JsNativeError::typ().with_message("a class without a prototype");
    Ok(prototype.as_object().ok_or_else(missing)?)
}

/// Puts `native` in the place of a function, with the same name and length.
/// Answers the new function.
pub(crate) fn replace(
    holder: &JsObject,
    key: impl Into<PropertyKey>,
    native: Native,
    context: &mut Context,
) -> JsResult<JsObject> {
    let key = key.into();
    let original = holder.get(key.clone(), context)?;
    let original = original
        .as_object()
        .ok_or_else(|| JsNativeError::typ().with_message("nothing to replace"))?;
    let name = original.get(js_string!("name"), context)?;
    let name = name.as_string().unwrap_or_else(JsString::default);
    let length = original.get(js_string!("length"), context)?;
    let function = NativeFunction::from_copy_closure_with_captures(
        move |this, args, original: &JsObject, context| native(this, args, original, context),
        original,
    );
    let function = FunctionObjectBuilder::new(context.realm(), function)
        .name(name)
        .length(length.as_i32().map_or(0, |length| length.max(0) as usize))
        .build();
    let function = JsObject::from(function);
    let property = PropertyDescriptor::builder()
        .value(function.clone())
        .writable(true)
        .enumerable(false)
        .configurable(true);
    holder.insert_property(key, property);
    Ok(function)
}

/// How many parts `split` makes at most, as its second argument says; `None` when that is no
/// plain number, which the engine asks at the right moment.
pub(crate) fn limit(args: &[JsValue], context: &mut Context) -> JsResult<Option<usize>> {
    let limit = args.get_or_undefined(1);
    Ok(match limit.as_number() {
        Some(_) => Some(limit.to_u32(context)? as usize),
        None => limit.is_undefined().then_some(u32::MAX as usize),
    })
}
