//! What can be said of a rule without asking Cedar.
//!
//! A rule's condition is read into a [`Test`] once. On a call it comes out as
//! true, false, or not known: whatever this file does not understand, or finds
//! missing or of another type than it thought, is not known and is Cedar's to
//! say. An error is never found here, and never passed over.

use std::borrow::Cow;

use cedar_policy::pst::{BinaryOp, Clause, Expr, Literal, UnaryOp, Var};

use super::known::{Known, Members};

/// Of two sets that are held against each other, in tens of microseconds.
const PAIRS_MAX: usize = 10_000;

/// A condition as far as it is understood.
#[derive(Debug)]
pub(super) enum Test {
    Not(Box<Test>),
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
    If(Box<[Test; 3]>),
    /// Ways from `context`: to where something is asked for, and from there on.
    Has(Vec<String>, Vec<String>),
    Compare(Comparison, Term, Term),
    IsEmpty(Term),
    Is(Term),
    /// Cedar alone can say.
    Unknown,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Contains,
    ContainsAll,
    ContainsAny,
}

/// Something that has a value.
#[derive(Debug)]
pub(super) enum Term {
    Written(Known<'static>),
    /// Where it stands in `context`.
    At(Vec<String>),
}

impl Test {
    /// What must be true for a rule to match.
    pub(super) fn of(clauses: &[Clause]) -> Self {
        let tests = clauses.iter().map(|clause| match clause {
            Clause::When(expr) => Self::read(expr),
            Clause::Unless(expr) => Self::Not(Self::read(expr).into()),
        });
        let all = tests.reduce(|before, next| Self::And(before.into(), next.into()));
        // A rule without conditions matches whenever it is about the tool.
        all.unwrap_or(Self::Is(Term::Written(Known::Truth(true))))
    }

    /// What it comes to on every call, where nothing of the call is looked at.
    pub(super) fn always(&self) -> Option<bool> {
        match self {
            Self::Not(test) => test.always().map(|truth| !truth),
            Self::And(left, right) => match left.always()? {
                true => right.always(),
                false => Some(false),
            },
            Self::Or(left, right) => match left.always()? {
                true => Some(true),
                false => right.always(),
            },
            Self::Is(Term::Written(Known::Truth(truth))) => Some(*truth),
            _ => None,
        }
    }

    fn read(expr: &Expr) -> Self {
        let read = |expr: &Expr| Box::new(Self::read(expr));
        match expr {
            Expr::UnaryOp { op, expr } => match op {
                UnaryOp::Not => Self::Not(read(expr)),
                UnaryOp::IsEmpty => Term::read(expr).map_or(Self::Unknown, Self::IsEmpty),
                _ => Self::Unknown,
            },
            Expr::BinaryOp { op, left, right } => match op {
                BinaryOp::And => Self::And(read(left), read(right)),
                BinaryOp::Or => Self::Or(read(left), read(right)),
                _ => Self::compare(*op, left, right),
            },
            Expr::IfThenElse {
                cond,
                then_expr,
                else_expr,
            } => Self::If([cond, then_expr, else_expr].map(|it| Self::read(it)).into()),
            Expr::HasAttr { expr, attrs } => {
                let onward = attrs.iter().map(ToString::to_string).collect();
                way(expr).map_or(Self::Unknown, |way| Self::Has(way, onward))
            }
            _ => Term::read(expr).map_or(Self::Unknown, Self::Is),
        }
    }

    fn compare(op: BinaryOp, left: &Expr, right: &Expr) -> Self {
        let comparison = match op {
            BinaryOp::Eq => Comparison::Equal,
            BinaryOp::NotEq => Comparison::Unequal,
            BinaryOp::Less => Comparison::Less,
            BinaryOp::LessEq => Comparison::LessOrEqual,
            BinaryOp::Greater => Comparison::Greater,
            BinaryOp::GreaterEq => Comparison::GreaterOrEqual,
            BinaryOp::Contains => Comparison::Contains,
            BinaryOp::ContainsAll => Comparison::ContainsAll,
            BinaryOp::ContainsAny => Comparison::ContainsAny,
            _ => return Self::Unknown,
        };
        match (Term::read(left), Term::read(right)) {
            // Two sets that a caller can both make long are not compared here.
            (Some(Term::At(_)), Some(Term::At(_))) if comparison.is_about_sets() => Self::Unknown,
            (Some(left), Some(right)) => Self::Compare(comparison, left, right),
            _ => Self::Unknown,
        }
    }

