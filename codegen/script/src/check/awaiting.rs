//! Checks how a script uses the promise that a call returns. A script that uses the promise as if
//! it were the result gets `undefined`, `[object Promise]` or an exception.

use oxc_ast::AstKind;
use oxc_ast::ast::{BindingPattern, Expression};
use oxc_semantic::NodeId;
use oxc_span::{GetSpan, Span};
use oxc_syntax::operator::{BinaryOperator, UnaryOperator};

use super::context::CheckContext;
use super::surface::Tool;
use crate::shape::ToolShape;
use codegen_shared::finding::FindingCode;
use codegen_shared::finding::Form;

/// Placeholder for the awaited expression in a suggestion.
const AWAITED: &str = "await …";

/// Maximum length in bytes of an expression that a suggestion repeats.
const QUOTED_MAX: usize = 40;

/// Members that every promise has.
pub(super) const OF_A_PROMISE: [&str; 7] = [
    "then",
    "catch",
    "finally",
    "constructor",
    "toString",
    "hasOwnProperty",
    "valueOf",
];

/// Functions that cannot use a promise as an argument.
const TAKES_NO_PROMISE: [&str; 16] = [
    "JSON.stringify",
    "JSON.parse",
    "String",
    "Number",
    "Boolean",
    "parseInt",
    "parseFloat",
    "Object.keys",
    "Object.values",
    "Object.entries",
    "Object.fromEntries",
    "Array.from",
    "Array.isArray",
    "Math.max",
    "Math.min",
    "structuredClone",
];

/// The tool whose call returned the promise, with its shape; `None` for any other promise.
pub(super) type OfCall<'t, 's> = Option<(Tool<'s>, &'t ToolShape)>;

