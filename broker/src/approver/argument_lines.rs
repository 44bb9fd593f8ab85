//! The arguments of a call as lines for a terminal: short values first, and paths before the other
//! ones; then texts with several lines, such as the content of a file, line by line.

use serde_json::Value;

use crate::render::escape;

/// Parts of the names of arguments that hold a path or an address.
const PATH_NAMES: [&str; 7] = ["path", "file", "folder", "directory", "dir", "uri", "url"];

/// Marks each line of a text, so that no text can imitate an argument.
const TEXT_LINE: &str = "│ ";

/// Returns the lines. Every text is escaped; lines are not wrapped.
pub(super) fn argument_lines(args: &Value) -> Vec<String> {
    let members = match args {
        Value::Object(members) if !members.is_empty() => members,
        other => return pretty(other),
    };
    let mut fields: Vec<(&String, &Value)> = members.iter().collect();
    fields.sort_by_key(|(name, value)| rank(name, value));
    fields
        .into_iter()
        .flat_map(|(name, value)| field(name, value))
        .collect()
}

fn rank(name: &str, value: &Value) -> u8 {
    match value {
        Value::String(text) if text.contains('\n') => 3,
        Value::String(_) if is_path_name(name) => 0,
        Value::Array(_) | Value::Object(_) => 2,
        _ => 1,
    }
}

fn is_path_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PATH_NAMES.iter().any(|part| name.contains(part))
}

fn field(name: &str, value: &Value) -> Vec<String> {
    let name = shown_name(name);
    match value {
        Value::String(text) if text.contains('\n') => {
            let whole = text.strip_suffix('\n');
            let lines: Vec<&str> = whole.unwrap_or(text).split('\n').collect();
            let end = match whole {
                Some(_) => "",
                None => ", without a line ending at the end",
            };
            let count = crate::render::counted(lines.len(), "line");
            let head = format!("{name}: {count}, {} bytes{end}", text.len());
            let lines = lines
                .into_iter()
                .map(|line| format!("{TEXT_LINE}{}", escape::line(line)));
            std::iter::once(head).chain(lines).collect()
        }
        value => {
            let mut lines = pretty(value);
            if let Some(first) = lines.first_mut() {
                *first = format!("{name}: {first}");
            }
            lines
        }
    }
}

/// Returns a name as it is, or as JSON if it has characters that could be misread.
fn shown_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !name.is_empty() && name.chars().all(is_plain) {
        return name.to_owned();
    }
    let quoted = Value::String(name.to_owned()).to_string();
    escape::line(&quoted).into_owned()
}

fn pretty(value: &Value) -> Vec<String> {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.lines()
        .map(|line| escape::line(line).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(args: Value, expected: &[&str]) {
        assert_eq!(argument_lines(&args), expected);
    }

    #[test]
    fn content_is_shown_as_lines_after_the_path() {
        check(
            json!({"content": "# Notes\n\n\t- one\r\n", "mode": 420, "path": "out/notes.md"}),
            &[
                "path: \"out/notes.md\"",
                "mode: 420",
                "content: 3 lines, 17 bytes",
                "│ # Notes",
                "│ ",
                "│ \\t- one\\r",
            ],
        );
    }

    #[test]
    fn text_without_final_line_ending_is_marked() {
        check(
            json!({"content": "a\nb"}),
            &[
                "content: 2 lines, 3 bytes, without a line ending at the end",
                "│ a",
                "│ b",
            ],
        );
    }

    #[test]
    fn text_cannot_imitate_an_argument() {
        check(
            json!({"a\"\npath": 1, "content": "x\npath: \"ok\"\n│ y\u{1b}[2J"}),
            &[
                "\"a\\\"\\npath\": 1",
                "content: 3 lines, 22 bytes, without a line ending at the end",
                "│ x",
                "│ path: \"ok\"",
                "│ │ y\\u{1b}[2J",
            ],
        );
    }

    #[test]
    fn other_values_are_json() {
        check(json!({}), &["{}"]);
        check(
            json!({"tags": ["a"], "on": true}),
            &["on: true", "tags: [", "  \"a\"", "]"],
        );
    }
}
