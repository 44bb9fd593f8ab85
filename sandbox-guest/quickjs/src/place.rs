//! Positions in the script, read from the engine's stack text: `    at name (script.js:3:14)`, or
//! without the name in a syntax error.

use guest_common::place::{FRAMES_MAX, Place, line_in_script, parse_frame, shown_name};
use rquickjs::{Ctx, Result, Value};

use crate::quiet;
use crate::run::Run;

/// The engine's names for a function without a name.
const NAMELESS: [&str; 2] = ["<anonymous>", "<eval>"];

/// Returns the active frames of the script, innermost first.
pub(crate) fn here(ctx: &Ctx<'_>, run: &Run) -> Result<Vec<Place>> {
    let error: Value<'_> = run.kept()?.error(ctx)?.construct(())?;
    of_error(&error, run)
}

/// Returns where an error was created, innermost frame first; empty for an object that is not an
/// error.
pub(crate) fn of_error(error: &Value<'_>, run: &Run) -> Result<Vec<Place>> {
    let stack = run.kept()?.error_stack(error)?;
    if !stack.is_string() {
        return Ok(Vec::new());
    }
    let script_name = run.script_name.borrow();
    let places = quiet::lossy(&stack)
        .lines()
        .filter_map(|line| in_script(line, &script_name, run))
        .take(FRAMES_MAX)
        .collect();
    Ok(places)
}

/// Whether an error was created inside a built-in function that the script called.
pub(crate) fn is_native(error: &Value<'_>, run: &Run) -> Result<bool> {
    let stack = run.kept()?.error_stack(error)?;
    let stack = stack.is_string().then(|| quiet::lossy(&stack));
    let innermost = stack.as_deref().and_then(|stack| stack.lines().next());
    Ok(innermost.is_some_and(|line| line.ends_with(" (native)")))
}

fn in_script(line: &str, script_name: &str, run: &Run) -> Option<Place> {
    let place = parse_frame(line, script_name, &NAMELESS)?;
    let line = line_in_script(place.line, run.lines_before.get(), run.script_lines.get())?;
    Some(Place {
        function: shown_name(&place.function),
        line,
        ..place
    })
}
