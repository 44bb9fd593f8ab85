//! Where a script appends to a name that holds a text.

use std::ops::ControlFlow;

use boa_ast::declaration::{Binding, Variable};
use boa_ast::expression::Identifier;
use boa_ast::expression::literal::LiteralKind;
use boa_ast::expression::operator::Assign;
use boa_ast::expression::operator::assign::{AssignOp, AssignTarget};
use boa_ast::expression::operator::binary::{ArithmeticOp, BinaryOp};
use boa_ast::function::FunctionBody;
use boa_ast::visitor::{VisitWith, Visitor};
use boa_ast::{Expression, Spanned};
use boa_interner::{Interner, Sym};
use rustc_hash::FxHashSet;

use super::Edit;
use super::spans::Text;

pub(super) fn edits(
    script: &str,
    name: &str,
    body: &FunctionBody,
    interner: &Interner,
) -> Vec<Edit> {
    let mut texts = Texts::default();
    let _ = texts.visit_function_body(body);
    let mut finder = Finder {
        ends: Ends::new(script),
        interner,
        texts: texts.0,
        name,
        edits: Vec::new(),
    };
    let _ = finder.visit_function_body(body);
    finder.edits
}

/// Whether an expression is a text, whatever its names hold.
pub(super) fn is_text(expression: &Expression) -> bool {
    match expression {
        Expression::Literal(literal) => matches!(literal.kind(), LiteralKind::String(_)),
        Expression::TemplateLiteral(_) => true,
        Expression::Parenthesized(inner) => is_text(inner.expression()),
        Expression::Binary(binary) if is_sum(binary.op()) => {
            is_text(binary.lhs()) || is_text(binary.rhs())
        }
        _ => false,
    }
}

pub(super) fn is_sum(op: BinaryOp) -> bool {
    op == BinaryOp::Arithmetic(ArithmeticOp::Add)
}

/// The names that begin as a text somewhere.
#[derive(Default)]
struct Texts(FxHashSet<Sym>);

impl<'ast> Visitor<'ast> for Texts {
    type BreakTy = ();

    fn visit_variable(&mut self, node: &'ast Variable) -> ControlFlow<()> {
        if let (Binding::Identifier(name), Some(value)) = (node.binding(), node.init())
            && is_text(value)
        {
            self.0.insert(name.sym());
        }
        node.visit_with(self)
    }

    fn visit_assign(&mut self, node: &'ast Assign) -> ControlFlow<()> {
        if let (AssignOp::Assign, AssignTarget::Identifier(name)) = (node.op(), node.lhs())
            && is_text(node.rhs())
        {
            self.0.insert(name.sym());
        }
        node.visit_with(self)
    }
}

struct Finder<'a> {
    ends: Ends<'a>,
    interner: &'a Interner,
    texts: FxHashSet<Sym>,
    name: &'a str,
    edits: Vec<Edit>,
}

impl Finder<'_> {
    fn appending(&mut self, target: &Identifier, more: &Expression) -> Option<()> {
        let target_start = self.ends.text.offset(target.span().start())?;
        let target_end = self.ends.text.offset(target.span().end())?;
        let written = self.ends.text.slice(target_start, target_end)?;
        // A name that is written with escapes is left alone.
        if written != self.interner.resolve_expect(target.sym()).to_string() {
            return None;
        }
        let rest = self.ends.text.script.get(target_end..)?;
        let start = target_end + (rest.len() - rest.trim_start().len());
        let end = self.ends.end(more)?;
        let operator = self.ends.text.slice(start, start + 2)?;
        if operator != "+=" || end <= start {
            return None;
        }
        self.edits.push(Edit {
            start,
            end: start + 2,
            text: format!("={}({written},", self.name),
            place: Some(target_start),
        });
        self.edits.push(Edit {
            start: end,
            end,
            text: format!("/*{}*/)", self.name),
            place: Some(end),
        });
        Some(())
    }
}

/// A script, and where in it expressions end.
pub(super) struct Ends<'a> {
    pub(super) text: Text<'a>,
}

impl<'a> Ends<'a> {
    pub(super) fn new(script: &'a str) -> Self {
        Self {
            text: Text::new(script),
        }
    }

    /// Where an expression ends, of the kinds that are appended.
    pub(super) fn end(&self, expression: &Expression) -> Option<usize> {
        let closed_by = |closing: &[char]| {
            let end = self.text.offset(expression.span().end())?;
            let before = self.text.script.get(..end)?;
            before.ends_with(closing).then_some(end)
        };
        match expression {
            Expression::Literal(literal) => match literal.kind() {
                LiteralKind::String(_) => closed_by(&['"', '\'']),
                _ => {
                    let end = self.text.offset(expression.span().end())?;
                    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
                    let whole = self.text.script.get(..end)?.ends_with(word)
                        && !self.text.script.get(end..)?.starts_with(word);
                    whole.then_some(end)
                }
            },
            Expression::TemplateLiteral(_) => closed_by(&['`']),
            Expression::Binary(binary) if !matches!(binary.op(), BinaryOp::Comma) => {
                self.end(binary.rhs())
            }
            Expression::Conditional(choice) => self.end(choice.if_false()),
            Expression::Assign(assign) => self.end(assign.rhs()),
            Expression::Await(waiting) => self.end(waiting.target()),
            Expression::Yield(given) => self.end(given.target()?),
            Expression::Unary(unary) => self.end(unary.target()),
            other => self.text.end(other),
        }
    }
}

impl<'ast> Visitor<'ast> for Finder<'_> {
    type BreakTy = ();

    fn visit_assign(&mut self, node: &'ast Assign) -> ControlFlow<()> {
        if let (AssignOp::Add, AssignTarget::Identifier(name)) = (node.op(), node.lhs())
            && (self.texts.contains(&name.sym()) || is_text(node.rhs()))
        {
            self.appending(name, node.rhs());
        }
        node.visit_with(self)
    }
}
