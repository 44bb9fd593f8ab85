//! The rules that can apply to a tool, evaluated on one of its calls.
//!
//! Approval is a level in the context: 0 none, 1 a grant of the run, 2 this
//! call. The smallest level at which a permit matches and no forbid does is the
//! answer. A rule that cannot be evaluated denies the call: Cedar alone would
//! pass over it, and over what it forbids.

use std::collections::HashMap;
use std::sync::Arc;

use cedar_policy::{
    Authorizer, Context, Entities, Entity, EntityUid, PolicySet, Request, RestrictedExpression,
};

use super::fact::{FACTS, UNMODELLED, texts};
use super::mentions::{APPROVAL, ARGS, Mentions};
use super::model::{Lost, Record};
use super::rule::Rule;
use super::vocabulary::{Vocabulary, Words, action_uid, principal_uid, resource_uid};
use crate::call::Args;
use crate::facts::Facts;
use crate::rules::Level;

/// All rules by the tools that they can be about.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    slices: HashMap<String, Slice>,
    /// A forbid that does not match is not enough: some rule must permit.
    needs_permit: bool,
}

/// What the rules say of one call: rules by their index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) level: Level,
    pub(super) permits: Vec<usize>,
    /// Those that deny, or that deny without an approval.
    pub(super) forbids: Vec<usize>,
    /// Those that could not be evaluated, and why.
    pub(super) errors: Vec<(usize, String)>,
}

/// Everything that is evaluated for a call of one tool.
#[derive(Debug, Clone)]
struct Slice {
    request: (EntityUid, EntityUid, EntityUid),
    entities: Entities,
    args: Record,
    rules: Arc<Parts>,
}

/// Rules that do not speak of approval are evaluated once, the others once for each level.
#[derive(Debug, Default)]
struct Parts {
    fixed: Part,
    asking: Part,
}

#[derive(Debug, Default)]
struct Part {
    set: PolicySet,
    mentions: Mentions,
}

/// What one part says at one level.
#[derive(Default)]
struct Heard {
    permits: Vec<usize>,
    forbids: Vec<usize>,
    errors: Vec<(usize, String)>,
}

impl Engine {
    pub(super) fn build(
        rules: &[Rule],
        vocabulary: &Vocabulary,
        needs_permit: bool,
    ) -> Option<Self> {
        let mut shared: HashMap<Vec<usize>, Arc<Parts>> = HashMap::new();
        let mut slices = HashMap::new();
        for (name, words) in &vocabulary.tools {
            let covers = |(_, rule): &(usize, &Rule)| rule.scope.covers(name, &words.groups);
            let chosen: Vec<usize> = rules
                .iter()
                .enumerate()
                .filter(covers)
                .map(|(at, _)| at)
                .collect();
            let parts = match shared.get(&chosen) {
                Some(parts) => Arc::clone(parts),
                None => {
                    let parts = Arc::new(Parts::of(rules, &chosen)?);
                    shared.insert(chosen, Arc::clone(&parts));
                    parts
                }
            };
            slices.insert(name.clone(), Slice::of(name, words, parts)?);
        }
        Some(Self {
            slices,
            needs_permit,
        })
    }

    /// None for a tool that is not part of the vocabulary.
    pub(super) fn judge(&self, tool: &str, args: &Args, facts: &Facts) -> Option<Found> {
        let slice = self.slices.get(tool)?;
        let fixed = slice.hear(&slice.rules.fixed, args, facts, 0);
        let mut lifted = Vec::new();
        for (number, level) in [Level::Allow, Level::AskRun, Level::AskCall]
            .into_iter()
            .enumerate()
        {
            let asking = slice.hear(&slice.rules.asking, args, facts, number);
            let heard = fixed.with(asking);
            if !heard.errors.is_empty() {
                return Some(heard.found(Level::Deny));
            }
            let permitted = !self.needs_permit || !heard.permits.is_empty();
            if heard.forbids.is_empty() && permitted {
                let mut found = heard.found(level);
                found.forbids = lifted;
                return Some(found);
            }
            if slice.rules.asking.set.is_empty() || !fixed.forbids.is_empty() {
                return Some(heard.found(Level::Deny));
            }
            lifted.clone_from(&heard.forbids);
            if number == 2 {
                return Some(heard.found(Level::Deny));
            }
        }
        None
    }
}

