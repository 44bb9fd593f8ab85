//! The rules about one tool as a solver is asked about them: Cedar policies over
//! a schema that has this tool alone, with what is taken for granted. Nothing in
//! here knows a solver.
//!
//! Two things differ from Cedar alone. A number that 64 bits do not hold is absent
//! to rules though the schema requires it; so it is optional here. And an error
//! denies with us and is passed over there: so `total` writes out when a rule errs,
//! as a forbid of its own. One error is left that cannot be written out, that of a
//! product of two values; what is proved to be denied is denied all the same, and
//! what compares two answers minds it.

mod among;
mod overflow;
mod settled;
mod total;

use std::collections::BTreeSet;

use cedar_policy::pst::{Clause, Expr, Literal, Var};
use cedar_policy::{Policy, PolicyId, PolicySet, RequestEnv, Schema};
use serde_json::{Map, Value as Json, json};

use super::world::{Sayings, Subject, World};
use crate::policy::Policies;
use crate::policy::fact::{FACTS, UNMODELLED};
use crate::policy::mentions::{APPROVAL, ARGS, Mentions, inner};
use crate::policy::model::Record;
use crate::policy::rule::Rule;
use crate::policy::vocabulary::{ACTION, PRINCIPAL, RESOURCE, Words};

pub use among::Among;
use settled::Settled;
pub(in crate::policy) use total::{Errors, may_be_lost};

/// What a call is named here, unless a rule speaks of the action in its condition.
const CALL: &str = "call";

/// Whether a call is let through, by the rules of one side at one approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lets {
    pub side: usize,
    pub approval: u8,
}

/// Rules of one folder, or of two that are compared, about one tool.
#[derive(Debug, Clone)]
pub struct Theory {
    action: String,
    schema: Json,
    assumed: Vec<String>,
    /// Parts of conditions that the tool settles.
    given: Vec<(Json, bool)>,
    sides: Vec<Side>,
}

#[derive(Debug, Clone, Default)]
struct Side {
    needs_permit: bool,
    rules: Vec<Part>,
}

/// The rules about a tool, and what they speak of.
struct Read<'a> {
    name: String,
    words: &'a Words,
    mentions: Mentions,
    /// Actions and texts that they write out.
    named: BTreeSet<String>,
    written: BTreeSet<String>,
    sides: Vec<Side>,
}

/// A rule without its scope and without its name, and what else stands for its errors.
#[derive(Debug, Clone, PartialEq)]
struct Part {
    id: String,
    /// The rule, and a forbid of all calls on which it errs.
    bodies: Vec<Json>,
    /// An error that is not written out could deny what Cedar alone would allow.
    may_err: bool,
}

impl Theory {
    /// None for a tool that the rules do not know; an error says why nothing can be proved.
    pub fn of(all: &[&Policies], subject: &Subject) -> Option<Result<Self, String>> {
        let read = Read::of(all, subject)?;
        Some(read.map(|read| read.theory(subject, Sayings::Configured)))
    }

    /// Equal for tools of which exactly the same is asked.
    #[must_use]
    pub fn key(&self) -> String {
        let side = |side: &Side| {
            let bodies: Vec<_> = side.rules.iter().map(|part| &part.bodies).collect();
            json!([side.needs_permit, bodies])
        };
        let sides: Vec<Json> = self.sides.iter().map(side).collect();
        json!([self.action, self.schema, self.assumed, sides]).to_string()
    }

    /// Whether the two sides say the same by their texts.
    #[must_use]
    pub fn is_same(&self) -> bool {
        let bodies = |side: &Side| -> BTreeSet<String> {
            let bodies = side.rules.iter().flat_map(|part| &part.bodies);
            bodies.map(Json::to_string).collect()
        };
        let mut sides = self.sides.iter();
        match (sides.next(), sides.next()) {
            (Some(one), Some(other)) => {
                one.needs_permit == other.needs_permit && bodies(one) == bodies(other)
            }
            _ => true,
        }
    }

    /// A rule of this side, and not of the other, with an error that is not written out: it
    /// multiplies two values of a call.
    #[must_use]
    pub fn may_err(&self, side: usize) -> Option<&str> {
        let (one, other) = (self.sides.get(side)?, self.sides.get(1 - side.min(1))?);
        let is_shared = |part: &Part| other.rules.iter().any(|it| it.bodies == part.bodies);
        let mut erring = one.rules.iter().filter(|part| part.may_err);
        erring
            .find(|part| !is_shared(part))
            .map(|part| part.id.as_str())
    }

