//! A decision and the rules behind it, in one format for recorded and for new decisions.

use std::collections::BTreeSet;

use airlock_core::code::Code;
use airlock_core::journal::{AskedEntry, DecidedEntry, Verdict};
use airlock_core::level::Level;
use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
pub(super) struct DecisionSummary {
    pub(super) level: Level,
    /// `allowed`, `asked` or `denied`, with details.
    pub(super) how: String,
    /// The names of the rules that decided.
    pub(super) rules: BTreeSet<String>,
    pub(super) reasons: Vec<String>,
}

impl DecisionSummary {
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

    /// Describes a denial before the rules were evaluated.
    pub(super) fn denied(code: Code, reasons: Vec<String>) -> Self {
        Self {
            level: Level::Deny,
            how: format!("denied ({})", code.as_str()),
            rules: BTreeSet::new(),
            reasons,
        }
    }

    /// Summarises a recorded decision. If a person was asked, the decision is "asked", whatever the
    /// answer was.
    pub(super) fn of_journal(decided: Option<&DecidedEntry>, asked: Option<&AskedEntry>) -> Self {
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
                Some(Verdict::Allow) if asked.is_none() => "asked, and a grant covered the call",
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

/// Returns the rule names from the reasons that begin with `rule` and a name.
fn names(reasons: &[String]) -> BTreeSet<String> {
    let name = |reason: &String| -> Option<String> {
        let rest = reason.strip_prefix("rule ")?;
        let name = match rest.strip_prefix('`') {
            Some(quoted) => quoted.split_once('`')?.0,
            // A pattern is its own name. Its place follows in parentheses.
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
    fn rule_is_matched_by_name_across_places() {
        let reasons = [
            "rule `flow-asked` (policies/flow.cedar:21) asks: no trusted source names it",
            "rule --deny 'fs.*'",
            "rule deny 'fs.delete*' (airlock.toml:12)",
            "no policy rule permits the call",
        ];
        let found: Vec<String> = names(&reasons.map(str::to_owned)).into_iter().collect();
        assert_eq!(found, ["--deny 'fs.*'", "deny 'fs.delete*'", "flow-asked"]);
    }
}
