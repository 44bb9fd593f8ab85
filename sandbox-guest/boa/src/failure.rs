//! An uncaught error as plain data. Nothing of the script runs for it: no
//! getter, no `toString`, no proxy trap.

use boa_engine::builtins::error::Error;
use boa_engine::{Context, JsError, JsObject, JsValue};
use sandbox_protocol::ScriptError;

use crate::inspect;
use crate::kept::Kept;
use crate::place::{self, FRAMES_MAX, Place};
use crate::quiet;
use crate::run::Run;
use crate::tool_error::Origin;

/// Characters of a message that are reported.
const MESSAGE_MAX: usize = 4_000;
const NAME_MAX: usize = 100;
/// Errors followed along `cause`.
const CAUSES_MAX: usize = 4;

pub(crate) fn describe(error: &JsError, context: &mut Context) -> ScriptError {
    let value = error.clone().into_opaque(context).unwrap_or_default();
    of_value(&value, context)
}

pub(crate) fn of_value(value: &JsValue, context: &mut Context) -> ScriptError {
    match value.as_object() {
        Some(object) if object.is::<Error>() || object.is::<Origin>() => {
            of_object(&object, context)
        }
        _ => {
            let message = match value.as_string() {
                Some(text) => text.to_std_string_lossy(),
                None => inspect::one(value, context),
            };
            ScriptError {
                name: "Thrown value".to_owned(),
                message: quiet::cut(&message, MESSAGE_MAX),
                ..ScriptError::default()
            }
        }
    }
}

fn of_object(object: &JsObject, context: &mut Context) -> ScriptError {
    let name = quiet::text(object, "name", NAME_MAX).unwrap_or_else(|| "Error".to_owned());
    let mut message = quiet::text(object, "message", MESSAGE_MAX).unwrap_or_default();
    append_causes(object, &mut message, context);
    let places = places(object, context);
    let (line, column) = places
        .first()
        .map_or((0, 0), |place| (place.line, place.column));
    let script_name = Run::of(context).map(|run| run.script_name.borrow().clone());
    let origin = object.downcast_ref::<Origin>();
    ScriptError {
        name,
        message,
        code: origin
            .as_ref()
            .map(|origin| origin.code.clone())
            .unwrap_or_default(),
        line,
        column,
        stack: place::describe(&places, &script_name.unwrap_or_default()),
        ticket: origin.and_then(|origin| origin.ticket),
    }
}

fn append_causes(object: &JsObject, message: &mut String, context: &mut Context) {
    let mut present = object.clone();
    for _ in 0..CAUSES_MAX {
        let Some(cause) = quiet::read(&present, "cause") else {
            return;
        };
        let shown = match cause.as_object() {
            Some(error) if error.is::<Error>() || error.is::<Origin>() => headline(&error),
            _ => quiet::cut(&inspect::one(&cause, context), 200),
        };
        message.push_str(&format!(" (cause: {shown})"));
        let Some(next) = cause.as_object() else {
            return;
        };
        present = next;
    }
}

fn headline(object: &JsObject) -> String {
    let name = quiet::text(object, "name", NAME_MAX).unwrap_or_else(|| "Error".to_owned());
    let message = quiet::text(object, "message", MESSAGE_MAX).unwrap_or_default();
    if message.is_empty() {
        name
    } else {
        format!("{name}: {message}")
    }
}

/// As the console shows an error.
pub(crate) fn headline_and_stack(object: &JsObject, context: &mut Context) -> String {
    let mut text = headline(object);
    let stack = frames_text(object, context);
    if !stack.is_empty() {
        text.push('\n');
        text.push_str(&stack);
    }
    text
}

pub(crate) fn frames_text(object: &JsObject, context: &mut Context) -> String {
    let script_name = Run::of(context).map(|run| run.script_name.borrow().clone());
    place::describe(&places(object, context), &script_name.unwrap_or_default())
}

/// Where an error was made, innermost frame first.
fn places(object: &JsObject, context: &mut Context) -> Vec<Place> {
    if let Some(origin) = object.downcast_ref::<Origin>() {
        return origin.places.clone();
    }
    let (Ok(kept), Ok(run)) = (Kept::of(context), Run::of(context)) else {
        return Vec::new();
    };
    let stack = kept.error_stack.call(&object.clone().into(), &[], context);
    let Some(stack) = stack.ok().and_then(|stack| stack.as_string()) else {
        return Vec::new();
    };
    let script_name = run.script_name.borrow().clone();
    stack
        .to_std_string_lossy()
        .lines()
        .filter_map(|line| parse_frame(line, &script_name, &run))
        .take(FRAMES_MAX)
        .collect()
}

/// `    at name (script.js:3:14)`
fn parse_frame(line: &str, script_name: &str, run: &Run) -> Option<Place> {
    let (function, location) = line.trim_start().strip_prefix("at ")?.rsplit_once(" (")?;
    let location = location
        .strip_suffix(')')?
        .strip_prefix(script_name)?
        .strip_prefix(':')?;
    let (line, column) = location.split_once(':')?;
    let (line, column) = place::in_script(run, line.parse().ok()?, column.parse().ok()?)?;
    let function = if function == "<main>" { "" } else { function };
    Some(Place {
        function: quiet::cut(&place::own_name(run, function), 100),
        line,
        column,
    })
}
