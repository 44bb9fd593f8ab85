//! The globals of a script: standard ECMAScript without access to the outside, and the few
//! additions that every guest offers. All of them are created before the image is frozen; a run
//! only adds its own stubs and input.

use std::path::Path;

use boa_engine::property::{Attribute, PropertyKey};
use boa_engine::{
    Context, JsArgs, JsError, JsNativeError, JsObject, JsResult, JsString, JsValue, NativeFunction,
    Script, Source, js_string,
};
use guest_common::{not_json, prelude};

use crate::intrinsics::{self, Intrinsics};
use crate::run::Run;
use crate::{
    array_from, collections, console, from_json, numbers, regex, sort, splice, stringify, strings,
    stubs, substring, timers, web,
};

type Native = fn(&JsValue, &[JsValue], &mut Context) -> JsResult<JsValue>;

/// Globals of the language that are removed.
const ABSENT: [&str; 5] = [
    "SharedArrayBuffer",
    "Atomics",
    "ShadowRealm",
    "TypedArray",
    "WebAssembly",
];

const NATIVES: [(&str, Native, usize); 4] = [
    ("setTimeout", timers::set_timeout, 2),
    ("setInterval", timers::set_interval, 2),
    ("clearTimeout", timers::clear, 1),
    ("clearInterval", timers::clear, 1),
];

/// Creates the globals of a new context, and keeps the intrinsics that the guest needs.
pub(crate) fn install(context: &mut Context) -> JsResult<Intrinsics> {
    for (name, native, length) in NATIVES {
        let function = NativeFunction::from_fn_ptr(native);
        context.register_global_builtin_callable(js_string!(name), length, function)?;
    }
    let global = context.global_object();
    for name in ABSENT {
        global.delete_property_or_throw(js_string!(name), context)?;
    }
    // Before the prelude, so that its own maps and sets get the replaced functions too.
    collections::install(context)?;
    let engine_stack = intrinsics::engine_stack(context)?;
    let natives = natives(context);
    let mut tool_error_prototype = JsObject::with_null_proto();
    for (name, text) in prelude::FILES {
        let source = Source::from_bytes(text).with_path(Path::new(name));
        let function = Script::parse(source, None, context)?.evaluate(context)?;
        let function = callable(&function)?;
        let exported = function.call(&JsValue::undefined(), &[natives.clone().into()], context)?;
        if name == "errors.js" {
            let class = callable(&exported)?;
            let prototype = class.get(js_string!("prototype"), context)?;
            tool_error_prototype = prototype.as_object().ok_or_else(missing)?;
        }
    }
    let traps = stubs::traps(context);
    let kept = Intrinsics::gather(engine_stack, traps, tool_error_prototype, context)?;
    replace_json_parse(context)?;
    replace_math_random(context)?;
    array_from::install(context)?;
    sort::install(context)?;
    splice::install(context)?;
    stringify::install(context)?;

    numbers::install(context)?;
    strings::install(context)?;
    substring::install(context)?;
    web::install(context)?;
    regex::install(context)?;
    Ok(kept)
}

fn natives(context: &mut Context) -> JsObject {
    let object = JsObject::with_null_proto();
    let functions: [(&str, Native); 4] = [
        ("print", console::print),
        ("numberText", numbers::for_people),
        ("inspect", inspect),
        ("stack", stack),
    ];
    for (name, native) in functions.into_iter().chain(web::NATIVES) {
        let function = NativeFunction::from_fn_ptr(native).to_js_function(context.realm());
        object.insert_property(
            js_string!(name),
            boa_engine::property::PropertyDescriptor::builder()
                .value(JsObject::from(function))
                .writable(false)
                .enumerable(true)
                .configurable(false),
        );
    }
    object
}

fn missing() -> JsError {
    JsNativeError::typ()
        .with_message("the prelude returned an unexpected value")
        .into()
}

fn callable(value: &JsValue) -> JsResult<JsObject> {
    value.as_callable().ok_or_else(missing)
}

fn inspect(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let text = crate::inspect::one(args.get_or_undefined(0), context);
    Ok(js_string!(text).into())
}

/// Returns the frames of an error, with positions in the script.
fn stack(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let Some(error) = args.get_or_undefined(0).as_object() else {
        return Ok(JsValue::undefined());
    };
    Ok(js_string!(crate::failure::frames_text(&error, context)).into())
}

fn replace_json_parse(context: &mut Context) -> JsResult<()> {
    let json = context.global_object().get(js_string!("JSON"), context)?;
    let json = json.as_object().ok_or_else(missing)?;
    let original = callable(&json.get(js_string!("parse"), context)?)?;
    let native = NativeFunction::from_copy_closure_with_captures(
        |this, args, original: &JsObject, context| {
            let text = args.get_or_undefined(0).to_string(context)?;
            match args.get_or_undefined(1) {
                reviver if reviver.is_callable() => {
                    let args = [text.clone().into(), reviver.clone()];
                    let parsed = original.call(this, &args, context);
                    parsed.map_err(|error| not_json(&text).map_or(error, JsError::from))
                }
                _ => parse(&text, context),
            }
        },
        original,
    );
    let function = boa_engine::object::FunctionObjectBuilder::new(context.realm(), native)
        .name(js_string!("parse"))
        .length(2)
        .build();
    define(&json, "parse", function.into());
    Ok(())
}

/// Maximum depth of nesting that `JSON.parse` accepts.
const PARSE_DEPTH_MAX: u32 = 512;

fn parse(text: &JsString, context: &mut Context) -> JsResult<JsValue> {
    let utf8 = utf8(text);
    from_json::decode(utf8.as_bytes(), PARSE_DEPTH_MAX, context).map_err(|refused| {
        let otherwise = || JsNativeError::syntax().with_message(refused.what);
        not_json(text).unwrap_or_else(otherwise).into()
    })
}

/// Returns the error for a text that is not JSON.
fn not_json(text: &JsString) -> Option<JsNativeError> {
    let said = not_json::describe(utf8(text).as_bytes())?;
    Some(JsNativeError::syntax().with_message(said))
}

fn utf8(text: &JsString) -> String {
    match text.to_std_string() {
        Ok(text) => text,
        // A lone surrogate is allowed in JSON strings; written as an escape, it means the same.
        Err(_) => text
            .to_std_string_with_surrogates()
            .map(|part| match part {
                Ok(text) => text,
                Err(unit) => format!("\\u{unit:04x}"),
            })
            .collect(),
    }
}

fn replace_math_random(context: &mut Context) -> JsResult<()> {
    let math = context.global_object().get(js_string!("Math"), context)?;
    let math = math.as_object().ok_or_else(missing)?;
    let native = NativeFunction::from_fn_ptr(|_, _, context| {
        Ok(Run::of(context)?.chance.borrow_mut().unit().into())
    });
    let function = boa_engine::object::FunctionObjectBuilder::new(context.realm(), native)
        .name(js_string!("random"))
        .length(0)
        .build();
    define(&math, "random", function.into());
    Ok(())
}

pub(crate) fn define(object: &JsObject, name: &str, value: JsValue) {
    define_as(object, js_string!(name), value);
}

pub(crate) fn define_as(object: &JsObject, key: impl Into<PropertyKey>, value: JsValue) {
    object.insert_property(
        key,
        boa_engine::property::PropertyDescriptor::builder()
            .value(value)
            .writable(true)
            .enumerable(false)
            .configurable(true),
    );
}

/// Sets the global `input` of one run.
pub(crate) fn set_input(value: JsValue, context: &mut Context) -> JsResult<()> {
    context.register_global_property(js_string!("input"), value, Attribute::all())
}
