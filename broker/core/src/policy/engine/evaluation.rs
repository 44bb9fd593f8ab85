//! Evaluates the rules on one call. The prefilter decides as many rules as it can, and Cedar
//! decides the others.

use std::borrow::Cow;

use cedar_policy::{Authorizer, Context, PolicySet, Request, RestrictedExpression};

use super::super::context_value::{ContextValue, Members, pairs};
use super::super::fact::{FACTS, UNMODELLED};
use super::super::mentions::{APPROVAL, ARGS, ArgRead, Mentions};
use super::super::model::UnmodelledArgs;
use super::{EngineVerdict, PreparedRule, RuleGroup, ToolEvaluator};
use crate::call::Args;
use crate::facts::Facts;
use crate::level::Level;

pub(super) struct Evaluation<'a> {
    evaluator: &'a ToolEvaluator,
    /// The context members that the rules read, and the approval level that is being tried.
    context: Members<'a>,
    /// JSON pointers to the arguments that rules read and that they cannot see completely.
    unmodelled: Vec<String>,
    /// The same members as Cedar values, without the approval; built on first use.
    pairs: Option<Vec<(String, RestrictedExpression)>>,
    authorizer: Authorizer,
}

/// The result of one group of rules at one approval level. Rules are given by their index, in
/// order.
#[derive(Default)]
pub(super) struct GroupResult {
    pub(super) permits: Vec<usize>,
    pub(super) forbids: Vec<usize>,
    pub(super) errors: Vec<(usize, String)>,
}

impl<'a> Evaluation<'a> {
    pub(super) fn new(
        evaluator: &'a ToolEvaluator,
        args: &'a Args,
        facts: &'a Facts,
    ) -> Option<Self> {
        let mut lost = UnmodelledArgs::default();
        Some(Self {
            evaluator,
            context: context(evaluator, args, facts, &mut lost)?,
            unmodelled: lost.pointers,
            pairs: None,
            authorizer: Authorizer::new(),
        })
    }

    /// Returns the rules that read an argument whose value they cannot see, and its JSON pointer.
    pub(super) fn unseen(&self) -> Vec<(usize, String)> {
        let reads = self.evaluator.rules.reads.iter();
        let unseen = |(at, read): &(usize, ArgRead)| {
            let mut hiding = self.unmodelled.iter();
            let pointer = hiding.find(|pointer| read.is_hidden_by(pointer))?;
            Some((*at, pointer.clone()))
        };
        let mut unseen: Vec<_> = reads.filter_map(unseen).collect();
        unseen.dedup();
        unseen
    }

    pub(super) fn evaluate_group(&mut self, group: &RuleGroup, approval: i64) -> GroupResult {
        self.context.insert(APPROVAL, ContextValue::Whole(approval));
        let FilteredGroup {
            forbids,
            permits,
            open,
        } = FilteredGroup::new(group, &self.context);
        let mut result = GroupResult {
            forbids,
            ..GroupResult::default()
        };
        let Some(first) = open.first().or(permits.first()) else {
            return result;
        };
        let Some(request) = self.request(approval) else {
            let why = "Cedar does not accept the facts of the call".to_owned();
            result.errors.push((first.at, why));
            return result;
        };
        // Evaluating rules one by one costs more per rule. If all rules are evaluated together, the
        // rules that the prefilter has decided are evaluated again.
        if open.len() * 2 > group.rules.len() {
            let Some(set) = group.set() else {
                let why = "Cedar cannot combine the rules".to_owned();
                result.errors.push((first.at, why));
                return result;
            };
            return self.query_cedar([set], &request, GroupResult::default());
        }
        result = self.query_cedar(open.iter().map(|rule| &rule.set), &request, result);
        // If a forbid matches, the permits have no effect.
        match permits.split_first() {
            Some((first, more)) if result.forbids.is_empty() => {
                self.permitted(first, more, &request, result)
            }
            _ => result,
        }
    }

    /// Asks Cedar to confirm at least one permit, so that no call is allowed by the prefilter
    /// alone.
    fn permitted(
        &self,
        first: &PreparedRule,
        more: &[&PreparedRule],
        request: &Request,
        result: GroupResult,
    ) -> GroupResult {
        let mut result = self.query_cedar([&first.set], request, result);
        if result.permits.contains(&first.at) {
            result.permits.extend(more.iter().map(|rule| rule.at));
            return result;
        }
        self.query_cedar(more.iter().map(|rule| &rule.set), request, result)
    }

