//! Replaces functions of the engine. A replacement can still call the engine's own function, and
//! passes unusual arguments on to that function.

use boa_engine::object::{FunctionObjectBuilder, JsObject};
use boa_engine::property::{PropertyDescriptor, PropertyKey};
use boa_engine::{
    Context, JsArgs, JsNativeError, JsResult, JsString, JsValue, NativeFunction, js_string,
};

use crate::gc_budget;

/// A replacement; it receives the engine's own function after the arguments.
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

/// Replaces a function with `native`, which gets the same name and length. Each call first collects
/// garbage if there may be much. Returns the new function.
pub(crate) fn replace(
    holder: &JsObject,
    key: impl Into<PropertyKey>,
    native: Native,
    context: &mut Context,
) -> JsResult<JsObject> {
    let key = key.into();
    #[cfg(test)]
    tests::note(holder, &key, context)?;
    let original = holder.get(key.clone(), context)?;
    let original = original
        .as_object()
        .ok_or_else(|| JsNativeError::typ().with_message("no function to replace"))?;
    let name = original.get(js_string!("name"), context)?;
    let name = name.as_string().unwrap_or_else(JsString::default);
    let length = original.get(js_string!("length"), context)?;
    let function = NativeFunction::from_copy_closure_with_captures(
        move |this, args, original: &JsObject, context| {
            gc_budget::sweep_when_full();
            native(this, args, original, context)
        },
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

/// Returns the maximum number of parts for `split`, from its second argument. Returns `None` if the
/// argument is not a plain number; the engine then converts it at the right moment.
pub(crate) fn limit(args: &[JsValue], context: &mut Context) -> JsResult<Option<usize>> {
    let limit = args.get_or_undefined(1);
    Ok(match limit.as_number() {
        Some(_) => Some(limit.to_u32(context)? as usize),
        None => limit.is_undefined().then_some(u32::MAX as usize),
    })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    use boa_engine::JsSymbol;

    use super::*;
    use crate::Guest;

    thread_local! {
        static REPLACED: RefCell<BTreeSet<String>> = RefCell::default();
    }

    /// Records a replacement by the class of the function.
    pub(super) fn note(
        holder: &JsObject,
        key: &PropertyKey,
        context: &mut Context,
    ) -> JsResult<()> {
        // The prototype of functions is itself a function without a name.
        let functions = context.intrinsics().constructors().function().prototype();
        let tag = holder.get(JsSymbol::to_string_tag(), context)?;
        let name = js_string!("name");
        let class = match tag.as_string() {
            Some(tag) if holder.is_ordinary() => tag,
            _ if *holder == functions => js_string!("Function"),
            _ if holder.is_callable() => holder.get(name, context)?.to_string(context)?,
            _ => {
                let class = holder.get(js_string!("constructor"), context)?;
                class
                    .to_object(context)?
                    .get(name, context)?
                    .to_string(context)?
            }
        };
        let key = match key {
            PropertyKey::Symbol(symbol) => symbol.description().unwrap_or_default(),
            key => JsValue::from(key.clone()).to_string(context)?,
        };
        let label = format!(
            "{}.{}",
            class.to_std_string_lossy(),
            key.to_std_string_lossy()
        );
        REPLACED.with_borrow_mut(|all| all.insert(label));
        Ok(())
    }

    /// Tests that every replaced function occurs in the name of a use whose growth is measured.
    #[test]
    fn how_each_of_them_grows_is_counted() {
        const USES: &str = include_str!("../../image-builder/tests/growth/uses.rs");
        drop(Guest::new().unwrap());
        let replaced = REPLACED.with_borrow(|all| all.clone());
        assert!(replaced.len() > 40, "{replaced:?}");
        let missing: Vec<&String> = replaced
            .iter()
            .filter(|name| !USES.contains(*name))
            .collect();
        assert!(missing.is_empty(), "{missing:?} of {replaced:?}");
    }
}
