//! Instruments calls and `new`. A call passes its receiver to the instrumentation, which preserves
//! `this` and the order of evaluation.

use oxc_ast::ast::{Argument, CallExpression, Expression, NewExpression};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};

use super::members::Member;
use super::{Rewriter, read_at, up};
use crate::instrument::place::{ArgumentSource, Key, Place, SiteKind};

impl<'s> Rewriter<'s> {
    pub(super) fn called(&mut self, it: &CallExpression<'_>, before: &mut String) -> String {
        let Some((open, arguments)) = self.arguments(it) else {
            return self.render(it.span, |this| walk::walk_call_expression(this, it));
        };
        let is_bracketed = matches!(it.callee, Expression::ParenthesizedExpression(_));
        let inner = it.callee.get_inner_expression();
        let is_member =
            inner.is_member_expression() || matches!(inner, Expression::ChainExpression(_));
        if matches!(inner, Expression::Super(_)) || (is_bracketed && is_member) {
            // Instrumenting this callee would lose the receiver.
            let callee = match inner {
                Expression::ChainExpression(_) => {
                    self.slice(it.span.start, it.callee.span().end).to_owned()
                }
                _ => self.chained(&it.callee, before),
            };
            let between = self.slice(it.callee.span().end, open);
            let text = format!("{callee}{between}({arguments})");
            return match inner {
                Expression::Super(_) => self.super_called(it.span.start, text),
                _ => text,
            };
        }
        let member = self.as_member(&it.callee);
        if member.as_ref().is_some_and(|it| it.object.is_super()) {
            let callee = self.slice(it.span.start, it.callee.span().end);
            let between = self.slice(it.callee.span().end, open);
            return format!("{callee}{between}({arguments})");
        }
        let gap = self.slice(it.callee.span().end, open).replacen("?.", "", 1);
        let (itself, function) = match &member {
            Some(member) => {
                let mut object = String::new();
                let function = self.member(member, before, |this, member, text| {
                    object = this.watched(member, text);
                    String::new()
                });
                (object, function)
            }
            None => ("void 0".to_owned(), self.chained(&it.callee, before)),
        };
        if self.budget.is_spent() {
            return String::new();
        }
        // The instrumentation gets private members from the receiver itself.
        let is_whole = function.starts_with("look__u");
        let place = self.call_place(it, member.as_ref());
        let ups = self.ups(place);
        let (itself, function) = match (&member, it.optional) {
            (Some(member), false) if self.is_server(member.object) => {
                let tool = self.place(member.at, SiteKind::Tool, None);
                let tool = match member.computed {
                    // The computed name may contain `await`, which is not allowed in an arrow
                    // function.
                    Some(_) => format!(
                        "look__u({tool},(it,keys)=>it[keys[keys.length-1]],look__t,{function})"
                    ),
                    None => format!("look__u({tool},()=>look__t{function})"),
                };
                (format!("look__t={itself}"), tool)
            }
            (Some(_), false) if is_whole => (format!("look__t={itself}"), function),
            (Some(_), false) => (format!("look__t={itself}"), format!("look__t{function}")),
            (Some(_), true) => {
                // The expression in the brackets may itself contain such a call.
                let function = if is_whole {
                    format!("(look__t=look__s,{function})")
                } else {
                    format!("look__s{function}")
                };
                let there = format!("(look__f=[look__s={itself},{function}])[1]==null?void 0:");
                before.push_str(&self.budget.written(there));
                ("look__f[0]".to_owned(), "look__f[1]".to_owned())
            }
            (None, false) => (itself, function),
            (None, true) => {
                let there = format!("(look__f={function})==null?void 0:");
                before.push_str(&self.budget.written(there));
                (itself, "look__f".to_owned())
            }
        };
        self.budget.write(itself.len() + function.len());
        let text = match it.arguments.as_slice() {
            [only] if !only.is_spread() && self.goes_over_all(&it.callee) => {
                let (over, up) = self.over_all(only);
                format!("look__a({place},{itself},{function}{gap},[{arguments}],{over}{up})")
            }
            _ => format!("look__c({place},{itself},{function}{gap},[{arguments}]{ups})"),
        };
        self.budget.written(text)
    }

