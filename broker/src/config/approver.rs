//! Who is asked, as a flag and a configuration file say it.

use airlock_core::problem::Problem;

use super::{Located, invalid_at, words};

/// How it is written: `terminal`, `web`, `command:CMD` or `never`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    Terminal,
    /// A page on this machine.
    Web,
    /// A program and its arguments.
    Command(String, Vec<String>),
    /// Nobody; the report says which grants would have been enough.
    Never,
}

const ONE_OF: &str = "write terminal, web, command:CMD or never";
const SHOWN_CHARS_MAX: usize = 80;

impl Who {
    /// Or why it cannot be used, and what helps.
    pub(crate) fn parse(text: &str) -> Result<Self, (String, &'static str)> {
        match text {
            "terminal" => return Ok(Self::Terminal),
            "web" => return Ok(Self::Web),
            "never" => return Ok(Self::Never),
            _ => {}
        }
        let Some(line) = text.strip_prefix("command:") else {
            let shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
            return Err((format!("`{shown}` is not an approver"), ONE_OF));
        };
        let words = words::split(line).map_err(|bad| (bad.to_string(), "close what is open"))?;
        match words.split_first() {
            Some((program, args)) => Ok(Self::Command(program.clone(), args.to_vec())),
            None => Err(("the command is empty".into(), ONE_OF)),
        }
    }
}

pub(super) fn parse(at: &Located) -> Result<Who, Problem> {
    Who::parse(&at.text).map_err(|(why, next)| {
        let what = format!("`approver` ({}) cannot be used", at.origin);
        invalid_at(&at.origin, what, why, next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<Who, &str>) {
        let found = Who::parse(text).map_err(|(why, _)| why);
        assert_eq!(found, expected.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn an_approver_is_one_of_four() {
        check("terminal", Ok(Who::Terminal));
        check("web", Ok(Who::Web));
        check("never", Ok(Who::Never));
        let command = Who::Command("ask".into(), vec!["-c".into(), "a b".into()]);
        check("command:ask -c 'a b'", Ok(command));
        check("Web", Err("`Web` is not an approver"));
        check("", Err("`` is not an approver"));
        check("command: ", Err("the command is empty"));
        check("command:'ask", Err("the quote ' is never closed"));
    }
}
