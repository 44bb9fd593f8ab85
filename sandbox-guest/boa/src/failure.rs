//! Converts an uncaught error to plain data. No code of the script runs during the conversion: no
//! getter, `toString` or proxy trap.

use boa_engine::builtins::error::Error;
use boa_engine::{Context, JsError, JsObject, JsValue};
use guest_common::failure::{
    self as common, CAUSE_VALUE_MAX, CAUSES_MAX, ERRORS_MAX, MESSAGE_MAX, NAME_MAX, errors_within,
    thrown_value, with_frames,
};
use guest_common::place::{
    FRAMES_MAX, Place, describe as stack_text, innermost, parse_frame, shown_name,
};
use guest_common::text::cut;
use sandbox_protocol::ScriptError;

use crate::inspect;
use crate::intrinsics::Intrinsics;
use crate::place;
use crate::pure_reads;
use crate::run::Run;
use crate::tool_error::Origin;

/// The engine's name for the script itself.
const NAMELESS: [&str; 1] = ["<main>"];

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
            thrown_value(&message)
        }
    }
}

fn of_object(object: &JsObject, context: &mut Context) -> ScriptError {
    let name = pure_reads::text(object, "name", NAME_MAX).unwrap_or_else(|| "Error".to_owned());
    let mut message = pure_reads::text(object, "message", MESSAGE_MAX).unwrap_or_default();
    if name == "AggregateError" {
        message.push_str(&within(object, context));
    }
    append_causes(object, &mut message, context);
    let places = places(object, context);
    let (line, column) = innermost(&places);
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
        stack: stack_text(&places, &script_name.unwrap_or_default()),
        ticket: origin.and_then(|origin| origin.ticket),
    }
}

/// Describes the errors of an `AggregateError`.
fn within(object: &JsObject, context: &mut Context) -> String {
    let errors = pure_reads::read(object, "errors").and_then(|errors| errors.as_object());
    let Some(errors) = errors.filter(JsObject::is_array) else {
        return String::new();
    };
    let length = pure_reads::read(&errors, "length").and_then(|length| length.as_number());
    let length = length.unwrap_or(0.0) as usize;
    let shown: Vec<_> = (0..length.min(ERRORS_MAX))
        .filter_map(|at| pure_reads::item(&errors, at))
        .map(|error| display_value(&error, context))
        .collect();
    errors_within(&shown, length.saturating_sub(ERRORS_MAX))
}

fn append_causes(object: &JsObject, message: &mut String, context: &mut Context) {
    let mut present = object.clone();
    for _ in 0..CAUSES_MAX {
        let Some(cause) = pure_reads::read(&present, "cause") else {
            return;
        };
        message.push_str(&format!(" (cause: {})", display_value(&cause, context)));
        let Some(next) = cause.as_object() else {
            return;
        };
        present = next;
    }
}

/// Describes a value that another error contains.
fn display_value(value: &JsValue, context: &mut Context) -> String {
    match value.as_object() {
        Some(error) if error.is::<Error>() || error.is::<Origin>() => headline(&error),
        _ => cut(&inspect::one(value, context), CAUSE_VALUE_MAX),
    }
}

fn headline(object: &JsObject) -> String {
    common::headline(
        pure_reads::text(object, "name", NAME_MAX),
        pure_reads::text(object, "message", MESSAGE_MAX),
    )
}

/// Formats an error as the console prints it.
pub(crate) fn headline_and_stack(object: &JsObject, context: &mut Context) -> String {
    with_frames(headline(object), &frames_text(object, context))
}

pub(crate) fn frames_text(object: &JsObject, context: &mut Context) -> String {
    let script_name = Run::of(context).map(|run| run.script_name.borrow().clone());
    stack_text(&places(object, context), &script_name.unwrap_or_default())
}

/// Returns where an error was created, innermost frame first.
fn places(object: &JsObject, context: &mut Context) -> Vec<Place> {
    if let Some(origin) = object.downcast_ref::<Origin>() {
        return origin.places.clone();
    }
    let (Ok(kept), Ok(run)) = (Intrinsics::of(context), Run::of(context)) else {
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
        .filter_map(|line| in_script(line, &script_name, &run))
        .take(FRAMES_MAX)
        .collect()
}

fn in_script(line: &str, script_name: &str, run: &Run) -> Option<Place> {
    let place = place::in_script(run, parse_frame(line, script_name, &NAMELESS)?)?;
    Some(Place {
        function: shown_name(&place.function),
        ..place
    })
}
