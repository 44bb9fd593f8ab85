//! Where in the script something happened.

use boa_engine::Context;
use boa_engine::vm::SourcePath;

use crate::run::Run;

/// One frame of the script's own text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) function: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// Frames that are kept of any one stack.
pub(crate) const FRAMES_MAX: usize = 12;

/// The frames of the script that are active now, innermost first.
pub(crate) fn here(context: &Context, run: &Run) -> Vec<Place> {
    context
        .stack_trace()
        .filter_map(|frame| {
            let location = frame.position();
            let SourcePath::Path(_) = location.path else {
                return None;
            };
            let position = location.position?;
            in_script(run, position.line_number(), position.column_number()).map(
                |(line, column)| Place {
                    function: own_name(run, &location.function_name.to_std_string_lossy()),
                    line,
                    column,
                },
            )
        })
        .take(FRAMES_MAX)
        .collect()
}

/// Takes off a position what was put around the script and into it; `None` when it lies in
/// the wrapper itself, or in what was put in.
pub(crate) fn in_script(run: &Run, line: u32, column: u32) -> Option<(u32, u32)> {
    let line = line
        .checked_sub(run.lines_before.get())
        .filter(|&line| line > 0)?;
    let column = run.shifts.borrow().column(line, column)?;
    (line <= run.script_lines.get()).then_some((line, column))
}

/// What the script calls a function.
pub(crate) fn own_name(run: &Run, function: &str) -> String {
    run.shifts.borrow().name(function).to_owned()
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
