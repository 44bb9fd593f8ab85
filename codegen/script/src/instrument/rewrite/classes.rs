//! Instruments classes: `extends` clauses, `this` before `super(…)`, and private members.

use oxc_ast::ast::{Class, ThisExpression};
use oxc_ast_visit::Visit;
use oxc_span::GetSpan;

use super::members::Member;
use super::{Rewriter, up};
use crate::instrument::place::{Key, SiteKind};

impl<'s> Rewriter<'s> {
    pub(super) fn extended(&mut self, it: &Class<'_>) {
        let Some(heritage) = &it.heritage else {
            return;
        };
        let of = &heritage.expression;
        if !self.is_closer() {
            return self.visit_expression(of);
        }
        let text = self.expression(of);
        let from = self.from(of);
        let up = up(from.as_ref());
        let what = SiteKind::Extends {
            of: self.quote(of.span()),
        };
        let place = self.place(of.span().start, what, from);
        self.replace(of.span(), format!("look__h2({place},{text}{up})"));
    }

    /// Instruments a call of `super`, which fails if it is the second one. A call that contains
    /// `await` or `yield` stays unchanged, because these cannot move into another function.
    pub(super) fn super_called(&mut self, at: u32, text: String) -> String {
        if !self.is_closer() || text.contains("await") || text.contains("yield") {
            return text;
        }
        let place = self.place(at, SiteKind::Super, None);
        format!("look__u({place},()=>{text})")
    }

    pub(super) fn this(&mut self, it: &ThisExpression) {
        let is_derived = self.around.last().is_some_and(|it| it.is_derived);
        if self.is_closer() && is_derived {
            let place = self.place(it.span.start, SiteKind::This, None);
            self.replace(it.span, format!("look__u({place},()=>this)"));
        }
    }

    /// Instruments `.#name` on an object that may not have it.
    pub(super) fn private(&mut self, it: &Member<'_, '_>, object: &str) -> Option<String> {
        let Key::Computed(name) = &it.key else {
            return None;
        };
        if !self.is_closer() || it.computed.is_some() {
            return None;
        }
        let what = SiteKind::Private {
            of: self.object_text(it.object),
            name: name.clone(),
        };
        let place = self.place(it.at, what, None);
        let name = self.slice(it.at, it.span.end);
        Some(format!("look__u({place},(it)=>it.{name},{object})"))
    }
}
