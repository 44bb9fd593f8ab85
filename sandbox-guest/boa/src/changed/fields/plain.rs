//! Values that nothing can come of but themselves: no code of the script runs for them, so none
//! of it can write to a class meanwhile.

use std::cell::RefCell;

use boa_ast::Expression;
use boa_ast::declaration::Binding;
use boa_ast::expression::Call;
use boa_ast::expression::access::{PropertyAccess, PropertyAccessField};
use boa_ast::expression::literal::PropertyDefinition;
use boa_ast::expression::literal::TemplateElement;
use boa_ast::expression::operator::binary::{BinaryOp, RelationalOp};
use boa_ast::expression::operator::unary::UnaryOp;
use boa_ast::function::{ClassElement, ClassElementName, FormalParameterList};
use boa_ast::property::PropertyName;
use boa_interner::{Interner, Sym};
use rustc_hash::FxHashMap;

/// What is made by classes that are built in, without anything of the script's running.
const MADE: [&str; 8] = [
    "Map",
    "Set",
    "WeakMap",
    "WeakSet",
    "Array",
    "Date",
    "Object",
    "AbortController",
];

/// What is asked of objects that are built in.
const ASKED: [&str; 5] = ["Date", "Math", "performance", "crypto", "Object"];

/// A script with any of these may have members that are more than they hold.
const READING: [&str; 5] = ["get ", "get\n", "get[", "Proxy", "define"];

pub(super) struct Plain<'a> {
    script: &'a str,
    interner: &'a Interner,
    members_are: bool,
    /// Whether names mean what is built in.
    built_in: RefCell<FxHashMap<Sym, bool>>,
}

impl<'a> Plain<'a> {
    pub(super) fn of(script: &'a str, interner: &'a Interner) -> Self {
        Self {
            script,
            interner,
            members_are: !READING.iter().any(|word| script.contains(word)),
            built_in: RefCell::default(),
        }
    }

    pub(super) fn is(&self, value: &Expression) -> bool {
        match value {
            Expression::This(_)
            | Expression::Identifier(_)
            | Expression::Literal(_)
            | Expression::RegExpLiteral(_)
            | Expression::FunctionExpression(_)
            | Expression::ArrowFunction(_)
            | Expression::AsyncArrowFunction(_)
            | Expression::GeneratorExpression(_)
            | Expression::AsyncFunctionExpression(_)
            | Expression::AsyncGeneratorExpression(_) => true,
            Expression::Parenthesized(inner) => self.is(inner.expression()),
            Expression::ArrayLiteral(list) => {
                let mut items = list.as_ref().iter().flatten();
                items.all(|item| self.is(item))
            }
            Expression::ObjectLiteral(object) => object
                .properties()
                .iter()
                .all(|member| self.is_member(member)),
            Expression::TemplateLiteral(template) => {
                let is_text = |part: &TemplateElement| matches!(part, TemplateElement::String(_));
                template.elements().iter().all(is_text)
            }
            Expression::PropertyAccess(access) => self.is_access(access),
            Expression::Unary(unary) => match unary.op() {
                UnaryOp::Not | UnaryOp::TypeOf | UnaryOp::Void => self.is(unary.target()),
                UnaryOp::Minus | UnaryOp::Plus | UnaryOp::Tilde => is_literal(unary.target()),
                UnaryOp::Delete => false,
            },
            Expression::Binary(binary) => {
                let (one, two) = (binary.lhs(), binary.rhs());
                match binary.op() {
                    BinaryOp::Logical(_)
                    | BinaryOp::Relational(
                        RelationalOp::StrictEqual | RelationalOp::StrictNotEqual,
                    ) => self.is(one) && self.is(two),
                    BinaryOp::Arithmetic(_) => self.is_sum(one) && self.is_sum(two),
                    _ => false,
                }
            }
            Expression::Conditional(choice) => {
                self.is(choice.condition())
                    && self.is(choice.if_true())
                    && self.is(choice.if_false())
            }
            Expression::New(new) => {
                let Expression::Identifier(name) = new.constructor() else {
                    return false;
                };
                self.is_one_of(name.sym(), &MADE) && self.are_inert(new.arguments())
            }
            Expression::Call(call) => self.is_call(call),
            Expression::ClassExpression(class) => {
                class.super_ref().is_none() && class.elements().iter().all(|own| self.is_own(own))
            }
            _ => false,
        }
    }

    /// Whether nothing comes of an element when its class is read.
    fn is_own(&self, element: &ClassElement) -> bool {
        let has_plain_name = |name: &PropertyName| match name {
            PropertyName::Literal(_) => true,
            PropertyName::Computed(key) => self.is_key(key),
        };
        match element {
            ClassElement::MethodDefinition(method) => match method.name() {
                ClassElementName::PropertyName(name) => has_plain_name(name),
                ClassElementName::PrivateName(_) => true,
            },
            ClassElement::FieldDefinition(field) => has_plain_name(field.name()),
            ClassElement::StaticFieldDefinition(field) => {
                has_plain_name(field.name()) && field.initializer().is_none_or(|it| self.is(it))
            }
            ClassElement::PrivateStaticFieldDefinition(field) => {
                field.initializer().is_none_or(|it| self.is(it))
            }
            ClassElement::PrivateFieldDefinition(_) => true,
            ClassElement::StaticBlock(_) => false,
        }
    }

