//! Where in the script something happened, read from the engine's own text of a
//! stack: `    at name (script.js:3:14)`, or without the name in a syntax error.

use rquickjs::{Ctx, Value};

use crate::quiet;
use crate::run::Run;

/// One frame of the script's own text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) function: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// Frames that are kept of any one stack.
const FRAMES_MAX: usize = 12;

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
        .filter_map(|line| parse_frame(line, &script_name, run))
        .take(FRAMES_MAX)
        .collect()
}

/// Whether an error was made inside a built-in function that the script called.
pub(crate) fn is_native(error: &Value<'_>, run: &Run) -> bool {
    let stack = run.kept().ok().and_then(|kept| kept.error_stack(error));
    let stack = stack
        .filter(Value::is_string)
        .map(|stack| quiet::lossy(&stack));
    stack.is_some_and(|stack| {
        stack
            .lines()
            .next()
            .is_some_and(|line| line.ends_with(" (native)"))
    })
}

fn parse_frame(line: &str, script_name: &str, run: &Run) -> Option<Place> {
    let frame = line.trim_start().strip_prefix("at ")?;
    let (function, location) = match frame.rsplit_once(" (") {
        Some((function, location)) => (function, location.strip_suffix(')')?),
        None => ("", frame),
    };
    let location = location.strip_prefix(script_name)?.strip_prefix(':')?;
    let (line, column) = location.split_once(':')?;
    let (line, column) = in_script(run, line.parse().ok()?, column.parse().ok()?)?;
    let is_named = !["<anonymous>", "<eval>"].contains(&function);
    Some(Place {
        function: if is_named {
            quiet::cut(function, 100)
        } else {
            String::new()
        },
        line,
        column,
    })
}

/// Takes the wrapper off a position; `None` when it lies in the wrapper itself.
fn in_script(run: &Run, line: u32, column: u32) -> Option<(u32, u32)> {
    let line = line
        .checked_sub(run.lines_before.get())
        .filter(|&line| line > 0)?;
    (line <= run.script_lines.get()).then_some((line, column))
}

/// The conventional form of a stack, one line a frame.
pub(crate) fn describe(places: &[Place], script_name: &str) -> String {
    let mut text = String::new();
    for Place {
        function,
        line,
        column,
    } in places
    {
        if !text.is_empty() {
            text.push('\n');
        }
        let function = if function.is_empty() {
            "<script>"
        } else {
            function
        };
        text.push_str(&format!(
            "    at {function} ({script_name}:{line}:{column})"
        ));
    }
    text
}
