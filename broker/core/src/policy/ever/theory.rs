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

mod overflow;
pub(super) mod total;

use std::collections::BTreeSet;

use cedar_policy::pst::{Clause, Expr, Literal, Var};
use cedar_policy::{Policy, PolicyId, PolicySet, RequestEnv, Schema};
use serde_json::{Map, Value as Json, json};

use super::world::{Subject, assumptions, given};
use crate::policy::Policies;
use crate::policy::fact::{FACTS, UNMODELLED};
use crate::policy::mentions::{APPROVAL, ARGS, Mentions, inner};
use crate::policy::model::Record;
use crate::policy::rule::Rule;
use crate::policy::vocabulary::{ACTION, PRINCIPAL, RESOURCE, Words};

/// What a call is named here, unless a rule speaks of the action in its condition.
const CALL: &str = "call";

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

#[derive(Debug, Clone)]
struct Side {
    needs_permit: bool,
    rules: Vec<Part>,
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
        let name = subject.tool.to_string();
        let words = all.first()?.vocabulary.tools.get(&name)?;
        let mut mentions = Mentions::default();
        let (mut named, mut written) = (BTreeSet::new(), BTreeSet::new());
        let mut sides = Vec::new();
        for policies in all {
            let mut rules = Vec::new();
            for rule in policies.about(&subject.tool) {
                mentions.join(&rule.mentions);
                named_in(rule, &mut named, &mut written);
                match Part::of(rule, &words.args) {
                    Some(part) => rules.push(part),
                    None => {
                        let why = "holds what is not written out for a solver";
                        return Some(Err(format!("the rule `{}` {why}", rule.id)));
                    }
                }
            }
            let needs_permit = policies.needs_permit;
            sides.push(Side {
                needs_permit,
                rules,
            });
        }
        // The approval that is tried is written into the rules.
        mentions.facts.remove(APPROVAL);
        let (action, schema) = schema(&name, words, &mentions, &named);
        Some(Ok(Self {
            action,
            schema,
            assumed: assumptions(subject, &mentions, &words.args, &written),
            given: given(subject),
            sides,
        }))
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

    /// Whether no rule of a side permits with this approval, whatever the call: known without
    /// a solver.
    #[must_use]
    pub fn permits_nothing(&self, side: usize, approval: u8) -> bool {
        let Some(side) = self.sides.get(side) else {
            return true;
        };
        let permits = |body: &Json| {
            body.get("effect").and_then(Json::as_str) == Some("permit")
                && !conditions(body).any(|(holds, it)| self.truth(it, approval) == Some(!holds))
        };
        let mut bodies = side.rules.iter().flat_map(|part| &part.bodies);
        side.needs_permit && !bodies.any(permits)
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
    pub fn policies(&self, side: usize, approval: u8) -> Result<PolicySet, String> {
        let side = self.sides.get(side).ok_or("there is no such side")?;
        let mut set = PolicySet::new();
        let mut add = |policy: Result<Policy, String>| -> Result<(), String> {
            set.add(policy?).map_err(|error| error.to_string())
        };
        for (at, body) in side.bodies(approval).into_iter().enumerate() {
            let id = PolicyId::new(format!("rule-{at}"));
            add(Policy::from_json(Some(id), body).map_err(|error| error.to_string()))?;
        }
        for (at, assumed) in self.assumed.iter().enumerate() {
            let text = format!("forbid(principal, action, resource) unless {{ {assumed} }};");
            let id = PolicyId::new(format!("assumed-{at}"));
            add(Policy::parse(Some(id), text).map_err(|error| error.to_string()))?;
        }
        if !side.needs_permit {
            let text = "permit(principal, action, resource);";
            let id = PolicyId::new("all");
            add(Policy::parse(Some(id), text).map_err(|error| error.to_string()))?;
        }
        Ok(set)
    }
}

impl Side {
    /// With one approval written in. A rule that errs with less approval has denied the call
    /// before anybody could be asked.
    fn bodies(&self, approval: u8) -> Vec<Json> {
        let written = |body: &Json, approval: u8| {
            let mut body = body.clone();
            write_in(&mut body, approval);
            body
        };
        let mut all = Vec::new();
        for part in &self.rules {
            let mut bodies = part.bodies.iter();
            all.extend(bodies.next().map(|rule| written(rule, approval)));
            for errs in bodies {
                let mut each: Vec<Json> = (0..=approval).map(|it| written(errs, it)).collect();
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

fn is_approval(json: &Json) -> bool {
    *json == json!({".": {"left": {"Var": "context"}, "attr": APPROVAL}})
}

fn write_in(json: &mut Json, approval: u8) {
    if is_approval(json) {
        *json = json!({ "Value": approval });
        return;
    }
    match json {
        Json::Array(items) => items.iter_mut().for_each(|it| write_in(it, approval)),
        Json::Object(members) => members.values_mut().for_each(|it| write_in(it, approval)),
        _ => {}
    }
}

impl Theory {
    /// What a condition comes to on every call that does not err, as far as approval says so.
    fn truth(&self, json: &Json, approval: u8) -> Option<bool> {
        if let Some((_, truth)) = self.given.iter().find(|(it, _)| it == json) {
            return Some(*truth);
        }
        let (word, inner) = json.as_object()?.iter().next()?;
        let side = |name: &str| inner.get(name).and_then(|it| self.truth(it, approval));
        let compared = |holds: fn(i64, i64) -> bool| {
            let level = inner.get("right")?.get("Value")?.as_i64()?;
            inner
                .get("left")
                .filter(|it| is_approval(it))
                .map(|_| holds(approval.into(), level))
        };
        match word.as_str() {
            "Value" => inner.as_bool(),
            "!" => inner
                .get("arg")
                .and_then(|it| self.truth(it, approval))
                .map(|it| !it),
            "&&" => match (side("left"), side("right")) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            "||" => match (side("left"), side("right")) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            ">=" => compared(|one, other| one >= other),
            "<" => compared(|one, other| one < other),
            _ => None,
        }
    }
}
