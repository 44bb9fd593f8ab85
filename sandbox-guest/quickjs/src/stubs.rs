//! The globals for servers and their tools.
//!
//! A server is a proxy with only native traps. It has no prototype and cannot be changed. It
//! creates a tool's function on first access. The error about an unknown tool suggests the closest
//! name. A server has no `then`, so `await server` gives the server.

use std::rc::Rc;

use guest_common::stubs::{self, MentionedTools, ToolAt};
use rquickjs::function::Rest;
use rquickjs::object::Property;
use rquickjs::proxy::ProxyHandler;
use rquickjs::{Array, Class, Ctx, Function, Object, Persistent, Proxy, Result, Value};

use crate::native::{self, Native};
use crate::run::Run;
use crate::{call, quiet, raw};

const TRAPS: [(&str, Native, usize); 11] = [
    ("get", get, 3),
    ("has", has, 2),
    ("ownKeys", own_keys, 1),
    ("getOwnPropertyDescriptor", own_property, 2),
    ("set", refuse_change, 4),
    ("defineProperty", refuse_change, 3),
    ("deleteProperty", refuse_change, 2),
    ("setPrototypeOf", refuse_change, 2),
    ("preventExtensions", refuse_change, 1),
    ("getPrototypeOf", no_prototype, 1),
    ("isExtensible", extensible, 1),
];

/// The target object of a server's proxy.
#[derive(Debug)]
pub(crate) struct Server {
    index: u16,
}

/// Defines the globals of one run. Flat names of tools are defined only if the script may use them,
/// because there may be hundreds.
pub(crate) fn install(ctx: &Ctx<'_>, script: &str, run: &Rc<Run>) -> Result<()> {
    if run.stubs.borrow().is_empty() {
        return Ok(());
    }
    let meant = MentionedTools::by(script);
    let handler = ProxyHandler::from_object(run.kept()?.traps(ctx)?)?;
    let stubs = run.stubs.borrow();
    for (index, server) in (0_u16..).zip(stubs.iter()) {
        let target = Class::instance(ctx.clone(), Server { index })?.into_inner();
        target.set_prototype(None)?;
        let proxy = Proxy::new(ctx.clone(), target, handler.clone())?;
        set_global(ctx, &server.name, proxy.into_value())?;
        for (tool, stub) in (0_u16..).zip(&server.tools) {
            for name in meant.names(stub) {
                let function = tool_function(ctx, run, (index, tool), name)?;
                set_global(ctx, name, function.into_value())?;
            }
        }
    }
    Ok(())
}

fn set_global<'js>(ctx: &Ctx<'js>, name: &str, value: Value<'js>) -> Result<()> {
    ctx.globals().prop(name, Property::from(value).enumerable())
}

fn tool_function<'js>(
    ctx: &Ctx<'js>,
    run: &Rc<Run>,
    at: ToolAt,
    name: &str,
) -> Result<Function<'js>> {
    let run = Rc::clone(run);
    let make = move |ctx: Ctx<'js>, args: Rest<Value<'js>>| call::make(&ctx, &run, at, &args.0);
    let function = Function::new(ctx.clone(), make)?
        .with_name(name)?
        .with_length(1)?;
    raw::freeze(&function);
    Ok(function)
}

/// Returns the object whose members are the traps of every server's proxy.
pub(crate) fn traps<'js>(ctx: &Ctx<'js>, run: &Rc<Run>) -> Result<Object<'js>> {
    let object = Object::new_proto(ctx.clone(), None)?;
    for trap in TRAPS {
        object.prop(trap.0, native::function(ctx, run, trap)?)?;
    }
    Ok(object)
}

fn no_prototype<'js>(ctx: &Ctx<'js>, _: &Rc<Run>, _: &[Value<'js>]) -> Result<Value<'js>> {
    Ok(Value::new_null(ctx.clone()))
}

fn extensible<'js>(ctx: &Ctx<'js>, _: &Rc<Run>, _: &[Value<'js>]) -> Result<Value<'js>> {
    Ok(Value::new_bool(ctx.clone(), true))
}

/// Refuses a change by returning false. All code is strict, so the change throws a `TypeError`.
fn refuse_change<'js>(ctx: &Ctx<'js>, _: &Rc<Run>, _: &[Value<'js>]) -> Result<Value<'js>> {
    Ok(Value::new_bool(ctx.clone(), false))
}

/// Returns the server and the member that a trap was called for.
fn asked<'js>(ctx: &Ctx<'js>, run: &Run, args: &[Value<'js>]) -> Result<(u16, Option<String>)> {
    let target = native::arg(ctx, args, 0);
    let Ok(target) = Class::<Server>::from_value(&target) else {
        return Err(native::throw_type(ctx, run, "not a server"));
    };
    let member = native::arg(ctx, args, 1);
    let member = member.is_string().then(|| quiet::lossy(&member));
    Ok((target.borrow().index, member))
}

fn member<'js>(
    ctx: &Ctx<'js>,
    run: &Rc<Run>,
    server: u16,
    name: &str,
) -> Result<Option<Function<'js>>> {
    let tool = stubs::find(&run.stubs.borrow(), server, name);
    let Some(tool) = tool else { return Ok(None) };
    let made = run.members.borrow().get(&(server, tool)).cloned();
    if let Some(function) = made {
        return function.restore(ctx).map(Some);
    }
    let function = tool_function(ctx, run, (server, tool), name)?;
    let kept = Persistent::save(ctx, function.clone());
    run.members.borrow_mut().insert((server, tool), kept);
    Ok(Some(function))
}

fn get<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let (server, Some(name)) = asked(ctx, run, args)? else {
        return Ok(native::undefined(ctx));
    };
    if let Some(function) = member(ctx, run, server, &name)? {
        return Ok(function.into_value());
    }
    let unknown = stubs::unknown_member(&run.stubs.borrow(), server, &name);
    match unknown {
        None => Ok(native::undefined(ctx)),
        Some(sentence) => Err(native::throw_type(ctx, run, &sentence)),
    }
}

fn has<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let there = match asked(ctx, run, args)? {
        (server, Some(name)) => member(ctx, run, server, &name)?.is_some(),
        (_, None) => false,
    };
    Ok(Value::new_bool(ctx.clone(), there))
}

fn own_keys<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let (server, _) = asked(ctx, run, args.get(..1).unwrap_or_default())?;
    let names = Array::new(ctx.clone())?;
    let stubs = run.stubs.borrow();
    let key = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    for (at, member) in stubs::members(&stubs, server).enumerate() {
        let whole = Property::from(member)
            .writable()
            .enumerable()
            .configurable();
        names.as_object().prop(key(at), whole)?;
    }
    Ok(names.into_value())
}

fn own_property<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let (server, Some(name)) = asked(ctx, run, args)? else {
        return Ok(native::undefined(ctx));
    };
    let Some(function) = member(ctx, run, server, &name)? else {
        return Ok(native::undefined(ctx));
    };
    let descriptor = Object::new_proto(ctx.clone(), None)?;
    descriptor.prop("value", function)?;
    descriptor.prop("writable", false)?;
    descriptor.prop("enumerable", true)?;
    // A proxy must report a property as configurable if its target does not have the property.
    descriptor.prop("configurable", true)?;
    Ok(descriptor.into_value())
}
