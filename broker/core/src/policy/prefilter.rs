//! Decides rules without Cedar where the result is certain.
//!
//! A rule's condition is compiled into a [`Test`] once. For a call the test gives true, false or
//! unknown. Syntax that this module does not understand, missing values and unexpected types all
//! give unknown, and Cedar decides. The prefilter neither reports an evaluation error nor hides
//! one.

use std::borrow::Cow;

use cedar_policy::pst::{BinaryOp, Clause, Expr, Literal, UnaryOp, Var};

use super::context_value::{ContextValue, Members};

/// Maximum number of comparisons between the members of two sets; these take tens of microseconds.
const PAIRS_MAX: usize = 10_000;

/// A condition, as far as this module understands it.
#[derive(Debug)]
pub(crate) enum Test {
    Not(Box<Test>),
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
    If(Box<[Test; 3]>),
    /// A `has` test: the path from `context` to the record, and the path from the record to the
    /// member.
    Has(Vec<String>, Vec<String>),
    Compare(Comparison, Term, Term),
    IsEmpty(Term),
    Is(Term),
    /// Only Cedar can evaluate this condition.
    Unknown,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Comparison {
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

/// A term of a comparison.
#[derive(Debug)]
pub(crate) enum Term {
    Written(ContextValue<'static>),
    /// The value at this path in `context`.
    At(Vec<String>),
}

impl Test {
    /// Returns the test that must be true for a rule to match.
    pub(crate) fn from_clauses(clauses: &[Clause]) -> Self {
        let tests = clauses.iter().map(|clause| match clause {
            Clause::When(expr) => Self::read(expr),
            Clause::Unless(expr) => Self::Not(Self::read(expr).into()),
        });
        let all = tests.reduce(|before, next| Self::And(before.into(), next.into()));
        // A rule without conditions matches every call of its tools.
        all.unwrap_or(Self::Is(Term::Written(ContextValue::Truth(true))))
    }

    /// Returns the result of the test for every call, if it is the same for all calls.
    pub(crate) fn always(&self) -> Option<bool> {
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
            Self::Is(Term::Written(ContextValue::Truth(truth))) => Some(*truth),
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
            // A caller could make both sets long, so the comparison is left to Cedar.
            (Some(Term::At(_)), Some(Term::At(_))) if comparison.is_about_sets() => Self::Unknown,
            (Some(left), Some(right)) => Self::Compare(comparison, left, right),
            _ => Self::Unknown,
        }
    }

    /// Returns the result, or `None` if it is unknown. The order is Cedar's: an operand that Cedar
    /// does not evaluate is not evaluated here either, so an error in it does not count.
    pub(crate) fn outcome(&self, context: &Members<'_>) -> Option<bool> {
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
                ContextValue::Set(items) => Some(items.is_empty()),
                _ => None,
            },
            Self::Is(term) => match term.value(context)? {
                ContextValue::Truth(truth) => Some(*truth),
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

    fn holds(self, left: &ContextValue<'_>, right: &ContextValue<'_>) -> Option<bool> {
        match (self, left, right) {
            (Self::Equal, ..) => equal(left, right),
            (Self::Unequal, ..) => equal(left, right).map(|truth| !truth),
            (Self::Less, ContextValue::Whole(left), ContextValue::Whole(right)) => {
                Some(left < right)
            }
            (Self::LessOrEqual, ContextValue::Whole(left), ContextValue::Whole(right)) => {
                Some(left <= right)
            }
            (Self::Greater, ContextValue::Whole(left), ContextValue::Whole(right)) => {
                Some(left > right)
            }
            (Self::GreaterOrEqual, ContextValue::Whole(left), ContextValue::Whole(right)) => {
                Some(left >= right)
            }
            (Self::Contains, ContextValue::Set(items), item) => contains(items, item),
            (Self::ContainsAll, ContextValue::Set(items), ContextValue::Set(all)) => {
                compares_few(items, all).then_some(())?;
                decided(all.iter().map(|item| contains(items, item)), false)
            }
            (Self::ContainsAny, ContextValue::Set(items), ContextValue::Set(any)) => {
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

    fn value<'a>(&'a self, context: &'a Members<'a>) -> Option<&'a ContextValue<'a>> {
        match self {
            Self::Written(value) => Some(value),
            Self::At(way) => {
                let (first, rest) = way.split_first()?;
                let first = context.get(first.as_str());
                rest.iter().fold(first, |found, name| match found? {
                    ContextValue::Record(members) => members.get(name.as_str()),
                    _ => None,
                })
            }
        }
    }
}

fn has(context: &Members<'_>, way: &[String], onward: &[String]) -> Option<bool> {
    let mut members = context;
    for name in way {
        let ContextValue::Record(inner) = members.get(name.as_str())? else {
            return None;
        };
        members = inner;
    }
    let (last, between) = onward.split_last()?;
    for name in between {
        match members.get(name.as_str()) {
            Some(ContextValue::Record(inner)) => members = inner,
            Some(_) => return None,
            None => return Some(false),
        }
    }
    Some(members.contains_key(last.as_str()))
}

/// Compares two single values of the same type.
fn equal(left: &ContextValue<'_>, right: &ContextValue<'_>) -> Option<bool> {
    match (left, right) {
        (ContextValue::Truth(left), ContextValue::Truth(right)) => Some(left == right),
        (ContextValue::Whole(left), ContextValue::Whole(right)) => Some(left == right),
        (ContextValue::Text(left), ContextValue::Text(right)) => Some(left == right),
        _ => None,
    }
}

fn contains(items: &[ContextValue<'_>], wanted: &ContextValue<'_>) -> Option<bool> {
    decided(items.iter().map(|item| equal(item, wanted)), true)
}

/// Returns `settles` if an answer has this value, otherwise the opposite. Returns `None` if an
/// unknown answer comes before any answer with this value.
fn decided(answers: impl Iterator<Item = Option<bool>>, settles: bool) -> Option<bool> {
    for answer in answers {
        if answer? == settles {
            return Some(settles);
        }
    }
    Some(!settles)
}

/// Whether comparing every pair is cheap enough. Cedar sorts long sets first.
fn compares_few(one: &[ContextValue<'_>], other: &[ContextValue<'_>]) -> bool {
    one.len().saturating_mul(other.len()) <= PAIRS_MAX
}

/// Returns the value of an expression that is written as a literal.
pub fn written(expr: &Expr) -> Option<ContextValue<'static>> {
    Some(match expr {
        Expr::Literal(Literal::Bool(truth)) => ContextValue::Truth(*truth),
        Expr::Literal(Literal::Long(number)) => ContextValue::Whole(*number),
        Expr::Literal(Literal::String(text)) => ContextValue::Text(Cow::Owned(text.to_string())),
        Expr::Set(items) => {
            let items: Option<Vec<_>> = items.iter().map(|item| written(item)).collect();
            ContextValue::Set(items?)
        }
        _ => return None,
    })
}

/// Returns the path from `context` to the value that an expression reads.
pub fn way(expr: &Expr) -> Option<Vec<String>> {
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
