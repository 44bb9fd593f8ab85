//! Converts a rule's condition to a list of alternatives. Each alternative is a list of tests that
//! must hold together. An unknown test leads to no conclusion.

use std::cell::Cell;

use cedar_policy::pst::Clause;

use super::ask::{Ask, Form, Value};
use airlock_core::policy::expr::may_err;
use airlock_core::policy::mentions::APPROVAL;
use airlock_core::policy::rule::Rule;

/// Maximum number of alternatives; larger conditions are not analysed.
const WAYS_MAX: usize = 64;
const PARTS_MAX: usize = 2_000;

/// A test, and whether it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Literal(pub(super) Ask, pub(super) bool);

impl Literal {
    fn parts(&self) -> (&Ask, bool) {
        (&self.0, self.1)
    }
}

/// The comparisons of tests and names that are left for finding pairs of rules.
#[derive(Debug)]
pub(super) struct Work(Cell<usize>);

impl Work {
    pub(super) fn new(comparisons: usize) -> Self {
        Self(Cell::new(comparisons))
    }

    /// Takes this many comparisons. Returns false if fewer are left.
    pub(super) fn does(&self, comparisons: usize) -> bool {
        let left = self.0.get().checked_sub(comparisons);
        self.0.set(left.unwrap_or(0));
        left.is_some()
    }
}

#[derive(Debug)]
pub(super) struct Meaning {
    pub(super) ways: Vec<Vec<Literal>>,
    /// For each alternative, whether its tests exclude each other.
    is_contradictory: Vec<bool>,
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
        let is_contradictory = ways.iter().map(|way| is_contradictory(way)).collect();
        Some(Self {
            ways,
            is_contradictory,
        })
    }

    /// Whether no call meets the condition.
    pub(super) fn is_never(&self) -> bool {
        self.is_contradictory.iter().all(|it| *it)
    }

    /// Returns a value of which two tests exclude each other, such as `context.args.k`.
    pub(super) fn excluded(&self) -> Option<String> {
        let way = self.ways.first()?;
        way.iter().enumerate().find_map(|(at, one)| {
            let mut others = way.iter().skip(at + 1);
            let is_excluded = others.any(|other| excludes(one.parts(), other.parts()));
            let path = one.0.way().filter(|_| is_excluded)?;
            Some(format!("context.{}", path.join(".")))
        })
    }

    /// Whether every call that meets this condition meets the other one. False if there is no work
    /// left to find it out.
    pub(super) fn is_within(&self, other: &Self, work: &Work) -> bool {
        let mut own = self.ways.iter().zip(&self.is_contradictory);
        own.all(|(way, is_contradictory)| {
            let mut wider = other.ways.iter();
            *is_contradictory || wider.any(|wider| all_follow(way, wider, work))
        })
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

fn all_follow(way: &[Literal], wider: &[Literal], work: &Work) -> bool {
    let follows = |Literal(wanted, holds): &Literal| {
        let opposite = (wanted, !holds);
        work.does(way.len()) && way.iter().any(|held| excludes(held.parts(), opposite))
    };
    work.does(1) && wider.iter().all(follows)
}

fn is_contradictory(way: &[Literal]) -> bool {
    let mut rest = way;
    while let Some((first, after)) = rest.split_first() {
        // The number would have to be larger than 64 bits can hold.
        let is_beyond = matches!(first, Literal(Ask::AtMost(_, i64::MAX), false));
        if is_beyond
            || after
                .iter()
                .any(|other| excludes(first.parts(), other.parts()))
        {
            return true;
        }
        rest = after;
    }
    false
}

/// Whether the two cannot both be true.
fn excludes(one: (&Ask, bool), other: (&Ask, bool)) -> bool {
    if one.0.way() != other.0.way() {
        return false;
    }
    one.0 == other.0 && one.1 != other.1 || differs(one, other) || differs(other, one)
}

/// Like [`excludes`], but only in this order. Both tests read the same path.
fn differs(one: (&Ask, bool), other: (&Ask, bool)) -> bool {
    match (one, other) {
        ((Ask::Equal(_, a), true), (Ask::Equal(_, b), true)) => a != b,
        ((Ask::Equal(_, Value::Whole(number)), true), (Ask::AtMost(_, most), holds)) => {
            (number <= most) != holds
        }
        ((Ask::AtMost(_, most), true), (Ask::AtMost(_, above), false)) => above >= most,
        ((Ask::Holds(_, value), true), (Ask::Within(_, all), true)) => !all.contains(value),
        ((Ask::Holds(..), true), (Ask::Empty(_), true)) => true,
        ((Ask::Empty(_), true), (Ask::Within(..), false)) => true,
        ((Ask::Within(_, few), true), (Ask::Within(_, more), false)) => few.is_subset(more),
        _ => false,
    }
}