    /// Whether it is known without a solver that one side lets nothing through with an approval
    /// that another does not.
    #[must_use]
    pub fn is_settled(&self, what: Lets, but: Option<Lets>) -> bool {
        let what = self.written(what);
        let is_all = |body: &Json| conditions(body).next().is_none();
        let [permits, forbids] = apart(&what);
        if permits.is_empty() || forbids.into_iter().any(is_all) {
            return true;
        }
        let Some(but) = but.map(|but| self.written(but)) else {
            return false;
        };
        let [[gives, takes], [given, taken]] = [apart(&what), apart(&but)];
        gives.iter().all(|it| given.contains(it)) && taken.iter().all(|it| takes.contains(it))
    }

    /// Equal for questions that are exactly the same.
    #[must_use]
    pub fn question(&self, what: Lets, but: Option<Lets>) -> String {
        let sides = json!([self.written(what), but.map(|but| self.written(but))]);
        json!([self.action, self.schema, self.assumed, sides]).to_string()
    }

    /// The rules of a side, as far as an approval leaves them open.
    fn written(&self, lets: Lets) -> Vec<Json> {
        let Some(side) = self.sides.get(lets.side) else {
            return Vec::new();
        };
        let mut all = side.bodies(&self.given, lets.approval);
        if !side.needs_permit {
            all.push(among::permit_of_all());
        }
        all
    }

    pub fn schema(&self) -> Result<Schema, String> {
        Schema::from_json_value(self.schema.clone()).map_err(|error| error.to_string())
    }

    pub fn environment(&self) -> Option<RequestEnv> {
        let action = crate::policy::vocabulary::action_uid(&self.action)?;
        let (principal, resource) = (PRINCIPAL.parse().ok()?, RESOURCE.parse().ok()?);
        Some(RequestEnv::new(principal, action, resource))
    }

    /// The rules of a side with one approval written in, and what is assumed as forbids of all
    /// else.
    pub fn policies(&self, lets: Lets) -> Result<PolicySet, String> {
        let mut set = PolicySet::new();
        let mut add = |policy: Result<Policy, String>| -> Result<(), String> {
            set.add(policy?).map_err(|error| error.to_string())
        };
        for (at, body) in self.written(lets).into_iter().enumerate() {
            let id = PolicyId::new(format!("rule-{at}"));
            add(Policy::from_json(Some(id), body).map_err(|error| error.to_string()))?;
        }
        for (at, assumed) in self.assumed.iter().enumerate() {
            let text = format!("forbid(principal, action, resource) unless {{ {assumed} }};");
            let id = PolicyId::new(format!("assumed-{at}"));
            add(Policy::parse(Some(id), text).map_err(|error| error.to_string()))?;
        }
        Ok(set)
    }
}

/// What permits, and what forbids.
fn apart(all: &[Json]) -> [Vec<&Json>; 2] {
    let is_forbid = |body: &&Json| among::is_forbid(body);
    let (forbids, permits) = all.iter().partition(is_forbid);
    [permits, forbids]
}

