//! Recognises simple comparisons whose results are known without a call: the difference of two
//! numbers, `(a, b) => a - b`, or of the same member of two items, `(a, b) => b.file.size -
//! a.file.size`. Calls are the largest cost of sorting, and most comparisons in scripts have this
//! form.

use std::cmp::Ordering;

use boa_ast::expression::access::{PropertyAccess, PropertyAccessField};
use boa_ast::expression::operator::binary::{ArithmeticOp, BinaryOp};
use boa_ast::function::{FormalParameterList, FunctionBody};
use boa_ast::scope::Scope;
use boa_ast::statement::Statement;
use boa_ast::{Expression, StatementListItem};
use boa_engine::property::PropertyKey;
use boa_engine::{Context, JsObject, JsString, JsValue};
use boa_interner::{Interner, Sym};
use boa_parser::{Parser, Source};

use crate::intrinsics::Intrinsics;

/// Minimum number of items: parsing a comparison costs about as much as a few calls of it.
const ITEMS_MIN: usize = 32;
/// Maximum length of a comparison that is parsed. Parsing takes stack, of which the script may have
/// left little.
const TEXT_UNITS_MAX: usize = 120;
const BRACKETS_MAX: usize = 4;

/// The numbers to compare, one for each item.
pub(super) struct Numbers {
    numbers: Vec<f64>,
    /// Whether the first operand is subtracted from the second.
    descending: bool,
}

impl Numbers {
    /// Returns the numbers if `compare` is simple and the script cannot observe the reading.
    pub(super) fn of(items: &[JsValue], compare: &JsObject, context: &mut Context) -> Option<Self> {
        if items.len() < ITEMS_MIN {
            return None;
        }
        let text = Intrinsics::of(context)
            .ok()?
            .function_text
            .call(&compare.clone().into(), &[], context)
            .ok()?
            .as_string()
            .filter(|text| text.len() <= TEXT_UNITS_MAX)?;
        let text = text.to_std_string().ok()?;
        if text.matches(['(', '[', '{', '`']).count() > BRACKETS_MAX {
            return None;
        }
        let Difference { path, descending } = Difference::read(&text)?;
        let numbers = items
            .iter()
            .map(|item| number(item, &path))
            .collect::<Option<Vec<f64>>>()?;
        Some(Self {
            numbers,
            descending,
        })
    }

    /// Returns the order of the items; `None` if the order depends on the pairs that are compared.
    pub(super) fn order(&self) -> Option<Vec<usize>> {
        if self.numbers.iter().any(|number| number.is_nan()) {
            return None;
        }
        let mut pairs: Vec<(f64, usize)> = self.numbers.iter().copied().zip(0..).collect();
        let by =
            |a: &(f64, usize), b: &(f64, usize)| a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal);
        if self.descending {
            pairs.sort_by(|a, b| by(b, a));
        } else {
            pairs.sort_by(by);
        }
        Some(pairs.into_iter().map(|(_, place)| place).collect())
    }
}

/// Follows a path of members from an item to a number, if all of them are plain data.
fn number(item: &JsValue, path: &[PropertyKey]) -> Option<f64> {
    let mut value = item.clone();
    for key in path {
        let object = value.as_object().filter(JsObject::is_ordinary)?;
        let property = object.borrow().properties().get(key)?;
        value = property.value()?.clone();
    }
    value.as_number()
}

/// A comparison `(a, b) => a.path - b.path`, or the reverse.
#[derive(Debug, PartialEq, Eq)]
struct Difference {
    path: Vec<PropertyKey>,
    descending: bool,
}

