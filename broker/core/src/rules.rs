//! Decides which calls are allowed, asked about or denied, by patterns over `server.tool` and by
//! policies.
//!
//! A deny always wins. Between the other levels, a pattern that is contained in another pattern wins
//! over it; otherwise the stricter rule wins. The order of the rules and their sources do not matter.
//! If no rule matches, the default decides. If policies permit a call, a pattern can only make the
//! decision stricter. The rest of the core only uses [`Rules::consult`] and its variants.

use std::fmt;
use std::sync::Arc;

use codegen::canonical;
use codegen::closest::closest_tool;
use serde_json::json;

use crate::call::Call;
use crate::catalog::ToolOwner;
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
    /// Returns the name of a rule. Scripts see only this name of a rule.
    #[must_use]
    pub fn id(&self) -> String {
        let (level, pattern) = (self.level.as_str(), self.pattern.as_str());
        match self.origin {
            Some(_) => format!("{level} '{pattern}'"),
            None => format!("--{level} '{pattern}'"),
        }
    }

    /// Whether this rule wins over another one because its pattern is narrower. A deny has no
    /// exceptions.
    fn is_exception_to(&self, other: &Self) -> bool {
        self.level != other.level
            && other.level != Level::Deny
            && self.pattern.is_within(&other.pattern)
            && !other.pattern.is_within(&self.pattern)
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

/// A rule that decides no call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleRule<'a> {
    pub rule: &'a PatternRule,
    pub why: IdleReason<'a>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdleReason<'a> {
    /// The pattern matches no tool.
    Unmatched {
        /// The tool with the most similar name.
        closest: Option<ToolId>,
    },
    /// Other rules win wherever this rule matches. The value is one of them.
    Overruled(&'a PatternRule),
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
        let matching = self.matching_rules(tool);
        let deciding = deciding(&matching);
        let level = deciding.first()?.level;
        let reason = |rule: &&PatternRule| {
            let mut stricter = matching.iter().filter(|it| it.level > rule.level);
            match stricter.find(|it| rule.is_exception_to(it)) {
                Some(wider) => format!("rule {rule}, which is more specific than {wider}"),
                None => format!("rule {rule}"),
            }
        };
        Some(RuleVerdict {
            level,
            reasons: deciding.iter().map(reason).collect(),
            told: deciding
                .iter()
                .map(|rule| format!("rule {}", rule.id()))
                .collect(),
            prompts: Vec::new(),
        })
    }

    fn matching_rules<'a>(&'a self, tool: &ToolId) -> Vec<&'a PatternRule> {
        let rules = self.rules.iter();
        rules.filter(|rule| rule.pattern.matches(tool)).collect()
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

    /// Returns the verdict that denies every call of this tool, whatever its arguments and facts
    /// are, or `None` if a call may be allowed.
    #[must_use]
    pub fn always_denied(&self, owner: ToolOwner, tool: &ToolId) -> Option<RuleVerdict> {
        let patterns = self.matching(tool);
        if let Some(denied) = patterns.filter(|it| it.level == Level::Deny) {
            return Some(denied);
        }
        let judged = self.policies.as_ref()?.always_denied(tool)?;
        // airlock's own local tools need no permit.
        let needs_rule = owner == ToolOwner::OwnLocal;
        (!needs_rule || !judged.rules.is_empty()).then(|| judged.into())
    }

    /// Returns the rules that decide no call. A rule whose text shows that another rule always wins
    /// is one of them. If all tools are given, the rules that match no tool, or that decide about
    /// none of the tools that they match, are included.
    #[must_use]
    pub fn idle<'a>(&'a self, tools: Option<&[&ToolId]>) -> Vec<IdleRule<'a>> {
        let idle = |rule: &'a PatternRule| {
            let why = match self.always_overruling(rule) {
                Some(other) => IdleReason::Overruled(other),
                None => self.idle_among(rule, tools?)?,
            };
            Some(IdleRule { rule, why })
        };
        self.rules.iter().filter_map(idle).collect()
    }

    /// Returns a rule that wins over this one for every possible tool. Several narrower patterns
    /// cover a pattern together only if one of them covers it alone, so each rule is compared by
    /// itself.
    fn always_overruling(&self, rule: &PatternRule) -> Option<&PatternRule> {
        let wins = |other: &&PatternRule| {
            other.level > rule.level
                && rule.pattern.is_within(&other.pattern)
                && (other.level == Level::Deny || other.pattern.is_within(&rule.pattern))
        };
        self.rules.iter().find(wins)
    }

    fn idle_among<'a>(&'a self, rule: &PatternRule, ids: &[&ToolId]) -> Option<IdleReason<'a>> {
        let mut overruling = None;
        for id in ids.iter().filter(|id| rule.pattern.matches(id)) {
            let deciding = deciding(&self.matching_rules(id));
            if deciding.contains(&rule) {
                return None;
            }
            overruling = overruling.or(deciding.first().copied());
        }
        Some(match overruling {
            Some(other) => IdleReason::Overruled(other),
            None => {
                let names: Vec<_> = ids.iter().map(|id| (id.to_string(), *id)).collect();
                let texts = names.iter().map(|(text, _)| text.as_str());
                let word = closest_tool(rule.pattern.as_str(), texts);
                let found = names.iter().find(|(text, _)| Some(text.as_str()) == word);
                let closest = found.map(|(_, id)| (*id).clone());
                IdleReason::Unmatched { closest }
            }
        })
    }

    #[must_use]
    pub fn rules(&self) -> &[PatternRule] {
        &self.rules
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

/// Returns the rules that decide about a tool, given all rules that match it. All of them have the
/// same level.
fn deciding<'a>(matching: &[&'a PatternRule]) -> Vec<&'a PatternRule> {
    let has_exception =
        |rule: &PatternRule| matching.iter().any(|other| other.is_exception_to(rule));
    let left = || {
        let all = matching.iter().copied();
        all.filter(|rule| !has_exception(rule))
    };
    let level = left().map(|rule| rule.level).max();
    left().filter(|rule| Some(rule.level) == level).collect()
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
    use crate::testing::{call, rules};

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
    fn deny_wins_then_narrower_pattern_then_stricter_rule() {
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
    fn narrower_allow_is_exception_to_ask() {
        let spec = ["allow fs.read_*", "ask fs.*"];
        let why = "rule --allow 'fs.read_*', which is more specific than --ask 'fs.*'";
        check(&spec, "fs.read_file", (Level::Allow, &[why]));
        check(&spec, "fs.write", (Level::AskRun, &["rule --ask 'fs.*'"]));
        // The third rule is an exception to the second, which is an exception to the first.
        let spec = ["allow fs.*", "ask fs.read*", "allow fs.read_public*"];
        check(
            &spec,
            "fs.read_public_x",
            (
                Level::Allow,
                &["rule --allow 'fs.read_public*', which is more specific than --ask 'fs.read*'"],
            ),
        );
    }

    #[test]
    fn stricter_rule_wins_if_neither_pattern_contains_the_other() {
        let spec = ["allow fs.read_*", "ask fs.*_all"];
        let asks = "rule --ask 'fs.*_all'";
        check(&spec, "fs.read_all", (Level::AskRun, &[asks]));
        let equal = ["allow fs.**", "ask fs.*"];
        check(&equal, "fs.read", (Level::AskRun, &["rule --ask 'fs.*'"]));
        // The allow is an exception to one ask but not to the other.
        let two = ["allow fs.read_*", "ask fs.*", "ask *.read_all"];
        let asks = "rule --ask '*.read_all'";
        check(&two, "fs.read_all", (Level::AskRun, &[asks]));
    }

    #[test]
    fn deny_has_no_exception() {
        let spec = ["deny fs.*", "allow fs.read", "ask fs.read"];
        check(&spec, "fs.read", (Level::Deny, &["rule --deny 'fs.*'"]));
    }

    #[test]
    fn source_of_rule_does_not_matter() {
        let rule = |level, pattern: &str, origin: Option<&str>| PatternRule {
            level,
            pattern: ToolPattern::parse(pattern).unwrap(),
            origin: origin.map(str::to_owned),
        };
        for (allowing, asking) in [
            (None, Some("airlock.toml:2")),
            (Some("airlock.toml:2"), None),
        ] {
            let rules = vec![
                rule(Level::Allow, "fs.read_*", allowing),
                rule(Level::AskRun, "fs.*", asking),
            ];
            let consulted = Rules::new(rules, true).consult(&call(1, "fs.read_file", "{}"));
            assert_eq!(consulted.level, Level::Allow);
        }
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

    fn check_idle(spec: &[&str], tools: Option<&[&str]>, expected: &[&str]) {
        let rules = rules(spec);
        let tools = tools.map(|it| it.iter().map(|id| ToolId::parse(id).unwrap()));
        let tools: Option<Vec<ToolId>> = tools.map(Iterator::collect);
        let tools: Option<Vec<&ToolId>> = tools.as_ref().map(|it| it.iter().collect());
        let found = rules.idle(tools.as_deref()).into_iter();
        let found: Vec<_> = found
            .map(|IdleRule { rule, why }| match why {
                IdleReason::Overruled(other) => format!("{rule} by {other}"),
                IdleReason::Unmatched { closest: None } => rule.to_string(),
                IdleReason::Unmatched {
                    closest: Some(tool),
                } => format!("{rule} like {tool}"),
            })
            .collect();
        assert_eq!(found, expected, "{spec:?}");
    }

    #[test]
    fn rule_without_tool_suggests_closest_tool() {
        check_idle(
            &["deny fs.delte", "allow fs.read", "ask zzz.q"],
            Some(&["fs.read", "fs.delete"]),
            &["--deny 'fs.delte' like fs.delete", "--ask 'zzz.q'"],
        );
    }

    #[test]
    fn rule_that_never_takes_effect_is_found() {
        let covered = ["allow fs.read_*", "deny fs.*", "ask fs.**"];
        let found = [
            "--allow 'fs.read_*' by --deny 'fs.*'",
            "--ask 'fs.**' by --deny 'fs.*'",
        ];
        check_idle(&covered, None, &found);
        check_idle(&covered, Some(&["fs.read_x", "fs.write"]), &found);
        let equal = ["allow fs.*", "ask fs.*"];
        check_idle(&equal, None, &["--allow 'fs.*' by --ask 'fs.*'"]);
        // Only the known tools show that the narrower rules leave no call to the wider rule.
        let narrower = ["allow fs.*", "ask fs.read*", "deny fs.w*"];
        check_idle(&narrower, None, &[]);
        check_idle(&narrower, Some(&["fs.read", "fs.write", "fs.list"]), &[]);
        check_idle(
            &narrower,
            Some(&["fs.read", "fs.write"]),
            &["--allow 'fs.*' by --ask 'fs.read*'"],
        );
        check_idle(&["allow fs.*", "allow fs.read"], Some(&["fs.read"]), &[]);
        check_idle(&["deny fs.*", "deny fs.read"], Some(&["fs.read"]), &[]);
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
