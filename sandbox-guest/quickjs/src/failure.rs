//! Converts an uncaught error to plain data. No code of the script runs during the conversion: no
//! getter, `toString` or proxy trap.

use guest_common::failure::{
    self as common, CAUSE_VALUE_MAX, CAUSES_MAX, ERRORS_MAX, MESSAGE_MAX, NAME_MAX, errors_within,
    thrown_value, with_frames,
};
use guest_common::place::{describe as stack_text, innermost};
use guest_common::text::cut;
use rquickjs::{Object, Result, Value};
use sandbox_protocol::{ScriptError, StepState};

use crate::place;
use crate::run::Run;
use crate::{inspect, naming, native, quiet, tool_error};

/// The engine's message for endless recursion.
const TOO_DEEP: &str = "Maximum call stack size exceeded";

/// Returns the state of a run that ends with this thrown value.
pub(crate) fn state_of(value: &Value<'_>, run: &Run) -> StepState {
    let error = of_value(value, run);
    if error.name == "RangeError" && error.message == TOO_DEEP && value.is_error() {
        return StepState::StackExhausted;
    }
    StepState::Failed(error)
}

fn of_value(value: &Value<'_>, run: &Run) -> ScriptError {
    match value.as_object().filter(|_| is_error(value)) {
        Some(object) => of_object(object, run),
        None => {
            let message = if value.is_string() {
                quiet::lossy(value)
            } else {
                shown_value(value, run)
            };
            thrown_value(&message)
        }
    }
}

pub(crate) fn is_error(value: &Value<'_>) -> bool {
    value.is_error() || tool_error::origin(value).is_some()
}

fn of_object(object: &Object<'_>, run: &Run) -> ScriptError {
    let name = quiet::text(object, "name", NAME_MAX).unwrap_or_else(|| "Error".to_owned());
    let mut message = quiet::text(object, "message", MESSAGE_MAX).unwrap_or_default();
    if name == "AggregateError" {
        message.push_str(&within(object, run));
    }
    append_causes(object, &mut message, run);
    let origin = tool_error::origin(object.as_value());
    let origin = origin.as_ref().map(|origin| origin.borrow());
    let places = match &origin {
        Some(origin) => origin.places.clone(),
        None => {
            let places = place::of_error(object.as_value(), run);
            native::quietly(object.ctx(), places).unwrap_or_default()
        }
    };
    let (line, column) = innermost(&places);
    let mut error = ScriptError {
        name,
        message,
        code: origin
            .as_ref()
            .map(|origin| origin.code.clone())
            .unwrap_or_default(),
        line,
        column,
        stack: stack_text(&places, &run.script_name.borrow()),
        ticket: origin.as_ref().and_then(|origin| origin.ticket),
    };
    let is_native = || {
        let is_native = place::is_native(object.as_value(), run);
        native::quietly(object.ctx(), is_native).unwrap_or_default()
    };
    if origin.is_none() && !is_native() {
        naming::improve(&mut error, &run.script.borrow());
    }
    error
}

/// Describes the errors of an `AggregateError`.
fn within(object: &Object<'_>, run: &Run) -> String {
    let errors = quiet::read(object, "errors");
    let Some(errors) = errors.filter(Value::is_array).and_then(Value::into_object) else {
        return String::new();
    };
    let length = quiet::read(&errors, "length").and_then(|length| length.as_number());
    let length = length.unwrap_or(0.0) as usize;
    let shown: Vec<_> = (0..length.min(ERRORS_MAX))
        .filter_map(|at| quiet::read(&errors, &at.to_string()))
        .map(|error| display_value(&error, run))
        .collect();
    errors_within(&shown, length.saturating_sub(ERRORS_MAX))
}

fn append_causes(object: &Object<'_>, message: &mut String, run: &Run) {
    let mut present = object.clone();
    for _ in 0..CAUSES_MAX {
        let Some(cause) = quiet::read(&present, "cause") else {
            return;
        };
        message.push_str(&format!(" (cause: {})", display_value(&cause, run)));
        let Some(next) = cause.into_object() else {
            return;
        };
        present = next;
    }
}

/// Describes a value that another error contains.
fn display_value(value: &Value<'_>, run: &Run) -> String {
    match value.as_object().filter(|_| is_error(value)) {
        Some(error) => headline(error),
        None => cut(&shown_value(value, run), CAUSE_VALUE_MAX),
    }
}

/// Formats a thrown value that is not an error, for the report of the run's end, when the stack is
/// empty.
fn shown_value(value: &Value<'_>, run: &Run) -> String {
    native::quietly(value.ctx(), inspect::one(value, run)).unwrap_or_default()
}

fn headline(object: &Object<'_>) -> String {
    common::headline(
        quiet::text(object, "name", NAME_MAX),
        quiet::text(object, "message", MESSAGE_MAX),
    )
}

/// Formats an error as the console prints it.
pub(crate) fn headline_and_stack(object: &Object<'_>, run: &Run) -> Result<String> {
    Ok(with_frames(headline(object), &frames_text(object, run)?))
}

pub(crate) fn frames_text(object: &Object<'_>, run: &Run) -> Result<String> {
    let places = match tool_error::origin(object.as_value()) {
        Some(origin) => origin.borrow().places.clone(),
        None => place::of_error(object.as_value(), run)?,
    };
    Ok(stack_text(&places, &run.script_name.borrow()))
}
