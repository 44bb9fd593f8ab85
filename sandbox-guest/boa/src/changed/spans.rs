//! Which part of the script's text an expression is. The parser's spans begin a
//! call at its bracket and end an index before its bracket; here they are whole,
//! and checked against the text.

use boa_ast::expression::access::{PropertyAccess, PropertyAccessField};
use boa_ast::expression::operator::assign::AssignTarget;
use boa_ast::{Expression, Position, Spanned};

/// So many characters apart, it is known at which byte one stands.
const STRIDE: usize = 64;

pub(super) struct Text<'a> {
    pub(super) script: &'a str,
    /// The number of the character that each line begins with.
    lines: Vec<usize>,
    /// The bytes where characters stand that are a stride apart, and the end.
    strides: Vec<usize>,
}

impl<'a> Text<'a> {
    pub(super) fn new(script: &'a str) -> Self {
        let mut lines = vec![0];
        let mut strides = Vec::with_capacity(script.len() / STRIDE + 2);
        for (number, (at, c)) in script.char_indices().enumerate() {
            if number % STRIDE == 0 {
                strides.push(at);
            }
            let is_first_of_two = c == '\r' && script.get(at + 1..at + 2) == Some("\n");
            if is_line_end(c) && !is_first_of_two {
                lines.push(number + 1);
            }
        }
        strides.push(script.len());
        Self {
            script,
            lines,
            strides,
        }
    }

    /// The byte offset of a position.
    pub(super) fn offset(&self, position: Position) -> Option<usize> {
        let before = |number: u32| usize::try_from(number).ok()?.checked_sub(1);
        let line = self.lines.get(before(position.line_number())?)?;
        let character = line + before(position.column_number())?;
        let stride = *self.strides.get(character / STRIDE)?;
        let rest = self.script.get(stride..)?;
        let ends = std::iter::once((rest.len(), ' '));
        let (at, _) = rest.char_indices().chain(ends).nth(character % STRIDE)?;
        Some(stride + at)
    }

    pub(super) fn slice(&self, start: usize, end: usize) -> Option<&'a str> {
        self.script.get(start..end)
    }

    /// Where an expression begins.
    pub(super) fn start(&self, expression: &Expression) -> Option<usize> {
        match expression {
            Expression::Call(call) => self.start(call.function()),
            Expression::Optional(chain) => self.start(chain.target()),
            Expression::TaggedTemplate(template) => self.start(template.tag()),
            Expression::PropertyAccess(access) => self.start_of_access(access),
            Expression::Binary(binary) => self.start(binary.lhs()),
            Expression::Conditional(choice) => self.start(choice.condition()),
            Expression::Assign(assign) => self.start_of_target(assign.lhs()),
            other => self.offset(other.span().start()),
        }
    }

    pub(super) fn start_of_target(&self, target: &AssignTarget) -> Option<usize> {
        match target {
            AssignTarget::Identifier(name) => self.offset(name.span().start()),
            AssignTarget::Access(access) => self.start_of_access(access),
            AssignTarget::Pattern(pattern) => self.offset(pattern.span().start()),
        }
    }

    pub(super) fn start_of_access(&self, access: &PropertyAccess) -> Option<usize> {
        match access {
            PropertyAccess::Simple(access) => self.start(access.target()),
            PropertyAccess::Private(access) => self.start(access.target()),
            PropertyAccess::Super(access) => self.offset(access.span().start()),
        }
    }

    /// Where it ends, as far as its kind is known here.
    pub(super) fn end(&self, expression: &Expression) -> Option<usize> {
        match expression {
            Expression::PropertyAccess(PropertyAccess::Simple(access)) => match access.field() {
                PropertyAccessField::Const(name) => self.offset(name.span().end()),
                PropertyAccessField::Expr(index) => {
                    let after = match self.end(index) {
                        Some(end) => end,
                        None => self.offset(index.span().end())?,
                    };
                    let rest = self.script.get(after..)?;
                    let spaces = rest.len() - rest.trim_start().len();
                    rest.trim_start()
                        .starts_with(']')
                        .then_some(after + spaces + 1)
                }
            },
            Expression::Call(call) => {
                let end = self.offset(call.span().end())?;
                self.script.get(..end)?.ends_with(')').then_some(end)
            }
            Expression::Parenthesized(inner) => {
                let end = self.offset(inner.span().end())?;
                self.script.get(..end)?.ends_with(')').then_some(end)
            }
            Expression::Identifier(_) | Expression::This(_) => self.offset(expression.span().end()),
            Expression::Await(waiting) => self.end(waiting.target()),
            _ => None,
        }
    }
}

pub(super) fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}
