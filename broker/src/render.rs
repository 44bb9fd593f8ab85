//! Formats problems, reports and journals as text for a terminal. The commands themselves print
//! JSON for programs.

mod advice;
pub mod escape;
mod explanation;
mod findings;
mod grants;
mod history;
mod report;
mod resume;
mod sarif;

use airlock_core::login::Credential;
use airlock_core::problem::Problem;

pub use advice::{policy_finding, policy_summary};
pub(crate) use explanation::declassification;
pub use explanation::{Explanation, explanation};
pub use findings::{finding, findings_summary, untold_findings};
pub use grants::{grant, grant_file, grant_line};
pub(crate) use history::word;
pub use history::{history, verification};
pub(crate) use report::run_again;
pub use report::{calls, ending, excerpt, footer, open_calls, value};
pub(crate) use resume::advice_to_resume;
pub use resume::{how_to_resume, resume_command};
pub use sarif::{Sarif, SarifLevel, SarifResult, sarif, uri_of};

/// Formats a number with its noun, such as `1 call` or `2 calls`.
pub(crate) fn counted(count: impl std::fmt::Display, thing: &str) -> String {
    match count.to_string() {
        one if one == "1" => format!("1 {thing}"),
        count => format!("{count} {thing}s"),
    }
}

/// Says how long the access token of a login is valid, and whether it is renewed then.
pub(crate) fn login_expiry(credential: &Credential, now_ms: u64) -> String {
    const SECOND_MS: u64 = 1_000;
    let renews = match credential.renews() {
        true => "renewed without a person",
        false => "not renewed",
    };
    let Some(expires_at_ms) = credential.expires_at_ms else {
        return format!("no end named, {renews}");
    };
    match expires_at_ms.saturating_sub(now_ms) / SECOND_MS {
        0 => format!("expired, {renews}"),
        left_s if left_s < 120 => format!("in {left_s} s, {renews}"),
        left_s if left_s < 7_200 => format!("in {} min, {renews}", left_s / 60),
        left_s => format!("in {} h, {renews}", left_s / 3_600),
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
