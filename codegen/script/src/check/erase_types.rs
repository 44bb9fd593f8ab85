//! Removes the types from a script. They are replaced with blanks of the same length, so every line
//! and column of the running script matches the original. Where a statement would now run into the
//! next one, the first blank is a `;`. TypeScript syntax that has an effect at run time is refused
//! in [`super::refuse`].

mod classes;

use std::collections::BTreeMap;

use oxc_ast::AstKind;
use oxc_ast::ast::{
    ArrowFunctionExpression, ExportSpecifier, FormalParameter, ImportOrExportKind, Statement,
    VariableDeclarator,
};
use oxc_semantic::Semantic;
use oxc_span::{GetSpan, Span};

use super::form::is_erased;
use super::parse::ParsedScript;
use codegen_shared::lines::ends_line;

/// Returns the script without its types.
pub(super) fn erase_types(semantic: &Semantic<'_>, parsed: &ParsedScript<'_>) -> String {
    let mut eraser = Eraser::new(parsed.text);
    for node in semantic.nodes().iter() {
        eraser.expression_or_type(node.kind());
        eraser.binding(node.kind());
        classes::erase(node.kind(), &mut eraser);
    }
    let ends = eraser.ends();
    for node in semantic.nodes().iter() {
        match node.kind() {
            AstKind::Program(program) => eraser.statements(&program.body, &ends),
            AstKind::BlockStatement(block) => eraser.statements(&block.body, &ends),
            AstKind::FunctionBody(body) => eraser.statements(&body.statements, &ends),
            AstKind::StaticBlock(block) => eraser.statements(&block.body, &ends),
            AstKind::SwitchCase(case) => eraser.statements(&case.consequent, &ends),
            _ => {}
        }
    }
    eraser.finish(parsed.shift as usize)
}

/// The ranges to erase, and the characters to write in place of single bytes.
pub(super) struct Eraser<'a> {
    pub(super) text: &'a str,
    spans: Vec<Span>,
    marks: BTreeMap<u32, char>,
}

