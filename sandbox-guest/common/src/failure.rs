//! The texts of uncaught errors.

use sandbox_protocol::ScriptError;

use crate::text::cut;

/// Maximum length of a reported message in characters.
pub const MESSAGE_MAX: usize = 4_000;
pub const NAME_MAX: usize = 100;
/// Maximum number of errors reported along a chain of `cause`.
pub const CAUSES_MAX: usize = 4;
/// Maximum length in characters of a cause that is not an error.
pub const CAUSE_VALUE_MAX: usize = 200;

/// Returns the error for a thrown value that is not an error.
pub fn thrown_value(shown: &str) -> ScriptError {
    ScriptError {
        name: "Thrown value".to_owned(),
        message: cut(shown, MESSAGE_MAX),
        ..ScriptError::default()
    }
}

/// Formats an error's name and message.
pub fn headline(name: Option<String>, message: Option<String>) -> String {
    let name = name.unwrap_or_else(|| "Error".to_owned());
    match message.filter(|message| !message.is_empty()) {
        None => name,
        Some(message) => format!("{name}: {message}"),
    }
}

/// Maximum number of reported errors of an `AggregateError`.
pub const ERRORS_MAX: usize = 3;

/// Returns the text after the message of an `AggregateError`: the headlines of its first errors,
/// and the number of the others.
pub fn errors_within(shown: &[String], others: usize) -> String {
    let mut all = shown.join("; ");
    if others > 0 {
        all.push_str(&format!("; and {others} more"));
    }
    match shown.is_empty() {
        true => String::new(),
        false => format!(" (errors: {all})"),
    }
}

/// Appends the frames to a headline.
pub fn with_frames(mut headline: String, frames: &str) -> String {
    if !frames.is_empty() {
        headline.push('\n');
        headline.push_str(frames);
    }
    headline
}

/// Messages about unhandled rejections at the end of a script. The usual reason is a missing
/// `await`.
pub mod unhandled {
    /// Maximum number of rejections that are reported separately.
    pub const SHOWN_MAX: usize = 5;

    pub fn one(reason: &str) -> String {
        format!("a rejected promise was never awaited: {reason}")
    }

    /// Returns the message about rejections beyond that number, if there are any.
    pub fn others(total: usize) -> Option<String> {
        let more = total.saturating_sub(SHOWN_MAX);
        (more > 0).then(|| format!("{more} more rejected promises were never awaited"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_its_name_and_what_it_says() {
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(headline(text("TypeError"), text("no")), "TypeError: no");
        assert_eq!(headline(None, text("")), "Error");
        assert_eq!(headline(None, None), "Error");
        assert_eq!(with_frames("Error".to_owned(), ""), "Error");
        assert_eq!(
            with_frames("Error".to_owned(), "    at x"),
            "Error\n    at x"
        );
    }

    #[test]
    fn the_errors_within_an_error_are_told_up_to_a_number() {
        let shown = ["Error: one".to_owned(), "TypeError: two".to_owned()];
        let one = shown.get(..1).unwrap_or_default();
        assert_eq!(errors_within(&[], 0), "");
        assert_eq!(errors_within(one, 0), " (errors: Error: one)");
        assert_eq!(
            errors_within(&shown, 4),
            " (errors: Error: one; TypeError: two; and 4 more)"
        );
    }

    #[test]
    fn what_is_thrown_is_cut() {
        let long = "x".repeat(MESSAGE_MAX + 1);
        assert_eq!(thrown_value(&long).message.chars().count(), MESSAGE_MAX + 1);
        assert!(thrown_value(&long).message.ends_with('…'));
    }

    #[test]
    fn rejections_are_counted_beyond_the_first() {
        assert_eq!(unhandled::others(5), None);
        let others = unhandled::others(7).unwrap();
        assert_eq!(others, "2 more rejected promises were never awaited");
    }
}
