//! `ToolError`: the rejection of a call's promise. Its fields come from the host's frame and are
//! own properties of the object, so a script cannot change a failure through prototypes.

use guest_common::failure::with_frames;
use guest_common::place::{self, Place};
use rquickjs::object::Property;
use rquickjs::{Class, Ctx, Object, Result, Value};
use sandbox_protocol::{CallTicket, Failure};

use crate::native;
use crate::run::Run;

/// Marks an object as created here, with the ticket of the failed call.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) ticket: Option<CallTicket>,
    pub(crate) code: String,
    pub(crate) places: Vec<Place>,
}

pub(crate) fn origin<'js>(value: &Value<'js>) -> Option<Class<'js, Origin>> {
    Class::<Origin>::from_value(value).ok()
}

pub(crate) fn make<'js>(
    ctx: &Ctx<'js>,
    run: &Run,
    failure: &Failure,
    ticket: Option<CallTicket>,
    places: Vec<Place>,
) -> Result<Value<'js>> {
    let frames = place::describe(&places, &run.script_name.borrow());
    let stack = with_frames(format!("ToolError: {}", failure.message), &frames);
    let origin = Origin {
        ticket,
        code: failure.code.clone(),
        places,
    };
    let prototype = run.kept()?.tool_error_prototype(ctx)?;
    let error = Class::instance_proto(origin, prototype)?.into_inner();
    hidden(&error, "message", &failure.message)?;
    hidden(&error, "stack", &stack)?;
    set_field(&error, "code", native::string(ctx, &failure.code)?)?;
    set_field(&error, "tool", native::string(ctx, &failure.tool)?)?;
    let retryable = Value::new_bool(ctx.clone(), failure.retryable);
    set_field(&error, "retryable", retryable)?;
    set_field(&error, "content", json(ctx, &failure.content)?)?;
    let structured = json(ctx, &failure.structured_content)?;
    set_field(&error, "structuredContent", structured)?;
    Ok(error.into_value())
}

fn hidden(error: &Object<'_>, name: &str, text: &str) -> Result<()> {
    error.prop(name, Property::from(text).writable().configurable())
}

fn set_field<'js>(error: &Object<'js>, name: &str, value: Value<'js>) -> Result<()> {
    let whole = Property::from(value).writable().enumerable().configurable();
    error.prop(name, whole)
}

/// Parses bounded JSON text from the host; an empty text gives `undefined`.
fn json<'js>(ctx: &Ctx<'js>, text: &[u8]) -> Result<Value<'js>> {
    if text.is_empty() {
        return Ok(native::undefined(ctx));
    }
    ctx.json_parse(text)
}