    /// Whether the parameters of a constructor may be read before or after the fields are made.
    pub(super) fn are_parameters(&self, parameters: &FormalParameterList) -> bool {
        parameters.as_ref().iter().all(|parameter| {
            let variable = parameter.variable();
            let is_name = matches!(variable.binding(), Binding::Identifier(_));
            is_name && variable.init().is_none_or(is_inert)
        })
    }

    /// Whether a key in brackets is the same whenever it is read.
    pub(super) fn is_key(&self, key: &Expression) -> bool {
        match key {
            Expression::Literal(_) => true,
            Expression::PropertyAccess(PropertyAccess::Simple(access)) => {
                let is_const = matches!(access.field(), PropertyAccessField::Const(_));
                let Expression::Identifier(name) = access.target() else {
                    return false;
                };
                is_const && self.is_one_of(name.sym(), &["Symbol"])
            }
            _ => false,
        }
    }

    fn is_member(&self, member: &PropertyDefinition) -> bool {
        let has_plain_name = |name: &PropertyName| match name {
            PropertyName::Literal(_) => true,
            PropertyName::Computed(key) => self.is_key(key),
        };
        match member {
            PropertyDefinition::IdentifierReference(_) => true,
            PropertyDefinition::Property(name, value) => has_plain_name(name) && self.is(value),
            PropertyDefinition::MethodDefinition(method) => has_plain_name(method.name()),
            _ => false,
        }
    }

    fn is_access(&self, access: &PropertyAccess) -> bool {
        match access {
            PropertyAccess::Simple(simple) => {
                let is_const = matches!(simple.field(), PropertyAccessField::Const(_));
                self.members_are && is_const && self.is(simple.target())
            }
            PropertyAccess::Private(private) => self.members_are && self.is(private.target()),
            PropertyAccess::Super(_) => false,
        }
    }

    fn is_sum(&self, part: &Expression) -> bool {
        match part {
            Expression::Parenthesized(inner) => self.is_sum(inner.expression()),
            Expression::Binary(_) | Expression::Call(_) => self.is(part),
            _ => is_literal(part),
        }
    }

    /// `Date.now()`, `Symbol('a')`
    fn is_call(&self, call: &Call) -> bool {
        let is_known = match call.function() {
            Expression::Identifier(name) => self.is_one_of(name.sym(), &["Symbol"]),
            Expression::PropertyAccess(PropertyAccess::Simple(access)) => {
                let Expression::Identifier(name) = access.target() else {
                    return false;
                };
                let is_const = matches!(access.field(), PropertyAccessField::Const(_));
                is_const && self.is_one_of(name.sym(), &ASKED)
            }
            _ => false,
        };
        is_known && self.are_inert(call.args())
    }

    fn are_inert(&self, values: &[Expression]) -> bool {
        values.iter().all(is_inert)
    }

    fn is_one_of(&self, name: Sym, names: &[&str]) -> bool {
        let written = self.interner.resolve_expect(name).to_string();
        if !names.contains(&written.as_str()) {
            return false;
        }
        let mut known = self.built_in.borrow_mut();
        *known
            .entry(name)
            .or_insert_with(|| is_only_used(self.script, &written))
    }
}

/// A class that has no name of its own.
pub(super) fn is_class(value: &Expression) -> bool {
    match value {
        Expression::Parenthesized(inner) => is_class(inner.expression()),
        Expression::ClassExpression(_) => true,
        _ => false,
    }
}

fn is_literal(value: &Expression) -> bool {
    match value {
        Expression::Parenthesized(inner) => is_literal(inner.expression()),
        Expression::Unary(unary) => unary.op() == UnaryOp::Minus && is_literal(unary.target()),
        Expression::Literal(_) => true,
        _ => false,
    }
}

/// Numbers, texts, and lists and objects without anything in them.
fn is_inert(value: &Expression) -> bool {
    match value {
        Expression::ArrayLiteral(list) => list.as_ref().is_empty(),
        Expression::ObjectLiteral(object) => object.properties().is_empty(),
        Expression::ArrowFunction(_) | Expression::FunctionExpression(_) => true,
        _ => is_literal(value),
    }
}

/// Whether a script nowhere gives a name another meaning: it stands behind `new` or
/// `instanceof`, or before a dot or a bracket.
fn is_only_used(script: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let mut places = script.match_indices(name);
    places.all(|(at, _)| {
        let before = script.get(..at).unwrap_or_default();
        let after = script.get(at + name.len()..).unwrap_or_default();
        if before.ends_with(is_word) || after.starts_with(is_word) {
            return true;
        }
        let word = before.trim_end().rsplit(|c| !is_word(c)).next();
        match word {
            Some("new" | "instanceof" | "typeof") => true,
            Some("function" | "class") => false,
            // Assigned to a member of it, it would be another one.
            _ => after.starts_with('(') || after.starts_with('.') && !assigns(after),
        }
    })
}

/// `.now = …`
fn assigns(after: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$' || c == '.';
    let rest = after.trim_start_matches(is_word).trim_start();
    rest.starts_with('=') && !rest.starts_with("==")
}
