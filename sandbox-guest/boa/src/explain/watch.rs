//! Turns a script into one that is watched, by inserting into its text.

use std::ops::ControlFlow;

use boa_ast::declaration::{Binding, Variable};
use boa_ast::expression::access::{PropertyAccessField, SimplePropertyAccess};
use boa_ast::expression::{Call, Identifier, New, Optional};
use boa_ast::scope::Scope;
use boa_ast::statement::ForOfLoop;
use boa_ast::visitor::{VisitWith, Visitor};
use boa_ast::{Expression, Position, Spanned};
use boa_interner::Interner;
use boa_parser::{Parser, Source};

use super::spans::Text;
use super::{Callee, Place, QUOTED_MAX, Use, WATCHER, Watched};
use crate::forms;
use crate::quiet;

/// Larger scripts are not looked at twice.
const SCRIPT_BYTES_MAX: usize = 256 * 1024;
const PLACES_MAX: usize = 20_000;

/// The watched form of a script; `None` when it cannot be had.
pub(crate) fn watch(script: &str) -> Option<Watched> {
    if script.len() > SCRIPT_BYTES_MAX || script.contains(['\r', '\u{2028}', '\u{2029}']) {
        return None;
    }
    let mut interner = Interner::default();
    let mut parser = Parser::new(Source::from_bytes(script));
    parser.set_strict();
    if let Ok(body) = parser.parse_function_body(&mut interner, false, true) {
        let mut finder = Finder::new(script, &interner);
        let _ = finder.visit_function_body(&body);
        return Some(finder.write());
    }
    let bound = forms::bind_async_default(script);
    let script = bound.as_deref().unwrap_or(script);
    let mut parser = Parser::new(Source::from_bytes(script));
    let module = parser
        .parse_module(&Scope::new_global(), &mut interner)
        .ok()?;
    let mut finder = Finder::new(script, &interner);
    let _ = finder.visit_module(&module);
    Some(finder.write())
}

struct Finder<'a> {
    text: Text<'a>,
    interner: &'a Interner,
    watched: Watched,
    /// From where to where each place goes, in the order of the places.
    ranges: Vec<(usize, usize)>,
    /// Where each callee's bracket is.
    brackets: Vec<usize>,
}

impl<'a> Finder<'a> {
    fn new(script: &'a str, interner: &'a Interner) -> Self {
        Self {
            text: Text::new(script),
            interner,
            watched: Watched::default(),
            ranges: Vec::new(),
            brackets: Vec::new(),
        }
    }

    fn quote(&self, start: usize, end: usize) -> Option<String> {
        let words: Vec<_> = self.text.slice(start, end)?.split_whitespace().collect();
        Some(quiet::cut(&words.join(" "), QUOTED_MAX))
    }

    fn name(&self, name: &Identifier) -> String {
        self.interner.resolve_expect(name.sym()).to_string()
    }

    fn note_name(&mut self, expression: &Expression) {
        if let Expression::Identifier(name) = expression {
            let start = name.span().start();
            let place = (start.line_number(), start.column_number());
            let name = self.name(name);
            self.watched.names.entry(name).or_insert(place);
        }
    }

    fn place(&mut self, value: &Expression, at: Position, used: Use) -> Option<()> {
        let (start, end) = (self.text.start(value)?, self.text.end(value)?);
        if let Expression::Identifier(name) = value
            && self.text.slice(start, end)? != self.name(name)
        {
            return None;
        }
        if start >= end || self.ranges.len() >= PLACES_MAX {
            return None;
        }
        let text = self.quote(start, end)?;
        let (line, column) = (at.line_number(), at.column_number());
        self.watched.places.push(Place {
            line,
            column,
            text,
            used,
        });
        self.ranges.push((start, end));
        Some(())
    }

    fn callee(&mut self, call: &Call) -> Option<()> {
        let bracket = call.span().start();
        let function = call.function();
        let (start, end) = (self.text.start(function)?, self.text.end(function)?);
        let at = self.text.offset(bracket)?;
        let (line, column) = (bracket.line_number(), bracket.column_number());
        let text = self.quote(start, end)?;
        self.watched.callees.push(Callee {
            line,
            column,
            watched_column: column,
            text,
        });
        self.brackets.push(at);
        Some(())
    }

