//! What a part of a condition asks of a call, in one form for the several ways
//! in which Cedar can say it.

use std::collections::BTreeSet;

use cedar_policy::pst::{BinaryOp, Expr, Literal, PatternElem, UnaryOp, Var};

use crate::policy::mentions::path;
use crate::policy::sift;

/// From `context`.
pub(super) type Way = Vec<String>;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Value {
    Truth(bool),
    Whole(i64),
    Text(String),
}

impl Value {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Truth(_) | Self::Whole(_) => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ask {
    Truth(Way),
    Has(Way),
    Empty(Way),
    Equal(Way, Value),
    AtMost(Way, i64),
    /// A set that contains this, and perhaps more.
    Holds(Way, Value),
    /// A set of these, or of some of them.
    Within(Way, BTreeSet<Value>),
    Like(Way, String),
    /// The tool is in this group.
    InGroup(String),
    /// Anything else, as Cedar's syntax has it.
    Other(String),
}

impl Ask {
    /// What it reads of the context.
    pub(super) fn way(&self) -> Option<&Way> {
        match self {
            Self::Truth(way)
            | Self::Has(way)
            | Self::Empty(way)
            | Self::Equal(way, _)
            | Self::AtMost(way, _)
            | Self::Holds(way, _)
            | Self::Within(way, _)
            | Self::Like(way, _) => Some(way),
            Self::InGroup(_) | Self::Other(_) => None,
        }
    }
}

/// A condition as its comparisons are joined: one of these, or several.
#[derive(Debug, Clone)]
pub(super) enum Form {
    One(Ask, bool),
    All(Vec<Form>),
    Any(Vec<Form>),
}

impl Form {
    /// What must hold for an expression to be true, or to be false.
    pub(super) fn of(expr: &Expr, holds: bool) -> Self {
        match expr {
            Expr::UnaryOp {
                op: UnaryOp::Not,
                expr,
            } => Self::of(expr, !holds),
            Expr::BinaryOp {
                op: op @ (BinaryOp::And | BinaryOp::Or),
                left,
                right,
            } => {
                let both = vec![Self::of(left, holds), Self::of(right, holds)];
                Self::joined(both, (*op == BinaryOp::And) == holds)
            }
            _ => Self::one(expr, holds),
        }
    }

    fn joined(forms: Vec<Self>, is_all: bool) -> Self {
        if is_all {
            Self::All(forms)
        } else {
            Self::Any(forms)
        }
    }