impl Parts {
    fn of(rules: &[Rule], chosen: &[usize]) -> Option<Self> {
        let mut parts = Self::default();
        for at in chosen {
            let rule = rules.get(*at)?;
            let part = if rule.asks {
                &mut parts.asking
            } else {
                &mut parts.fixed
            };
            part.mentions.join(&rule.mentions);
            let id = cedar_policy::PolicyId::new(at.to_string());
            part.set.add(rule.policy.new_id(id)).ok()?;
        }
        Some(parts)
    }
}

impl Slice {
    fn of(name: &str, words: &Words, rules: Arc<Parts>) -> Option<Self> {
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

    fn hear(&self, part: &Part, args: &Args, facts: &Facts, approval: usize) -> Heard {
        if part.set.is_empty() {
            return Heard::default();
        }
        let Some(request) = self.request(&part.mentions, args, facts, approval) else {
            let why = "the facts of the call cannot be put together".to_owned();
            let first = part.set.policies().next().and_then(|it| index(it.id()));
            return Heard {
                errors: vec![(first.unwrap_or_default(), why)],
                ..Heard::default()
            };
        };
        let response = Authorizer::new().is_authorized(&request, &part.set, &self.entities);
        let diagnostics = response.diagnostics();
        let reasons = diagnostics.reason().filter_map(index).collect();
        let mut heard = Heard::default();
        match response.decision() {
            cedar_policy::Decision::Allow => heard.permits = reasons,
            cedar_policy::Decision::Deny => heard.forbids = reasons,
        }
        heard.errors = diagnostics.errors().map(error).collect();
        heard
    }

    fn request(
        &self,
        mentions: &Mentions,
        args: &Args,
        facts: &Facts,
        approval: usize,
    ) -> Option<Request> {
        let is_mentioned = |name: &str| mentions.everything || mentions.facts.contains(name);
        let mut pairs: Vec<(String, RestrictedExpression)> = FACTS
            .iter()
            .filter(|fact| is_mentioned(fact.name))
            .filter_map(|fact| Some((fact.name.to_owned(), fact.value(facts)?)))
            .collect();
        let object = args.value().as_object()?;
        if is_mentioned(UNMODELLED) {
            let mut lost = Lost::default();
            self.args.values(object, |_| true, &mut lost);
            let pointers = texts(lost.pointers.iter().map(String::as_str));
            pairs.push((UNMODELLED.to_owned(), pointers));
        }
        if is_mentioned(APPROVAL) {
            let level = RestrictedExpression::new_long(i64::try_from(approval).ok()?);
            pairs.push((APPROVAL.to_owned(), level));
        }
        if mentions.everything || !mentions.args.is_empty() {
            let wanted = |name: &str| mentions.everything || mentions.args.contains(name);
            let values = self.args.values(object, wanted, &mut Lost::default());
            pairs.push((
                ARGS.to_owned(),
                RestrictedExpression::new_record(values).ok()?,
            ));
        }
        let context = Context::from_pairs(pairs).ok()?;
        let (principal, action, resource) = self.request.clone();
        Request::new(principal, action, resource, context, None).ok()
    }
}

impl Heard {
    fn with(&self, other: Self) -> Self {
        let joined = |a: &[usize], b: Vec<usize>| {
            let mut all = [a, &b].concat();
            all.sort_unstable();
            all
        };
        Self {
            permits: joined(&self.permits, other.permits),
            forbids: joined(&self.forbids, other.forbids),
            errors: [self.errors.clone(), other.errors].concat(),
        }
    }

    fn found(self, level: Level) -> Found {
        let Self {
            permits,
            forbids,
            errors,
        } = self;
        Found {
            level,
            permits,
            forbids,
            errors,
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
