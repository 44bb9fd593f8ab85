//! Positions in the script.

use boa_engine::Context;
use boa_engine::vm::SourcePath;
use guest_common::place::{FRAMES_MAX, Place, line_in_script};

use crate::run::Run;

/// Returns the active frames of the script, innermost first.
pub(crate) fn here(context: &Context, run: &Run) -> Vec<Place> {
    context
        .stack_trace()
        .filter_map(|frame| {
            let location = frame.position();
            let SourcePath::Path(_) = location.path else {
                return None;
            };
            let position = location.position?;
            let place = Place {
                function: location.function_name.to_std_string_lossy(),
                line: position.line_number(),
                column: position.column_number(),
            };
            in_script(run, place)
        })
        .take(FRAMES_MAX)
        .collect()
}

/// Converts a place to the script's own position, without the wrapper. Returns `None` if the place
/// is in the wrapper.
pub(crate) fn in_script(run: &Run, place: Place) -> Option<Place> {
    let line = line_in_script(place.line, run.lines_before.get(), run.script_lines.get())?;
    Some(Place { line, ..place })
}
