//! Converts the tests in a condition to one form, because Cedar allows several spellings of the
//! same test.

use std::collections::BTreeSet;

use cedar_policy::pst::{BinaryOp, Expr, Literal, PatternElem, UnaryOp, Var};

use airlock_core::policy::expr::path;
use airlock_core::policy::prefilter;

/// A path from `context` to a value.
pub(super) type ContextPath = Vec<String>;

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
    Truth(ContextPath),
    Has(ContextPath),
    Empty(ContextPath),
    Equal(ContextPath, Value),
    AtMost(ContextPath, i64),
    /// The set contains this value.
    Holds(ContextPath, Value),
    /// The set is a subset of these values.
    Within(ContextPath, BTreeSet<Value>),
    Like(ContextPath, String),
    /// The tool is in this group.
    InGroup(String),
    /// Any other test, as Cedar's syntax tree.
    Other(String),
}

impl Ask {
    /// Returns the path that the test reads in the context.
    pub(super) fn way(&self) -> Option<&ContextPath> {
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

/// A condition as a combination of tests: one, all of several, or any of several.
#[derive(Debug, Clone)]
pub(super) enum Form {
    One(Ask, bool),
    All(Vec<Form>),
    Any(Vec<Form>),
}

impl Form {
    /// Returns the tests that must hold for an expression to have the value `holds`.
    pub(super) fn from_expr(expr: &Expr, holds: bool) -> Self {
        match expr {
            Expr::UnaryOp {
                op: UnaryOp::Not,
                expr,
            } => Self::from_expr(expr, !holds),
            Expr::BinaryOp {
                op: op @ (BinaryOp::And | BinaryOp::Or),
                left,
                right,
            } => {
                let both = vec![Self::from_expr(left, holds), Self::from_expr(right, holds)];
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
                Some(AskGroup::One(ask, same)) => Self::One(ask, same == holds),
                Some(AskGroup::Each(asks, is_all)) => each(asks, is_all),
                None => Self::One(other(expr), holds),
            },
            _ => Self::One(other(expr), holds),
        }
    }
}

/// Returns the value of an expression that only contains literals.
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

enum AskGroup {
    /// A test, and the value that the comparison has if the test holds.
    One(Ask, bool),
    /// Several tests. The flag says whether all of them must hold, or any one.
    Each(Vec<Ask>, bool),
}

fn compared(op: BinaryOp, left: &Expr, right: &Expr) -> Option<AskGroup> {
    if op == BinaryOp::In {
        return match (left, right) {
            (Expr::Var(Var::Action), Expr::Literal(Literal::EntityUID(uid))) => {
                Some(AskGroup::One(Ask::InGroup(uid.eid.to_string()), true))
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

/// Handles a comparison whose left side reads the context.
fn of_way(op: BinaryOp, way: ContextPath, written: &Expr) -> Option<AskGroup> {
    let each = |values: Vec<Value>, is_all| {
        let asks = values
            .into_iter()
            .map(|value| Ask::Holds(way.clone(), value));
        AskGroup::Each(asks.collect(), is_all)
    };
    Some(match op {
        BinaryOp::Eq => equal(way, value(written)?, true),
        BinaryOp::NotEq => equal(way, value(written)?, false),
        BinaryOp::Contains => AskGroup::One(Ask::Holds(way, value(written)?), true),
        BinaryOp::ContainsAll => each(values(written)?, true),
        BinaryOp::ContainsAny => each(values(written)?, false),
        _ => order(op, way, whole(written)?)?,
    })
}

/// Handles a comparison whose right side reads the context.
fn of_written(op: BinaryOp, written: &Expr, way: ContextPath) -> Option<AskGroup> {
    Some(match op {
        BinaryOp::Eq => equal(way, value(written)?, true),
        BinaryOp::NotEq => equal(way, value(written)?, false),
        BinaryOp::Contains => {
            let asks = values(written)?.into_iter();
            let asks = asks.map(|value| Ask::Equal(way.clone(), value));
            AskGroup::Each(asks.collect(), false)
        }
        BinaryOp::ContainsAll => AskGroup::One(
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

fn equal(way: ContextPath, value: Value, same: bool) -> AskGroup {
    match value {
        Value::Truth(truth) => AskGroup::One(Ask::Truth(way), truth == same),
        value => AskGroup::One(Ask::Equal(way, value), same),
    }
}

fn order(op: BinaryOp, way: ContextPath, number: i64) -> Option<AskGroup> {
    let below = number.checked_sub(1);
    Some(match op {
        BinaryOp::LessEq => AskGroup::One(Ask::AtMost(way, number), true),
        BinaryOp::Less => AskGroup::One(Ask::AtMost(way, below?), true),
        BinaryOp::Greater => AskGroup::One(Ask::AtMost(way, number), false),
        BinaryOp::GreaterEq => AskGroup::One(Ask::AtMost(way, below?), false),
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

/// Returns the path to a value that is read, not one that is only tested with `has`.
pub(super) fn way(expr: &Expr) -> Option<ContextPath> {
    prefilter::way(expr)
}

/// Writes a pattern as text. An escaped star looks different from a wildcard.
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
