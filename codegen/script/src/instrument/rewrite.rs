//! Turns a script into its instrumented form. Code that is not instrumented is copied unchanged,
//! and no line is added or removed.

mod calls;
mod classes;
mod members;
mod names;
mod operations;
mod patterns;
mod visit;
mod waits;
mod writes;

use std::collections::HashMap;

use oxc_ast::ast::{Expression, IdentifierReference};
use oxc_ast_visit::Visit;
use oxc_semantic::{Scoping, SymbolId};
use oxc_span::{GetSpan, Span};
use oxc_syntax::operator::LogicalOperator;

use super::budget::{Budget, TEXT_BYTES_MAX};
use super::place::{Place, SiteKind, ValueOrigin};
use super::{InstrumentPass, quote, shorten};
use crate::check::is_global;
use crate::check::parse::ParsedScript;
use codegen_shared::finding::Form;
use codegen_shared::lines::Lines;

/// Replacement text for a range of the script.
struct Edit {
    span: Span,
    text: String,
}

pub(super) struct Rewriter<'s> {
    script: &'s str,
    lines: Lines<'s>,
    scoping: &'s Scoping,
    edits: Vec<Edit>,
    look: InstrumentPass,
    pub(super) budget: Budget,
    pub(super) places: Vec<Place>,
    /// The places of parameters that destructure their argument, by start offset.
    given: HashMap<u32, usize>,
    /// Origins of expressions, and of names that never change.
    read: HashMap<(u32, u32), ValueOrigin>,
    named: HashMap<SymbolId, ValueOrigin>,
    /// The names of the enclosing functions.
    functions: Vec<String>,
    next_function: Option<String>,
    classes: Vec<String>,
    /// Properties of the enclosing functions.
    around: Vec<EnclosingFunction>,
    is_derived_class: bool,
    /// Whether the next function is the constructor of a derived class.
    begins_derived: bool,
    /// The names whose initial value is being evaluated.
    beginning: Vec<SymbolId>,
    /// Depth of nested operators.
    operators: usize,
    is_one_function: bool,
    is_one_expression: bool,
}

/// An enclosing function.
#[derive(Debug, Clone, Copy, Default)]
struct EnclosingFunction {
    is_async: bool,
    /// Start offset of a hoisted function, which can be called before its declaration.
    hoisted_at: Option<u32>,
    /// Whether it is the constructor of a derived class, or inside one.
    is_derived: bool,
}

impl<'s> Rewriter<'s> {
    pub(super) fn new(
        parsed: &ParsedScript<'s>,
        scoping: &'s Scoping,
        look: InstrumentPass,
        form: Form,
    ) -> Self {
        Self {
            script: parsed.text,
            lines: Lines::new(parsed.text, parsed.shift),
            scoping,
            edits: Vec::new(),
            look,
            budget: Budget::default(),
            places: Vec::new(),
            given: HashMap::new(),
            read: HashMap::new(),
            named: HashMap::new(),
            functions: Vec::new(),
            next_function: None,
            classes: Vec::new(),
            around: Vec::new(),
            is_derived_class: false,
            begins_derived: false,
            beginning: Vec::new(),
            operators: 0,
            is_one_function: matches!(form, Form::Function | Form::Module),
            is_one_expression: form == Form::Expression,
        }
    }

    /// Returns the rewritten text after all nodes were visited, or `None` if the budget is used up.
    pub(super) fn finish(mut self) -> Option<(String, Vec<Place>)> {
        let edits = std::mem::take(&mut self.edits);
        let end = u32::try_from(self.script.len()).unwrap_or(u32::MAX);
        let text = self.apply(Span::new(0, end), edits);
        let fits = !self.budget.is_spent() && text.len() <= TEXT_BYTES_MAX;
        fits.then_some((text, self.places))
    }

    fn apply(&self, span: Span, mut edits: Vec<Edit>) -> String {
        if self.budget.is_spent() {
            return String::new();
        }
        edits.sort_by_key(|edit| edit.span.start);
        let mut out = String::with_capacity(span.size() as usize * 2);
        let mut written = span.start;
        for edit in edits {
            out.push_str(self.slice(written, edit.span.start));
            if out.ends_with(is_of_a_word) && edit.text.starts_with(is_of_a_word) {
                // Separates two words that would run together, as in `return-a`.
                out.push(' ');
            }
            out.push_str(&edit.text);
            written = edit.span.end;
        }
        out.push_str(self.slice(written, span.end));
        self.budget.written(out)
    }

