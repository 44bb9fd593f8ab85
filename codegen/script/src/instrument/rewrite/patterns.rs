//! Instruments destructuring and iteration.

use oxc_ast::ast::{BindingPattern, BindingProperty, Expression, FormalParameter, SpreadElement};
use oxc_ast_visit::Visit;
use oxc_semantic::SymbolId;
use oxc_span::{GetSpan, Span};

use super::{Rewriter, up};
use crate::instrument::CALLBACK;
use crate::instrument::place::{Key, NestedPattern, PathStep, SiteKind, ValueOrigin, WaitKind};
use codegen_shared::message::InstrumentPass;

/// Maximum depth of nested patterns that are followed.
const PATTERN_DEPTH_MAX: usize = 8;
const KEY_BYTES_MAX: usize = 100;

impl<'s> Rewriter<'s> {
    /// Instruments a destructured value; `pattern` is its target.
    pub(super) fn apart(
        &mut self,
        pattern: Span,
        is_list: bool,
        value: &Expression<'_>,
        inner: Vec<NestedPattern>,
    ) -> usize {
        let text = self.expression(value);
        let from = self.from(value);
        let up = up(from.as_ref());
        let paths = paths(&inner);
        let what = SiteKind::Apart {
            pattern: self.quote(pattern),
            of: self.object_text(value),
            is_each: false,
            inner,
        };
        let place = self.place(value.span().start, what, from);
        let text = format!("look__d({text},{place},{is_list},{paths}{up})");
        self.replace(value.span(), text);
        place
    }

    /// Collects the patterns inside a pattern, down to the first default value.
    pub(super) fn inner(
        &self,
        pattern: &BindingPattern<'_>,
        path: &[PathStep],
        found: &mut Vec<NestedPattern>,
    ) {
        if path.len() >= PATTERN_DEPTH_MAX {
            return;
        }
        match pattern {
            BindingPattern::ObjectPattern(object) => {
                for property in &object.properties {
                    let key = property.key.static_name().filter(|_| !property.computed);
                    // A long key is skipped, because each path below it would contain the key.
                    if let Some(key) = key.filter(|key| key.len() <= KEY_BYTES_MAX) {
                        self.inside(
                            &property.value,
                            path,
                            PathStep::Name(key.to_string()),
                            found,
                        );
                    }
                }
            }
            BindingPattern::ArrayPattern(list) => {
                for (at, element) in list.elements.iter().enumerate() {
                    if let Some(element) = element {
                        self.inside(element, path, PathStep::Index(at), found);
                    }
                }
            }
            _ => {}
        }
    }

    fn inside(
        &self,
        pattern: &BindingPattern<'_>,
        path: &[PathStep],
        step: PathStep,
        found: &mut Vec<NestedPattern>,
    ) {
        let is_list = match pattern {
            BindingPattern::ObjectPattern(_) => false,
            BindingPattern::ArrayPattern(_) => true,
            _ => return,
        };
        if self.budget.is_spent() {
            return;
        }
        self.budget.place();
        let path: Vec<_> = path.iter().cloned().chain([step]).collect();
        let span = pattern.span();
        let (line, column) = self.lines.place(span.start);
        found.push(NestedPattern {
            line,
            column,
            pattern: self.quote(span),
            is_list,
            path: path.clone(),
        });
        self.inner(pattern, &path, found);
    }

    /// Detects `undefined` in a nested pattern: adds a default value whose evaluation reports the
    /// failure.
    pub(super) fn nested(
        &mut self,
        pattern: &BindingPattern<'_>,
        from: Option<String>,
    ) -> Option<usize> {
        let is_pattern = matches!(
            pattern,
            BindingPattern::ObjectPattern(_) | BindingPattern::ArrayPattern(_)
        );
        if !self.is_closer() || !is_pattern {
            return None;
        }
        let span = pattern.span();
        let what = SiteKind::Inside {
            pattern: self.quote(span),
            from,
        };
        let place = self.place(span.start, what, None);
        let text = format!("=look__p({place})");
        self.replace(Span::new(span.end, span.end), text);
        Some(place)
    }

    /// Detects `null` in a nested pattern: adds two properties before it. The first assigns the
    /// member to a new name; the second has a computed key that checks this name.
    pub(super) fn nested_member(&mut self, property: &BindingProperty<'_>) {
        let key = property.key.static_name().filter(|_| !property.computed);
        let from = key.as_deref().map(crate::instrument::name);
        let place = self.nested(&property.value, from);
        if let (Some(place), Some(_)) = (place, key) {
            let (key, start) = (property.key.span(), property.span.start);
            let key = self.slice(key.start, key.end);
            let text =
                format!("{key}:look__m{place},[look__m({place},look__m{place})]:look__m{place}_,");
            self.replace(Span::new(start, start), text);
        }
    }

