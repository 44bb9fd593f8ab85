//! What is allowed, asked about or denied: patterns over `server.tool`, and
//! policies beside them.
//!
//! The order does not matter: of all that match, the strictest decides; when
//! nothing matches, the default does. Where policies permit, a pattern can only
//! make them stricter. The rest of the core knows only [`Rules::consult`].

mod pattern;

use std::fmt;
use std::sync::Arc;

use codegen::canonical;
use codegen::closest::closest_tool;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::call::Call;
use crate::catalog::{Catalog, Whose};
use crate::facts::Facts;
use crate::id::{Digest, ToolId};
use crate::policy::{Judged, Policies};

pub use pattern::{BadPattern, Pattern, is_match};

/// Why a tool of airlock's own is allowed that no rule denies.
const WITHIN: &str = "it is airlock's own tool and reaches no server, and no rule denies it";

/// From the mildest to the strictest. The levels between are how much approval a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    Allow,
    /// A grant covers it, or a human is asked.
    #[serde(rename = "ask")]
    AskRun,
    /// A human is asked about this very call; no grant covers it.
    AskCall,
    Deny,
}

impl Level {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::AskRun => "ask",
            Self::AskCall => "ask-call",
            Self::Deny => "deny",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub level: Level,
    pub pattern: Pattern,
    /// Where it comes from, such as `airlock.toml:12`; none for the command line.
    pub origin: Option<String>,
}

impl Rule {
    /// The name of a rule: all that a script is told of it.
    #[must_use]
    pub fn id(&self) -> String {
        let (level, pattern) = (self.level.as_str(), self.pattern.as_str());
        match self.origin {
            Some(_) => format!("{level} '{pattern}'"),
            None => format!("--{level} '{pattern}'"),
        }
    }
}

/// The name and where the rule stands: `deny 'fs.delete*' (airlock.toml:12)`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id())?;
        self.origin
            .iter()
            .try_for_each(|origin| write!(f, " ({origin})"))
    }
}

#[derive(Debug, Clone)]
pub struct Rules {
    rules: Vec<Rule>,
    default: Level,
    policies: Option<Arc<Policies>>,
}

/// What the rules say of one call, and which of them said it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consulted {
    pub level: Level,
    /// For the report, the approver and the journal.
    pub reasons: Vec<String>,
    /// The same for the script: names of rules, no places.
    pub told: Vec<String>,
    /// What the rules want a human to be asked, where they say so.
    pub prompts: Vec<String>,
}

