//! Whether a rule does anything, as far as trying says so: calls decided with it
//! and without it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::draw::Drawn;
use super::{Judge, Seed, Subject, each_call};
use crate::id::ToolId;
use crate::policy::Policies;
use crate::policy::engine::Engine;
use crate::policy::rule::Rule;
use crate::policy::vocabulary::Vocabulary;
use crate::rules::{self, Level, Pattern, Rules};

/// What calls say of a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tried {
    /// One is decided otherwise without it, or somebody is asked something else.
    pub differs: bool,
    /// It has its part in the decision of one.
    pub counts: bool,
}

/// The rules about a tool, with one of them and without it.
#[derive(Debug)]
pub struct Without<'a> {
    rule: &'a Rule,
    with: Rules,
    less: Rules,
}

impl Policies {
    /// Whether a rule can be about a tool.
    #[must_use]
    pub fn is_about(&self, rule: &Rule, tool: &ToolId) -> bool {
        let name = tool.to_string();
        let words = self.vocabulary.tools.get(&name);
        words.is_some_and(|it| rule.scope.covers(&name, &it.groups))
    }

    /// None where they cannot be put together.
    #[must_use]
    pub fn without<'a>(&self, rule: &'a Rule, tool: &ToolId) -> Option<Without<'a>> {
        let gone = BTreeSet::from([Arc::clone(&rule.id)]);
        Some(Without {
            rule,
            with: self.of_tool(tool, &BTreeSet::new())?,
            less: self.of_tool(tool, &gone)?,
        })
    }

    fn of_tool(&self, tool: &ToolId, gone: &BTreeSet<Arc<str>>) -> Option<Rules> {
        let name = tool.to_string();
        let words = self.vocabulary.tools.get(&name)?.clone();
        let vocabulary = Vocabulary {
            tools: [(name, words)].into(),
            groups: self.vocabulary.groups.clone(),
            ..Vocabulary::default()
        };
        let rules = self.about(tool).filter(|rule| !gone.contains(&rule.id));
        let rules: Vec<Rule> = rules.cloned().collect();
        let policies = Policies {
            engine: Engine::build(&rules, &vocabulary, self.needs_permit)?,
            rules,
            vocabulary,
            needs_permit: self.needs_permit,
            digest: self.digest,
        };
        // Rules that only tighten are looked at beside something that lets everything through.
        let all = Pattern::parse("*.*").ok().filter(|_| !self.needs_permit);
        let all = all.map(|pattern| rules::Rule {
            level: Level::Allow,
            pattern,
            origin: None,
        });
        let patterns = all.into_iter().collect();
        Some(Rules::new(patterns, false).with_policies(policies.into()))
    }
}

/// So many calls at the edges of the rules.
#[must_use]
pub fn tried_without(
    without: &Without<'_>,
    subject: &Subject,
    seeds: &[Seed],
    tries: usize,
) -> Tried {
    let mut tried = Tried::default();
    let both = [&without.with, &without.less];
    each_call(&both, subject, seeds, tries, 0, |judge, drawn| {
        tried.note(without, judge, drawn);
        tried.differs
    });
    tried
}

/// What a solver thinks that a call could look like.
#[must_use]
pub fn model_without(without: &Without<'_>, subject: &Subject, model: &Map<String, Json>) -> Tried {
    let mut tried = Tried::default();
    if let Some(judge) = Judge::new(&[&without.with, &without.less], subject) {
        for drawn in judge.drawn(model) {
            tried.note(without, &judge, &drawn);
        }
    }
    tried
}

impl Tried {
    fn note(&mut self, without: &Without<'_>, judge: &Judge<'_>, drawn: &Drawn) {
        let with = judge.decided(&without.with, drawn);
        let less = judge.decided(&without.less, drawn);
        let asked = |prompts: &[String]| prompts.iter().cloned().collect::<BTreeSet<String>>();
        self.differs |= with.level != less.level || asked(&with.prompts) != asked(&less.prompts);
        let named = format!("rule `{}` ", without.rule.id);
        self.counts |= with.reasons.iter().any(|it| it.starts_with(&named));
    }
}
