//! Evaluates the rules that can apply to a tool on one of its calls.
//!
//! Approval is a number in the context: 0 means none, 1 a grant for the run, 2 an approval of this
//! call. The result is the smallest level at which a permit matches and no forbid does. A rule that
//! cannot be evaluated denies the call; Cedar alone would skip the rule, even if it is a forbid. A
//! rule that reads an unmodelled argument of the call cannot be evaluated either: for Cedar the
//! argument would be absent, and a `has` would be false although the server gets a value.
//!
//! Conditions that the prefilter can decide are not sent to Cedar. But a call is only permitted if
//! Cedar itself confirms at least one matching permit.

mod evaluation;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use cedar_policy::{Entities, Entity, EntityUid, Policy, PolicySet};

use super::mentions::{ArgRead, Mentions};
use super::model::Record;
use super::prefilter::Test;
use super::rule::Rule;
use super::vocabulary::{ToolWords, Vocabulary, action_uid, principal_uid, resource_uid};
use crate::call::Args;
use crate::facts::Facts;
use crate::level::Level;
use evaluation::{Evaluation, GroupResult};

/// All rules, grouped by the tools that they can apply to.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    evaluators: HashMap<String, ToolEvaluator>,
    /// Whether a call needs a matching permit. Otherwise a call is allowed unless a forbid matches.
    needs_permit: bool,
}

/// The result of the rules for one call. Rules are given by their index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EngineVerdict {
    pub(super) level: Level,
    pub(super) permits: Vec<usize>,
    /// The rules that forbid the call, or that would forbid it without an approval.
    pub(super) forbids: Vec<usize>,
    /// The rules that could not be evaluated, and why.
    pub(super) errors: Vec<(usize, String)>,
    /// The rules that read an unmodelled argument of the call, and its JSON pointer. If there are
    /// any, no rule is evaluated.
    pub(super) unseen: Vec<(usize, String)>,
}

/// Everything needed to evaluate a call of one tool.
#[derive(Debug, Clone)]
struct ToolEvaluator {
    request: (EntityUid, EntityUid, EntityUid),
    entities: Entities,
    args: Record,
    rules: Arc<ToolRules>,
}

/// The rules for a tool. Rules that do not read the approval level are evaluated once, the others
/// once for each level.
#[derive(Debug, Default)]
struct ToolRules {
    fixed: RuleGroup,
    asking: RuleGroup,
    /// The context members that any of the rules reads.
    mentions: Mentions,
    /// The arguments that the rules read, each with the index of its rule.
    reads: Vec<(usize, ArgRead)>,
}

#[derive(Debug, Default)]
struct RuleGroup {
    rules: Vec<Arc<PreparedRule>>,
    /// All rules as one policy set. Built for the first call that needs it, since most tools are
    /// never called.
    set: OnceLock<Option<PolicySet>>,
}

/// A rule that is ready to be evaluated.
#[derive(Debug)]
struct PreparedRule {
    at: usize,
    forbids: bool,
    test: Test,
    policy: Policy,
    /// A policy set with this rule alone.
    set: PolicySet,
}

impl Engine {
    pub(super) fn build(
        rules: &[Rule],
        vocabulary: &Vocabulary,
        needs_permit: bool,
    ) -> Option<Self> {
        let ready = rules.iter().enumerate();
        let ready: Option<Vec<_>> = ready
            .map(|(at, rule)| PreparedRule::new(at, rule).map(Arc::new))
            .collect();
        let ready = ready?;
        let mut shared: HashMap<Vec<usize>, Arc<ToolRules>> = HashMap::new();
        let mut evaluators = HashMap::new();
        for (name, words) in &vocabulary.tools {
            let covers = |(_, rule): &(usize, &Rule)| rule.scope.covers(name, &words.groups);
            let chosen: Vec<usize> = rules
                .iter()
                .enumerate()
                .filter(covers)
                .map(|(at, _)| at)
                .collect();
            let rules = match shared.get(&chosen) {
                Some(rules) => Arc::clone(rules),
                None => {
                    let rules = Arc::new(ToolRules::select(rules, &ready, &chosen)?);
                    shared.insert(chosen, Arc::clone(&rules));
                    rules
                }
            };
            evaluators.insert(name.clone(), ToolEvaluator::new(name, words, rules)?);
        }
        Some(Self {
            evaluators,
            needs_permit,
        })
    }

    /// Whether the tool is part of the vocabulary.
    pub(super) fn knows(&self, tool: &str) -> bool {
        self.evaluators.contains_key(tool)
    }