impl<'a, 's> CheckContext<'a, 's, '_> {
    /// Checks how the script uses the promise that the expression `node` evaluates to.
    pub(super) fn promise(&mut self, node: NodeId, of: OfCall<'_, 's>) {
        let inner = self.kind(node).span();
        let node = self.outermost(node);
        let own = self.kind(node).span();
        let parent = self.parent(node);
        match self.kind(parent) {
            AstKind::AwaitExpression(_) => {
                if let Some((tool, shape)) = of
                    && tool.is_told
                    && let Some(output) = &shape.output
                {
                    self.result(parent, output, shape);
                }
                self.promise_in_function(parent, inner.start, of);
            }
            AstKind::ReturnStatement(_) => self.promise_in_function(parent, inner.start, of),
            AstKind::ArrowFunctionExpression(_) => {
                self.promise_in_function(node, inner.start, of);
            }
            AstKind::StaticMemberExpression(it) if it.object.span() == own => {
                let name = it.property.name.as_str();
                if OF_A_PROMISE.contains(&name) {
                    self.promise_method(parent, name, of);
                } else if !self.is_written_or_optional(parent) {
                    let fix = format!("({AWAITED}).{name}");
                    self.not_awaited(parent, inner, of, &format!("read (`.{name}`)"), &fix);
                }
            }
            AstKind::ComputedMemberExpression(it) if it.object.span() == own => {
                if self.continues_on_other_line(own, it.expression.span()) {
                    self.without_semicolon(parent, inner, of);
                } else {
                    self.not_awaited(parent, inner, of, "indexed", "(await …)[…]");
                }
            }
            AstKind::VariableDeclarator(it) => match &it.id {
                BindingPattern::BindingIdentifier(_) => self.promise_declared(node, parent, of),
                _ => self.not_awaited(parent, inner, of, "destructured", "= await …"),
            },
            AstKind::ExpressionStatement(_) => self.check_unawaited(parent, inner.start, of),
            kind => {
                if let Some((what, fix)) = self.taken_for_a_value(kind, own) {
                    self.not_awaited(parent, inner, of, what, fix);
                } else if self.passes_on(kind, own) {
                    self.promise(parent, of);
                }
            }
        }
    }

    /// Whether the script assigns to a member of a promise, or calls it with `?.(…)`. Neither
    /// treats the promise as the result.
    fn is_written_or_optional(&self, member: NodeId) -> bool {
        let own = self.kind(member).span();
        match self.kind(self.parent(member)) {
            AstKind::AssignmentExpression(it) => it.left.span() == own,
            AstKind::CallExpression(it) => it.optional,
            _ => false,
        }
    }

    /// Checks the promise that `.then(…)`, `.catch(…)` or `.finally(…)` returns. The promise that
    /// `then` returns does not have the tool's result as its value.
    fn promise_method(&mut self, member: NodeId, name: &str, of: OfCall<'_, 's>) {
        let member = self.outermost(member);
        let parent = self.parent(member);
        let AstKind::CallExpression(call) = self.kind(parent) else {
            return;
        };
        if call.callee.span() != self.kind(member).span() || name == "toString" {
            return;
        }
        if name == "then"
            && let Some((tool, shape)) = of
            && tool.is_told
            && let Some(output) = &shape.output
            && let Some(given) = call.arguments.first().and_then(|it| it.as_expression())
        {
            self.parameter(given, output, shape);
        }
        let still = (name != "then").then_some(of).flatten();
        let is_value = matches!(name, "catch" | "finally" | "then");
        if is_value {
            self.steps += 1;
            self.promise(parent, still);
            self.steps -= 1;
        }
    }

    fn promise_declared(&mut self, node: NodeId, declarator: NodeId, of: OfCall<'_, 's>) {
        let AstKind::VariableDeclarator(it) = self.kind(declarator) else {
            return;
        };
        let Some((symbol, _)) = self.declared(it) else {
            return;
        };
        if self.uses(symbol).is_empty() {
            let is_exported = matches!(
                self.kind(self.parent(self.parent(declarator))),
                AstKind::ExportDeclaration(_)
            );
            if !is_exported {
                self.check_unawaited(declarator, self.kind(node).span().start, of);
            }
            return;
        }
        self.follow(symbol, |reading, node| {
            let is_statement = matches!(
                reading.kind(reading.parent(node)),
                AstKind::ExpressionStatement(_)
            );
            if !is_statement {
                reading.promise(node, of);
            }
        });
    }

    fn not_awaited(&mut self, node: NodeId, at: Span, of: OfCall<'_, 's>, what: &str, fix: &str) {
        let subject = subject(of);
        let message = format!("{subject} returns a promise, which is {what} without `await`");
        let source = self.semantic.source_text();
        let own = source.get(at.start as usize..at.end as usize);
        let is_short =
            |it: &&str| it.len() <= QUOTED_MAX && !it.contains(codegen_shared::lines::ends_line);
        let awaited = format!("await {}", own.filter(is_short).unwrap_or("…"));
        let fix = format!("Write `{}`.", fix.replace(AWAITED, &awaited));
        self.missing(node, at, message, fix);
    }

    fn missing(&mut self, node: NodeId, at: Span, message: String, fix: String) {
        let code = FindingCode::MissingAwait;
        self.error(node, code, at.start, message, Some(fix));
    }

    /// Whether an index is on another line than the call before it: `call()
    /// [1, 2].forEach(…)` is one expression.
    fn continues_on_other_line(&self, before: Span, index: Span) -> bool {
        let source = self.semantic.source_text();
        let between = source.get(before.end as usize..index.start as usize);
        let up_to_bracket = between.and_then(|it| it.split('[').next());
        up_to_bracket.is_some_and(|it| it.contains(codegen_shared::lines::ends_line))
    }

    fn without_semicolon(&mut self, node: NodeId, at: Span, of: OfCall<'_, 's>) {
        let subject = subject(of);
        let message = format!("{subject} continues on the next line, which begins with `[`");
        let fix = "Add `;` before the `[`.".to_owned();
        self.missing(node, at, message, fix);
    }

    /// Warns about a promise that is never awaited: calls that are still running when the script
    /// ends are cancelled.
    fn check_unawaited(&mut self, node: NodeId, at: u32, of: OfCall<'_, 's>) {
        let is_value = self.form == Form::Expression
            && matches!(self.kind(self.parent(node)), AstKind::Program(_));
        if is_value {
            return;
        }
        let message = format!(
            "{} is not awaited: it is cancelled if the script ends first",
            subject(of)
        );
        let suggestion = Some("Add `await` before the call.".to_owned());
        self.warning(FindingCode::NotAwaited, at, message, suggestion);
    }

    /// If a promise is used in place of its value, returns a description of the use and the
    /// correction.
    fn taken_for_a_value(
        &self,
        kind: AstKind<'a>,
        own: Span,
    ) -> Option<(&'static str, &'static str)> {
        Some(match kind {
            AstKind::BinaryExpression(it) => match it.operator {
                BinaryOperator::Instanceof => return None,
                BinaryOperator::In if it.right.span() != own => return None,
                _ => ("used as an operand", "(await …)"),
            },
            AstKind::TemplateLiteral(_) => ("used as text", "${await …}"),
            AstKind::UnaryExpression(it) => match it.operator {
                UnaryOperator::Void | UnaryOperator::Typeof => return None,
                _ => ("used as an operand", "(await …)"),
            },
            AstKind::IfStatement(it) if it.test.span() == own => ("always truthy", "if (await …)"),
            AstKind::WhileStatement(it) if it.test.span() == own => {
                ("always truthy", "while (await …)")
            }
            AstKind::ConditionalExpression(it) if it.test.span() == own => {
                ("always truthy", "(await …) ? … : …")
            }
            AstKind::LogicalExpression(it) if it.left.span() == own => {
                ("always truthy", "(await …)")
            }
            AstKind::SwitchStatement(it) if it.discriminant.span() == own => {
                ("compared", "switch (await …)")
            }
            AstKind::ForOfStatement(it) if it.right.span() == own => {
                ("iterated over", "of await …")
            }
            AstKind::ForInStatement(it) if it.right.span() == own => {
                ("iterated over", "in await …")
            }
            AstKind::SpreadElement(_) => ("spread", "...(await …)"),
            AstKind::CallExpression(it) if it.callee.span() != own => {
                let name = self.callee_name(&it.callee)?;
                if !TAKES_NO_PROMISE.contains(&name.as_str()) {
                    return None;
                }
                ("passed as a value", "await …")
            }
            _ => return None,
        })
    }

    /// Whether the promise is passed on as the value of a larger expression.
    fn passes_on(&self, kind: AstKind<'a>, own: Span) -> bool {
        match kind {
            AstKind::ConditionalExpression(it) => it.test.span() != own,
            AstKind::LogicalExpression(it) => it.right.span() == own,
            AstKind::SequenceExpression(it) => {
                it.expressions.last().is_some_and(|it| it.span() == own)
            }
            _ => false,
        }
    }

    /// Returns a callee's name, such as `JSON.stringify`, if it is a global or a member of one.
    pub(super) fn callee_name(&self, callee: &Expression<'a>) -> Option<String> {
        match callee {
            Expression::Identifier(_) => self.global_of(callee).map(str::to_owned),
            Expression::StaticMemberExpression(it) => {
                let object = self.global_of(&it.object)?;
                Some(format!("{object}.{}", it.property.name))
            }
            _ => None,
        }
    }
}

pub(super) fn subject(of: OfCall<'_, '_>) -> String {
    match of {
        Some((tool, _)) => format!("`{}`", tool.name()),
        None => "the call".to_owned(),
    }
}