    /// Returns the text of a range, with the edits that `visit` makes in it.
    fn render(&mut self, span: Span, visit: impl FnOnce(&mut Self)) -> String {
        let outer = std::mem::take(&mut self.edits);
        visit(self);
        let edits = std::mem::replace(&mut self.edits, outer);
        self.apply(span, edits)
    }

    fn expression(&mut self, it: &Expression<'_>) -> String {
        self.render(it.span(), |this| this.visit_expression(it))
    }

    fn replace(&mut self, span: Span, text: String) {
        self.edits.push(Edit { span, text });
    }

    fn slice(&self, start: u32, end: u32) -> &'s str {
        self.script
            .get(start as usize..end as usize)
            .unwrap_or_default()
    }

    fn quote(&self, span: Span) -> String {
        quote(self.script, span)
    }

    /// Quotes an expression so that a member access can follow.
    fn object_text(&self, it: &Expression<'_>) -> String {
        let text = self.quote(it.span());
        match it {
            Expression::AwaitExpression(_)
            | Expression::LogicalExpression(_)
            | Expression::BinaryExpression(_)
            | Expression::ConditionalExpression(_)
            | Expression::AssignmentExpression(_)
            | Expression::UnaryExpression(_)
            | Expression::YieldExpression(_)
            | Expression::ArrowFunctionExpression(_)
            | Expression::SequenceExpression(_) => format!("({text})"),
            _ => text,
        }
    }

    fn is_closer(&self) -> bool {
        self.look == InstrumentPass::Operators
    }

    fn place(&mut self, at: u32, what: SiteKind, from: Option<ValueOrigin>) -> usize {
        if self.budget.is_spent() {
            return 0;
        }
        self.budget.place();
        let (line, column) = self.lines.place(at);
        let function = self.functions.last().cloned();
        self.places.push(Place {
            line,
            column,
            function: function.unwrap_or_else(|| "<script>".to_owned()),
            what,
            from,
        });
        self.places.len() - 1
    }

    fn from(&self, it: &Expression<'_>) -> Option<ValueOrigin> {
        let it = it.get_inner_expression();
        let it = match it {
            Expression::AwaitExpression(waiting) => waiting.argument.get_inner_expression(),
            it => it,
        };
        match it {
            Expression::Identifier(name) => self.named.get(&self.symbol(name)?).cloned(),
            // If the value of `a || b` or `a ?? b` is missing, it comes from the right operand.
            Expression::LogicalExpression(it) if it.operator != LogicalOperator::And => {
                self.from(&it.right)
            }
            Expression::ChainExpression(it) => {
                let span = it.expression.span();
                self.read.get(&(span.start, span.end)).cloned()
            }
            it => {
                let span = it.span();
                self.read.get(&(span.start, span.end)).cloned()
            }
        }
    }

    fn symbol(&self, name: &IdentifierReference<'_>) -> Option<SymbolId> {
        let reference = self.scoping.get_reference(name.reference_id.get()?);
        reference.symbol_id()
    }

    /// Whether this is an undeclared name that is no global of the language. Servers have such
    /// names.
    fn is_server(&self, it: &Expression<'_>) -> bool {
        match it {
            Expression::Identifier(name) => self.symbol(name).is_none() && !is_global(&name.name),
            _ => false,
        }
    }

    /// Whether the value can never be `null` or `undefined` here.
    fn is_certain(&self, it: &Expression<'_>) -> bool {
        match it.get_inner_expression() {
            Expression::Identifier(name) => {
                self.symbol(name).is_none() && is_global(&name.name) && name.name != "undefined"
            }
            Expression::StringLiteral(_)
            | Expression::TemplateLiteral(_)
            | Expression::NumericLiteral(_)
            | Expression::ArrayExpression(_)
            | Expression::ObjectExpression(_)
            | Expression::RegExpLiteral(_)
            | Expression::FunctionExpression(_)
            | Expression::ArrowFunctionExpression(_)
            | Expression::NewExpression(_)
            | Expression::Super(_) => true,
            _ => false,
        }
    }
}

fn is_of_a_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Writes `, 3` for a value that was read at place 3.
fn up(from: Option<&ValueOrigin>) -> String {
    from.map_or_else(String::new, |from| format!(",{}", read_at(from)))
}

/// Writes `3`, or a list if parents of the value may be missing too.
fn read_at(from: &ValueOrigin) -> String {
    match from.places().as_slice() {
        [one] => one.to_string(),
        all => {
            let all: Vec<_> = all.iter().map(usize::to_string).collect();
            format!("[{}]", all.join(","))
        }
    }
}
