//! One rule among the others that are about a tool: as questions from whose
//! answers follows whether it does anything.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::settled::Settled;
use super::{Part, Read, Side, Theory, conditions};
use crate::policy::Policies;
use crate::policy::ever::world::{Sayings, Subject};
use crate::policy::rule::Rule;

/// A theory with a side for each question.
#[derive(Debug, Clone)]
pub struct Among {
    pub theory: Theory,
    /// It can keep a call from being decided, and so deny it.
    pub errs: bool,
}

impl Among {
    /// All rules.
    pub const ALL: usize = 0;
    /// All but this one.
    pub const LESS: usize = 1;
    /// What meets its condition, or errs.
    pub const MET: usize = 2;
    /// What meets its condition, and none of the others forbids.
    pub const ALONE: usize = 3;
    /// What comes out at a level, from the mildest that asks, and this one is what asks.
    pub const ASKED: [usize; 2] = [4, 5];
    /// What meets its condition, where it does not err.
    pub const HOLDS: usize = 6;
    /// What another rule lets through or takes, for each of `others` in turn.
    pub const OTHERS: usize = 7;

    /// None for a tool that the rules do not know, or that this one is not about; an error says
    /// why nothing can be proved. `gone` are rules that are taken to be left out.
    pub fn of(
        (policies, subject): (&Policies, &Subject),
        rule: &Rule,
        gone: &BTreeSet<Arc<str>>,
        (others, sayings): (&[&Rule], Sayings),
    ) -> Option<Result<Self, String>> {
        let mut read = match Read::of(&[policies], subject)? {
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
            let why = "it multiplies two values of a call, and no solver is told when that is \
                       too large";
            return Some(Err(why.to_owned()));
        }
        let beside: Vec<Part> = rules.iter().filter(|it| it.id != own.id).cloned().collect();
        let forbids: Vec<Part> = beside.iter().map(Part::forbidding).collect();
        let alone = |part: &Part| match rule.forbids {
            true => [part.met(), forbids.clone()].concat(),
            false => {
                let forbids = rules.iter().map(Part::forbidding);
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
        let whole = |rules: Vec<Part>| Side {
            needs_permit,
            rules,
        };
        let bare = |rules: Vec<Part>| Side {
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
            theory: read.theory(subject, sayings),
        }))
    }
}

impl Part {
    /// What it forbids, and its errors.
    fn forbidding(&self) -> Self {
        let bodies = self.bodies.iter().map(|body| match is_forbid(body) {
            true => body.clone(),
            // Nothing, in the place of the rule: what follows are its errors.
            false => with_effect(&json!({"conditions": [never()]}), "forbid"),
        });
        Self {
            bodies: bodies.collect(),
            ..self.clone()
        }
    }

    /// A permit of all that meets its condition, then one of all on which it errs.
    fn met(&self) -> Vec<Self> {
        let permit = |body: &Json| Self {
            bodies: vec![with_effect(body, "permit")],
            ..self.clone()
        };
        self.bodies.iter().map(permit).collect()
    }

    /// A forbid of all but what meets its condition with one approval, and a permit of nothing.
    fn unless_met(&self, approval: u8) -> Vec<Self> {
        let Some(rule) = self.bodies.first() else {
            return Vec::new();
        };
        let holds: Vec<Json> = conditions(rule)
            .map(|(_, body)| {
                let given = &[];
                let body = Settled { given, approval }.condition(body);
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
