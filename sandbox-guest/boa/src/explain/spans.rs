//! Which part of the script's text an expression is. The parser's spans begin a
//! call at its bracket and end an index before its bracket; here they are whole,
//! and checked against the text.

use boa_ast::expression::access::{PropertyAccess, PropertyAccessField};
use boa_ast::{Expression, Position, Spanned};

pub(crate) struct Text<'a> {
    pub(crate) script: &'a str,
    line_starts: Vec<usize>,
}

impl<'a> Text<'a> {
    pub(crate) fn new(script: &'a str) -> Self {
        let starts = script.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            script,
            line_starts: std::iter::once(0).chain(starts).collect(),
        }
    }

    /// The byte offset of a position.
    pub(crate) fn offset(&self, position: Position) -> Option<usize> {
        let line = usize::try_from(position.line_number())
            .ok()?
            .checked_sub(1)?;
        let start = *self.line_starts.get(line)?;
        let column = usize::try_from(position.column_number())
            .ok()?
            .checked_sub(1)?;
        let rest = self.script.get(start..)?;
        let ends = std::iter::once((rest.len(), ' '));
        let (at, _) = rest.char_indices().chain(ends).nth(column)?;
        Some(start + at)
    }

    pub(crate) fn slice(&self, start: usize, end: usize) -> Option<&'a str> {
        self.script.get(start..end)
    }

    /// Where an expression begins, as far as its kind is known here.
    pub(crate) fn start(&self, expression: &Expression) -> Option<usize> {
        match expression {
            Expression::Call(call) => self.start(call.function()),
            Expression::PropertyAccess(PropertyAccess::Simple(access)) => {
                self.start(access.target())
            }
            Expression::Identifier(_)
            | Expression::This(_)
            | Expression::Parenthesized(_)
            | Expression::Await(_) => self.offset(expression.span().start()),
            _ => None,
        }
    }

    /// Where it ends.
    pub(crate) fn end(&self, expression: &Expression) -> Option<usize> {
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
