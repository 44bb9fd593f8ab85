//! The rules that can apply to a tool, evaluated on one of its calls.
//!
//! Approval is a level in the context: 0 none, 1 a grant of the run, 2 this
//! call. The smallest level at which a permit matches and no forbid does is the
//! answer. A rule that cannot be evaluated denies the call: Cedar alone would
//! pass over it, and over what it forbids.
//!
//! Of what `sift` can say, Cedar is not asked; but no permit counts unless Cedar itself
//! says that one matches.

mod hearing;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use cedar_policy::{Entities, Entity, EntityUid, Policy, PolicySet};

use super::mentions::Mentions;
use super::model::Record;
use super::rule::Rule;
use super::sift::Test;
use super::vocabulary::{Vocabulary, Words, action_uid, principal_uid, resource_uid};
use crate::call::Args;
use crate::facts::Facts;
use crate::rules::Level;
use hearing::Hearing;

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
    /// What any of them speaks of.
    mentions: Mentions,
}

#[derive(Debug, Default)]
struct Part {
    rules: Vec<Arc<Ready>>,
    /// All of them; made for the first call that needs it, since most tools are never called.
    set: OnceLock<Option<PolicySet>>,
}

/// A rule, ready to be evaluated.
#[derive(Debug)]
struct Ready {
    at: usize,
    forbids: bool,
    test: Test,
    policy: Policy,
    /// It alone.
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
            .map(|(at, rule)| Ready::of(at, rule).map(Arc::new))
            .collect();
        let ready = ready?;
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
                    let parts = Arc::new(Parts::of(rules, &ready, &chosen)?);
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

    /// No call of the tool is allowed, whatever its arguments and facts: a forbid without a
    /// condition is about it, or no permit is. False says that it depends on the call.
    pub(super) fn denies_always(&self, tool: &str) -> bool {
        let Some(slice) = self.slices.get(tool) else {
            return true;
        };
        let parts = &slice.rules;
        let mut forbids = parts.fixed.rules.iter().filter(|rule| rule.forbids);
        let all = parts.fixed.rules.iter().chain(&parts.asking.rules);
        let mut permits = all.filter(|rule| !rule.forbids);
        forbids.any(|rule| rule.test.always() == Some(true))
            || self.needs_permit && permits.all(|rule| rule.test.always() == Some(false))
    }

    /// None for a tool that is not part of the vocabulary, and for arguments that are none.
    pub(super) fn judge(&self, tool: &str, args: &Args, facts: &Facts) -> Option<Found> {
        let slice = self.slices.get(tool)?;
        let parts = &slice.rules;
        let mut hearing = Hearing::new(slice, args, facts)?;
        let fixed = hearing.hear(&parts.fixed, 0);
        let mut lifted = Vec::new();
        for (approval, level) in (0..).zip([Level::Allow, Level::AskRun, Level::AskCall]) {
            let heard = fixed.with(hearing.hear(&parts.asking, approval));
            if !heard.errors.is_empty() {
                return Some(heard.found(Level::Deny));
            }
            let permitted = !self.needs_permit || !heard.permits.is_empty();
            if heard.forbids.is_empty() && permitted {
                let mut found = heard.found(level);
                found.forbids = lifted;
                return Some(found);
            }
            if parts.asking.rules.is_empty() || !fixed.forbids.is_empty() {
                return Some(heard.found(Level::Deny));
            }
            lifted.clone_from(&heard.forbids);
            if level == Level::AskCall {
                return Some(heard.found(Level::Deny));
            }
        }
        None
    }
}

impl Ready {
    fn of(at: usize, rule: &Rule) -> Option<Self> {
        let policy = rule
            .policy
            .new_id(cedar_policy::PolicyId::new(at.to_string()));
        Some(Self {
            at,
            forbids: rule.forbids,
            test: Test::of(&rule.clauses),
            set: PolicySet::from_policies([policy.clone()]).ok()?,
            policy,
        })
    }
}

impl Parts {
    fn of(rules: &[Rule], ready: &[Arc<Ready>], chosen: &[usize]) -> Option<Self> {
        let mut parts = Self::default();
        for at in chosen {
            let (rule, ready) = (rules.get(*at)?, ready.get(*at)?);
            let part = if rule.asks {
                &mut parts.asking
            } else {
                &mut parts.fixed
            };
            part.rules.push(Arc::clone(ready));
            parts.mentions.join(&rule.mentions);
        }
        Some(parts)
    }
}

impl Part {
    fn set(&self) -> Option<&PolicySet> {
        let all = || self.rules.iter().map(|rule| rule.policy.clone());
        let set = self
            .set
            .get_or_init(|| PolicySet::from_policies(all()).ok());
        set.as_ref()
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
}