    /// None where it is not known. What Cedar evaluates first is looked at first, and what it
    /// does not evaluate is not looked at: an error there is none.
    pub(super) fn outcome(&self, context: &Members<'_>) -> Option<bool> {
        match self {
            Self::Not(test) => test.outcome(context).map(|truth| !truth),
            Self::And(left, right) => match left.outcome(context)? {
                true => right.outcome(context),
                false => Some(false),
            },
            Self::Or(left, right) => match left.outcome(context)? {
                true => Some(true),
                false => right.outcome(context),
            },
            Self::If(parts) => {
                let [cond, then, other] = &**parts;
                match cond.outcome(context)? {
                    true => then.outcome(context),
                    false => other.outcome(context),
                }
            }
            Self::Has(way, onward) => has(context, way, onward),
            Self::Compare(comparison, left, right) => {
                comparison.holds(left.value(context)?, right.value(context)?)
            }
            Self::IsEmpty(term) => match term.value(context)? {
                Known::Set(items) => Some(items.is_empty()),
                _ => None,
            },
            Self::Is(term) => match term.value(context)? {
                Known::Truth(truth) => Some(*truth),
                _ => None,
            },
            Self::Unknown => None,
        }
    }
}

impl Comparison {
    fn is_about_sets(self) -> bool {
        matches!(self, Self::Contains | Self::ContainsAll | Self::ContainsAny)
    }

    fn holds(self, left: &Known<'_>, right: &Known<'_>) -> Option<bool> {
        match (self, left, right) {
            (Self::Equal, ..) => equal(left, right),
            (Self::Unequal, ..) => equal(left, right).map(|truth| !truth),
            (Self::Less, Known::Whole(left), Known::Whole(right)) => Some(left < right),
            (Self::LessOrEqual, Known::Whole(left), Known::Whole(right)) => Some(left <= right),
            (Self::Greater, Known::Whole(left), Known::Whole(right)) => Some(left > right),
            (Self::GreaterOrEqual, Known::Whole(left), Known::Whole(right)) => Some(left >= right),
            (Self::Contains, Known::Set(items), item) => contains(items, item),
            (Self::ContainsAll, Known::Set(items), Known::Set(all)) => {
                compares_few(items, all).then_some(())?;
                decided(all.iter().map(|item| contains(items, item)), false)
            }
            (Self::ContainsAny, Known::Set(items), Known::Set(any)) => {
                compares_few(items, any).then_some(())?;
                decided(any.iter().map(|item| contains(items, item)), true)
            }
            _ => None,
        }
    }
}

impl Term {
    fn read(expr: &Expr) -> Option<Self> {
        written(expr)
            .map(Self::Written)
            .or_else(|| way(expr).map(Self::At))
    }

    fn value<'a>(&'a self, context: &'a Members<'a>) -> Option<&'a Known<'a>> {
        match self {
            Self::Written(value) => Some(value),
            Self::At(way) => {
                let (first, rest) = way.split_first()?;
                let first = context.get(first.as_str());
                rest.iter().fold(first, |found, name| match found? {
                    Known::Record(members) => members.get(name.as_str()),
                    _ => None,
                })
            }
        }
    }
}

fn has(context: &Members<'_>, way: &[String], onward: &[String]) -> Option<bool> {
    let mut members = context;
    for name in way {
        let Known::Record(inner) = members.get(name.as_str())? else {
            return None;
        };
        members = inner;
    }
    let (last, between) = onward.split_last()?;
    for name in between {
        match members.get(name.as_str()) {
            Some(Known::Record(inner)) => members = inner,
            Some(_) => return None,
            None => return Some(false),
        }
    }
    Some(members.contains_key(last.as_str()))
}

/// Of single values of one type.
fn equal(left: &Known<'_>, right: &Known<'_>) -> Option<bool> {
    match (left, right) {
        (Known::Truth(left), Known::Truth(right)) => Some(left == right),
        (Known::Whole(left), Known::Whole(right)) => Some(left == right),
        (Known::Text(left), Known::Text(right)) => Some(left == right),
        _ => None,
    }
}

fn contains(items: &[Known<'_>], wanted: &Known<'_>) -> Option<bool> {
    decided(items.iter().map(|item| equal(item, wanted)), true)
}

/// The first answer that settles it, or its opposite when there is none.
fn decided(answers: impl Iterator<Item = Option<bool>>, settles: bool) -> Option<bool> {
    for answer in answers {
        if answer? == settles {
            return Some(settles);
        }
    }
    Some(!settles)
}

/// Each member of one set is held against those of the other; Cedar orders long ones first.
fn compares_few(one: &[Known<'_>], other: &[Known<'_>]) -> bool {
    one.len().saturating_mul(other.len()) <= PAIRS_MAX
}

/// What is written out.
pub(super) fn written(expr: &Expr) -> Option<Known<'static>> {
    Some(match expr {
        Expr::Literal(Literal::Bool(truth)) => Known::Truth(*truth),
        Expr::Literal(Literal::Long(number)) => Known::Whole(*number),
        Expr::Literal(Literal::String(text)) => Known::Text(Cow::Owned(text.to_string())),
        Expr::Set(items) => {
            let items: Option<Vec<_>> = items.iter().map(|item| written(item)).collect();
            Known::Set(items?)
        }
        _ => return None,
    })
}

/// The way from `context` to what is read.
pub(super) fn way(expr: &Expr) -> Option<Vec<String>> {
    match expr {
        Expr::Var(Var::Context) => Some(Vec::new()),
        Expr::GetAttr { expr, attr } => {
            let mut way = way(expr)?;
            way.push(attr.to_string());
            Some(way)
        }
        _ => None,
    }
}
