//! What is taken apart or gone over.

use oxc_ast::ast::{BindingPattern, Expression, FormalParameter, SpreadElement};
use oxc_ast_visit::Visit;
use oxc_semantic::SymbolId;
use oxc_span::{GetSpan, Span};

use super::{Rewriter, up};
use crate::watch::CALLBACK;
use crate::watch::place::{From, Inner, Key, What};

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
        let paths: Vec<String> = inner
            .iter()
            .map(|it| {
                let keys: Vec<_> = it
                    .path
                    .iter()
                    .map(|key| crate::text::literal(key))
                    .collect();
                format!("[{}]", keys.join(","))
            })
            .collect();
        let what = What::Apart {
            pattern: self.quote(pattern),
            of: self.object_text(value),
            inner,
        };
        let place = self.place(value.span().start, what, from);
        let text = format!(
            "look__d({text},{place},{is_list},[{}]{up})",
            paths.join(",")
        );
        self.replace(value.span(), text);
        place
    }

    /// The patterns inside a pattern, as long as nothing in between has a default.
    pub(super) fn inner(
        &self,
        pattern: &BindingPattern<'_>,
        path: &[String],
        found: &mut Vec<Inner>,
    ) {
        let BindingPattern::ObjectPattern(object) = pattern else {
            return;
        };
        if path.len() >= PATTERN_DEPTH_MAX {
            return;
        }
        for property in &object.properties {
            let Some(key) = property.key.static_name().filter(|_| !property.computed) else {
                continue;
            };
            // What stands behind a long key would have it in each of its paths.
            if key.len() > KEY_BYTES_MAX || self.budget.is_spent() {
                continue;
            }
            let mut path = path.to_vec();
            path.push(key.to_string());
            if let BindingPattern::ObjectPattern(inside) = &property.value {
                self.budget.place();
                let (line, column) = self.lines.place(inside.span.start);
                found.push(Inner {
                    line,
                    column,
                    pattern: self.quote(inside.span),
                    path: path.clone(),
                });
                self.inner(&property.value, &path, found);
            }
        }
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
                    key: Key::Name(crate::watch::name(&key)),
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

/// A parameter that takes apart whatever it is given.
pub(super) fn is_unguarded(parameter: &FormalParameter<'_>) -> bool {
    let is_pattern = matches!(
        parameter.pattern,
        BindingPattern::ObjectPattern(_) | BindingPattern::ArrayPattern(_)
    );
    is_pattern && parameter.initializer.is_none()
}
