//! Tests whether a rule has an effect, by deciding sample calls with the rule and without it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::sampler::SampledCall;
use super::{Judge, Seed, ToolSubject, each_call};
use airlock_core::id::ToolId;
use airlock_core::level::Level;
use airlock_core::policy::Policies;
use airlock_core::policy::rule::Rule;
use airlock_core::policy::vocabulary::Vocabulary;
use airlock_core::rules::{self, Rules};
use airlock_core::tool_pattern::ToolPattern;

/// The evidence about one rule that comes from sample calls.
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

impl<'a> RuleAblation<'a> {
    /// Returns `None` if Cedar cannot combine the rules.
    #[must_use]
    pub fn new(policies: &Policies, rule: &'a Rule, tool: &ToolId) -> Option<Self> {
        let gone = BTreeSet::from([Arc::clone(&rule.id)]);
        Some(Self {
            rule,
            with: rules_of_tool(policies, tool, &BTreeSet::new())?,
            less: rules_of_tool(policies, tool, &gone)?,
        })
    }
}

fn rules_of_tool(policies: &Policies, tool: &ToolId, gone: &BTreeSet<Arc<str>>) -> Option<Rules> {
    let name = tool.to_string();
    let words = policies.vocabulary().tools.get(&name)?.clone();
    let vocabulary = Vocabulary {
        tools: [(name, words)].into(),
        groups: policies.vocabulary().groups.clone(),
        ..Vocabulary::default()
    };
    let rules = policies.about(tool).filter(|rule| !gone.contains(&rule.id));
    let rules: Vec<Rule> = rules.cloned().collect();
    let needs_permit = policies.needs_permit();
    let policies = policies.with_rules(rules, vocabulary)?;
    // Tightening rules alone permit nothing, so they are tested together with a pattern that
    // allows everything.
    let all = ToolPattern::parse("*.*").ok().filter(|_| !needs_permit);
    let all = all.map(|pattern| rules::PatternRule {
        level: Level::Allow,
        pattern,
        origin: None,
    });
    let patterns = all.into_iter().collect();
    Some(Rules::new(patterns, false).with_policies(policies.into()))
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
