//! The rules about one tool in the form that a solver needs: Cedar policies over a schema with only
//! this tool, plus assumptions. This module does not depend on a particular solver.
//!
//! Two things differ from plain Cedar. First, rules do not see a number that does not fit into 64
//! bits, even if the schema requires the number. So the number is optional here. Second, an
//! evaluation error denies the call in airlock, while Cedar skips the rule. So `total` adds a
//! forbid for the calls on which a rule errs, or reads an argument that `context.unmodelled`
//! contains.
//!
//! The overflow of a product of two values cannot be expressed. Such an overflow only denies more
//! calls, so a proof that a call is denied remains valid. Comparisons of two sides check for such
//! products.

mod connective;
mod overflow;
mod partial_eval;
mod rule_queries;
mod total;

use std::collections::BTreeSet;

use cedar_policy::pst::{Clause, Expr, Literal, Var};
use cedar_policy::{Policy, PolicyId, PolicySet, RequestEnv, Schema};
use serde_json::{Map, Value as Json, json};

use super::assumptions::{Assumptions, LabelAssumption, ToolSubject};
use airlock_core::policy::Policies;
use airlock_core::policy::expr::inner;
use airlock_core::policy::fact::{FACTS, UNMODELLED};
use airlock_core::policy::mentions::{APPROVAL, ARGS, Mentions};
use airlock_core::policy::model::Record;
use airlock_core::policy::rule::Rule;
use airlock_core::policy::vocabulary::{ACTION, PRINCIPAL, RESOURCE, ToolWords};

use partial_eval::KnownFacts;
pub use rule_queries::RuleQueries;
pub(super) use total::Errors;

/// Name of the action, unless a condition of a rule refers to the tool's real action.
const CALL: &str = "call";

/// The question whether the rules of one side allow a call at one approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowQuery {
    pub side: usize,
    pub approval: u8,
}

/// The rules for one tool, from one folder or from two folders that are compared.
#[derive(Debug, Clone)]
pub struct SolverProblem {
    action: String,
    schema: Json,
    assumed: Vec<String>,
    /// Parts of conditions with a value that is fixed for the tool.
    given: Vec<(Json, bool)>,
    sides: Vec<Side>,
}

#[derive(Debug, Clone, Default)]
struct Side {
    needs_permit: bool,
    rules: Vec<RuleBody>,
}

/// The rules for a tool, and the names in these rules.
struct ToolRules<'a> {
    name: String,
    words: &'a ToolWords,
    mentions: Mentions,
    /// Actions and texts that the rules contain as literals.
    named: BTreeSet<String>,
    written: BTreeSet<String>,
    sides: Vec<Side>,
}

/// A rule without scope and name, plus a rule for its errors.
#[derive(Debug, Clone, PartialEq)]
struct RuleBody {
    id: String,
    /// The rule, and a forbid of all calls on which it errs.
    bodies: Vec<Json>,
    /// Whether an error that cannot be expressed could deny a call that Cedar alone allows.
    may_err: bool,
}

impl SolverProblem {
    /// Returns `None` if the rules do not know the tool. Returns an error if nothing can be proved.
    pub fn new(all: &[&Policies], subject: &ToolSubject) -> Option<Result<Self, String>> {
        let read = ToolRules::new(all, subject)?;
        Some(read.map(|read| read.theory(subject, subject.label_assumption)))
    }

    /// Returns a key that is equal for tools with exactly the same questions.
    #[must_use]
    pub fn key(&self) -> String {
        let side = |side: &Side| {
            let bodies: Vec<_> = side.rules.iter().map(|part| &part.bodies).collect();
            json!([side.needs_permit, bodies])
        };
        let sides: Vec<Json> = self.sides.iter().map(side).collect();
        json!([self.action, self.schema, self.assumed, sides]).to_string()
    }

    /// Whether the two sides have the same rules, compared as text.
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

    /// Returns a rule of this side, but not of the other side, with an error that cannot be
    /// expressed because the rule multiplies two values of a call.
    #[must_use]
    pub fn may_err(&self, side: usize) -> Option<&str> {
        let (one, other) = (self.sides.get(side)?, self.sides.get(1 - side.min(1))?);
        let is_shared = |part: &RuleBody| other.rules.iter().any(|it| it.bodies == part.bodies);
        let mut erring = one.rules.iter().filter(|part| part.may_err);
        erring
            .find(|part| !is_shared(part))
            .map(|part| part.id.as_str())
    }

