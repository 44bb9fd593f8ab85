//! Parses the output of a TypeScript compiler: one error per line, its reasons indented below it.

use super::TypedFinding;
use crate::text;

const MESSAGE_CHARS_MAX: usize = 240;
/// Maximum length of a type in characters. A longer one is cut; the declarations show it in full.
const TYPE_CHARS_MAX: usize = 80;

/// Output that a working compiler does not produce.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unexpected compiler output: `{0}`")]
pub struct BadTscOutput(String);

/// One error in the script's file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TscError<'a> {
    pub(super) line: u32,
    /// Column in UTF-16 units, from 1.
    column: u32,
    code: u32,
    message: &'a str,
    /// The innermost reason.
    reason: Option<&'a str>,
}

/// Returns the errors of `file` that are worth reporting. Errors of other files are not about the
/// script.
pub(super) fn read<'a>(said: &'a str, file: &str) -> Result<Vec<TscError<'a>>, BadTscOutput> {
    let mut all: Vec<Option<TscError<'a>>> = Vec::new();
    for line in said.lines().filter(|it| !it.trim().is_empty()) {
        if line.starts_with(' ') {
            if let Some(Some(last)) = all.last_mut() {
                last.reason = Some(line.trim());
            }
            continue;
        }
        let (name, error) =
            error(line).ok_or_else(|| BadTscOutput(text::visible(&text::clip(line, 120))))?;
        all.push((name == file && is_told(error.code)).then_some(error));
    }
    Ok(all.into_iter().flatten().collect())
}

/// Parses `script.ts(3,14): error TS2322: Type …`.
fn error(line: &str) -> Option<(&str, TscError<'_>)> {
    let (name, rest) = line.split_once('(')?;
    let (place, rest) = rest.split_once("): error TS")?;
    let (line, column) = place.split_once(',')?;
    let (code, message) = rest.split_once(": ")?;
    let said = TscError {
        line: line.parse().ok()?,
        column: column.parse().ok()?,
        code: code.parse().ok()?,
        message,
        reason: None,
    };
    Some((name, said))
}

/// Whether errors with this code are reported. Three kinds are not: syntax errors, which the check
/// reports; unknown names, which the check finds more reliably; and missing type annotations, which
/// are not mistakes.
fn is_told(code: u32) -> bool {
    /// Errors about names, types or modules that cannot be found, and about repeated declarations.
    const NAMES: [u32; 18] = [
        2300, 2304, 2306, 2307, 2318, 2451, 2503, 2552, 2580, 2581, 2582, 2583, 2584, 2591, 2592,
        2593, 2732, 2792,
    ];
    /// Errors about arithmetic operands, such as subtracted dates, and about the number of
    /// arguments: such code runs, and the check covers the arguments of tool calls.
    const RUNS_WELL: [u32; 4] = [2362, 2363, 2554, 2555];
    matches!(code, 2000..3000 | 18000..19000)
        && !NAMES.contains(&code)
        && !RUNS_WELL.contains(&code)
}

impl TscError<'_> {
    /// Whether an error only results from missing type annotations. Examples are a variable whose
    /// literal type was widened, and in JavaScript `null`, `{}` or an object that gets its members
    /// later.
    pub(super) fn is_noise(&self, is_javascript: bool) -> bool {
        if let Some((from, to)) = self.assigned() {
            let is_widened = ["string", "number", "boolean"].contains(&from);
            if is_widened && to.contains('"') {
                return true;
            }
            if is_javascript && ["null", "never", "undefined"].contains(&to) {
                return true;
            }
        }
        let of_type = |it: &str| self.message.contains(&format!("on type '{it}'"));
        let is_missing = matches!(self.code, 2739..=2741);
        let is_unfinished = of_type("never") || of_type("{}") || is_missing;
        // The property exists in some members of a union.
        let is_in_some = self.code == 2339 && self.reason.is_some();
        is_javascript && (is_unfinished || is_in_some)
    }

    /// Parses `Type 'A' is not assignable to type 'B'.`, also with `Argument of type`.
    fn assigned(&self) -> Option<(&str, &str)> {
        let (_, rest) = self.message.split_once("ype '")?;
        let (from, rest) = rest.split_once("' is not assignable to ")?;
        let (_, to) = rest.split_once("type '")?;
        Some((from, to.split_once('\'').map_or(to, |(to, _)| to)))
    }

    /// Converts the error to a finding at its location in the script; `line` is the text of the
    /// line.
    pub(super) fn finding(&self, line: &str, lines_before: u32) -> TypedFinding {
        let (message, mut suggestion) = suggested(self.message);
        let mut message = shortened(message);
        if let Some(reason) = self.reason {
            let (reason, other) = suggested(reason);
            message = format!("{message}: {}", lower(&shortened(reason)));
            suggestion = suggestion.or(other);
        }
        TypedFinding {
            code: format!("ts{}", self.code),
            line: self.line - lines_before,
            column: characters(line, self.column),
            message: text::clip(&lower(&message), MESSAGE_CHARS_MAX),
            suggestion: suggestion.map(|it| text::clip(&shortened(&it), MESSAGE_CHARS_MAX)),
        }
    }
}

/// Splits a message into the text and the name that it suggests.
fn suggested(message: &str) -> (&str, Option<String>) {
    match message.split_once(". Did you mean ") {
        Some((message, name)) => (
            message,
            Some(format!("Did you mean {}", name.replace('\'', "`"))),
        ),
        None => (message, None),
    }
}

/// Converts a column from UTF-16 units to characters.
fn characters(line: &str, column: u32) -> u32 {
    let mut units = 1;
    let mut characters = 1;
    for c in line.chars() {
        if units >= column {
            break;
        }
        units += if c.len_utf16() == 2 { 2 } else { 1 };
        characters += 1;
    }
    characters
}

/// Removes the final full stop, and cuts long types.
fn shortened(message: &str) -> String {
    let message = text::neutralise(message);
    let mut short = String::new();
    for (place, part) in message.trim_end_matches('.').split('\'').enumerate() {
        if place > 0 {
            short.push('\'');
        }
        if part.chars().count() > TYPE_CHARS_MAX && place % 2 == 1 {
            short.push_str(&text::clip(part, TYPE_CHARS_MAX));
        } else {
            short.push_str(part);
        }
    }
    short
}

/// Changes the first letter to lower case, as in all messages of airlock.
fn lower(message: &str) -> String {
    let mut chars = message.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}

pub(super) fn is_in_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

/// Returns the texts between quotation marks.
pub(super) fn quoted(message: &str, mark: char) -> Vec<&str> {
    message.split(mark).skip(1).step_by(2).collect()
}

/// Returns a text from its first character that is neither white space nor in a comment.
pub(super) fn after_comments(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let after = if rest.starts_with("//") {
            rest.split_once('\n').map(|(_, after)| after)
        } else if rest.starts_with("/*") {
            rest.split_once("*/").map(|(_, after)| after)
        } else {
            return rest;
        };
        rest = after.unwrap_or_default().trim_start();
    }
}