impl Difference {
    fn read(function: &str) -> Option<Self> {
        let mut interner = Interner::default();
        let text = format!("({function}\n)");
        let script = Parser::new(Source::from_bytes(&text))
            .parse_script(&Scope::new_global(), &mut interner)
            .ok()?;
        let [StatementListItem::Statement(statement)] = script.statements().statements() else {
            return None;
        };
        let Statement::Expression(Expression::Parenthesized(inner)) = statement.as_ref() else {
            return None;
        };
        let (parameters, body) = match inner.expression() {
            Expression::ArrowFunction(arrow) => (arrow.parameters(), arrow.body()),
            Expression::FunctionExpression(function) => (function.parameters(), function.body()),
            _ => return None,
        };
        let (first, second) = two_names(parameters)?;
        let (left, right) = difference(body)?;
        let (left, left_path) = member(left)?;
        let (right, right_path) = member(right)?;
        if left_path != right_path {
            return None;
        }
        let descending = match (left, right) {
            it if it == (first, second) => false,
            it if it == (second, first) => true,
            _ => return None,
        };
        let key = |name: Sym| {
            let name = interner.resolve_expect(name).to_string();
            PropertyKey::from(JsString::from(name))
        };
        let path = left_path.into_iter().map(key).collect();
        Some(Self { path, descending })
    }
}

fn two_names(parameters: &FormalParameterList) -> Option<(Sym, Sym)> {
    let names = boa_ast::operations::bound_names(parameters);
    match names.as_slice() {
        [first, second]
            if parameters.is_simple() && parameters.length() == 2 && first != second =>
        {
            Some((*first, *second))
        }
        _ => None,
    }
}

/// Returns both sides of `return left - right`, if the body contains nothing else.
fn difference(body: &FunctionBody) -> Option<(&Expression, &Expression)> {
    let [StatementListItem::Statement(statement)] = body.statements() else {
        return None;
    };
    let Statement::Return(returned) = statement.as_ref() else {
        return None;
    };
    match within_brackets(returned.target()?) {
        Expression::Binary(binary) if binary.op() == BinaryOp::Arithmetic(ArithmeticOp::Sub) => {
            Some((binary.lhs(), binary.rhs()))
        }
        _ => None,
    }
}

/// Returns a name and the path of members after it, such as `a.file.size`.
fn member(expression: &Expression) -> Option<(Sym, Vec<Sym>)> {
    match within_brackets(expression) {
        Expression::Identifier(name) => Some((name.sym(), Vec::new())),
        Expression::PropertyAccess(PropertyAccess::Simple(access)) => {
            let (name, mut path) = member(access.target())?;
            let PropertyAccessField::Const(field) = access.field() else {
                return None;
            };
            path.push(field.sym());
            Some((name, path))
        }
        _ => None,
    }
}

fn within_brackets(expression: &Expression) -> &Expression {
    match expression {
        Expression::Parenthesized(inner) => within_brackets(inner.expression()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(function: &str, expected: Option<(&[&str], bool)>) {
        let found = Difference::read(function);
        let expected = expected.map(|(path, descending)| Difference {
            path: path
                .iter()
                .map(|name| PropertyKey::from(JsString::from(*name)))
                .collect(),
            descending,
        });
        assert_eq!(found, expected, "{function}");
    }

    #[test]
    fn a_difference_of_the_two_is_known_and_nothing_else_is() {
        check("(a, b) => a - b", Some((&[], false)));
        check("(a,b)=>(b-a)", Some((&[], true)));
        check(
            "function (x, y) { return x.size - y.size; }",
            Some((&["size"], false)),
        );
        check("function by(x, y) { return (y.a.b) - y.a.b }", None);
        check(
            "(l, r) => r.file.size - l.file.size",
            Some((&["file", "size"], true)),
        );
        for other in [
            "(a, b) => a + b",
            "(a, b) => a - c",
            "(a, b) => a - b - 1",
            "(a, b) => a.x - b.y",
            "(a, b) => a[0] - b[0]",
            "(a, b) => a?.x - b?.x",
            "(a, b) => a.x() - b.x()",
            "(a, b = 1) => a - b",
            "(a, ...b) => a - b",
            "({ a }, b) => a - b",
            "(a, b, c) => a - b",
            "a => a - a",
            "async (a, b) => a - b",
            "function* (a, b) { return a - b }",
            "(a, b) => { n++; return a - b }",
            "(a, b) => { a - b }",
            "function () { [native code] }",
            "(a, b) => a - b) + (1",
            "by(a, b) { return a - b }",
            "",
        ] {
            check(other, None);
        }
    }
}
