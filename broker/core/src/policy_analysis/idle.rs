//! Tests whether a rule has an effect, by deciding sample calls with the rule and without it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::sampler::SampledCall;
use super::{Judge, Seed, ToolSubject, each_call};
use crate::id::ToolId;
use crate::level::Level;
use crate::policy::Policies;
use crate::policy::rule::Rule;
use crate::policy::vocabulary::Vocabulary;
use crate::rules::{self, Rules};
use crate::tool_pattern::ToolPattern;

/// The evidence about a rule from sample calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IdleEvidence {
    /// Whether a call is decided differently without the rule, or another question is asked.
    pub differs: bool,
    /// Whether the rule takes part in the decision on a call.
    pub counts: bool,
}

/// The rules for a tool, with and without one of these rules.
#[derive(Debug)]
pub struct RuleAblation<'a> {
    rule: &'a Rule,
    with: Rules,
    less: Rules,
}

impl Policies {
    /// Whether a rule can apply to a tool.
    #[must_use]
    pub fn is_about(&self, rule: &Rule, tool: &ToolId) -> bool {
        let name = tool.to_string();
        let words = self.vocabulary().tools.get(&name);
        words.is_some_and(|it| rule.scope.covers(&name, &it.groups))
    }

    /// Returns `None` if Cedar cannot combine the rules.
    #[must_use]
    pub fn without<'a>(&self, rule: &'a Rule, tool: &ToolId) -> Option<RuleAblation<'a>> {
        let gone = BTreeSet::from([Arc::clone(&rule.id)]);
        Some(RuleAblation {
            rule,
            with: self.of_tool(tool, &BTreeSet::new())?,
            less: self.of_tool(tool, &gone)?,
        })
    }

    fn of_tool(&self, tool: &ToolId, gone: &BTreeSet<Arc<str>>) -> Option<Rules> {
        let name = tool.to_string();
        let words = self.vocabulary().tools.get(&name)?.clone();
        let vocabulary = Vocabulary {
            tools: [(name, words)].into(),
            groups: self.vocabulary().groups.clone(),
            ..Vocabulary::default()
        };
        let rules = self.about(tool).filter(|rule| !gone.contains(&rule.id));
        let rules: Vec<Rule> = rules.cloned().collect();
        let policies = self.with_rules(rules, vocabulary)?;
        // Tightening rules alone permit nothing, so they are tested together with a pattern that
        // allows everything.
        let all = ToolPattern::parse("*.*")
            .ok()
            .filter(|_| !self.needs_permit());
        let all = all.map(|pattern| rules::PatternRule {
            level: Level::Allow,
            pattern,
            origin: None,
        });
        let patterns = all.into_iter().collect();
        Some(Rules::new(patterns, false).with_policies(policies.into()))
    }
}

/// Tests up to `tries` calls at the boundaries of the rules.
#[must_use]
pub fn tried_without(
    without: &RuleAblation<'_>,
    subject: &ToolSubject,
    seeds: &[Seed],
    tries: usize,
) -> IdleEvidence {
    let mut tried = IdleEvidence::default();
    let both = [&without.with, &without.less];
    each_call(&both, subject, seeds, tries, 0, |judge, drawn| {
        tried.note(without, judge, drawn);
        tried.differs
    });
    tried
}

/// Tests the calls that a solver's model describes.
#[must_use]
pub fn model_without(
    without: &RuleAblation<'_>,
    subject: &ToolSubject,
    model: &Map<String, Json>,
) -> IdleEvidence {
    let mut tried = IdleEvidence::default();
    if let Some(judge) = Judge::new(&[&without.with, &without.less], subject) {
        for drawn in judge.drawn(model) {
            tried.note(without, &judge, &drawn);
        }
    }
    tried
}

impl IdleEvidence {
    fn note(&mut self, without: &RuleAblation<'_>, judge: &Judge<'_>, drawn: &SampledCall) {
        let with = judge.decided(&without.with, drawn);
        let less = judge.decided(&without.less, drawn);
        let asked = |prompts: &[String]| prompts.iter().cloned().collect::<BTreeSet<String>>();
        self.differs |= with.level != less.level || asked(&with.prompts) != asked(&less.prompts);
        let named = format!("rule `{}` ", without.rule.id);
        self.counts |= with.reasons.iter().any(|it| it.starts_with(&named));
    }
}