impl Rules {
    /// `approver_is_there`: what no rule names is asked about then, and denied otherwise.
    #[must_use]
    pub fn new(rules: Vec<Rule>, approver_is_there: bool) -> Self {
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
    pub fn consult(&self, call: &Call) -> Consulted {
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

    /// What the rules say of a call of a tool that is whose.
    #[must_use]
    pub fn consult_about(&self, whose: Whose, call: &Call) -> Consulted {
        match whose {
            Whose::Other | Whose::OwnBeyond => self.consult(call),
            Whose::OwnWithin => self.consult_within(call),
        }
    }

    /// The same for what reaches nobody: nothing has to allow it, and there is nothing to ask
    /// about. What denies it denies it.
    fn consult_within(&self, call: &Call) -> Consulted {
        let patterns = self.matching(&call.tool);
        if let Some(denied) = patterns.filter(|it| it.level == Level::Deny) {
            return denied;
        }
        let facts = call.facts.as_deref().cloned().unwrap_or_default();
        let judged = self.policies.as_ref();
        let judged = judged.map(|it| it.judge(&call.tool, &call.args, &facts));
        match judged {
            // Without the name of a rule it says that none permits.
            Some(judged) if judged.level == Level::Deny && !judged.rules.is_empty() => {
                judged.into()
            }
            _ => Consulted {
                level: Level::Allow,
                reasons: vec![WITHIN.to_owned()],
                told: vec![WITHIN.to_owned()],
                prompts: Vec::new(),
            },
        }
    }

    fn by_default(&self) -> Consulted {
        let level = self.default;
        let reasons = vec![format!(
            "no rule matches, and the default is {}",
            level.as_str()
        )];
        Consulted {
            level,
            told: reasons.clone(),
            reasons,
            prompts: Vec::new(),
        }
    }

    /// What the patterns say of a tool; none when none of them matches.
    fn matching(&self, tool: &ToolId) -> Option<Consulted> {
        let matching = || self.rules.iter().filter(|rule| rule.pattern.matches(tool));
        let level = matching().map(|rule| rule.level).max()?;
        let deciding = || matching().filter(|rule| rule.level == level);
        Some(Consulted {
            level,
            reasons: deciding().map(|rule| format!("rule {rule}")).collect(),
            told: deciding()
                .map(|rule| format!("rule {}", rule.id()))
                .collect(),
            prompts: Vec::new(),
        })
    }

    /// The mildest level that any call of a tool can have beside what policies say of it.
    #[must_use]
    pub fn floor(&self, tool: &ToolId) -> Level {
        let policies = self.policies.as_deref();
        match self.matching(tool) {
            Some(patterns) => patterns.level,
            None if policies.is_some_and(Policies::needs_permit) => Level::Allow,
            None => self.default,
        }
    }

    /// Whether every call of this tool is denied, as far as that is known without the call.
    #[must_use]
    pub fn deny_always(&self, tool: &ToolId) -> bool {
        let denies = |rule: &Rule| rule.level == Level::Deny && rule.pattern.matches(tool);
        let policies = self.policies.as_ref();
        self.rules.iter().any(denies) || policies.is_some_and(|it| it.denies_always(tool))
    }

    /// Rules that match no tool of the catalog, each with the closest `server.tool` there is.
    #[must_use]
    pub fn unmatched<'a>(&'a self, catalog: &Catalog) -> Vec<(&'a Rule, Option<ToolId>)> {
        let ids: Vec<_> = catalog
            .tools()
            .map(|tool| (tool.id.to_string(), &tool.id))
            .collect();
        let idle = |rule: &&Rule| !ids.iter().any(|(_, id)| rule.pattern.matches(id));
        let closest = |rule: &Rule| {
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
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    #[must_use]
    pub fn default_level(&self) -> Level {
        self.default
    }

    /// Of everything that decides without a human: it changes when any rule does. The default
    /// is left out: it is the stricter one where nobody can be asked, and lifts nothing.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let lines = self.to_lines();
        let rules = lines.iter().filter(|line| !line.starts_with("default "));
        canonical::digest(&json!(rules.collect::<Vec<_>>()))
    }

    /// For the header of a journal: one line per rule, then the default and the policies.
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

impl From<Judged> for Consulted {
    fn from(judged: Judged) -> Self {
        Self {
            level: judged.level,
            reasons: judged.reasons,
            told: judged.told,
            prompts: judged.prompts,
        }
    }
}

/// The stricter of two; the reasons of both when they agree.
fn stricter(one: Consulted, other: Consulted) -> Consulted {
    match one.level.cmp(&other.level) {
        std::cmp::Ordering::Greater => one,
        std::cmp::Ordering::Less => other,
        std::cmp::Ordering::Equal => Consulted {
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
    fn the_strictest_rule_wins_whatever_the_order() {
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
    fn what_no_rule_names_is_never_simply_allowed() {
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
    fn a_rule_without_a_tool_is_named_with_the_closest_tool() {
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
    fn a_rule_from_a_file_carries_its_place() {
        let rule = Rule {
            level: Level::Deny,
            pattern: Pattern::parse("fs.*").unwrap(),
            origin: Some("airlock.toml:12".into()),
        };
        assert_eq!(rule.to_string(), "deny 'fs.*' (airlock.toml:12)");
        let told = Rules::new(vec![rule], false)
            .consult(&call(1, "fs.a", "{}"))
            .told;
        assert_eq!(told, ["rule deny 'fs.*'"]);
    }
}
