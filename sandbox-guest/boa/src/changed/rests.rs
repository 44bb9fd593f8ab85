//! Patterns that take apart a member and the rest: `{ a: { b }, ...rest }`. The engine leaves
//! `a` in the rest. It takes out what has a name of its own, so `a` is given one:
//!
//! ```text
//! { a: { b }, ...rest }     becomes   { a: { b }, "a":airlock_rest7,...rest }
//! ```

use std::ops::ControlFlow;

use boa_ast::Expression;
use boa_ast::declaration::Binding;
use boa_ast::expression::operator::assign::AssignTarget;
use boa_ast::pattern::{ObjectPattern, ObjectPatternElement};
use boa_ast::property::PropertyName;
use boa_ast::statement::iteration::IterableLoopInitializer;
use boa_ast::visitor::{VisitWith, Visitor};
use boa_ast::{Spanned, function::FunctionBody};
use boa_interner::Interner;

use super::spans::Text;
use super::{Edit, Names, flow};

/// Whether a script may have such a pattern.
pub(super) fn is_likely(script: &str) -> bool {
    let takes_apart = |after: &str| after.trim_start().starts_with(['{', '[']);
    script.contains("...") && script.split(':').skip(1).any(takes_apart)
}

pub(super) fn edits(
    script: &str,
    names: &Names,
    body: &FunctionBody,
    interner: &Interner,
) -> Vec<Edit> {
    let mut finder = Finder {
        text: Text::new(script),
        names,
        interner,
        declares: true,
        edits: Vec::new(),
    };
    let _ = finder.visit_function_body(body);
    finder.edits
}

struct Finder<'a> {
    text: Text<'a>,
    names: &'a Names,
    interner: &'a Interner,
    /// The names of the pattern are declared by it.
    declares: bool,
    edits: Vec<Edit>,
}

impl Finder<'_> {
    fn within(&mut self, declares: bool, node: &impl VisitWith) {
        let around = std::mem::replace(&mut self.declares, declares);
        let _ = node.visit_with(self);
        self.declares = around;
    }

    fn names_of_parts(&self, pattern: &ObjectPattern) -> Option<Edit> {
        let [parts @ .., rest] = pattern.bindings() else {
            return None;
        };
        let behind = match rest {
            ObjectPatternElement::RestProperty { ident } => {
                self.text.offset(ident.span().start())?
            }
            ObjectPatternElement::AssignmentRestPropertyAccess { access } => {
                self.text.start_of_access(access)?
            }
            _ => return None,
        };
        let before = self.text.slice(0, behind)?.trim_end();
        let start = before.strip_suffix("...")?.len();
        let mut text = String::new();
        for (number, part) in parts.iter().enumerate() {
            if let ObjectPatternElement::Pattern { name, .. } = part {
                let key = self.key(name)?;
                let Names { rest, append, .. } = self.names;
                let target = match self.declares {
                    true => format!("{rest}{start}_{number}"),
                    false => format!("{append}.rest"),
                };
                text.push_str(&format!("{key}:{target},"));
            }
        }
        let mark = |text: &str| flow::marked(&self.names.flow, text, "");
        (!text.is_empty()).then(|| Edit {
            start,
            end: start,
            text: mark(&text),
            place: Some(start),
        })
    }

    /// A key as it may be written a second time.
    fn key(&self, name: &PropertyName) -> Option<String> {
        match name {
            PropertyName::Literal(name) => {
                let name = self.interner.resolve_expect(name.sym()).to_string();
                let escaped = name.chars().map(|c| format!("\\u{{{:x}}}", u32::from(c)));
                let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                // As a text the engine does not take it for the number that the key is.
                let is_number = name
                    .parse()
                    .is_ok_and(|number: u32| number.to_string() == name);
                Some(match (is_number, is_plain) {
                    (true, _) => name,
                    (_, true) => format!("\"{name}\""),
                    _ => format!("\"{}\"", escaped.collect::<String>()),
                })
            }
            PropertyName::Computed(key @ (Expression::Identifier(_) | Expression::Literal(_))) => {
                let start = self.text.offset(key.span().start())?;
                let end = self.text.offset(key.span().end())?;
                Some(format!("[{}]", self.text.slice(start, end)?))
            }
            PropertyName::Computed(_) => None,
        }
    }
}

impl<'ast> Visitor<'ast> for Finder<'_> {
    type BreakTy = ();

    fn visit_object_pattern(&mut self, node: &'ast ObjectPattern) -> ControlFlow<()> {
        let edit = self.names_of_parts(node);
        self.edits.extend(edit);
        node.visit_with(self)
    }

    fn visit_binding(&mut self, node: &'ast Binding) -> ControlFlow<()> {
        self.within(true, node);
        ControlFlow::Continue(())
    }

    fn visit_assign_target(&mut self, node: &'ast AssignTarget) -> ControlFlow<()> {
        self.within(false, node);
        ControlFlow::Continue(())
    }

    fn visit_iterable_loop_initializer(
        &mut self,
        node: &'ast IterableLoopInitializer,
    ) -> ControlFlow<()> {
        self.within(false, node);
        ControlFlow::Continue(())
    }
}
