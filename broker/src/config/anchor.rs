//! Parses the setting for the program that receives the signed heads of runs.

use airlock_core::problem::Problem;

use super::{LocatedText, invalid_at};
use crate::shell_words;

/// A program that receives each signed head as JSON on stdin, written as `command:CMD`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnchorCommand {
    pub program: String,
    pub args: Vec<String>,
}

const FORM: &str = "write `command:CMD`, for example `command:/usr/local/bin/store-head`";

pub(super) fn parse(at: &LocatedText) -> Result<AnchorCommand, Problem> {
    let what = || format!("invalid value for `anchor` ({})", at.origin);
    let Some(line) = at.text.strip_prefix("command:") else {
        return Err(invalid_at(&at.origin, what(), "it is not a command", FORM));
    };
    let words = shell_words::split(line)
        .map_err(|bad| invalid_at(&at.origin, what(), bad.to_string(), FORM))?;
    match words.split_first() {
        Some((program, args)) => Ok(AnchorCommand {
            program: program.clone(),
            args: args.to_vec(),
        }),
        None => Err(invalid_at(&at.origin, what(), "the command is empty", FORM)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&[&str], &str>) {
        let at = LocatedText {
            text: text.to_owned(),
            origin: "file:1".into(),
        };
        match (parse(&at), expected) {
            (Ok(found), Ok(words)) => {
                let found: Vec<_> = [found.program].into_iter().chain(found.args).collect();
                assert_eq!(found, words, "{text}");
            }
            (Err(problem), Err(why)) => assert_eq!(problem.why, why, "{text}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn anchor_is_a_command() {
        check("command:store 'a b' c", Ok(&["store", "a b", "c"]));
        check("store", Err("it is not a command"));
        check("command: ", Err("the command is empty"));
        check("command:'store", Err("the quote ' is never closed"));
    }
}
