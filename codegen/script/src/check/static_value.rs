//! Determines what is known about an expression before the run: literals, objects and arrays of
//! literals, and names that always have a literal as their value.

use oxc_ast::ast::{
    ArrayExpression, ArrayExpressionElement, Expression, ObjectExpression, ObjectPropertyKind,
    PropertyKind,
};
use oxc_syntax::operator::{BinaryOperator, UnaryOperator};

use super::context::CheckContext;

/// Maximum depth of nested expressions that are followed.
const DEPTH_MAX: usize = 32;

/// What is known about the value of an expression.
#[derive(Clone, Copy)]
pub(super) enum StaticValue<'a> {
    Text(Option<&'a str>),
    Number(Option<f64>),
    Boolean(Option<bool>),
    Null,
    /// `undefined`, which has the same effect as an absent property.
    Undefined,
    Object(&'a ObjectExpression<'a>),
    Array(&'a ArrayExpression<'a>),
    Nothing,
}

/// A key of an object literal.
pub(super) struct Key<'a> {
    pub(super) name: String,
    pub(super) at: u32,
    /// The value; `None` for methods and accessors.
    pub(super) value: Option<&'a Expression<'a>>,
}

/// The keys of an object literal.
pub(super) struct LiteralKeys<'a> {
    pub(super) keys: Vec<Key<'a>>,
    /// Whether the object may have further keys.
    pub(super) is_open: bool,
    /// A value that is not known, such as a spread, may overwrite keys before this offset.
    pub(super) overwritten_to: u32,
}

impl<'a> LiteralKeys<'a> {
    pub(super) fn from_literal(
        literal: &'a ObjectExpression<'a>,
        reading: &CheckContext<'a, '_, '_>,
    ) -> Self {
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
                        value.is_some_and(|it| matches!(reading.known(it), StaticValue::Undefined));
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

impl<'a> CheckContext<'a, '_, '_> {
    pub(super) fn known(&self, expression: &'a Expression<'a>) -> StaticValue<'a> {
        self.known_within(expression, 0)
    }

    fn known_within(&self, expression: &'a Expression<'a>, depth: usize) -> StaticValue<'a> {
        if depth > DEPTH_MAX {
            return StaticValue::Nothing;
        }
        match expression.get_inner_expression() {
            Expression::StringLiteral(it) => StaticValue::Text(Some(it.value.as_str())),
            Expression::TemplateLiteral(it) => {
                StaticValue::Text(it.single_quasi().map(|it| it.as_str()))
            }
            Expression::NumericLiteral(it) => StaticValue::Number(Some(it.value)),
            Expression::BooleanLiteral(it) => StaticValue::Boolean(Some(it.value)),
            Expression::NullLiteral(_) => StaticValue::Null,
            Expression::ObjectExpression(it) => StaticValue::Object(it),
            Expression::ArrayExpression(it) => StaticValue::Array(it),
            Expression::UnaryExpression(it) => match it.operator {
                UnaryOperator::UnaryNegation => match self.known_within(&it.argument, depth + 1) {
                    StaticValue::Number(value) => StaticValue::Number(value.map(|it| -it)),
                    _ => StaticValue::Nothing,
                },
                UnaryOperator::UnaryPlus => StaticValue::Number(None),
                UnaryOperator::LogicalNot | UnaryOperator::Delete => StaticValue::Boolean(None),
                UnaryOperator::Typeof => StaticValue::Text(None),
                UnaryOperator::Void => StaticValue::Undefined,
                UnaryOperator::BitwiseNot => StaticValue::Nothing,
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
                        StaticValue::Text(None)
                    } else {
                        StaticValue::Nothing
                    }
                }
                operator if operator.is_compare() || operator.is_equality() => {
                    StaticValue::Boolean(None)
                }
                _ => StaticValue::Nothing,
            },
            name @ Expression::Identifier(_) => self.known_name(name, depth),
            _ => StaticValue::Nothing,
        }
    }

    /// Returns what is known about a name whose value never changes. An object literal counts only
    /// if this is the name's only use.
    fn known_name(&self, name: &'a Expression<'a>, depth: usize) -> StaticValue<'a> {
        let Some(symbol) = self.symbol_of(name) else {
            return match self.global_of(name) {
                Some("undefined") => StaticValue::Undefined,
                _ => StaticValue::Nothing,
            };
        };
        let Some(value) = self.value_of(symbol) else {
            return StaticValue::Nothing;
        };
        match self.known_within(value, depth + 1) {
            StaticValue::Object(_) | StaticValue::Array(_) if !self.is_used_once(symbol) => {
                StaticValue::Nothing
            }
            known => known,
        }
    }
}