    /// Instruments the values that the head of a loop destructures.
    pub(super) fn each_apart(&mut self, pattern: &BindingPattern<'_>, value: Span) {
        let is_list = match pattern {
            BindingPattern::ObjectPattern(_) => false,
            BindingPattern::ArrayPattern(_) => true,
            _ => return,
        };
        let mut inner = Vec::new();
        self.inner(pattern, &[], &mut inner);
        let paths = paths(&inner);
        let what = SiteKind::Apart {
            pattern: self.quote(pattern.span()),
            of: self.quote(value),
            is_each: true,
            inner,
        };
        let place = self.place(pattern.span().start, what, None);
        let Some(edit) = self.edits.iter_mut().rfind(|it| it.span == value) else {
            return;
        };
        edit.text = format!("look__i2({},{place},{is_list},{paths})", edit.text);
    }

    /// Records that names have the values of members from here on.
    pub(super) fn name_members(
        &mut self,
        pattern: &BindingPattern<'_>,
        place: usize,
        value: &Expression<'_>,
    ) {
        let BindingPattern::ObjectPattern(object) = pattern else {
            return;
        };
        let of = self.object_text(value);
        for property in &object.properties {
            if let (Some(key), BindingPattern::BindingIdentifier(name)) =
                (property.key.static_name(), &property.value)
                && !property.computed
            {
                self.budget.place();
                let from = ValueOrigin {
                    place,
                    of: of.clone(),
                    key: Key::Name(crate::instrument::name(&key)),
                    outer: None,
                    named_in_line: Some(self.lines.place(property.span.start).0),
                };
                self.name(name.symbol_id.get(), from);
            }
        }
    }

    pub(super) fn name(&mut self, symbol: Option<SymbolId>, from: ValueOrigin) {
        if let Some(symbol) = symbol
            && !self.scoping.symbol_is_mutated(symbol)
        {
            self.named.insert(symbol, from);
        }
    }

    pub(super) fn over(&mut self, value: &Expression<'_>, is_later: bool) {
        let text = self.expression(value);
        let from = self.from(value);
        let up = up(from.as_ref());
        let of = self.quote(value.span());
        let place = self.place(value.span().start, SiteKind::Over { of }, from);
        let text = format!("look__i({text},{place},{is_later}{up})");
        let text = if is_later && self.look == InstrumentPass::Awaits {
            let place = self.wait_place(value, value.span().start, WaitKind::ForAwait);
            format!("look__y2({place},{text})")
        } else {
            text
        };
        self.replace(value.span(), text);
    }

    /// Instruments a function that is passed as an argument: its destructured parameters may be
    /// `null`.
    pub(super) fn callback(&mut self, it: &Expression<'_>) {
        self.next_function = Some(CALLBACK.to_owned());
        let (parameters, is_async) = match it.get_inner_expression() {
            Expression::ArrowFunctionExpression(arrow) => (&arrow.params, arrow.r#async),
            Expression::FunctionExpression(function) if !function.generator => {
                (&function.params, function.r#async)
            }
            _ => return self.visit_expression(it),
        };
        let text = self.expression(it);
        let patterns = parameters.items.iter().enumerate();
        let patterns = patterns.filter(|(_, parameter)| is_unguarded(parameter));
        // Uses the same place as the check for `undefined`.
        let watched: Vec<String> = patterns
            .filter_map(|(number, parameter)| {
                let place = self.given.get(&parameter.pattern.span().start)?;
                Some(format!("[{number},{place}]"))
            })
            .collect();
        if watched.is_empty() {
            self.replace(it.span(), text);
        } else {
            let text = format!("look__g({text},[{}],{is_async})", watched.join(","));
            self.replace(it.span(), text);
        }
    }

    pub(super) fn spread(&mut self, it: &SpreadElement<'_>) {
        self.over(&it.argument, false);
    }
}

/// Writes the paths to nested patterns as an argument; the path of a list pattern starts with
/// `true`.
fn paths(inner: &[NestedPattern]) -> String {
    let one = |it: &NestedPattern| {
        let list = it.is_list.then(|| "true".to_owned());
        let steps = it.path.iter().map(|step| match step {
            PathStep::Name(name) => crate::text::literal(name),
            PathStep::Index(at) => at.to_string(),
        });
        let steps: Vec<_> = list.into_iter().chain(steps).collect();
        format!("[{}]", steps.join(","))
    };
    let all: Vec<_> = inner.iter().map(one).collect();
    format!("[{}]", all.join(","))
}

/// Whether a parameter destructures its argument without a default.
pub(super) fn is_unguarded(parameter: &FormalParameter<'_>) -> bool {
    let is_pattern = matches!(
        parameter.pattern,
        BindingPattern::ObjectPattern(_) | BindingPattern::ArrayPattern(_)
    );
    is_pattern && parameter.initializer.is_none()
}