    /// Whether it is certain without a solver that everything allowed by `what` is also allowed by
    /// `but`, or that `what` allows nothing.
    #[must_use]
    pub fn is_settled(&self, what: AllowQuery, but: Option<AllowQuery>) -> bool {
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

    /// Returns a key that is equal for exactly the same questions.
    #[must_use]
    pub fn question(&self, what: AllowQuery, but: Option<AllowQuery>) -> String {
        let sides = json!([self.written(what), but.map(|but| self.written(but))]);
        json!([self.action, self.schema, self.assumed, sides]).to_string()
    }

    /// Returns the rules of a side after the approval is substituted and known parts are removed.
    fn written(&self, lets: AllowQuery) -> Vec<Json> {
        let Some(side) = self.sides.get(lets.side) else {
            return Vec::new();
        };
        let mut all = side.bodies(&self.given, lets.approval);
        if !side.needs_permit {
            all.push(rule_queries::permit_of_all());
        }
        all
    }

    pub fn schema(&self) -> Result<Schema, String> {
        Schema::from_json_value(self.schema.clone()).map_err(|error| error.to_string())
    }

    pub fn environment(&self) -> Option<RequestEnv> {
        let action = airlock_core::policy::vocabulary::action_uid(&self.action)?;
        let (principal, resource) = (PRINCIPAL.parse().ok()?, RESOURCE.parse().ok()?);
        Some(RequestEnv::new(principal, action, resource))
    }

    /// Returns the rules of a side with one approval substituted, and the assumptions as forbids of
    /// everything else.
    pub fn policies(&self, lets: AllowQuery) -> Result<PolicySet, String> {
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

/// Splits rules into permits and forbids.
fn apart(all: &[Json]) -> [Vec<&Json>; 2] {
    let is_forbid = |body: &&Json| rule_queries::is_forbid(body);
    let (forbids, permits) = all.iter().partition(is_forbid);
    [permits, forbids]
}

impl<'a> ToolRules<'a> {
    fn new(all: &[&'a Policies], subject: &ToolSubject) -> Option<Result<Self, String>> {
        let name = subject.tool.to_string();
        let words = all.first()?.vocabulary().tools.get(&name)?;
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
                if !matches!(total::hidden(rule, &words.args), Some(None)) {
                    read.mentions.facts.insert(UNMODELLED.to_owned());
                }
                match RuleBody::from_rule(rule, &words.args) {
                    Some(part) => rules.push(part),
                    None => {
                        let why = "cannot be translated for the solver";
                        return Some(Err(format!("the rule `{}` {why}", rule.id)));
                    }
                }
            }
            let needs_permit = policies.needs_permit();
            read.sides.push(Side {
                needs_permit,
                rules,
            });
        }
        // The tested approval is substituted into the rules.
        read.mentions.facts.remove(APPROVAL);
        Some(Ok(read))
    }

    fn theory(self, subject: &ToolSubject, label_assumption: LabelAssumption) -> SolverProblem {
        let (action, schema) = schema(&self.name, self.words, &self.mentions, &self.named);
        let world = Assumptions {
            subject,
            label_assumption,
        };
        SolverProblem {
            action,
            schema,
            assumed: world.assumptions(&self.mentions, &self.words.args, &self.written),
            given: world.given(),
            sides: self.sides,
        }
    }
}

impl Side {
    /// Substitutes one approval. Errors at lower approvals count too: such a call is denied before
    /// a person is asked.
    fn bodies(&self, given: &[(Json, bool)], approval: u8) -> Vec<Json> {
        let with = |approval: u8| KnownFacts { given, approval };
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

impl RuleBody {
    fn from_rule(rule: &Rule, args: &Record) -> Option<Self> {
        let odd = |expr: &Expr| {
            inner(expr).is_none() || matches!(expr, Expr::Var(Var::Principal | Var::Resource))
        };
        if exprs(rule).any(odd) {
            return None;
        }
        let body = rule.json()?;
        Some(Self {
            id: rule.id.to_string(),
            may_err: conditions(body).any(|(_, it)| overflow::is_open(it)),
            bodies: total::bodies(body, total::hidden(rule, args)?, args)?,
        })
    }
}

/// Builds a schema with only what the rules mention, so that tools which differ in nothing else
/// share one question.
fn schema(
    name: &str,
    words: &ToolWords,
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

/// Returns all expressions of a rule's conditions, each before its parts.
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

/// Collects the actions and texts that conditions contain as literals.
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

/// Returns each condition and the value that it must have.
fn conditions(body: &Json) -> impl Iterator<Item = (bool, &Json)> {
    let all = body.get("conditions").and_then(Json::as_array);
    all.into_iter().flatten().filter_map(|condition| {
        let kind = condition.get("kind")?.as_str()?;
        Some((kind == "when", condition.get("body")?))
    })
}
