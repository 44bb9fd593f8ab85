//! Where in the script something happened, read from the engine's own text of a
//! stack: `    at name (script.js:3:14)`, or without the name in a syntax error.

use guest_common::place::{FRAMES_MAX, Place, line_in_script, parse_frame, shown_name};
use rquickjs::{Ctx, Value};

use crate::quiet;
use crate::run::Run;

/// What the engine calls a function without a name.
const NAMELESS: [&str; 2] = ["<anonymous>", "<eval>"];

/// The frames of the script that are active now, innermost first.
pub(crate) fn here(ctx: &Ctx<'_>, run: &Run) -> Vec<Place> {
    let Ok(kept) = run.kept() else {
        return Vec::new();
    };
    let error = kept.error(ctx).and_then(|error| error.construct(()));
    match error {
        Ok(error) => of_error(&error, run),
        Err(_) => {
            ctx.catch();
            Vec::new()
        }
    }
}

/// Where an error was made, innermost frame first; nothing for what is no error.
pub(crate) fn of_error(error: &Value<'_>, run: &Run) -> Vec<Place> {
    let stack = run.kept().ok().and_then(|kept| kept.error_stack(error));
    let Some(stack) = stack.filter(Value::is_string) else {
        return Vec::new();
    };
    let script_name = run.script_name.borrow();
    quiet::lossy(&stack)
        .lines()
        .filter_map(|line| in_script(line, &script_name, run))
        .take(FRAMES_MAX)
        .collect()
}

/// Whether an error was made inside a built-in function that the script called.
pub(crate) fn is_native(error: &Value<'_>, run: &Run) -> bool {
    let stack = run.kept().ok().and_then(|kept| kept.error_stack(error));
    stack.filter(Value::is_string).is_some_and(|stack| {
        let stack = quiet::lossy(&stack);
        let innermost = stack.lines().next();
        innermost.is_some_and(|line| line.ends_with(" (native)"))
    })
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
