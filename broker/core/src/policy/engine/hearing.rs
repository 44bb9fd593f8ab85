//! One call before the rules: what is known of it, what can be said of each rule
//! at once, and what Cedar says of the others.

use std::borrow::Cow;

use cedar_policy::{Authorizer, Context, PolicySet, Request, RestrictedExpression};

use super::super::fact::{FACTS, UNMODELLED};
use super::super::known::{Known, Members, pairs};
use super::super::mentions::{APPROVAL, ARGS, Mentions};
use super::super::model::Lost;
use super::{Found, Part, Ready, Slice};
use crate::call::Args;
use crate::facts::Facts;
use crate::rules::Level;

pub(super) struct Hearing<'a> {
    slice: &'a Slice,
    /// What the rules speak of, and the approval that is tried.
    context: Members<'a>,
    /// The same without the approval, as Cedar has it; made when it is first asked.
    pairs: Option<Vec<(String, RestrictedExpression)>>,
    authorizer: Authorizer,
}

/// What one part says at one level: rules by their index, in order.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) permits: Vec<usize>,
    pub(super) forbids: Vec<usize>,
    pub(super) errors: Vec<(usize, String)>,
}

impl<'a> Hearing<'a> {
    pub(super) fn new(slice: &'a Slice, args: &'a Args, facts: &'a Facts) -> Option<Self> {
        Some(Self {
            slice,
            context: context(slice, args, facts)?,
            pairs: None,
            authorizer: Authorizer::new(),
        })
    }

    pub(super) fn hear(&mut self, part: &Part, approval: i64) -> Heard {
        self.context.insert(APPROVAL, Known::Whole(approval));
        let Sifted {
            forbids,
            permits,
            open,
        } = Sifted::of(part, &self.context);
        let mut heard = Heard {
            forbids,
            ..Heard::default()
        };
        let Some(first) = open.first().or(permits.first()) else {
            return heard;
        };
        let Some(request) = self.request(approval) else {
            let why = "the facts of the call cannot be put together".to_owned();
            heard.errors.push((first.at, why));
            return heard;
        };
        // One by one costs more for each rule, and all together one evaluation for each.
        if open.len() * 2 > part.rules.len() {
            let Some(set) = part.set() else {
                let why = "the rules cannot be put together".to_owned();
                heard.errors.push((first.at, why));
                return heard;
            };
            return self.ask([set], &request, Heard::default());
        }
        heard = self.ask(open.iter().map(|rule| &rule.set), &request, heard);
        // Past a forbid no permit matters.
        match permits.split_first() {
            Some((first, more)) if heard.forbids.is_empty() => {
                self.permitted(first, more, &request, heard)
            }
            _ => heard,
        }
    }

    /// No call is allowed on our word alone: Cedar says it of one permit at least.
    fn permitted(&self, first: &Ready, more: &[&Ready], request: &Request, heard: Heard) -> Heard {
        let mut heard = self.ask([&first.set], request, heard);
        if heard.permits.contains(&first.at) {
            heard.permits.extend(more.iter().map(|rule| rule.at));
            return heard;
        }
        self.ask(more.iter().map(|rule| &rule.set), request, heard)
    }

    fn ask<'b>(
        &self,
        sets: impl IntoIterator<Item = &'b PolicySet>,
        request: &Request,
        mut heard: Heard,
    ) -> Heard {
        for set in sets {
            let entities = &self.slice.entities;
            let response = self.authorizer.is_authorized(request, set, entities);
            let diagnostics = response.diagnostics();
            let reasons = diagnostics.reason().filter_map(index);
            match response.decision() {
                cedar_policy::Decision::Allow => heard.permits.extend(reasons),
                cedar_policy::Decision::Deny => heard.forbids.extend(reasons),
            }
            heard.errors.extend(diagnostics.errors().map(error));
        }
        heard
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
        let (principal, action, resource) = self.slice.request.clone();
        Request::new(principal, action, resource, context, None).ok()
    }
}

/// The rules of a part by what can be said of them without Cedar; those that do not match
/// are in none of these.
struct Sifted<'a> {
    forbids: Vec<usize>,
    permits: Vec<&'a Ready>,
    /// Not known.
    open: Vec<&'a Ready>,
}

impl<'a> Sifted<'a> {
    fn of(part: &'a Part, context: &Members<'_>) -> Self {
        let mut sifted = Self {
            forbids: Vec::new(),
            permits: Vec::new(),
            open: Vec::new(),
        };
        for rule in &part.rules {
            match rule.test.outcome(context) {
                Some(true) if rule.forbids => sifted.forbids.push(rule.at),
                Some(true) => sifted.permits.push(rule),
                Some(false) => {}
                None => sifted.open.push(rule),
            }
        }
        sifted
    }
}

/// What the rules of a slice speak of, but for the approval.
fn context<'a>(slice: &Slice, args: &'a Args, facts: &'a Facts) -> Option<Members<'a>> {
    let mentions: &Mentions = &slice.rules.mentions;
    let is_mentioned = |name: &str| mentions.everything || mentions.facts.contains(name);
    let mut members: Members<'a> = FACTS
        .iter()
        .filter(|fact| is_mentioned(fact.name))
        .filter_map(|fact| Some((fact.name, fact.value(facts)?)))
        .collect();
    let object = args.value().as_object()?;
    if is_mentioned(UNMODELLED) {
        let mut lost = Lost::default();
        slice.args.values(object, |_| true, &mut lost);
        let pointers = lost.pointers.into_iter().map(Cow::Owned);
        let pointers = pointers.map(Known::Text).collect();
        members.insert(UNMODELLED, Known::Set(pointers));
    }
    if mentions.everything || !mentions.args.is_empty() {
        let wanted = |name: &str| mentions.everything || mentions.args.contains(name);
        let values = slice.args.values(object, wanted, &mut Lost::default());
        members.insert(ARGS, Known::Record(values));
    }
    Some(members)
}

impl Heard {
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

    pub(super) fn found(self, level: Level) -> Found {
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