    /// Returns the offset of a call's opening parenthesis, and the text of the arguments.
    fn arguments(&mut self, it: &CallExpression<'_>) -> Option<(u32, String)> {
        let from = it.callee.span().end;
        let open = from + open_bracket(self.slice(from, it.span.end))?;
        let span = Span::new(open + 1, it.span.end.checked_sub(1)?);
        let text = self.render(span, |this| this.visit_arguments(&it.arguments));
        Some((open, text))
    }

    fn call_place(&mut self, it: &CallExpression<'_>, member: Option<&Member<'_, '_>>) -> usize {
        let mut given: Vec<_> = Vec::new();
        for argument in &it.arguments {
            // After a spread argument, the positions of the arguments are not known.
            let Some(argument) = argument.as_expression() else {
                break;
            };
            self.budget.place();
            given.push(ArgumentSource {
                text: self.quote(argument.span()),
                from: self.from(argument),
            });
        }
        let what = SiteKind::Call {
            callee: self.quote(it.callee.span()),
            on: member.map(|member| self.quote(member.object.span())),
            member: member.and_then(|member| match &member.key {
                Key::Name(name) => Some(name.clone()),
                Key::Computed(_) => None,
            }),
            given,
        };
        let at = member.map_or(it.callee.span().start, |member| member.at);
        let from = self.from(&it.callee);
        self.place(at, what, from)
    }

    fn over_all(&mut self, it: &Argument<'_>) -> (usize, String) {
        let from = it.as_expression().and_then(|it| self.from(it));
        let up = up(from.as_ref());
        let of = self.quote(it.span());
        let place = self.place(it.span().start, SiteKind::Over { of }, from);
        (place, up)
    }

    /// Whether this is `Promise.all` or a similar function. These reject a value that is not
    /// iterable, and their error has no location.
    fn goes_over_all(&self, callee: &Expression<'_>) -> bool {
        let Expression::StaticMemberExpression(member) = callee else {
            return false;
        };
        let is_promise = match &member.object {
            Expression::Identifier(name) => name.name == "Promise" && self.symbol(name).is_none(),
            _ => false,
        };
        is_promise && ["all", "allSettled", "any", "race"].contains(&member.property.name.as_str())
    }

    /// Writes a list of the places where the callee and each argument were read.
    fn ups(&self, place: usize) -> String {
        let Some(Place {
            what: SiteKind::Call { given, .. },
            from,
            ..
        }) = self.places.get(place)
        else {
            return String::new();
        };
        let all = std::iter::once(from.as_ref()).chain(given.iter().map(|it| it.from.as_ref()));
        let all: Vec<_> = all
            .map(|from| from.map_or("void 0".to_owned(), read_at))
            .collect();
        if all.iter().all(|it| it == "void 0") {
            return String::new();
        }
        format!(",[{}]", all.join(","))
    }

    /// Writes `new callee(…)` as a call of the instrumentation.
    pub(super) fn made(&mut self, it: &NewExpression<'_>) -> String {
        let callee = self.expression(&it.callee);
        let from = self.from(&it.callee);
        let up = up(from.as_ref());
        let what = SiteKind::New {
            callee: self.quote(it.callee.span()),
        };
        let place = self.place(it.callee.span().start, what, from);
        let behind = it.callee.span().end;
        let open = open_bracket(self.slice(behind, it.span.end)).map(|at| behind + at);
        let inside = match open {
            Some(open) => Span::new(open + 1, it.span.end.saturating_sub(1)),
            None => Span::new(it.span.end, it.span.end),
        };
        let given = self.render(inside, |this| this.visit_arguments(&it.arguments));
        let gap = self.slice(behind, open.unwrap_or(it.span.end));
        let before = self.slice(it.span.start + 3, it.callee.span().start);
        self.budget.written(format!(
            "look__n({place},{before}{callee}{gap},[{given}]{up})"
        ))
    }
}

/// Returns the offset of the first `(` outside comments.
fn open_bracket(text: &str) -> Option<u32> {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.split_once('\n')?.1;
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/")?.1;
        } else if let Some(after) = rest.strip_prefix("?.") {
            rest = after;
        } else {
            return rest
                .starts_with('(')
                .then(|| u32::try_from(text.len() - rest.len()).ok())?;
        }
    }
}
