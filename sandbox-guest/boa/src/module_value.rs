//! The value of a script that is a module: its default export, or, if that is a function, the
//! result of calling the function.

use boa_engine::object::FunctionObjectBuilder;
use boa_engine::object::builtins::JsPromise;
use boa_engine::{
    Context, JsError, JsNativeError, JsResult, JsValue, Module, NativeFunction, js_string,
};

/// Returns a promise of the module's value, once the module is evaluated.
pub(crate) fn then_default(
    evaluated: &JsPromise,
    module: &Module,
    context: &mut Context,
) -> JsResult<JsPromise> {
    let native = NativeFunction::from_copy_closure_with_captures(
        |_this, _args, module: &Module, context| default_export(module, context),
        module.clone(),
    );
    let then = FunctionObjectBuilder::new(context.realm(), native).build();
    evaluated.then(Some(then), None, context)
}

fn default_export(module: &Module, context: &mut Context) -> JsResult<JsValue> {
    let namespace = module.namespace(context);
    if !namespace.has_property(js_string!("default"), context)? {
        return Ok(JsValue::undefined());
    }
    let value = namespace.get(js_string!("default"), context)?;
    let Some(function) = value.as_callable() else {
        return Ok(value);
    };
    let input = context.global_object().get(js_string!("input"), context)?;
    function.call(&JsValue::undefined(), &[input], context)
}

/// Returns the error for every import.
pub(crate) fn no_imports() -> JsError {
    JsNativeError::typ()
        .with_message("a script cannot import anything; servers and tools are globals")
        .into()
}
