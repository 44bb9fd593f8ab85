//! Formats problems, reports and journals as text for a terminal. The commands themselves print
//! JSON for programs.

mod advice;
pub mod escape;
mod explanation;
mod findings;
mod grants;
mod history;
mod report;
mod sarif;

use airlock_core::problem::Problem;

pub use advice::{policy_finding, policy_summary};
pub use explanation::{Explanation, explanation};
pub use findings::{finding, findings_summary, untold_findings};
pub use grants::{grant, grant_file, grant_line};
pub(crate) use history::word;
pub use history::{history, verification};
pub(crate) use report::run_again;
pub use report::{calls, ending, excerpt, footer, open_calls, value};
pub use sarif::{Sarif, SarifLevel, SarifResult, sarif, uri_of};

/// Formats a number with its noun, such as `1 call` or `2 calls`.
pub(crate) fn counted(count: impl std::fmt::Display, thing: &str) -> String {
    match count.to_string() {
        one if one == "1" => format!("1 {thing}"),
        count => format!("{count} {thing}s"),
    }
}

/// Formatting options.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    pub colour: bool,
}

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint("31;1", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }
}

/// Formats a problem: what, why, next, code.
#[must_use]
pub fn problem(problem: &Problem, style: Style) -> String {
    let mut text = format!("{} {}\n", style.red("error:"), escape::line(&problem.what));
    for (label, part) in [
        ("  why:", &*problem.why),
        (" next:", &*problem.next),
        (" code:", &*problem.code),
    ] {
        if !part.is_empty() {
            text.push_str(&format!("{} {}\n", style.dim(label), escape::line(part)));
        }
    }
    text
}

/// Formats a warning in one line. A warning stops nothing, so the code is not shown.
#[must_use]
pub fn warning(problem: &Problem, style: Style) -> String {
    let mut text = format!(
        "{} {}",
        style.yellow("warning:"),
        escape::line(&problem.what)
    );
    for part in [&problem.why, &problem.next]
        .into_iter()
        .filter(|part| !part.is_empty())
    {
        text.push_str(&format!("; {}", escape::line(part)));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problem_renders_as_four_escaped_lines() {
        let shown = problem(
            &Problem::new("denied", "no\u{1b}[2J", "why\nnot", ""),
            Style::default(),
        );
        assert_eq!(
            shown,
            "error: no\\u{1b}[2J\n  why: why\\nnot\n code: denied\n"
        );
    }

    #[test]
    fn colour_only_when_enabled() {
        let problem_ = Problem::new("x", "a", "", "");
        assert!(!problem(&problem_, Style::default()).contains('\u{1b}'));
        assert!(problem(&problem_, Style { colour: true }).contains('\u{1b}'));
    }

    #[test]
    fn warning_renders_as_one_line() {
        let shown = warning(&Problem::new("x", "a", "b", "c"), Style::default());
        assert_eq!(shown, "warning: a; b; c\n");
    }
}
