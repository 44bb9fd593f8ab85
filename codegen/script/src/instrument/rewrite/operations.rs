//! Instruments operators and templates, because many engines report no location for their errors.
//! The operands stay in place, and the instrumentation applies the operator.

use oxc_ast::ast::{
    BinaryExpression, Expression, PrivateInExpression, TaggedTemplateExpression, TemplateLiteral,
    UnaryExpression,
};
use oxc_ast_visit::Visit;
use oxc_span::{GetSpan, Span};
use oxc_syntax::operator::{BinaryOperator, UnaryOperator};

use super::{Rewriter, up};
use crate::instrument::place::SiteKind;

/// Maximum depth of nested operators that are instrumented; each becomes a nested call.
const OPERATORS_MAX: usize = 40;

impl<'s> Rewriter<'s> {
    /// Writes `a / b` as a call of the instrumentation, if it can fail.
    pub(super) fn binary(&mut self, it: &BinaryExpression<'_>) -> Option<String> {
        if !self.is_closer() || is_harmless(it) || self.operators >= OPERATORS_MAX {
            return None;
        }
        self.operators += 1;
        let left = self.expression(&it.left);
        let right = self.expression(&it.right);
        self.operators -= 1;
        let (place, up) = self.binary_place(it);
        let lines = self.lines_between(it.left.span(), it.right.span());
        let operator = it.operator.as_str();
        let text = format!("look__o({place},'{operator}',{left},{lines}{right}{up})");
        Some(self.budget.written(text))
    }

    /// Records the place of an operator. Only `in` and `instanceof` record where their right
    /// operand was read from.
    fn binary_place(&mut self, it: &BinaryExpression<'_>) -> (usize, String) {
        let from = match it.operator {
            BinaryOperator::In | BinaryOperator::Instanceof => self.from(&it.right),
            _ => None,
        };
        let up = up(from.as_ref());
        let what = SiteKind::Operation {
            operator: it.operator.as_str().to_owned(),
            left: self.quote(it.left.span()),
            right: Some(self.quote(it.right.span())),
        };
        (self.place(it.span.start, what, from), up)
    }

    /// Returns the line ends between two ranges.
    pub(super) fn lines_between(&self, left: Span, right: Span) -> String {
        let between = self.slice(left.end, right.start);
        "\n".repeat(between.matches('\n').count())
    }

    pub(super) fn unary(&mut self, it: &UnaryExpression<'_>) -> Option<String> {
        let counts = matches!(
            it.operator,
            UnaryOperator::UnaryPlus | UnaryOperator::UnaryNegation | UnaryOperator::BitwiseNot
        );
        let is_literal = matches!(it.argument, Expression::NumericLiteral(_));
        if !self.is_closer() || !counts || is_literal || self.operators >= OPERATORS_MAX {
            return None;
        }
        let operator = it.operator.as_str();
        let what = SiteKind::Operation {
            operator: operator.to_owned(),
            left: self.quote(it.argument.span()),
            right: None,
        };
        let place = self.place(it.span.start, what, None);
        self.operators += 1;
        let value = self.expression(&it.argument);
        self.operators -= 1;
        let text = format!("look__o1({place},'{operator}',{value})");
        Some(self.budget.written(text))
    }

    /// Instruments the values in a template, which are converted to text.
    pub(super) fn template(&mut self, it: &TemplateLiteral<'_>) {
        for value in &it.expressions {
            let text = self.expression(value);
            if self.is_closer() && !matches!(value, Expression::StringLiteral(_)) {
                let of = self.quote(value.span());
                let place = self.place(value.span().start, SiteKind::Held { of }, None);
                let text = self.budget.written(format!("look__o2({place},{text})"));
                self.replace(value.span(), text);
            } else {
                self.replace(value.span(), text);
            }
        }
    }

    /// Instruments the tag of a template, which must be a function. A tag that is a member access
    /// stays unchanged, because it would lose its receiver.
    pub(super) fn tag(&mut self, it: &TaggedTemplateExpression<'_>) {
        let inner = it.tag.get_inner_expression();
        let is_member =
            inner.is_member_expression() || matches!(inner, Expression::ChainExpression(_));
        if self.is_closer() && !is_member {
            let text = self.expression(&it.tag);
            let from = self.from(&it.tag);
            let up = up(from.as_ref());
            let what = SiteKind::Call {
                callee: self.quote(it.tag.span()),
                on: None,
                member: None,
                given: Vec::new(),
            };
            let place = self.place(it.tag.span().start, what, from);
            self.replace(it.tag.span(), format!("look__h({place},{text}{up})"));
        } else {
            self.visit_expression(&it.tag);
        }
        for value in &it.quasi.expressions {
            self.visit_expression(value);
        }
    }

    /// Instruments `#name in it`.
    pub(super) fn private_in(&mut self, it: &PrivateInExpression<'_>) {
        if !self.is_closer() {
            return self.visit_expression(&it.right);
        }
        let text = self.expression(&it.right);
        let from = self.from(&it.right);
        let up = up(from.as_ref());
        let what = SiteKind::Operation {
            operator: "in".to_owned(),
            left: format!("#{}", it.left.name),
            right: Some(self.quote(it.right.span())),
        };
        let place = self.place(it.span.start, what, from);
        self.replace(it.right.span(), format!("look__o3({place},{text}{up})"));
    }
}

/// Whether a comparison cannot fail: it compares identity, or only literals.
fn is_harmless(it: &BinaryExpression<'_>) -> bool {
    let is_plain = |it: &Expression<'_>| {
        matches!(
            it,
            Expression::NumericLiteral(_)
                | Expression::StringLiteral(_)
                | Expression::BooleanLiteral(_)
                | Expression::TemplateLiteral(_)
        )
    };
    let is_identity = matches!(
        it.operator,
        BinaryOperator::StrictEquality | BinaryOperator::StrictInequality
    );
    let asks = matches!(it.operator, BinaryOperator::In | BinaryOperator::Instanceof);
    is_identity || (!asks && is_plain(&it.left) && is_plain(&it.right))
}
