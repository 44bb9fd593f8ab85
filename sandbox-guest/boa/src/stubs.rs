//! The globals for servers and their tools.
//!
//! A server is a proxy with only native traps. It has no prototype and cannot be changed. It
//! creates a tool's function on first access. The error about an unknown tool suggests the closest
//! name. A server has no `then`, so `await server` gives the server.

use boa_engine::native_function::NativeFunctionPointer;
use boa_engine::object::builtins::JsArray;
use boa_engine::object::{FunctionObjectBuilder, ObjectInitializer};
use boa_engine::property::Attribute;
use boa_engine::property::PropertyKey;
use boa_engine::{
    Context, JsArgs, JsData, JsNativeError, JsObject, JsResult, JsValue, NativeFunction, js_string,
};
use boa_gc::{Finalize, GcRefCell, Trace};
use guest_common::stubs::{self, MentionedTools};
use rustc_hash::FxHashMap;

use crate::call;
use crate::intrinsics::Intrinsics;
use crate::run::Run;

/// The target object of a server's proxy.
#[derive(Debug, Trace, Finalize, JsData)]
struct Server {
    #[unsafe_ignore_trace]
    index: u16,
    /// Functions created so far, by tool.
    made: GcRefCell<FxHashMap<u16, JsObject>>,
}

/// Defines the globals of one run. Flat names of tools are defined only if the script may use them,
/// because there may be hundreds.
pub(crate) fn install(script: &str, run: &Run, context: &mut Context) -> JsResult<()> {
    let kept = Intrinsics::of(context)?;
    let meant = MentionedTools::by(script);
    let stubs = run.stubs.borrow();
    for (index, server) in (0_u16..).zip(stubs.iter()) {
        let target = JsObject::from_proto_and_data(
            None,
            Server {
                index,
                made: GcRefCell::new(FxHashMap::default()),
            },
        );
        let proxy = kept.proxy.construct(
            &[target.into(), kept.stub_traps.clone().into()],
            None,
            context,
        )?;
        set_global(&server.name, proxy.into(), context)?;
        for (tool, stub) in (0_u16..).zip(&server.tools) {
            for name in meant.names(stub) {
                let function = tool_function(index, tool, name, context)?;
                set_global(name, function.into(), context)?;
            }
        }
    }
    Ok(())
}

fn set_global(name: &str, value: JsValue, context: &mut Context) -> JsResult<()> {
    context.register_global_property(js_string!(name), value, Attribute::ENUMERABLE)
}

fn tool_function(server: u16, tool: u16, name: &str, context: &mut Context) -> JsResult<JsObject> {
    let native = NativeFunction::from_copy_closure(move |_this, args, context| {
        call::make(server, tool, args, context)
    });
    let function: JsObject = FunctionObjectBuilder::new(context.realm(), native)
        .name(js_string!(name))
        .length(1)
        .build()
        .into();
    function.set_integrity_level(boa_engine::object::IntegrityLevel::Frozen, context)?;
    Ok(function)
}

/// Returns the object whose members are the traps of every server's proxy.
pub(crate) fn traps(context: &mut Context) -> JsObject {
    let traps: [(&str, NativeFunctionPointer); 11] = [
        ("get", get),
        ("has", has),
        ("ownKeys", own_keys),
        ("getOwnPropertyDescriptor", own_property),
        ("set", refuse_change),
        ("defineProperty", refuse_change),
        ("deleteProperty", refuse_change),
        ("setPrototypeOf", refuse_change),
        ("preventExtensions", refuse_change),
        ("getPrototypeOf", no_prototype),
        ("isExtensible", extensible),
    ];
    let object = JsObject::with_null_proto();
    for (name, trap) in traps {
        let function = NativeFunction::from_fn_ptr(trap).to_js_function(context.realm());
        object.insert_property(
            js_string!(name),
            boa_engine::property::PropertyDescriptor::builder()
                .value(JsObject::from(function))
                .writable(false)
                .enumerable(false)
                .configurable(false),
        );
    }
    object
}