    fn one(expr: &Expr, holds: bool) -> Self {
        let each = |asks: Vec<Ask>, is_all: bool| {
            let forms = asks.into_iter().map(|ask| Self::One(ask, holds)).collect();
            Self::joined(forms, is_all == holds)
        };
        if let Some(truth) = settled(expr) {
            return Self::joined(Vec::new(), truth == holds);
        }
        match expr {
            Expr::HasAttr { .. } => Self::One(has(expr), holds),
            Expr::GetAttr { .. } => Self::One(truth(expr), holds),
            Expr::Like {
                expr: read,
                pattern,
            } => match way(read) {
                Some(way) => Self::One(Ask::Like(way, as_written(pattern)), holds),
                None => Self::One(other(expr), holds),
            },
            Expr::UnaryOp {
                op: UnaryOp::IsEmpty,
                expr: read,
            } => match way(read) {
                Some(way) => Self::One(Ask::Empty(way), holds),
                None => Self::One(other(expr), holds),
            },
            Expr::BinaryOp { op, left, right } => match compared(*op, left, right) {
                Some(Compared::One(ask, same)) => Self::One(ask, same == holds),
                Some(Compared::Each(asks, is_all)) => each(asks, is_all),
                None => Self::One(other(expr), holds),
            },
            _ => Self::One(other(expr), holds),
        }
    }
}

/// What is written out and reads nothing.
fn settled(expr: &Expr) -> Option<bool> {
    let (op, left, right) = match expr {
        Expr::Literal(Literal::Bool(truth)) => return Some(*truth),
        Expr::BinaryOp { op, left, right } => (op, value(left)?, value(right)?),
        _ => return None,
    };
    match (op, &left, &right) {
        (BinaryOp::Eq, ..) => Some(left == right),
        (BinaryOp::NotEq, ..) => Some(left != right),
        (BinaryOp::Less, Value::Whole(left), Value::Whole(right)) => Some(left < right),
        (BinaryOp::LessEq, Value::Whole(left), Value::Whole(right)) => Some(left <= right),
        (BinaryOp::Greater, Value::Whole(left), Value::Whole(right)) => Some(left > right),
        (BinaryOp::GreaterEq, Value::Whole(left), Value::Whole(right)) => Some(left >= right),
        _ => None,
    }
}

enum Compared {
    /// The question, and whether the comparison is true when it holds.
    One(Ask, bool),
    /// All of them, or any.
    Each(Vec<Ask>, bool),
}

fn compared(op: BinaryOp, left: &Expr, right: &Expr) -> Option<Compared> {
    if op == BinaryOp::In {
        return match (left, right) {
            (Expr::Var(Var::Action), Expr::Literal(Literal::EntityUID(uid))) => {
                Some(Compared::One(Ask::InGroup(uid.eid.to_string()), true))
            }
            _ => None,
        };
    }
    match (way(left), way(right)) {
        (Some(way), None) => of_way(op, way, right),
        (None, Some(way)) => of_written(op, left, way),
        _ => None,
    }
}

/// What is read stands on the left.
fn of_way(op: BinaryOp, way: Way, written: &Expr) -> Option<Compared> {
    let each = |values: Vec<Value>, is_all| {
        let asks = values
            .into_iter()
            .map(|value| Ask::Holds(way.clone(), value));
        Compared::Each(asks.collect(), is_all)
    };
    Some(match op {
        BinaryOp::Eq => equal(way, value(written)?, true),
        BinaryOp::NotEq => equal(way, value(written)?, false),
        BinaryOp::Contains => Compared::One(Ask::Holds(way, value(written)?), true),
        BinaryOp::ContainsAll => each(values(written)?, true),
        BinaryOp::ContainsAny => each(values(written)?, false),
        _ => order(op, way, whole(written)?)?,
    })
}

/// What is read stands on the right.
fn of_written(op: BinaryOp, written: &Expr, way: Way) -> Option<Compared> {
    Some(match op {
        BinaryOp::Eq => equal(way, value(written)?, true),
        BinaryOp::NotEq => equal(way, value(written)?, false),
        BinaryOp::Contains => {
            let asks = values(written)?.into_iter();
            let asks = asks.map(|value| Ask::Equal(way.clone(), value));
            Compared::Each(asks.collect(), false)
        }
        BinaryOp::ContainsAll => Compared::One(
            Ask::Within(way, values(written)?.into_iter().collect()),
            true,
        ),
        BinaryOp::ContainsAny => return of_way(op, way, written),
        BinaryOp::Less => order(BinaryOp::Greater, way, whole(written)?)?,
        BinaryOp::LessEq => order(BinaryOp::GreaterEq, way, whole(written)?)?,
        BinaryOp::Greater => order(BinaryOp::Less, way, whole(written)?)?,
        BinaryOp::GreaterEq => order(BinaryOp::LessEq, way, whole(written)?)?,
        _ => return None,
    })
}

fn equal(way: Way, value: Value, same: bool) -> Compared {
    match value {
        Value::Truth(truth) => Compared::One(Ask::Truth(way), truth == same),
        value => Compared::One(Ask::Equal(way, value), same),
    }
}

fn order(op: BinaryOp, way: Way, number: i64) -> Option<Compared> {
    let below = number.checked_sub(1);
    Some(match op {
        BinaryOp::LessEq => Compared::One(Ask::AtMost(way, number), true),
        BinaryOp::Less => Compared::One(Ask::AtMost(way, below?), true),
        BinaryOp::Greater => Compared::One(Ask::AtMost(way, number), false),
        BinaryOp::GreaterEq => Compared::One(Ask::AtMost(way, below?), false),
        _ => return None,
    })
}

fn has(expr: &Expr) -> Ask {
    let steps = path(expr).filter(|_| matches!(expr, Expr::HasAttr { .. }));
    let way = steps.map(|steps| steps.into_iter().map(str::to_owned).collect());
    way.map_or_else(|| other(expr), Ask::Has)
}

fn truth(expr: &Expr) -> Ask {
    way(expr).map_or_else(|| other(expr), Ask::Truth)
}

fn other(expr: &Expr) -> Ask {
    Ask::Other(format!("{expr:?}"))
}

/// The way to what is read, and not to what is only asked for with `has`.
pub(super) fn way(expr: &Expr) -> Option<Way> {
    sift::way(expr)
}

/// A star that stands for itself is another one than a wildcard.
fn as_written(pattern: &[PatternElem]) -> String {
    let mut text = String::new();
    for part in pattern {
        match part {
            PatternElem::Wildcard => text.push('*'),
            PatternElem::Char(sign @ ('*' | '\\')) => text.extend(['\\', *sign]),
            PatternElem::Char(sign) => text.push(*sign),
        }
    }
    text
}

fn value(expr: &Expr) -> Option<Value> {
    match expr {
        Expr::Literal(Literal::Bool(truth)) => Some(Value::Truth(*truth)),
        Expr::Literal(Literal::Long(number)) => Some(Value::Whole(*number)),
        Expr::Literal(Literal::String(text)) => Some(Value::Text(text.to_string())),
        _ => None,
    }
}

fn values(expr: &Expr) -> Option<Vec<Value>> {
    match expr {
        Expr::Set(items) => items.iter().map(|item| value(item)).collect(),
        _ => None,
    }
}

fn whole(expr: &Expr) -> Option<i64> {
    match value(expr)? {
        Value::Whole(number) => Some(number),
        _ => None,
    }
}
