//! Decides which calls are allowed, asked about or denied, by patterns over `server.tool` and by
//! policies.
//!
//! The order of the rules does not matter: the strictest matching rule decides. If no rule matches,
//! the default decides. If policies permit a call, a pattern can only make the decision stricter.
//! The rest of the core only uses [`Rules::consult`] and its variants.

use std::fmt;
use std::sync::Arc;

use codegen::canonical;
use codegen::closest::closest_tool;
use serde_json::json;

use crate::call::Call;
use crate::catalog::{Catalog, ToolOwner};
use crate::facts::Facts;
use crate::id::{Digest, ToolId};
use crate::level::Level;
use crate::policy::{Policies, PolicyVerdict};
use crate::tool_pattern::ToolPattern;

/// Reason for allowing one of airlock's own tools that no rule denies.
const WITHIN: &str = "the tool is airlock's own and reaches no server, and no rule denies the call";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternRule {
    pub level: Level,
    pub pattern: ToolPattern,
    /// Where the pattern comes from, such as `airlock.toml:12`; `None` for the command line.
    pub origin: Option<String>,
}

impl PatternRule {
    /// Returns the name of a rule. Scripts see nothing else of a rule.
    #[must_use]
    pub fn id(&self) -> String {
        let (level, pattern) = (self.level.as_str(), self.pattern.as_str());
        match self.origin {
            Some(_) => format!("{level} '{pattern}'"),
            None => format!("--{level} '{pattern}'"),
        }
    }
}

/// Writes the name and the place of the rule: `deny 'fs.delete*' (airlock.toml:12)`.
impl fmt::Display for PatternRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id())?;
        self.origin
            .iter()
            .try_for_each(|origin| write!(f, " ({origin})"))
    }
}

#[derive(Debug, Clone)]
pub struct Rules {
    rules: Vec<PatternRule>,
    default: Level,
    policies: Option<Arc<Policies>>,
}

/// The result of the rules for one call, and the rules that decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleVerdict {
    pub level: Level,
    /// Reasons for the report, the approver and the journal.
    pub reasons: Vec<String>,
    /// Reasons for the script: names of rules without places.
    pub told: Vec<String>,
    /// Texts of the rules' `@prompt` annotations, for the question to a human.
    pub prompts: Vec<String>,
}

impl Rules {
    /// Creates the rules. If `approver_is_there`, a human is asked about each call that no rule
    /// matches; otherwise such a call is denied.
    #[must_use]
    pub fn new(rules: Vec<PatternRule>, approver_is_there: bool) -> Self {
        Self {
            rules,
            default: if approver_is_there {
                Level::AskRun
            } else {
                Level::Deny
            },
            policies: None,
        }
    }

    #[must_use]
    pub fn with_policies(mut self, policies: Arc<Policies>) -> Self {
        self.policies = Some(policies);
        self
    }

    #[must_use]
    pub fn policies(&self) -> Option<&Policies> {
        self.policies.as_deref()
    }

    #[must_use]
    pub fn consult(&self, call: &Call) -> RuleVerdict {
        let patterns = self.matching(&call.tool);
        let Some(policies) = &self.policies else {
            return patterns.unwrap_or_else(|| self.by_default());
        };
        let judged = match call.facts.as_deref() {
            Some(facts) => policies.judge(&call.tool, &call.args, facts),
            None => policies.judge(&call.tool, &call.args, &Facts::default()),
        };
        match patterns {
            Some(patterns) => stricter(patterns, judged.into()),
            None if policies.needs_permit() => judged.into(),
            None => stricter(self.by_default(), judged.into()),
        }
    }

    /// Returns the result of the rules for a call, depending on the owner of its tool.
    #[must_use]
    pub fn consult_for_owner(&self, owner: ToolOwner, call: &Call) -> RuleVerdict {
        match owner {
            ToolOwner::Other | ToolOwner::OwnForwarding => self.consult(call),
            ToolOwner::OwnLocal => self.consult_own_tool(call),
        }
    }

