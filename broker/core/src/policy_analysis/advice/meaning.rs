//! A rule's condition as a list of alternatives, each a list of tests that must hold together.
//! Conclusions are drawn from these lists and never guessed: if something is unknown, nothing
//! follows from it.

use cedar_policy::pst::Clause;

use super::ask::{Ask, Form, Value};
use crate::policy::expr::may_err;
use crate::policy::mentions::APPROVAL;
use crate::policy::rule::Rule;

/// Maximum number of alternatives; larger conditions are not analysed.
const WAYS_MAX: usize = 64;
const PARTS_MAX: usize = 2_000;

/// A test, and whether it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Literal(pub(super) Ask, pub(super) bool);

#[derive(Debug)]
pub(super) struct Meaning {
    pub(super) ways: Vec<Vec<Literal>>,
}

impl Meaning {
    /// Returns `None` if the condition is too large, or contains arithmetic that can fail.
    pub(super) fn from_rule(rule: &Rule) -> Option<Self> {
        let mut forms = Vec::new();
        for clause in &rule.clauses {
            let (expr, holds) = match clause {
                Clause::When(expr) => (expr, true),
                Clause::Unless(expr) => (expr, false),
            };
            if may_err(expr) {
                return None;
            }
            forms.push(Form::from_expr(expr, holds));
        }
        let ways = ways(&Form::All(forms))?;
        Some(Self { ways })
    }

    /// Whether no call meets the condition.
    pub(super) fn is_never(&self) -> bool {
        self.ways.iter().all(|way| is_contradictory(way))
    }

    /// Whether every call that meets this condition meets the other one.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        let mut own = self.ways.iter().filter(|way| !is_contradictory(way));
        own.all(|way| other.ways.iter().any(|wider| all_follow(way, wider)))
    }

    /// Returns the tests of the approval in each alternative.
    pub(super) fn approvals(&self) -> Vec<Vec<&Literal>> {
        let is_approval = |held: &&Literal| {
            held.0
                .way()
                .is_some_and(|way| way.first().is_some_and(|it| it == APPROVAL))
        };
        let of_way = |way: &'_ Vec<Literal>| -> Vec<usize> {
            (0..way.len())
                .filter(|at| way.get(*at).is_some_and(|it| is_approval(&it)))
                .collect()
        };
        let pick = |way| {
            let at = of_way(way);
            at.into_iter().filter_map(|at| way.get(at)).collect()
        };
        self.ways.iter().map(pick).collect()
    }
}

fn ways(form: &Form) -> Option<Vec<Vec<Literal>>> {
    let found = match form {
        Form::One(ask, holds) => vec![vec![Literal(ask.clone(), *holds)]],
        Form::Any(forms) => {
            let each: Option<Vec<_>> = forms.iter().map(ways).collect();
            each?.concat()
        }
        Form::All(forms) => {
            let mut all = vec![Vec::new()];
            for form in forms {
                let more = ways(form)?;
                if all.len() * more.len() > WAYS_MAX {
                    return None;
                }
                let join = |way: &Vec<Literal>| -> Vec<Vec<Literal>> {
                    more.iter()
                        .map(|next| [way.as_slice(), next].concat())
                        .collect()
                };
                all = all.iter().flat_map(join).collect();
            }
            all
        }
    };
    let parts: usize = found.iter().map(Vec::len).sum();
    (found.len() <= WAYS_MAX && parts <= PARTS_MAX).then_some(found)
}

fn all_follow(way: &[Literal], wider: &[Literal]) -> bool {
    let follows = |wanted: &Literal| way.iter().any(|held| excludes(held, &opposite(wanted)));
    wider.iter().all(follows)
}

fn is_contradictory(way: &[Literal]) -> bool {
    let mut rest = way;
    while let Some((first, after)) = rest.split_first() {
        // The number would have to be larger than 64 bits can hold.
        let is_beyond = matches!(first, Literal(Ask::AtMost(_, i64::MAX), false));
        if is_beyond || after.iter().any(|other| excludes(first, other)) {
            return true;
        }
        rest = after;
    }
    false
}

fn opposite(held: &Literal) -> Literal {
    Literal(held.0.clone(), !held.1)
}

/// Whether the two cannot both be true.
fn excludes(one: &Literal, other: &Literal) -> bool {
    one.0 == other.0 && one.1 != other.1 || differs(one, other) || differs(other, one)
}

fn differs(one: &Literal, other: &Literal) -> bool {
    if one.0.way().is_none() || one.0.way() != other.0.way() {
        return false;
    }
    match (one, other) {
        (Literal(Ask::Equal(_, a), true), Literal(Ask::Equal(_, b), true)) => a != b,
        (
            Literal(Ask::Equal(_, Value::Whole(number)), true),
            Literal(Ask::AtMost(_, most), holds),
        ) => (number <= most) != *holds,
        (Literal(Ask::AtMost(_, most), true), Literal(Ask::AtMost(_, above), false)) => {
            above >= most
        }
        (Literal(Ask::Holds(_, value), true), Literal(Ask::Within(_, all), true)) => {
            !all.contains(value)
        }
        (Literal(Ask::Holds(..), true), Literal(Ask::Empty(_), true)) => true,
        (Literal(Ask::Empty(_), true), Literal(Ask::Within(..), false)) => true,
        (Literal(Ask::Within(_, few), true), Literal(Ask::Within(_, more), false)) => {
            few.is_subset(more)
        }
        _ => false,
    }
}
