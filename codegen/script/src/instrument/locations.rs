//! Turns a script into one that reports its location: at each statement, in each loop iteration, at
//! each function entry. No line is added or removed.

use oxc_ast::ast::{
    ArrowFunctionBody, ArrowFunctionExpression, AssignmentExpression, CallExpression, Expression,
    Function, FunctionBody, MethodDefinition, ObjectProperty, Program, Statement,
    VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;

use super::budget::{Budget, TEXT_BYTES_MAX};
use super::{CALLBACK, quote, shorten};
use crate::check::parse::ParsedScript;
use codegen_shared::lines::Lines;

/// A location that a script can report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
    /// The range of a statement; empty for anything else.
    pub(super) span: Span,
    pub(super) line: u32,
    pub(super) column: u32,
    /// The innermost enclosing loop in the same function.
    pub(super) inside: Option<usize>,
    /// The head of a loop, or the name of a function.
    pub(super) text: String,
    /// The name of the function that contains this location, or is this location.
    pub(super) function: String,
}

pub(super) struct LocationWriter<'s> {
    script: &'s str,
    lines: Lines<'s>,
    budget: Budget,
    inserts: Vec<(u32, String)>,
    pub(super) spots: Vec<Location>,
    loops: Vec<usize>,
    functions: Vec<String>,
    next_function: Option<String>,
    /// The offset where the counter of the next loop is reset.
    begins_at: Option<u32>,
    /// Whether the script is one function or one expression, and must stay one.
    is_one: bool,
}

impl<'s> LocationWriter<'s> {
    pub(super) fn new(parsed: &ParsedScript<'s>, is_one: bool) -> Self {
        Self {
            script: parsed.text,
            lines: Lines::new(parsed.text, parsed.shift),
            budget: Budget::default(),
            inserts: Vec::new(),
            spots: Vec::new(),
            loops: Vec::new(),
            functions: Vec::new(),
            next_function: None,
            begins_at: None,
            is_one,
        }
    }

    /// Returns the rewritten text after all nodes were visited, or `None` if the budget is used up.
    pub(super) fn finish(mut self) -> Option<(String, Vec<Location>)> {
        if self.budget.is_spent() {
            return None;
        }
        self.inserts.sort_by_key(|(at, _)| *at);
        let mut out = String::with_capacity(self.script.len() * 2);
        let mut written = 0;
        for (at, text) in &self.inserts {
            let at = *at as usize;
            out.push_str(self.script.get(written..at).unwrap_or_default());
            out.push_str(text);
            written = at;
        }
        out.push_str(self.script.get(written..).unwrap_or_default());
        (out.len() <= TEXT_BYTES_MAX).then_some((out, self.spots))
    }

    fn insert(&mut self, at: u32, text: String) {
        self.inserts.push((at, text));
    }

    fn spot(&mut self, at: u32, text: String) -> usize {
        if self.budget.is_spent() {
            return 0;
        }
        self.budget.place();
        let (line, column) = self.lines.place(at);
        let function = self.functions.last().cloned();
        self.spots.push(Location {
            span: Span::empty(at),
            function: function.unwrap_or_else(|| "<script>".to_owned()),
            line,
            column,
            inside: self.loops.last().copied(),
            text,
        });
        self.spots.len() - 1
    }

    fn statement(&mut self, it: &Statement<'_>) {
        let is_passed = match it {
            Statement::FunctionDeclaration(_) | Statement::EmptyStatement(_) => true,
            other => other.is_module_declaration(),
        };
        if !is_passed {
            let spot = self.spot(it.span().start, String::new());
            if let Some(spot) = self.spots.get_mut(spot) {
                spot.span = it.span();
            }
            self.insert(it.span().start, format!("look__s({spot});"));
            self.begins_at = is_loop(it).then_some(it.span().start);
        }
        self.visit_statement(it);
    }

    /// Visits a branch of an `if`; braces make room for a statement before a loop.
    fn branch(&mut self, it: &Statement<'_>) {
        if !is_loop(it) {
            return self.visit_statement(it);
        }
        let span = it.span();
        self.insert(span.start, "{".to_owned());
        self.begins_at = Some(span.start);
        self.visit_statement(it);
        self.insert(span.end, "}".to_owned());
    }

    /// Instruments a loop. `whole` starts at the loop's first byte, `body` is the repeated
    /// statement, and `begins_at` is the offset where the loop's counter can be reset.
    fn turns(&mut self, whole: Span, body: &Statement<'_>, begins_at: Option<u32>) {
        let head = Span::new(whole.start, body.span().start);
        let turn = self.spot(whole.start, quote(self.script, head));
        if let Some(at) = begins_at {
            self.insert(at, format!("look__b({turn});"));
        }
        let round = match self.loops.last() {
            Some(around) => format!("look__l({turn},{around});"),
            None => format!("look__l({turn});"),
        };
        self.loops.push(turn);
        match body {
            Statement::BlockStatement(block) => {
                self.insert(block.span.start + 1, round);
                self.visit_statement(body);
            }
            other => {
                self.insert(other.span().start, format!("{{{round}"));
                self.begins_at = is_loop(other).then_some(other.span().start);
                self.visit_statement(other);
                self.insert(other.span().end, "}".to_owned());
            }
        }
        self.loops.pop();
    }