impl<'a> Eraser<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            spans: Vec::new(),
            marks: BTreeMap::new(),
        }
    }

    pub(super) fn erase(&mut self, start: u32, end: u32) {
        if start < end {
            self.spans.push(Span::new(start, end));
        }
    }

    /// Writes one character over the first byte of an erased range.
    pub(super) fn mark(&mut self, at: u32, c: char) {
        self.marks.insert(at, c);
    }

    pub(super) fn slice(&self, start: u32, end: u32) -> &'a str {
        self.text
            .get(start as usize..end as usize)
            .unwrap_or_default()
    }

    /// Returns the offset of `wanted` between two offsets, outside comments.
    pub(super) fn find(&self, start: u32, end: u32, wanted: &str) -> Option<u32> {
        let mut at = start;
        loop {
            at = self.skip_blank(at);
            if at >= end {
                return None;
            }
            let rest = self.slice(at, end);
            if rest.starts_with(wanted) {
                return Some(at);
            }
            at += u32::try_from(rest.chars().next()?.len_utf8()).ok()?;
        }
    }

    /// Returns the offset of the first byte that is neither white space nor in a comment.
    pub(super) fn skip_blank(&self, from: u32) -> u32 {
        let mut rest = self.text.get(from as usize..).unwrap_or_default();
        loop {
            rest = rest.trim_start();
            rest = if rest.starts_with("//") {
                rest.find(ends_line)
                    .and_then(|end| rest.get(end..))
                    .unwrap_or_default()
            } else if let Some(comment) = rest.strip_prefix("/*") {
                comment.split_once("*/").map_or("", |(_, after)| after)
            } else {
                break;
            };
        }
        u32::try_from(self.text.len() - rest.len()).unwrap_or(from)
    }

    fn has_line_end(&self, start: u32, end: u32) -> bool {
        self.slice(start, end).contains(ends_line)
    }

    /// Erases one occurrence of `wanted` between two offsets, and nothing else.
    pub(super) fn erase_sign(&mut self, start: u32, end: u32, wanted: &str) {
        if let Some(at) = self.find(start, end, wanted) {
            self.erase(at, at + 1);
        }
    }

    fn expression_or_type(&mut self, kind: AstKind<'_>) {
        match kind {
            AstKind::TSTypeAnnotation(it) => self.erase(it.span.start, it.span.end),
            AstKind::TSTypeParameterDeclaration(it) => self.erase(it.span.start, it.span.end),
            AstKind::TSTypeParameterInstantiation(it) => self.erase(it.span.start, it.span.end),
            AstKind::TSAsExpression(it) => self.erase(it.expression.span().end, it.span.end),
            AstKind::TSSatisfiesExpression(it) => {
                self.erase(it.expression.span().end, it.span.end);
            }
            AstKind::TSNonNullExpression(it) => self.erase(it.expression.span().end, it.span.end),
            AstKind::TSTypeAssertion(it) => self.erase(it.span.start, it.expression.span().start),
            AstKind::TSThisParameter(it) => {
                let after = self.skip_blank(it.span.end);
                let is_comma = self.slice(after, after + 1) == ",";
                self.erase(
                    it.span.start,
                    if is_comma { after + 1 } else { it.span.end },
                );
            }
            AstKind::ArrowFunctionExpression(it) => self.arrow(it),
            AstKind::ExportNamedDeclaration(it) => self.type_specifiers(&it.specifiers),
            _ => {}
        }
    }

    fn binding(&mut self, kind: AstKind<'_>) {
        match kind {
            AstKind::FormalParameter(it) => self.parameter(it),
            AstKind::VariableDeclarator(it) => self.declarator(it),
            _ => {}
        }
    }

    fn parameter(&mut self, it: &FormalParameter<'_>) {
        if it.optional {
            let annotation = it.type_annotation.as_ref().map(|it| it.span.start);
            self.erase_sign(
                it.pattern.span().end,
                annotation.unwrap_or(it.span.end + 1),
                "?",
            );
        }
    }

    fn declarator(&mut self, it: &VariableDeclarator<'_>) {
        if it.definite {
            let annotation = it.type_annotation.as_ref().map(|it| it.span.start);
            self.erase_sign(it.id.span().end, annotation.unwrap_or(it.span.end), "!");
        }
    }

    /// Moves a parenthesis of an arrow function if its erased types span several lines: no line
    /// break is allowed between `async` and the parameters, nor before `=>`.
    fn arrow(&mut self, it: &ArrowFunctionExpression<'_>) {
        if let Some(types) = &it.type_parameters
            && self.has_line_end(types.span.start, types.span.end)
            && let Some(open) = self.find(types.span.end, it.params.span.end, "(")
        {
            self.erase(open, open + 1);
            self.mark(types.span.start, '(');
        }
        if let Some(result) = &it.return_type
            && self.has_line_end(result.span.start, result.span.end)
        {
            let params_end = it.params.span.end;
            let close = params_end.saturating_sub(1);
            if self.slice(close, params_end) == ")" {
                self.erase(close, params_end);
                self.mark(result.span.end - 1, ')');
            }
        }
    }

    fn type_specifiers(&mut self, specifiers: &[ExportSpecifier<'_>]) {
        for specifier in specifiers {
            if specifier.export_kind == ImportOrExportKind::Type {
                let after = self.skip_blank(specifier.span.end);
                let is_comma = self.slice(after, after + 1) == ",";
                let end = if is_comma {
                    after + 1
                } else {
                    specifier.span.end
                };
                self.erase(specifier.span.start, end);
            }
        }
    }

    /// Erases whole statements. Adds `;` to statements that would otherwise run into the next one.
    fn statements(&mut self, statements: &[Statement<'_>], ends: &BTreeMap<u32, u32>) {
        for (place, statement) in statements.iter().enumerate() {
            let span = statement.span();
            if is_erased(statement) {
                self.erase(span.start, span.end);
                let after = self.skip_blank(span.end);
                if self.slice(after, after + 1) == ";" {
                    self.erase(after, after + 1);
                }
                if place > 0 && self.could_join(span.end) {
                    self.mark(span.start, ';');
                }
            } else if let Some(start) = ends.get(&span.end)
                && self.could_join(span.end)
            {
                self.mark(*start, ';');
            }
        }
    }

    /// Maps the end of each erased range to its start.
    fn ends(&self) -> BTreeMap<u32, u32> {
        let mut ends = BTreeMap::new();
        for span in &self.spans {
            let start = ends.entry(span.end).or_insert(span.start);
            *start = span.start.min(*start);
        }
        ends
    }

    /// Whether the text after `end` could continue an expression before it.
    fn could_join(&self, end: u32) -> bool {
        let next = self.skip_blank(end);
        let rest = self.text.get(next as usize..).unwrap_or_default();
        rest.starts_with([
            '(', '[', '`', '+', '-', '*', '/', '.', ',', '<', '>', '=', '&', '|', '^', '%', '?',
        ])
    }

    fn finish(mut self, shift: usize) -> String {
        self.spans.sort_by_key(|span| (span.start, span.end));
        let mut out = String::with_capacity(self.text.len());
        let mut spans = self.spans.iter().peekable();
        let mut erased_to = 0;
        for (at, c) in self.text.char_indices() {
            let place = u32::try_from(at).unwrap_or(u32::MAX);
            while let Some(span) = spans.next_if(|span| span.start <= place) {
                erased_to = erased_to.max(span.end);
            }
            out.push(match self.marks.get(&place) {
                Some(mark) => *mark,
                None if place < erased_to && !ends_line(c) => ' ',
                None => c,
            });
        }
        if shift == 0 {
            return out;
        }
        // Removes the parentheses that the parser added around a function without a name; they
        // contain no script text.
        let own = out.get(shift..).unwrap_or_default();
        own.strip_suffix("\n)").unwrap_or(own).to_owned()
    }
}
