//! What is taken apart or gone over.

use oxc_ast::ast::{BindingPattern, BindingProperty, Expression, FormalParameter, SpreadElement};
use oxc_ast_visit::Visit;
use oxc_semantic::SymbolId;
use oxc_span::{GetSpan, Span};

use super::{Rewriter, up};
use crate::instrument::CALLBACK;
use crate::instrument::place::{From, Inner, Key, Step, WaitKind, What};
use codegen_shared::message::Look;

/// Patterns in patterns that are followed.
const PATTERN_DEPTH_MAX: usize = 8;
const KEY_BYTES_MAX: usize = 100;

impl<'s> Rewriter<'s> {
    /// Watches what is taken apart; `pattern` is what it is taken into.
    pub(super) fn apart(
        &mut self,
        pattern: Span,
        is_list: bool,
        value: &Expression<'_>,
        inner: Vec<Inner>,
    ) -> usize {
        let text = self.expression(value);
        let from = self.from(value);
        let up = up(from.as_ref());
        let paths = paths(&inner);
        let what = What::Apart {
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

    /// The patterns inside a pattern, as long as nothing in between has a default.
    pub(super) fn inner(
        &self,
        pattern: &BindingPattern<'_>,
        path: &[Step],
        found: &mut Vec<Inner>,
    ) {
        if path.len() >= PATTERN_DEPTH_MAX {
            return;
        }
        match pattern {
            BindingPattern::ObjectPattern(object) => {
                for property in &object.properties {
                    let key = property.key.static_name().filter(|_| !property.computed);
                    // What stands behind a long key would have it in each of its paths.
                    if let Some(key) = key.filter(|key| key.len() <= KEY_BYTES_MAX) {
                        self.inside(&property.value, path, Step::Name(key.to_string()), found);
                    }
                }
            }
            BindingPattern::ArrayPattern(list) => {
                for (at, element) in list.elements.iter().enumerate() {
                    if let Some(element) = element {
                        self.inside(element, path, Step::Index(at), found);
                    }
                }
            }
            _ => {}
        }
    }

    fn inside(
        &self,
        pattern: &BindingPattern<'_>,
        path: &[Step],
        step: Step,
        found: &mut Vec<Inner>,
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
        found.push(Inner {
            line,
            column,
            pattern: self.quote(span),
            is_list,
            path: path.clone(),
        });
        self.inner(pattern, &path, found);
    }

    /// A pattern in a pattern finds out of `undefined` from a default that it must not use.
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
        let what = What::Inside {
            pattern: self.quote(span),
            from,
        };
        let place = self.place(span.start, what, None);
        let text = format!("=look__p({place})");
        self.replace(Span::new(span.end, span.end), text);
        Some(place)
    }

    /// And out of `null` from what stands in front of it: the member under a name of its own, and
    /// a key that is computed from it.
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

    /// Each value that a loop goes over is taken apart by its head.
    pub(super) fn each_apart(&mut self, pattern: &BindingPattern<'_>, value: Span) {
        let is_list = match pattern {
            BindingPattern::ObjectPattern(_) => false,
            BindingPattern::ArrayPattern(_) => true,
            _ => return,
        };
        let mut inner = Vec::new();
        self.inner(pattern, &[], &mut inner);
        let paths = paths(&inner);
        let what = What::Apart {
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

    /// Names that stand for members from now on.
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
                let from = From {
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

    pub(super) fn name(&mut self, symbol: Option<SymbolId>, from: From) {
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
        let place = self.place(value.span().start, What::Over { of }, from);
        let text = format!("look__i({text},{place},{is_later}{up})");
        let text = if is_later && self.look == Look::Waits {
            let place = self.wait_place(value, value.span().start, WaitKind::ForAwait);
            format!("look__y2({place},{text})")
        } else {
            text
        };
        self.replace(value.span(), text);
    }

    /// A function that is handed on: what it takes apart may be `null`.
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
        // The same place that finds out of `undefined`.
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

/// The ways to the patterns in a pattern, as the watcher takes them; those to a list say so first.
fn paths(inner: &[Inner]) -> String {
    let one = |it: &Inner| {
        let list = it.is_list.then(|| "true".to_owned());
        let steps = it.path.iter().map(|step| match step {
            Step::Name(name) => crate::text::literal(name),
            Step::Index(at) => at.to_string(),
        });
        let steps: Vec<_> = list.into_iter().chain(steps).collect();
        format!("[{}]", steps.join(","))
    };
    let all: Vec<_> = inner.iter().map(one).collect();
    format!("[{}]", all.join(","))
}

/// A parameter that takes apart whatever it is given.
pub(super) fn is_unguarded(parameter: &FormalParameter<'_>) -> bool {
    let is_pattern = matches!(
        parameter.pattern,
        BindingPattern::ObjectPattern(_) | BindingPattern::ArrayPattern(_)
    );
    is_pattern && parameter.initializer.is_none()
}