    /// Returns the result for one of airlock's own tools that reaches no server: the call needs no
    /// allowing rule and is never asked about. Only a rule that denies it counts.
    fn consult_own_tool(&self, call: &Call) -> RuleVerdict {
        let patterns = self.matching(&call.tool);
        if let Some(denied) = patterns.filter(|it| it.level == Level::Deny) {
            return denied;
        }
        let facts = call.facts.as_deref().cloned().unwrap_or_default();
        let judged = self.policies.as_ref();
        let judged = judged.map(|it| it.judge(&call.tool, &call.args, &facts));
        match judged {
            // A denial without rules only means that no rule permits the call.
            Some(judged) if judged.level == Level::Deny && !judged.rules.is_empty() => {
                judged.into()
            }
            _ => RuleVerdict {
                level: Level::Allow,
                reasons: vec![WITHIN.to_owned()],
                told: vec![WITHIN.to_owned()],
                prompts: Vec::new(),
            },
        }
    }

    fn by_default(&self) -> RuleVerdict {
        let level = self.default;
        let reasons = vec![format!(
            "no rule matches, and the default is {}",
            level.as_str()
        )];
        RuleVerdict {
            level,
            told: reasons.clone(),
            reasons,
            prompts: Vec::new(),
        }
    }

    /// Returns the result of the patterns for a tool, or `None` if no pattern matches.
    fn matching(&self, tool: &ToolId) -> Option<RuleVerdict> {
        let matching = || self.rules.iter().filter(|rule| rule.pattern.matches(tool));
        let level = matching().map(|rule| rule.level).max()?;
        let deciding = || matching().filter(|rule| rule.level == level);
        Some(RuleVerdict {
            level,
            reasons: deciding().map(|rule| format!("rule {rule}")).collect(),
            told: deciding()
                .map(|rule| format!("rule {}", rule.id()))
                .collect(),
            prompts: Vec::new(),
        })
    }

    /// Returns the mildest level that any call of a tool can have, without regard to policies.
    #[must_use]
    pub fn floor(&self, tool: &ToolId) -> Level {
        let policies = self.policies.as_deref();
        match self.matching(tool) {
            Some(patterns) => patterns.level,
            None if policies.is_some_and(Policies::needs_permit) => Level::Allow,
            None => self.default,
        }
    }

    /// Whether every call of this tool is denied, whatever its arguments and facts are.
    #[must_use]
    pub fn deny_always(&self, tool: &ToolId) -> bool {
        let denies = |rule: &PatternRule| rule.level == Level::Deny && rule.pattern.matches(tool);
        let policies = self.policies.as_ref();
        self.rules.iter().any(denies) || policies.is_some_and(|it| it.denies_always(tool))
    }

    /// Returns the rules that match no tool of the catalog, each with the closest existing tool.
    #[must_use]
    pub fn unmatched<'a>(&'a self, catalog: &Catalog) -> Vec<(&'a PatternRule, Option<ToolId>)> {
        let ids: Vec<_> = catalog
            .tools()
            .map(|tool| (tool.id.to_string(), &tool.id))
            .collect();
        let idle = |rule: &&PatternRule| !ids.iter().any(|(_, id)| rule.pattern.matches(id));
        let closest = |rule: &PatternRule| {
            let word = closest_tool(
                rule.pattern.as_str(),
                ids.iter().map(|(text, _)| text.as_str()),
            )?;
            ids.iter()
                .find(|(text, _)| text == word)
                .map(|(_, id)| (*id).clone())
        };
        self.rules
            .iter()
            .filter(idle)
            .map(|rule| (rule, closest(rule)))
            .collect()
    }

    #[must_use]
    pub fn rules(&self) -> &[PatternRule] {
        &self.rules
    }

    #[must_use]
    pub fn default_level(&self) -> Level {
        self.default
    }

    /// Returns the digest of all rules and policies, which changes with each of them. The digest
    /// does not include the default: it depends on whether there is an approver, and it never
    /// allows a call.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let lines = self.to_lines();
        let rules = lines.iter().filter(|line| !line.starts_with("default "));
        canonical::digest(&json!(rules.collect::<Vec<_>>()))
    }

    /// Returns lines for the header of a journal: one per rule, then the default and the policies.
    #[must_use]
    pub fn to_lines(&self) -> Vec<String> {
        let default = format!("default {}", self.default.as_str());
        self.rules
            .iter()
            .map(ToString::to_string)
            .chain([default])
            .chain(self.policies.iter().map(|policies| {
                format!(
                    "{} policy rules {}",
                    policies.rules().len(),
                    policies.digest()
                )
            }))
            .collect()
    }
}

