//! The globals that stand for servers and their tools.
//!
//! A server is a proxy whose every trap is native: it has no prototype, cannot
//! be changed, makes a tool's function when it is first asked for, and names
//! the closest tool when a script asks for one that is not there. It is no
//! promise-like, so that `await server` is the server.

use std::cmp::Ordering;

use boa_engine::native_function::NativeFunctionPointer;
use boa_engine::object::builtins::JsArray;
use boa_engine::object::{FunctionObjectBuilder, ObjectInitializer};
use boa_engine::property::Attribute;
use boa_engine::property::PropertyKey;
use boa_engine::{
    Context, JsArgs, JsData, JsNativeError, JsObject, JsResult, JsValue, NativeFunction, js_string,
};
use boa_gc::{Finalize, GcRefCell, Trace};
use rustc_hash::{FxHashMap, FxHashSet};
use sandbox_protocol::ServerStubs;

use crate::call;
use crate::kept::Kept;
use crate::run::Run;

/// Members that the language itself asks any object for. They are not there,
/// and asking is no mistake.
const ASKED_BY_THE_LANGUAGE: [&str; 7] = [
    "then",
    "toJSON",
    "toString",
    "valueOf",
    "constructor",
    "inspect",
    "$$typeof",
];

/// The object behind a server's proxy.
#[derive(Debug, Trace, Finalize, JsData)]
struct Server {
    #[unsafe_ignore_trace]
    index: u16,
    /// Functions made so far, by tool.
    made: GcRefCell<FxHashMap<u16, JsObject>>,
}

/// Sets the globals of one run. Names of tools are set only as far as the script
/// can mean them, since there may be hundreds.
pub(crate) fn install(script: &str, run: &Run, context: &mut Context) -> JsResult<()> {
    let kept = Kept::of(context)?;
    let all_flat = script.contains("globalThis");
    let named = if all_flat {
        FxHashSet::default()
    } else {
        underscored_words(script)
    };
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
            if !stub.short.is_empty() && (all_flat || script.contains(&stub.short)) {
                let function = tool_function(index, tool, &stub.short, context)?;
                set_global(&stub.short, function.into(), context)?;
            }
            if !stub.flat.is_empty() && (all_flat || named.contains(stub.flat.as_str())) {
                let function = tool_function(index, tool, &stub.flat, context)?;
                set_global(&stub.flat, function.into(), context)?;
            }
        }
    }
    Ok(())
}

fn set_global(name: &str, value: JsValue, context: &mut Context) -> JsResult<()> {
    context.register_global_property(js_string!(name), value, Attribute::ENUMERABLE)
}

/// Words of the script that have an underscore inside, as every flat name has.
fn underscored_words(script: &str) -> FxHashSet<&str> {
    script
        .split(|c: char| !(c == '_' || c == '$' || c.is_alphanumeric()))
        .filter(|word| word.contains('_'))
        .collect()
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

/// The object whose members are the traps of every server's proxy.
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

/// In strict code, and all code is, a false answer is a `TypeError`.
fn refuse_change(_: &JsValue, _: &[JsValue], _: &mut Context) -> JsResult<JsValue> {
    Ok(JsValue::from(false))
}

/// The server that a trap was called for, and the member it is about.
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

fn find(server: &ServerStubs, member: &str) -> Option<u16> {
    let at = server.tools.iter().position(|tool| tool.member == member)?;
    u16::try_from(at).ok()
}

fn member(
    target: &JsObject,
    server: u16,
    name: &str,
    context: &mut Context,
) -> JsResult<Option<JsObject>> {
    if name == "then" {
        return Ok(None);
    }
    let run = Run::of(context)?;
    let stubs = run.stubs.borrow();
    let Some(tool) = stubs
        .get(usize::from(server))
        .and_then(|stubs| find(stubs, name))
    else {
        return Ok(None);
    };
    drop(stubs);
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
    if ASKED_BY_THE_LANGUAGE.contains(&name.as_str()) {
        return Ok(JsValue::undefined());
    }
    let run = Run::of(context)?;
    let stubs = run.stubs.borrow();
    let Some(stubs) = stubs.get(usize::from(server)) else {
        return Ok(JsValue::undefined());
    };
    Err(JsNativeError::typ()
        .with_message(unknown_member(stubs, &name))
        .into())
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
    let names: Vec<JsValue> = stubs
        .get(usize::from(server))
        .map(|stubs| stubs.tools.as_slice())
        .unwrap_or_default()
        .iter()
        .filter(|tool| tool.member != "then")
        .map(|tool| js_string!(tool.member.as_str()).into())
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
        // A proxy may not say otherwise of what its target does not have.
        .property(js_string!("configurable"), true, attribute)
        .build();
    Ok(descriptor.into())
}

fn unknown_member(stubs: &ServerStubs, name: &str) -> String {
    let name: String = name.chars().take(100).collect();
    let mut sentence = format!("`{}` has no tool `{name}`", stubs.name);
    if let Some(closest) = closest(stubs.tools.iter().map(|tool| tool.member.as_str()), &name) {
        sentence.push_str(&format!("; did you mean `{closest}`?"));
    } else if stubs.tools.len() <= 12 {
        let names: Vec<_> = stubs
            .tools
            .iter()
            .map(|tool| format!("`{}`", tool.member))
            .collect();
        sentence.push_str(&format!("; it has {}", names.join(", ")));
    }
    sentence
}

/// The name that is most like `wanted`, when any is like it at all.
pub(crate) fn closest<'a>(names: impl Iterator<Item = &'a str>, wanted: &str) -> Option<&'a str> {
    let folded = fold(wanted);
    let allowed = folded.len() / 3 + 1;
    names
        .map(|name| {
            let other = fold(name);
            let distance = if other.contains(&folded) || folded.contains(&other) {
                usize::from(other != folded)
            } else {
                edits(&other, &folded)
            };
            (distance, name)
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by(|(a, _), (b, _)| a.partial_cmp(b).unwrap_or(Ordering::Equal))
        .map(|(_, name)| name)
}

/// Case and separators carry no meaning when looking for what was meant.
fn fold(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

/// Edit distance, row by row.
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.bytes()) {
            let replaced = diagonal + usize::from(x != y);
            diagonal = *cell;
            left = replaced.min(*cell + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}
