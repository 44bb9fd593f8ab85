//! Functions and prototypes of the engine, saved before any script can change them.

use std::rc::Rc;

use boa_engine::object::builtins::JsFunction;
use boa_engine::{
    Context, JsError, JsNativeError, JsObject, JsResult, JsSymbol, JsValue, js_string,
};

#[derive(Debug)]
pub(crate) struct Intrinsics {
    pub(crate) object_keys: JsObject,
    pub(crate) is_array: JsObject,
    /// The getter that determines the class of arrays derived from an array (`Symbol.species`).
    pub(crate) array_species: JsObject,
    pub(crate) error_stack: JsObject,
    /// `toString` of functions, which returns their source text.
    pub(crate) function_text: JsObject,
    pub(crate) type_error: JsObject,
    pub(crate) proxy: JsObject,
    /// The traps of every server's stub.
    pub(crate) stub_traps: JsObject,
    pub(crate) tool_error_prototype: JsObject,
}

impl Intrinsics {
    pub(crate) fn of(context: &Context) -> JsResult<Rc<Self>> {
        context.get_data::<Rc<Self>>().cloned().ok_or_else(|| {
            JsError::from_native(JsNativeError::error().with_message("the guest is not set up"))
        })
    }

    pub(crate) fn gather(
        error_stack: JsObject,
        stub_traps: JsObject,
        tool_error_prototype: JsObject,
        context: &mut Context,
    ) -> JsResult<Self> {
        let constructors = context.intrinsics().constructors();
        let object = constructors.object().constructor();
        let type_error = constructors.type_error().constructor();
        let proxy = constructors.proxy().constructor();
        let array = constructors.array().constructor();
        let functions = constructors.function().prototype();
        let species = array.borrow().properties().get(&JsSymbol::species().into());
        let species = species.and_then(|species| species.get().cloned());
        let object_keys = function(&object.get(js_string!("keys"), context)?)?;
        let is_array = array.get(js_string!("isArray"), context)?;
        let function_text = functions.get(js_string!("toString"), context)?;
        Ok(Self {
            object_keys,
            is_array: function(&is_array)?,
            array_species: function(&species.unwrap_or_default())?,
            error_stack,
            function_text: function(&function_text)?,
            type_error,
            proxy,
            stub_traps,
            tool_error_prototype,
        })
    }
}

/// Returns the engine's own getter of an error's `stack`. Must be called before it is replaced.
pub(crate) fn engine_stack(context: &mut Context) -> JsResult<JsObject> {
    let prototype = context.intrinsics().constructors().error().prototype();
    let property = prototype
        .borrow()
        .properties()
        .get(&js_string!("stack").into());
    function(
        &property
            .and_then(|property| property.get().cloned())
            .unwrap_or_default(),
    )
}

fn function(value: &JsValue) -> JsResult<JsObject> {
    value
        .as_object()
        .and_then(|object| JsFunction::from_object(object.clone()))
        .map(JsObject::from)
        .ok_or_else(|| {
            JsNativeError::typ()
                .with_message("a built-in function is missing")
                .into()
        })
}