impl<'a> Read<'a> {
    fn of(all: &[&'a Policies], subject: &Subject) -> Option<Result<Self, String>> {
        let name = subject.tool.to_string();
        let words = all.first()?.vocabulary.tools.get(&name)?;
        let mut read = Self {
            name,
            words,
            mentions: Mentions::default(),
            named: BTreeSet::new(),
            written: BTreeSet::new(),
            sides: Vec::new(),
        };
        for policies in all {
            let mut rules = Vec::new();
            for rule in policies.about(&subject.tool) {
                read.mentions.join(&rule.mentions);
                named_in(rule, &mut read.named, &mut read.written);
                match Part::of(rule, &words.args) {
                    Some(part) => rules.push(part),
                    None => {
                        let why = "holds what is not written out for a solver";
                        return Some(Err(format!("the rule `{}` {why}", rule.id)));
                    }
                }
            }
            let needs_permit = policies.needs_permit;
            read.sides.push(Side {
                needs_permit,
                rules,
            });
        }
        // The approval that is tried is written into the rules.
        read.mentions.facts.remove(APPROVAL);
        Some(Ok(read))
    }

    fn theory(self, subject: &Subject, sayings: Sayings) -> Theory {
        let (action, schema) = schema(&self.name, self.words, &self.mentions, &self.named);
        let world = World { subject, sayings };
        Theory {
            action,
            schema,
            assumed: world.assumptions(&self.mentions, &self.words.args, &self.written),
            given: world.given(),
            sides: self.sides,
        }
    }
}

impl Side {
    /// With one approval written in. A rule that errs with less approval has denied the call
    /// before anybody could be asked.
    fn bodies(&self, given: &[(Json, bool)], approval: u8) -> Vec<Json> {
        let with = |approval: u8| Settled { given, approval };
        let mut all = Vec::new();
        for part in &self.rules {
            let mut bodies = part.bodies.iter();
            all.extend(bodies.next().and_then(|rule| with(approval).rule(rule)));
            for errs in bodies {
                let each = (0..=approval).filter_map(|it| with(it).rule(errs));
                let mut each: Vec<Json> = each.collect();
                each.dedup();
                all.append(&mut each);
            }
        }
        all
    }
}

impl Part {
    fn of(rule: &Rule, args: &Record) -> Option<Self> {
        let odd = |expr: &Expr| {
            inner(expr).is_none() || matches!(expr, Expr::Var(Var::Principal | Var::Resource))
        };
        if exprs(rule).any(odd) {
            return None;
        }
        let body = rule.policy.to_json().ok()?;
        Some(Self {
            id: rule.id.to_string(),
            may_err: conditions(&body).any(|(_, it)| overflow::is_open(it)),
            bodies: total::bodies(&body, args)?,
        })
    }
}

impl Policies {
    /// The rules that can be about a tool.
    pub(super) fn about(&self, tool: &crate::id::ToolId) -> impl Iterator<Item = &Rule> {
        let name = tool.to_string();
        let words = self.vocabulary.tools.get(&name);
        self.rules
            .iter()
            .filter(move |rule| words.is_some_and(|it| rule.scope.covers(&name, &it.groups)))
    }
}

/// Only what the rules mention: tools that differ in nothing else are asked about once.
fn schema(
    name: &str,
    words: &Words,
    mentions: &Mentions,
    named: &BTreeSet<String>,
) -> (String, Json) {
    let mut context: Map<String, Json> = FACTS
        .iter()
        .filter(|fact| mentions.facts.contains(fact.name))
        .map(|fact| (fact.name.to_owned(), fact.schema()))
        .collect();
    if mentions.facts.contains(UNMODELLED) {
        let texts = json!({"type": "Set", "element": {"type": "String"}});
        context.insert(UNMODELLED.to_owned(), texts);
    }
    if !mentions.args.is_empty() {
        let args = words.args.0.iter();
        let args = args.filter(|(name, _)| mentions.args.contains(*name));
        let args = Record(args.map(|(name, it)| (name.clone(), it.clone())).collect());
        context.insert(ARGS.to_owned(), total::as_seen(args).schema());
    }
    let mut actions: Map<String, Json> = Map::new();
    for name in named {
        actions.insert(name.clone(), json!({}));
    }
    let member = |group: &String| json!({ "id": group });
    let groups: Vec<&String> = words
        .groups
        .iter()
        .filter(|it| named.contains(*it))
        .collect();
    let groups: Vec<Json> = groups.into_iter().map(member).collect();
    let action = if named.is_empty() { CALL } else { name };
    let applies = json!({
        "principalTypes": [PRINCIPAL],
        "resourceTypes": [RESOURCE],
        "context": {"type": "Record", "attributes": context},
    });
    let call = json!({"memberOf": groups, "appliesTo": applies});
    actions.insert(action.to_owned(), call);
    let entities = json!({PRINCIPAL: {}, RESOURCE: {}});
    let schema = json!({"": {"entityTypes": entities, "actions": actions}});
    (action.to_owned(), schema)
}

/// All expressions of a rule's conditions, the outermost first.
fn exprs(rule: &Rule) -> impl Iterator<Item = &Expr> {
    let mut open: Vec<&Expr> = rule
        .clauses
        .iter()
        .map(|clause| match clause {
            Clause::When(expr) | Clause::Unless(expr) => &**expr,
        })
        .collect();
    std::iter::from_fn(move || {
        let expr = open.pop()?;
        open.extend(inner(expr).unwrap_or_default());
        Some(expr)
    })
}

/// Actions and texts that conditions write out.
fn named_in(rule: &Rule, actions: &mut BTreeSet<String>, texts: &mut BTreeSet<String>) {
    for expr in exprs(rule) {
        match expr {
            Expr::Literal(Literal::EntityUID(uid)) if uid.ty.to_string() == ACTION => {
                actions.insert(uid.eid.to_string());
            }
            Expr::Literal(Literal::String(text)) => {
                texts.insert(text.to_string());
            }
            _ => {}
        }
    }
}

/// Each condition, and what it has to come to.
fn conditions(body: &Json) -> impl Iterator<Item = (bool, &Json)> {
    let all = body.get("conditions").and_then(Json::as_array);
    all.into_iter().flatten().filter_map(|condition| {
        let kind = condition.get("kind")?.as_str()?;
        Some((kind == "when", condition.get("body")?))
    })
}