impl From<PolicyVerdict> for RuleVerdict {
    fn from(judged: PolicyVerdict) -> Self {
        Self {
            level: judged.level,
            reasons: judged.reasons,
            told: judged.told,
            prompts: judged.prompts,
        }
    }
}

/// Returns the stricter of two results, or both with all reasons if they have the same level.
fn stricter(one: RuleVerdict, other: RuleVerdict) -> RuleVerdict {
    match one.level.cmp(&other.level) {
        std::cmp::Ordering::Greater => one,
        std::cmp::Ordering::Less => other,
        std::cmp::Ordering::Equal => RuleVerdict {
            level: one.level,
            reasons: [one.reasons, other.reasons].concat(),
            told: [one.told, other.told].concat(),
            prompts: [one.prompts, other.prompts].concat(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{call, catalog, rules};

    fn check(spec: &[&str], tool: &str, expected: (Level, &[&str])) {
        let mut reversed = spec.to_vec();
        reversed.reverse();
        for spec in [spec, &reversed] {
            let consulted = rules(spec).consult(&call(1, tool, "{}"));
            let mut reasons = consulted.reasons;
            reasons.sort();
            assert_eq!(
                (consulted.level, reasons),
                (expected.0, expected.1.iter().map(|r| (*r).into()).collect())
            );
        }
    }

    #[test]
    fn strictest_rule_wins_in_any_order() {
        let spec = [
            "allow fs.*",
            "ask fs.write*",
            "deny fs.*_all",
            "deny *.write_all",
        ];
        check(&spec, "fs.read", (Level::Allow, &["rule --allow 'fs.*'"]));
        check(
            &spec,
            "fs.write",
            (Level::AskRun, &["rule --ask 'fs.write*'"]),
        );
        check(
            &spec,
            "fs.write_all",
            (
                Level::Deny,
                &["rule --deny '*.write_all'", "rule --deny 'fs.*_all'"],
            ),
        );
    }

    #[test]
    fn unnamed_tool_is_not_allowed_by_default() {
        check(
            &[],
            "fs.read",
            (Level::Deny, &["no rule matches, and the default is deny"]),
        );
        let asking = Rules::new(Vec::new(), true);
        assert_eq!(
            asking.consult(&call(1, "fs.read", "{}")).level,
            Level::AskRun
        );
    }

    #[test]
    fn rule_without_tool_suggests_closest_tool() {
        let rules = rules(&["deny fs.delte", "allow fs.read", "ask zzz.q"]);
        let catalog = catalog(&["fs.read", "fs.delete"]);
        let found: Vec<_> = rules
            .unmatched(&catalog)
            .into_iter()
            .map(|(rule, closest)| (rule.to_string(), closest.map(|id| id.to_string())))
            .collect();
        let expected = [
            ("--deny 'fs.delte'".into(), Some("fs.delete".into())),
            ("--ask 'zzz.q'".into(), None),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn rule_from_file_has_place() {
        let rule = PatternRule {
            level: Level::Deny,
            pattern: ToolPattern::parse("fs.*").unwrap(),
            origin: Some("airlock.toml:12".into()),
        };
        assert_eq!(rule.to_string(), "deny 'fs.*' (airlock.toml:12)");
        let told = Rules::new(vec![rule], false)
            .consult(&call(1, "fs.a", "{}"))
            .told;
        assert_eq!(told, ["rule deny 'fs.*'"]);
    }
}