    /// Instruments a function. Loops around the function do not count as its loops.
    fn function(&mut self, at: u32, name: Option<String>, visit: impl FnOnce(&mut Self, usize)) {
        let loops = std::mem::take(&mut self.loops);
        let name = shorten(name.as_deref().unwrap_or("<anonymous>"));
        self.functions.push(name.clone());
        let spot = self.spot(at, name);
        visit(self, spot);
        self.functions.pop();
        self.loops = loops;
    }

    fn entered(&mut self, body: &FunctionBody<'_>, spot: usize) {
        match body.directives.last() {
            // The directive may end at the line end without `;`, so the inserted code starts with
            // one.
            Some(last) => self.insert(last.span.end, format!(";look__f({spot});")),
            None => self.insert(body.span.start + 1, format!("look__f({spot});")),
        }
    }

    fn named(&mut self, name: Option<&str>) {
        self.next_function = name.filter(|it| !it.is_empty()).map(str::to_owned);
    }
}

impl<'a> Visit<'a> for LocationWriter<'_> {
    fn visit_program(&mut self, it: &Program<'a>) {
        if self.is_one {
            it.body.iter().for_each(|it| self.visit_statement(it));
        } else {
            self.visit_statements(&it.body);
        }
    }

    fn visit_statements(&mut self, them: &oxc_allocator::Vec<'a, Statement<'a>>) {
        them.iter().for_each(|it| self.statement(it));
    }

    fn visit_statement(&mut self, it: &Statement<'a>) {
        if self.budget.is_spent() {
            return;
        }
        let begins_at = self.begins_at.take();
        match it {
            Statement::LabeledStatement(it) => {
                self.begins_at = begins_at;
                self.visit_statement(&it.body);
            }
            Statement::IfStatement(it) => {
                self.visit_expression(&it.test);
                self.branch(&it.consequent);
                it.alternate.iter().for_each(|it| self.branch(it));
            }
            Statement::ForStatement(it) => {
                it.init
                    .iter()
                    .for_each(|it| self.visit_for_statement_init(it));
                it.test.iter().for_each(|it| self.visit_expression(it));
                it.update.iter().for_each(|it| self.visit_expression(it));
                self.turns(it.span, &it.body, begins_at);
            }
            Statement::ForInStatement(it) => {
                self.visit_expression(&it.right);
                self.turns(it.span, &it.body, begins_at);
            }
            Statement::ForOfStatement(it) => {
                self.visit_expression(&it.right);
                self.turns(it.span, &it.body, begins_at);
            }
            Statement::WhileStatement(it) => {
                self.visit_expression(&it.test);
                self.turns(it.span, &it.body, begins_at);
            }
            Statement::DoWhileStatement(it) => {
                self.turns(it.span, &it.body, begins_at);
                self.visit_expression(&it.test);
            }
            other => walk::walk_statement(self, other),
        }
    }

    fn visit_expression(&mut self, it: &Expression<'a>) {
        if !self.budget.is_spent() {
            walk::walk_expression(self, it);
        }
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        let given = self.next_function.take();
        let own = it.id.as_ref().map(|id| id.name.to_string());
        self.function(it.span.start, own.or(given), |this, spot| {
            if let Some(body) = &it.body {
                this.entered(body, spot);
            }
            walk::walk_function(this, it, flags);
        });
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        let given = self.next_function.take();
        self.function(it.span.start, given, |this, spot| match &it.body {
            ArrowFunctionBody::FunctionBody(body) => {
                this.entered(body, spot);
                walk::walk_arrow_function_expression(this, it);
            }
            value => {
                this.insert(value.span().start, format!("(look__f({spot}),"));
                walk::walk_arrow_function_expression(this, it);
                this.insert(value.span().end, ")".to_owned());
            }
        });
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        self.named(it.id.get_binding_identifier().map(|id| id.name.as_str()));
        walk::walk_variable_declarator(self, it);
        self.named(None);
    }

    fn visit_assignment_expression(&mut self, it: &AssignmentExpression<'a>) {
        self.named(it.left.get_identifier_name());
        walk::walk_assignment_expression(self, it);
        self.named(None);
    }

    fn visit_object_property(&mut self, it: &ObjectProperty<'a>) {
        self.named(it.key.static_name().as_deref());
        walk::walk_object_property(self, it);
        self.named(None);
    }

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        self.named(it.key.name().as_deref());
        walk::walk_method_definition(self, it);
        self.named(None);
    }

    /// Visits a call. A function that is passed as an argument is not named after the declaration
    /// around the call.
    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        self.named(None);
        self.visit_expression(&it.callee);
        for argument in &it.arguments {
            self.named(Some(CALLBACK));
            self.visit_argument(argument);
        }
        self.named(None);
    }
}

fn is_loop(it: &Statement<'_>) -> bool {
    match it {
        Statement::ForStatement(_)
        | Statement::ForInStatement(_)
        | Statement::ForOfStatement(_)
        | Statement::WhileStatement(_)
        | Statement::DoWhileStatement(_) => true,
        Statement::LabeledStatement(it) => is_loop(&it.body),
        _ => false,
    }
}