    fn query_cedar<'b>(
        &self,
        sets: impl IntoIterator<Item = &'b PolicySet>,
        request: &Request,
        mut result: GroupResult,
    ) -> GroupResult {
        for set in sets {
            let entities = &self.evaluator.entities;
            let response = self.authorizer.is_authorized(request, set, entities);
            let diagnostics = response.diagnostics();
            let reasons = diagnostics.reason().filter_map(index);
            match response.decision() {
                cedar_policy::Decision::Allow => result.permits.extend(reasons),
                cedar_policy::Decision::Deny => result.forbids.extend(reasons),
            }
            result.errors.extend(diagnostics.errors().map(error));
        }
        result
    }

    fn request(&mut self, approval: i64) -> Option<Request> {
        if self.pairs.is_none() {
            self.context.remove(APPROVAL);
            self.pairs = Some(pairs(&self.context)?);
        }
        let mut all = self.pairs.clone()?;
        all.push((
            APPROVAL.to_owned(),
            RestrictedExpression::new_long(approval),
        ));
        let context = Context::from_pairs(all).ok()?;
        let (principal, action, resource) = self.evaluator.request.clone();
        Request::new(principal, action, resource, context, None).ok()
    }
}

/// The rules of a group, sorted by the prefilter's result. Rules that do not match are not in any
/// of the lists.
struct FilteredGroup<'a> {
    forbids: Vec<usize>,
    permits: Vec<&'a PreparedRule>,
    /// Rules that only Cedar can decide.
    open: Vec<&'a PreparedRule>,
}

impl<'a> FilteredGroup<'a> {
    fn new(group: &'a RuleGroup, context: &Members<'_>) -> Self {
        let mut filtered = Self {
            forbids: Vec::new(),
            permits: Vec::new(),
            open: Vec::new(),
        };
        for rule in &group.rules {
            match rule.test.outcome(context) {
                Some(true) if rule.forbids => filtered.forbids.push(rule.at),
                Some(true) => filtered.permits.push(rule),
                Some(false) => {}
                None => filtered.open.push(rule),
            }
        }
        filtered
    }
}

/// Returns the context members that the rules for a tool read, without the approval. Adds pointers
/// to the unmodelled parts of arguments that the rules read.
fn context<'a>(
    evaluator: &ToolEvaluator,
    args: &'a Args,
    facts: &'a Facts,
    unmodelled: &mut UnmodelledArgs,
) -> Option<Members<'a>> {
    let mentions: &Mentions = &evaluator.rules.mentions;
    let is_mentioned = |name: &str| mentions.everything || mentions.facts.contains(name);
    let mut members: Members<'a> = FACTS
        .iter()
        .filter(|fact| is_mentioned(fact.name))
        .filter_map(|fact| Some((fact.name, fact.value(facts)?)))
        .collect();
    let object = args.value().as_object()?;
    if is_mentioned(UNMODELLED) {
        let mut lost = UnmodelledArgs::default();
        evaluator.args.values(object, |_| true, &mut lost);
        let pointers = lost.pointers.into_iter().map(Cow::Owned);
        let pointers = pointers.map(ContextValue::Text).collect();
        members.insert(UNMODELLED, ContextValue::Set(pointers));
    }
    if mentions.everything || !mentions.args.is_empty() {
        let wanted = |name: &str| mentions.everything || mentions.args.contains(name);
        let values = evaluator.args.values(object, wanted, unmodelled);
        members.insert(ARGS, ContextValue::Record(values));
    }
    Some(members)
}

impl GroupResult {
    pub(super) fn with(&self, other: Self) -> Self {
        let joined = |a: &[usize], b: Vec<usize>| {
            let mut all = [a, &b].concat();
            all.sort_unstable();
            all
        };
        let mut errors = [self.errors.clone(), other.errors].concat();
        errors.sort();
        Self {
            permits: joined(&self.permits, other.permits),
            forbids: joined(&self.forbids, other.forbids),
            errors,
        }
    }

    pub(super) fn found(self, level: Level) -> EngineVerdict {
        let Self {
            permits,
            forbids,
            errors,
        } = self;
        EngineVerdict {
            level,
            permits,
            forbids,
            errors,
            unseen: Vec::new(),
        }
    }
}

fn index(id: &cedar_policy::PolicyId) -> Option<usize> {
    let text: &str = id.as_ref();
    text.parse().ok()
}

fn error(error: &cedar_policy::AuthorizationError) -> (usize, String) {
    let cedar_policy::AuthorizationError::PolicyEvaluationError(error) = error;
    let at = index(error.policy_id()).unwrap_or_default();
    (at, error.inner().to_string())
}
