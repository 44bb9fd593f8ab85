//! What is known of an expression before it runs: literals, what they are made
//! of, and names for them that cannot change.

use oxc_ast::ast::{
    ArrayExpression, ArrayExpressionElement, Expression, ObjectExpression, ObjectPropertyKind,
    PropertyKind,
};
use oxc_syntax::operator::{BinaryOperator, UnaryOperator};

use super::reading::Reading;

/// Expressions within expressions that are followed.
const DEPTH_MAX: usize = 32;

/// What is known of an expression.
#[derive(Clone, Copy)]
pub(super) enum Known<'a> {
    Text(Option<&'a str>),
    Number(Option<f64>),
    Boolean(Option<bool>),
    Null,
    /// The same as not being there.
    Undefined,
    Object(&'a ObjectExpression<'a>),
    Array(&'a ArrayExpression<'a>),
    Nothing,
}

/// A key of an object literal.
pub(super) struct Key<'a> {
    pub(super) name: String,
    pub(super) at: u32,
    /// Absent for methods and the like.
    pub(super) value: Option<&'a Expression<'a>>,
}

/// The keys of an object literal.
pub(super) struct Written<'a> {
    pub(super) keys: Vec<Key<'a>>,
    /// There may be more than these.
    pub(super) is_open: bool,
    /// What stands before this may be overwritten by something that is not known.
    pub(super) overwritten_to: u32,
}

impl<'a> Written<'a> {
    pub(super) fn of(literal: &'a ObjectExpression<'a>, reading: &Reading<'a, '_, '_>) -> Self {
        let mut written = Self {
            keys: Vec::new(),
            is_open: false,
            overwritten_to: 0,
        };
        for property in &literal.properties {
            match property {
                ObjectPropertyKind::SpreadProperty(spread) => {
                    written.is_open = true;
                    written.overwritten_to = spread.span.start;
                }
                ObjectPropertyKind::ObjectProperty(property) => {
                    let computed = property.computed.then(|| property.key.as_expression());
                    let name = match computed {
                        Some(key) => key.and_then(|it| reading.text_of(it)).map(str::to_owned),
                        None => property.key.static_name().map(|it| it.to_string()),
                    };
                    let Some(name) = name.filter(|it| it != "__proto__") else {
                        written.is_open = true;
                        written.overwritten_to = property.span.start;
                        continue;
                    };
                    let is_value = property.kind == PropertyKind::Init && !property.method;
                    let value = is_value.then_some(&property.value);
                    let is_absent =
                        value.is_some_and(|it| matches!(reading.known(it), Known::Undefined));
                    if !is_absent {
                        let at = property.span.start;
                        written.keys.push(Key { name, at, value });
                    }
                }
            }
        }
        written
    }
}

pub(super) fn elements<'a>(
    literal: &'a ArrayExpression<'a>,
) -> impl Iterator<Item = (usize, &'a Expression<'a>)> {
    let all = literal.elements.iter().enumerate();
    all.filter_map(|(place, it): (usize, &ArrayExpressionElement<'_>)| {
        Some((place, it.as_expression()?))
    })
}

impl<'a> Reading<'a, '_, '_> {
    pub(super) fn known(&self, expression: &'a Expression<'a>) -> Known<'a> {
        self.known_within(expression, 0)
    }

    fn known_within(&self, expression: &'a Expression<'a>, depth: usize) -> Known<'a> {
        if depth > DEPTH_MAX {
            return Known::Nothing;
        }
        match expression.get_inner_expression() {
            Expression::StringLiteral(it) => Known::Text(Some(it.value.as_str())),
            Expression::TemplateLiteral(it) => Known::Text(it.single_quasi().map(|it| it.as_str())),
            Expression::NumericLiteral(it) => Known::Number(Some(it.value)),
            Expression::BooleanLiteral(it) => Known::Boolean(Some(it.value)),
            Expression::NullLiteral(_) => Known::Null,
            Expression::ObjectExpression(it) => Known::Object(it),
            Expression::ArrayExpression(it) => Known::Array(it),
            Expression::UnaryExpression(it) => match it.operator {
                UnaryOperator::UnaryNegation => match self.known_within(&it.argument, depth + 1) {
                    Known::Number(value) => Known::Number(value.map(|it| -it)),
                    _ => Known::Nothing,
                },
                UnaryOperator::UnaryPlus => Known::Number(None),
                UnaryOperator::LogicalNot | UnaryOperator::Delete => Known::Boolean(None),
                UnaryOperator::Typeof => Known::Text(None),
                UnaryOperator::Void => Known::Undefined,
                UnaryOperator::BitwiseNot => Known::Nothing,
            },
            Expression::BinaryExpression(it) => match it.operator {
                BinaryOperator::Addition => {
                    let sides = [&it.left, &it.right];
                    let is_text = |side: &&Expression<'a>| {
                        matches!(
                            side.get_inner_expression(),
                            Expression::StringLiteral(_) | Expression::TemplateLiteral(_)
                        )
                    };
                    if sides.iter().any(is_text) {
                        Known::Text(None)
                    } else {
                        Known::Nothing
                    }
                }
                operator if operator.is_compare() || operator.is_equality() => Known::Boolean(None),
                _ => Known::Nothing,
            },
            name @ Expression::Identifier(_) => self.known_name(name, depth),
            _ => Known::Nothing,
        }
    }

    /// A name stands for a literal that cannot change. An object can, unless the
    /// only thing that is ever done with it is this.
    fn known_name(&self, name: &'a Expression<'a>, depth: usize) -> Known<'a> {
        let Some(symbol) = self.symbol_of(name) else {
            return match self.global_of(name) {
                Some("undefined") => Known::Undefined,
                _ => Known::Nothing,
            };
        };
        let Some(value) = self.value_of(symbol) else {
            return Known::Nothing;
        };
        match self.known_within(value, depth + 1) {
            Known::Object(_) | Known::Array(_) if !self.is_used_once(symbol) => Known::Nothing,
            known => known,
        }
    }
}