    /// Returns the denial of every call of the tool, with any arguments and facts. Every call is
    /// denied if an unconditional forbid applies to the tool, or if no permit does. `None` means
    /// that the result depends on the call.
    pub(super) fn always_denied(&self, tool: &str) -> Option<EngineVerdict> {
        let mut denied = GroupResult::default().found(Level::Deny);
        let Some(evaluator) = self.evaluators.get(tool) else {
            return Some(denied);
        };
        let rules = &evaluator.rules;
        let forbids = rules.fixed.rules.iter().filter(|rule| rule.forbids);
        let unconditional = forbids.filter(|rule| rule.test.always() == Some(true));
        denied.forbids = unconditional.map(|rule| rule.at).collect();
        let all = rules.fixed.rules.iter().chain(&rules.asking.rules);
        let mut permits = all.filter(|rule| !rule.forbids);
        let is_denied = !denied.forbids.is_empty()
            || self.needs_permit && permits.all(|rule| rule.test.always() == Some(false));
        is_denied.then_some(denied)
    }

    /// Returns `None` if the tool is not part of the vocabulary, or the context cannot be built.
    pub(super) fn judge(&self, tool: &str, args: &Args, facts: &Facts) -> Option<EngineVerdict> {
        let evaluator = self.evaluators.get(tool)?;
        let rules = &evaluator.rules;
        let mut evaluation = Evaluation::new(evaluator, args, facts)?;
        let unseen = evaluation.unseen();
        if !unseen.is_empty() {
            return Some(EngineVerdict {
                unseen,
                ..GroupResult::default().found(Level::Deny)
            });
        }
        let fixed = evaluation.evaluate_group(&rules.fixed, 0);
        let mut lifted = Vec::new();
        for (approval, level) in (0..).zip([Level::Allow, Level::AskRun, Level::AskCall]) {
            let result = fixed.with(evaluation.evaluate_group(&rules.asking, approval));
            if !result.errors.is_empty() {
                return Some(result.found(Level::Deny));
            }
            let permitted = !self.needs_permit || !result.permits.is_empty();
            if result.forbids.is_empty() && permitted {
                let mut found = result.found(level);
                // If a permit matches without any approval, the question comes from the forbids
                // only. A permit that needs an approval would add a question about another kind of
                // call.
                if level > Level::Allow && !fixed.permits.is_empty() {
                    found.permits.clone_from(&fixed.permits);
                }
                found.forbids = lifted;
                return Some(found);
            }
            if rules.asking.rules.is_empty() || !fixed.forbids.is_empty() {
                return Some(result.found(Level::Deny));
            }
            lifted.clone_from(&result.forbids);
            if level == Level::AskCall {
                return Some(result.found(Level::Deny));
            }
        }
        None
    }
}

impl PreparedRule {
    fn new(at: usize, rule: &Rule) -> Option<Self> {
        let policy = rule
            .policy
            .new_id(cedar_policy::PolicyId::new(at.to_string()));
        Some(Self {
            at,
            forbids: rule.forbids,
            test: Test::from_clauses(&rule.clauses),
            set: PolicySet::from_policies([policy.clone()]).ok()?,
            policy,
        })
    }
}

impl ToolRules {
    fn select(rules: &[Rule], ready: &[Arc<PreparedRule>], chosen: &[usize]) -> Option<Self> {
        let mut selected = Self::default();
        for at in chosen {
            let (rule, ready) = (rules.get(*at)?, ready.get(*at)?);
            let group = if rule.asks {
                &mut selected.asking
            } else {
                &mut selected.fixed
            };
            group.rules.push(Arc::clone(ready));
            selected.mentions.join(&rule.mentions);
            let reads = ArgRead::in_clauses(&rule.clauses).into_iter();
            selected.reads.extend(reads.map(|read| (*at, read)));
        }
        Some(selected)
    }
}

impl RuleGroup {
    fn set(&self) -> Option<&PolicySet> {
        let all = || self.rules.iter().map(|rule| rule.policy.clone());
        let set = self
            .set
            .get_or_init(|| PolicySet::from_policies(all()).ok());
        set.as_ref()
    }
}

impl ToolEvaluator {
    fn new(name: &str, words: &ToolWords, rules: Arc<ToolRules>) -> Option<Self> {
        let action = action_uid(name)?;
        let groups: Option<Vec<EntityUid>> = words.groups.iter().map(|it| action_uid(it)).collect();
        let groups = groups?;
        let parents = groups.iter().cloned().collect();
        let mut entities = vec![Entity::new_no_attrs(action.clone(), parents)];
        entities.extend(groups.into_iter().map(Entity::with_uid));
        Some(Self {
            request: (principal_uid()?, action, resource_uid()?),
            entities: Entities::from_entities(entities, None).ok()?,
            args: words.args.clone(),
            rules,
        })
    }
}