fn no_prototype(_: &JsValue, _: &[JsValue], _: &mut Context) -> JsResult<JsValue> {
    Ok(JsValue::null())
}

fn extensible(_: &JsValue, _: &[JsValue], _: &mut Context) -> JsResult<JsValue> {
    Ok(JsValue::from(true))
}

/// Refuses a change by returning false. All code is strict, so the change throws a `TypeError`.
fn refuse_change(_: &JsValue, _: &[JsValue], _: &mut Context) -> JsResult<JsValue> {
    Ok(JsValue::from(false))
}

/// Returns the server and the member that a trap was called for.
fn asked(args: &[JsValue], context: &mut Context) -> JsResult<(JsObject, u16, Option<String>)> {
    let target = args
        .get_or_undefined(0)
        .as_object()
        .ok_or_else(|| JsNativeError::typ().with_message("not a server"))?;
    let index = target
        .downcast_ref::<Server>()
        .map(|server| server.index)
        .ok_or_else(|| JsNativeError::typ().with_message("not a server"))?;
    let member = match args.get_or_undefined(1).to_property_key(context)? {
        PropertyKey::Symbol(_) => None,
        key => Some(
            JsValue::from(&key)
                .to_string(context)?
                .to_std_string_lossy(),
        ),
    };
    Ok((target, index, member))
}

fn member(
    target: &JsObject,
    server: u16,
    name: &str,
    context: &mut Context,
) -> JsResult<Option<JsObject>> {
    let found = stubs::find(&Run::of(context)?.stubs.borrow(), server, name);
    let Some(tool) = found else {
        return Ok(None);
    };
    let made = target
        .downcast_ref::<Server>()
        .and_then(|server| server.made.borrow().get(&tool).cloned());
    if let Some(function) = made {
        return Ok(Some(function));
    }
    let function = tool_function(server, tool, name, context)?;
    if let Some(server) = target.downcast_ref::<Server>() {
        server.made.borrow_mut().insert(tool, function.clone());
    }
    Ok(Some(function))
}

fn get(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let (target, server, name) = asked(args, context)?;
    let Some(name) = name else {
        return Ok(JsValue::undefined());
    };
    if let Some(function) = member(&target, server, &name, context)? {
        return Ok(function.into());
    }
    match stubs::unknown_member(&Run::of(context)?.stubs.borrow(), server, &name) {
        None => Ok(JsValue::undefined()),
        Some(sentence) => Err(JsNativeError::typ().with_message(sentence).into()),
    }
}

fn has(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let (target, server, name) = asked(args, context)?;
    let there = match name {
        Some(name) => member(&target, server, &name, context)?.is_some(),
        None => false,
    };
    Ok(there.into())
}

fn own_keys(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let (_, server, _) = asked(args.get(..1).unwrap_or_default(), context)?;
    let run = Run::of(context)?;
    let stubs = run.stubs.borrow();
    let names: Vec<JsValue> = stubs::members(&stubs, server)
        .map(|member| js_string!(member).into())
        .collect();
    drop(stubs);
    Ok(JsArray::from_iter(names, context).into())
}

fn own_property(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let (target, server, name) = asked(args, context)?;
    let Some(name) = name else {
        return Ok(JsValue::undefined());
    };
    let Some(function) = member(&target, server, &name, context)? else {
        return Ok(JsValue::undefined());
    };
    let attribute = Attribute::all();
    let descriptor = ObjectInitializer::new(context)
        .property(js_string!("value"), function, attribute)
        .property(js_string!("writable"), false, attribute)
        .property(js_string!("enumerable"), true, attribute)
        // A proxy must report a property as configurable if its target does not have the property.
        .property(js_string!("configurable"), true, attribute)
        .build();
    Ok(descriptor.into())
}
