//! Parses the approver from a flag or a configuration file.

use airlock_core::problem::Problem;

use super::{LocatedText, choice, invalid_at};
use crate::shell_words;

/// The approver, written as `terminal`, `web`, `command:CMD`, `later` or `never`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApproverChoice {
    Terminal,
    /// A web page on this machine.
    Web,
    /// A program and its arguments.
    Command(String, Vec<String>),
    /// Suspends a run that waits only for answers, so a person answers after its process has ended.
    Later,
    /// Never asks. The report lists the grants that the run would have needed.
    Never,
}

const ONE_OF: [&str; 5] = ["terminal", "web", "never", "later", "command:CMD"];
const SHOWN_CHARS_MAX: usize = 80;

impl ApproverChoice {
    /// Parses an approver. An error contains the reason and a suggestion.
    pub(crate) fn parse(text: &str) -> Result<Self, (String, String)> {
        match text {
            "terminal" => return Ok(Self::Terminal),
            "web" => return Ok(Self::Web),
            "later" => return Ok(Self::Later),
            "never" => return Ok(Self::Never),
            _ => {}
        }
        let Some(line) = text.strip_prefix("command:") else {
            let shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
            return Err((
                format!("`{shown}` is not an approver"),
                choice::one_of(text, &ONE_OF),
            ));
        };
        let advice = "close the quote, or remove the last backslash";
        let words = shell_words::split(line).map_err(|bad| (bad.to_string(), advice.to_owned()))?;
        match words.split_first() {
            Some((program, args)) => Ok(Self::Command(program.clone(), args.to_vec())),
            None => Err(("the command is empty".into(), choice::one_of("", &ONE_OF))),
        }
    }

    /// Returns the approver in the form in which a file or a flag names it.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Terminal => "terminal".into(),
            Self::Web => "web".into(),
            Self::Later => "later".into(),
            Self::Never => "never".into(),
            Self::Command(..) => format!("command:{}", self.command().unwrap_or_default()),
        }
    }

    /// Returns the command line of an approver that is a program.
    pub(crate) fn command(&self) -> Option<String> {
        match self {
            Self::Command(program, args) => {
                let words = std::iter::once(program).chain(args);
                let words: Vec<String> = words.map(|word| shell_words::quote(word)).collect();
                Some(words.join(" "))
            }
            _ => None,
        }
    }
}

pub(super) fn parse(at: &LocatedText) -> Result<ApproverChoice, Problem> {
    ApproverChoice::parse(&at.text).map_err(|(why, next)| {
        let what = format!("invalid value for `approver` ({})", at.origin);
        invalid_at(&at.origin, what, why, next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<ApproverChoice, &str>) {
        let found = ApproverChoice::parse(text).map_err(|(why, _)| why);
        assert_eq!(found, expected.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn approver_parses_five_forms() {
        check("terminal", Ok(ApproverChoice::Terminal));
        check("web", Ok(ApproverChoice::Web));
        check("later", Ok(ApproverChoice::Later));
        check("never", Ok(ApproverChoice::Never));
        let command = ApproverChoice::Command("ask".into(), vec!["-c".into(), "a b".into()]);
        check("command:ask -c 'a b'", Ok(command));
        check("Web", Err("`Web` is not an approver"));
        check("", Err("`` is not an approver"));
        check("command: ", Err("the command is empty"));
        check("command:'ask", Err("the quote ' is never closed"));
    }

    #[test]
    fn text_parses_to_the_same_approver() {
        for text in ["terminal", "web", "later", "never", "command:ask -c 'a b'"] {
            let parsed = ApproverChoice::parse(text).unwrap();
            assert_eq!(parsed.text(), text);
            assert_eq!(ApproverChoice::parse(&parsed.text()).unwrap(), parsed);
        }
    }
}
