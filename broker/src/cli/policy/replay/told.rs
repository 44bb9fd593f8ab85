//! What a decision came to and by which rules, told in the same words of one that
//! a journal has and of one that is made now.

use std::collections::BTreeSet;

use airlock_core::code::Code;
use airlock_core::journal::{Asked, Decided, Verdict};
use airlock_core::rules::Level;
use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
pub(super) struct Told {
    pub(super) level: Level,
    /// `allowed`, `asked`, `denied`, and how.
    pub(super) how: String,
    /// The names of the rules that decided.
    pub(super) rules: BTreeSet<String>,
    pub(super) reasons: Vec<String>,
}

impl Told {
    pub(super) fn of_rules(level: Level, reasons: Vec<String>) -> Self {
        let how = match level {
            Level::Allow => "allowed",
            Level::AskRun => "asked",
            Level::AskCall => "asked each time",
            Level::Deny => "denied",
        };
        Self {
            level,
            how: how.to_owned(),
            rules: names(&reasons),
            reasons,
        }
    }

    /// Before any rule is asked.
    pub(super) fn denied(code: Code, reasons: Vec<String>) -> Self {
        Self {
            level: Level::Deny,
            how: format!("denied ({})", code.as_str()),
            rules: BTreeSet::new(),
            reasons,
        }
    }

    /// What became of it after somebody was asked does not matter: the rules asked.
    pub(super) fn of_journal(decided: Option<&Decided>, asked: Option<&Asked>) -> Self {
        let reasons = decided.map(|it| it.reasons.clone());
        let reasons = reasons
            .or_else(|| asked.map(|it| it.reasons.clone()))
            .unwrap_or_default();
        let code = decided.and_then(|it| it.code);
        let was_asked = asked.is_some()
            || decided.is_some_and(|it| it.grant.is_some())
            || matches!(code, Some(Code::Refused | Code::Unanswered));
        if was_asked {
            let how = match decided.map(|it| it.decision) {
                Some(Verdict::Allow) if asked.is_none() => "asked, and a grant covered it",
                Some(Verdict::Allow) => "asked, and allowed",
                Some(Verdict::Deny) => "asked, and not allowed",
                Some(Verdict::Unsent) | None => "asked, and the run ended",
            };
            return Self {
                level: Level::AskRun,
                how: how.to_owned(),
                rules: names(&reasons),
                reasons,
            };
        }
        match code {
            Some(Code::Denied) | None => {
                let is_denied = decided.is_some_and(|it| it.decision == Verdict::Deny);
                Self::of_rules(if is_denied { Level::Deny } else { Level::Allow }, reasons)
            }
            Some(code) => Self::denied(code, reasons),
        }
    }
}

/// Of the reasons that name a rule: `rule`, then its name.
fn names(reasons: &[String]) -> BTreeSet<String> {
    let name = |reason: &String| -> Option<String> {
        let rest = reason.strip_prefix("rule ")?;
        let name = match rest.strip_prefix('`') {
            Some(quoted) => quoted.split_once('`')?.0,
            // A pattern is its own name, up to the place that it stands at.
            None => rest.split_once(" (").map_or(rest, |(name, _)| name),
        };
        Some(name.to_owned())
    };
    reasons.iter().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_known_by_its_name_wherever_it_stands() {
        let reasons = [
            "rule `flow-asked` (policies/flow.cedar:21) asks: nothing trusted names it",
            "rule --deny 'fs.*'",
            "rule deny 'fs.delete*' (airlock.toml:12)",
            "no rule of the policies permits it",
        ];
        let found: Vec<String> = names(&reasons.map(str::to_owned)).into_iter().collect();
        assert_eq!(found, ["--deny 'fs.*'", "deny 'fs.delete*'", "flow-asked"]);
    }
}
