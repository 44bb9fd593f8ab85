//! What can be called, as far as it can be seen.

use boa_ast::Expression;
use boa_ast::expression::access::{PropertyAccess, PropertyAccessField};
use boa_ast::expression::operator::binary::BinaryOp;
use boa_interner::Sym;

/// The name of a member, where it has one.
pub(super) fn member(access: &PropertyAccess) -> Option<Sym> {
    let field = match access {
        PropertyAccess::Simple(access) => access.field(),
        PropertyAccess::Super(access) => access.field(),
        PropertyAccess::Private(access) => return Some(access.field().description()),
    };
    match field {
        PropertyAccessField::Const(name) => Some(name.sym()),
        PropertyAccessField::Expr(_) => None,
    }
}

pub(super) fn is_function(value: &Expression) -> bool {
    match value {
        Expression::Parenthesized(inner) => is_function(inner.expression()),
        Expression::FunctionExpression(_)
        | Expression::ArrowFunction(_)
        | Expression::AsyncArrowFunction(_)
        | Expression::AsyncFunctionExpression(_)
        | Expression::GeneratorExpression(_)
        | Expression::AsyncGeneratorExpression(_)
        | Expression::ClassExpression(_) => true,
        _ => false,
    }
}

/// Whether a value is something that nobody can call.
pub(super) fn is_no_function(value: &Expression) -> bool {
    match value {
        Expression::Parenthesized(inner) => is_no_function(inner.expression()),
        Expression::Conditional(choice) => {
            is_no_function(choice.if_true()) && is_no_function(choice.if_false())
        }
        Expression::Binary(binary) => match binary.op() {
            BinaryOp::Logical(_) => is_no_function(binary.lhs()) && is_no_function(binary.rhs()),
            BinaryOp::Comma => is_no_function(binary.rhs()),
            _ => true,
        },
        Expression::Literal(_)
        | Expression::TemplateLiteral(_)
        | Expression::RegExpLiteral(_)
        | Expression::ArrayLiteral(_)
        | Expression::ObjectLiteral(_)
        | Expression::Unary(_)
        | Expression::Update(_)
        | Expression::BinaryInPrivate(_) => true,
        _ => false,
    }
}
