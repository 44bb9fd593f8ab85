//! Questions about one rule among the other rules for a tool. The answers show whether the rule has
//! an effect.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::partial_eval::KnownFacts;
use super::{RuleBody, Side, SolverProblem, ToolRules, conditions};
use crate::assumptions::{LabelAssumption, ToolSubject};
use airlock_core::policy::Policies;
use airlock_core::policy::rule::Rule;

/// A [`SolverProblem`] about one rule, with one side for each question.
#[derive(Debug, Clone)]
pub struct RuleQueries {
    pub theory: SolverProblem,
    /// Whether the rule can err, and so deny a call.
    pub errs: bool,
}

impl RuleQueries {
    /// The side with all rules.
    pub const ALL: usize = 0;
    /// The side with all rules except this one.
    pub const LESS: usize = 1;
    /// The side that allows the calls that meet the rule's condition, or on which the rule errs.
    pub const MET: usize = 2;
    /// The side that allows the calls that meet the rule's condition and that no other rule
    /// forbids.
    pub const ALONE: usize = 3;
    /// The sides with all rules for the calls that still meet this rule's condition if the approval
    /// is one level lower. There is one side for each level that asks, beginning with the mildest.
    pub const ASKED: [usize; 2] = [4, 5];
    /// The side that allows the calls that meet the rule's condition without an error.
    pub const HOLDS: usize = 6;
    /// The first of the sides that allow the calls that another rule permits or forbids. There is
    /// one side for each of `others`.
    pub const OTHERS: usize = 7;

    /// Returns `None` if the rules do not know the tool or this rule does not apply to the tool.
    /// Returns an error if nothing can be proved. `gone` are rules that are assumed to be removed.
    pub fn new(
        (policies, subject): (&Policies, &ToolSubject),
        rule: &Rule,
        gone: &BTreeSet<Arc<str>>,
        (others, label_assumption): (&[&Rule], LabelAssumption),
    ) -> Option<Result<Self, String>> {
        let mut read = match ToolRules::new(&[policies], subject)? {
            Ok(read) => read,
            Err(why) => return Some(Err(why)),
        };
        let Side {
            needs_permit,
            mut rules,
        } = read.sides.pop()?;
        rules.retain(|part| !gone.contains(part.id.as_str()));
        let own = rules.iter().find(|part| *part.id == *rule.id)?.clone();
        if own.may_err {
            let why = "the rule multiplies two values of a call, and the solver cannot check \
                       whether the product is too large";
            return Some(Err(why.to_owned()));
        }
        let beside: Vec<RuleBody> = rules.iter().filter(|it| it.id != own.id).cloned().collect();
        let forbids: Vec<RuleBody> = beside.iter().map(RuleBody::forbidding).collect();
        let alone = |part: &RuleBody| match rule.forbids {
            true => [part.met(), forbids.clone()].concat(),
            false => {
                let forbids = rules.iter().map(RuleBody::forbidding);
                std::iter::once(part.clone()).chain(forbids).collect()
            }
        };
        let other = |it: &&Rule| {
            let part = rules.iter().find(|part| *part.id == *it.id);
            match (part, rule.forbids) {
                (Some(part), true) => part.met(),
                (Some(part), false) => alone(part),
                (None, _) => Vec::new(),
            }
        };
        let asked = [1, 2].map(|level| [rules.clone(), own.unless_met(level - 1)].concat());
        let whole = |rules: Vec<RuleBody>| Side {
            needs_permit,
            rules,
        };
        let bare = |rules: Vec<RuleBody>| Side {
            needs_permit: true,
            rules,
        };
        let others: Vec<Side> = others.iter().map(other).map(bare).collect();
        read.sides = vec![
            whole(rules.clone()),
            whole(beside.clone()),
            bare(own.met()),
            bare(alone(&own)),
        ];
        read.sides.extend(asked.map(whole));
        read.sides
            .push(bare(own.met().into_iter().take(1).collect()));
        read.sides.extend(others);
        Some(Ok(Self {
            errs: own.bodies.len() > 1,
            theory: read.theory(subject, label_assumption),
        }))
    }
}

impl RuleBody {
    /// Returns the forbids of the rule: its own, if it is a forbid, and those for its errors.
    fn forbidding(&self) -> Self {
        let bodies = self.bodies.iter().map(|body| match is_forbid(body) {
            true => body.clone(),
            // A forbid that never matches replaces the permit. The forbids for errors follow.
            false => with_effect(&json!({"conditions": [never()]}), "forbid"),
        });
        Self {
            bodies: bodies.collect(),
            ..self.clone()
        }
    }

    /// Returns a permit of the calls that meet the condition, then one of the calls on which it
    /// errs.
    fn met(&self) -> Vec<Self> {
        let permit = |body: &Json| Self {
            bodies: vec![with_effect(body, "permit")],
            ..self.clone()
        };
        self.bodies.iter().map(permit).collect()
    }

    /// Returns a forbid of all calls that do not meet the condition with one approval, without any
    /// permit.
    fn unless_met(&self, approval: u8) -> Vec<Self> {
        let Some(rule) = self.bodies.first() else {
            return Vec::new();
        };
        let holds: Vec<Json> = conditions(rule)
            .map(|(_, body)| {
                let given = &[];
                let body = KnownFacts { given, approval }.condition(body);
                json!({"kind": "unless", "body": body})
            })
            .collect();
        vec![Self {
            bodies: vec![with_effect(&json!({ "conditions": holds }), "forbid")],
            ..self.clone()
        }]
    }
}

pub(super) fn permit_of_all() -> Json {
    with_effect(&json!({}), "permit")
}

pub(super) fn is_forbid(body: &Json) -> bool {
    body.get("effect").and_then(Json::as_str) == Some("forbid")
}

fn never() -> Json {
    json!({"kind": "when", "body": {"Value": false}})
}

fn with_effect(body: &Json, effect: &str) -> Json {
    json!({
        "effect": effect,
        "principal": {"op": "All"},
        "action": {"op": "All"},
        "resource": {"op": "All"},
        "conditions": body.get("conditions").cloned().unwrap_or_else(|| json!([])),
    })
}
