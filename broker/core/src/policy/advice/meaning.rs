//! A rule's condition as the ways in which it can be met, each a list of things
//! that must hold together. What follows from what is told from these lists, and
//! never guessed: where nothing is known, nothing follows.

use cedar_policy::pst::Clause;

use super::ask::{Ask, Form, Value};
use crate::policy::lint::may_err;
use crate::policy::mentions::APPROVAL;
use crate::policy::rule::Rule;

/// More ways than these are not looked at.
const WAYS_MAX: usize = 64;
const PARTS_MAX: usize = 2_000;

/// Something that holds, or does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held(pub(super) Ask, pub(super) bool);

#[derive(Debug)]
pub(super) struct Meaning {
    pub(super) ways: Vec<Vec<Held>>,
}

impl Meaning {
    /// None where it is too much, or where a sum can fail.
    pub(super) fn of(rule: &Rule) -> Option<Self> {
        let mut forms = Vec::new();
        for clause in &rule.clauses {
            let (expr, holds) = match clause {
                Clause::When(expr) => (expr, true),
                Clause::Unless(expr) => (expr, false),
            };
            if may_err(expr) {
                return None;
            }
            forms.push(Form::of(expr, holds));
        }
        let ways = ways(&Form::All(forms))?;
        Some(Self { ways })
    }

    /// No call meets it.
    pub(super) fn is_never(&self) -> bool {
        self.ways.iter().all(|way| is_contradictory(way))
    }

    /// Whatever meets this one meets the other.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        let mut own = self.ways.iter().filter(|way| !is_contradictory(way));
        own.all(|way| other.ways.iter().any(|wider| all_follow(way, wider)))
    }

    /// What it says of the approval, in each of its ways.
    pub(super) fn approvals(&self) -> Vec<Vec<&Held>> {
        let is_approval = |held: &&Held| {
            held.0
                .way()
                .is_some_and(|way| way.first().is_some_and(|it| it == APPROVAL))
        };
        let of_way = |way: &'_ Vec<Held>| -> Vec<usize> {
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

fn ways(form: &Form) -> Option<Vec<Vec<Held>>> {
    let found = match form {
        Form::One(ask, holds) => vec![vec![Held(ask.clone(), *holds)]],
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
                let join = |way: &Vec<Held>| -> Vec<Vec<Held>> {
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

fn all_follow(way: &[Held], wider: &[Held]) -> bool {
    let follows = |wanted: &Held| way.iter().any(|held| excludes(held, &opposite(wanted)));
    wider.iter().all(follows)
}

fn is_contradictory(way: &[Held]) -> bool {
    let mut rest = way;
    while let Some((first, after)) = rest.split_first() {
        // More than 64 bits hold.
        let is_beyond = matches!(first, Held(Ask::AtMost(_, i64::MAX), false));
        if is_beyond || after.iter().any(|other| excludes(first, other)) {
            return true;
        }
        rest = after;
    }
    false
}

fn opposite(held: &Held) -> Held {
    Held(held.0.clone(), !held.1)
}

/// The two cannot both be so.
fn excludes(one: &Held, other: &Held) -> bool {
    one.0 == other.0 && one.1 != other.1 || differs(one, other) || differs(other, one)
}

fn differs(one: &Held, other: &Held) -> bool {
    if one.0.way().is_none() || one.0.way() != other.0.way() {
        return false;
    }
    match (one, other) {
        (Held(Ask::Equal(_, a), true), Held(Ask::Equal(_, b), true)) => a != b,
        (Held(Ask::Equal(_, Value::Whole(number)), true), Held(Ask::AtMost(_, most), holds)) => {
            (number <= most) != *holds
        }
        (Held(Ask::AtMost(_, most), true), Held(Ask::AtMost(_, above), false)) => above >= most,
        (Held(Ask::Holds(_, value), true), Held(Ask::Within(_, all), true)) => !all.contains(value),
        (Held(Ask::Holds(..), true), Held(Ask::Empty(_), true)) => true,
        (Held(Ask::Empty(_), true), Held(Ask::Within(..), false)) => true,
        (Held(Ask::Within(_, few), true), Held(Ask::Within(_, more), false)) => few.is_subset(more),
        _ => false,
    }
}
