//! Positions in the script, and the format of a stack.

use crate::text::cut;

/// One frame of a stack, inside the script's own text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Empty for the script itself, and for functions without a name.
    pub function: String,
    pub line: u32,
    pub column: u32,
}

/// Maximum number of frames of a stack that are kept.
pub const FRAMES_MAX: usize = 12;

const NAME_CHARS_MAX: usize = 100;

/// Parses one line of an engine's stack text, `    at name (script.js:3:14)` or without the name.
/// Returns `None` if the line is not about the script. The position is the engine's; `nameless`
/// contains the engine's names for functions without a name.
pub fn parse_frame(line: &str, script_name: &str, nameless: &[&str]) -> Option<Place> {
    let frame = line.trim_start().strip_prefix("at ")?;
    let (function, location) = match frame.rsplit_once(" (") {
        Some((function, location)) => (function, location.strip_suffix(')')?),
        None => ("", frame),
    };
    let location = location.strip_prefix(script_name)?.strip_prefix(':')?;
    let (line, column) = location.split_once(':')?;
    let is_named = !nameless.contains(&function);
    Some(Place {
        function: if is_named { function } else { "" }.to_owned(),
        line: line.parse().ok()?,
        column: column.parse().ok()?,
    })
}

/// Returns a function's name as a frame shows it.
pub fn shown_name(name: &str) -> String {
    cut(name, NAME_CHARS_MAX)
}

/// Converts a line number to the script's own; `None` if the line is before or after the script.
pub fn line_in_script(line: u32, lines_before: u32, script_lines: u32) -> Option<u32> {
    let line = line.checked_sub(lines_before)?;
    (1..=script_lines).contains(&line).then_some(line)
}

/// Returns the line and column of the innermost frame, or zeros if there is none.
pub fn innermost(places: &[Place]) -> (u32, u32) {
    places
        .first()
        .map_or((0, 0), |place| (place.line, place.column))
}

/// Writes a stack in the conventional form, one line per frame.
pub fn describe(places: &[Place], script_name: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_the_script_are_read_and_others_are_not() {
        let place = |function: &str| {
            let function = function.to_owned();
            Some(Place {
                function,
                line: 3,
                column: 14,
            })
        };
        for (line, expected) in [
            ("    at name (script.js:3:14)", place("name")),
            ("    at a b (c) (script.js:3:14)", place("a b (c)")),
            ("    at script.js:3:14", place("")),
            ("    at <main> (script.js:3:14)", place("")),
            ("    at <other> (script.js:3:14)", place("<other>")),
            ("    at map (native)", None),
            ("    at name (url.js:3:14)", None),
            ("    at name (script.js:3)", None),
            ("    at name (script.js:3:-1)", None),
            ("name (script.js:3:14)", None),
            ("", None),
        ] {
            assert_eq!(
                parse_frame(line, "script.js", &["<main>"]),
                expected,
                "{line}"
            );
        }
    }

    #[test]
    fn lines_of_the_wrapper_are_none_of_the_script() {
        let lines = [0, 1, 2, 4, 5].map(|line| line_in_script(line, 1, 3));
        assert_eq!(lines, [None, None, Some(1), Some(3), None]);
    }

    #[test]
    fn a_stack_is_written_as_it_is_elsewhere() {
        let place = |function: &str, line| Place {
            function: function.to_owned(),
            line,
            column: 2,
        };
        assert_eq!(
            describe(&[place("inner", 1), place("", 7)], "a.js"),
            "    at inner (a.js:1:2)\n    at <script> (a.js:7:2)"
        );
        assert_eq!(describe(&[], "a.js"), "");
    }
}