    /// Inserts outer places around inner ones, and notes where brackets end up.
    fn write(mut self) -> Watched {
        // At one offset, what ends comes before what begins, and what is larger is outside.
        let mut cuts: Vec<(usize, u8, usize, usize)> = Vec::new();
        for (place, &(start, end)) in self.ranges.iter().enumerate() {
            cuts.push((start, 1, usize::MAX - end, place));
            cuts.push((end, 0, usize::MAX - start, place));
        }
        for (callee, &at) in self.brackets.iter().enumerate() {
            cuts.push((at, 2, 0, callee));
        }
        cuts.sort_unstable();
        let mut out = String::with_capacity(self.text.script.len() * 2);
        let mut written = 0;
        for (at, kind, _, index) in cuts {
            out.push_str(self.text.slice(written, at).unwrap_or_default());
            written = at;
            match kind {
                0 => out.push_str(&format!(",{index})")),
                1 => out.push_str(&format!("{WATCHER}(")),
                _ => {
                    let line = out.rsplit('\n').next().unwrap_or_default();
                    let column = u32::try_from(line.chars().count() + 1).unwrap_or(0);
                    if let Some(callee) = self.watched.callees.get_mut(index) {
                        callee.watched_column = column;
                    }
                }
            }
        }
        out.push_str(self.text.script.get(written..).unwrap_or_default());
        self.watched.text = out;
        self.watched
    }
}

impl<'ast> Visitor<'ast> for Finder<'_> {
    type BreakTy = ();

    fn visit_expression(&mut self, node: &'ast Expression) -> ControlFlow<()> {
        self.note_name(node);
        node.visit_with(self)
    }

    fn visit_simple_property_access(
        &mut self,
        node: &'ast SimplePropertyAccess,
    ) -> ControlFlow<()> {
        let field = node.field();
        let member = match field {
            PropertyAccessField::Const(name) => Some(self.name(name)),
            PropertyAccessField::Expr(index) => self
                .text
                .offset(index.span().start())
                .zip(
                    self.text
                        .end(index)
                        .or_else(|| self.text.offset(index.span().end())),
                )
                .and_then(|(start, end)| self.quote(start, end))
                .map(|index| format!("[{index}]")),
        };
        if let Some(member) = member {
            self.place(node.target(), field.span().start(), Use::Read(member));
        }
        node.visit_with(self)
    }

    fn visit_call(&mut self, node: &'ast Call) -> ControlFlow<()> {
        self.callee(node);
        node.visit_with(self)
    }

    fn visit_variable(&mut self, node: &'ast Variable) -> ControlFlow<()> {
        if let (Binding::Pattern(_), Some(value)) = (node.binding(), node.init())
            && let Some(start) = self.text.start(value)
            && let Some(at) = position_at(self.text.script, start)
        {
            self.place(value, at, Use::Destructured);
        }
        node.visit_with(self)
    }

    fn visit_for_of_loop(&mut self, node: &'ast ForOfLoop) -> ControlFlow<()> {
        let value = node.iterable();
        if let Some(start) = self.text.start(value)
            && let Some(at) = position_at(self.text.script, start)
        {
            self.place(value, at, Use::Iterated);
        }
        node.visit_with(self)
    }

    /// What is optional may be missing, and a cut inside would end the chain elsewhere.
    fn visit_optional(&mut self, _node: &'ast Optional) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// `new a.b.C()` would become the construction of what watches it.
    fn visit_new(&mut self, node: &'ast New) -> ControlFlow<()> {
        self.note_name(node.constructor());
        for argument in node.arguments() {
            self.visit_expression(argument)?;
        }
        ControlFlow::Continue(())
    }
}

fn position_at(script: &str, offset: usize) -> Option<Position> {
    let before = script.get(..offset)?;
    let line = u32::try_from(before.split('\n').count()).ok()?;
    let column = before.rsplit('\n').next()?.chars().count() + 1;
    Some(Position::new(line, u32::try_from(column).ok()?))
}
