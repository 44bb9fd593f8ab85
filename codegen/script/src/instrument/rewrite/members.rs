//! Instruments member accesses, which may be in a chain with calls. The conditions of an optional
//! chain are written before the chain.

use oxc_ast::ast::{
    ComputedMemberExpression, Expression, PrivateFieldExpression, StaticMemberExpression,
};
use oxc_span::{GetSpan, Span};

use super::{Rewriter, up};
use crate::instrument::name;
use crate::instrument::place::{Key, SiteKind, ValueOrigin};

/// Maximum number of parents recorded for a member that may be missing.
const CHAIN_MAX: usize = 2;

pub(super) struct Member<'e, 'a> {
    pub(super) object: &'e Expression<'a>,
    pub(super) span: Span,
    pub(super) optional: bool,
    /// Offset of the name or index.
    pub(super) at: u32,
    pub(super) key: Key,
    pub(super) computed: Option<&'e Expression<'a>>,
}

impl<'s> Rewriter<'s> {
    pub(super) fn chained(&mut self, it: &Expression<'_>, before: &mut String) -> String {
        if self.budget.is_spent() {
            return String::new();
        }
        match it {
            Expression::StaticMemberExpression(it) => self.static_member(it, before),
            Expression::ComputedMemberExpression(it) => self.computed_member(it, before),
            Expression::PrivateFieldExpression(it) => self.private_member(it, before),
            Expression::CallExpression(it) => self.called(it, before),
            other => self.expression(other),
        }
    }

    pub(super) fn static_member(
        &mut self,
        it: &StaticMemberExpression<'_>,
        before: &mut String,
    ) -> String {
        self.member(&of_static(it), before, Self::watched)
    }

    pub(super) fn private_member(
        &mut self,
        it: &PrivateFieldExpression<'_>,
        before: &mut String,
    ) -> String {
        self.member(&of_private(it), before, Self::watched)
    }

    pub(super) fn computed_member(
        &mut self,
        it: &ComputedMemberExpression<'_>,
        before: &mut String,
    ) -> String {
        let member = self.of_computed(it);
        self.member(&member, before, Self::watched)
    }

    /// Returns an expression as a member, if it is one.
    pub(super) fn as_member<'e, 'a>(&self, it: &'e Expression<'a>) -> Option<Member<'e, 'a>> {
        match it {
            Expression::StaticMemberExpression(it) => Some(of_static(it)),
            Expression::ComputedMemberExpression(it) => Some(self.of_computed(it)),
            Expression::PrivateFieldExpression(it) => Some(of_private(it)),
            _ => None,
        }
    }

    pub(super) fn of_computed<'e, 'a>(
        &self,
        it: &'e ComputedMemberExpression<'a>,
    ) -> Member<'e, 'a> {
        let key = match &it.expression {
            Expression::StringLiteral(text) => Key::Name(name(&text.value)),
            other => Key::Computed(format!("[{}]", self.quote(other.span()))),
        };
        Member {
            object: &it.object,
            span: it.span,
            optional: it.optional,
            at: it.expression.span().start,
            key,
            computed: Some(&it.expression),
        }
    }

    /// Writes a member access; `with` writes the object.
    pub(super) fn member(
        &mut self,
        it: &Member<'_, '_>,
        before: &mut String,
        with: impl FnOnce(&mut Self, &Member<'_, '_>, String) -> String,
    ) -> String {
        let object = self.chained(it.object, before);
        if self.budget.is_spent() {
            return String::new();
        }
        let object = if it.optional {
            let there = format!("(look__t={object})==null?void 0:");
            before.push_str(&self.budget.written(there));
            "look__t".to_owned()
        } else {
            object
        };
        let object = with(self, it, object);
        let text = match self.private(
            it,
            if object.is_empty() {
                "look__t"
            } else {
                &object
            },
        ) {
            Some(text) => text,
            None => format!("{object}{}", self.behind_object(it)),
        };
        self.budget.written(text)
    }

    /// Returns the text from the end of the object to the end of the member.
    pub(super) fn behind_object(&mut self, it: &Member<'_, '_>) -> String {
        let from = it.object.span().end;
        let text = match it.computed {
            Some(index) => {
                let inside = self.expression(index);
                let span = index.span();
                let (open, close) = (
                    self.slice(from, span.start),
                    self.slice(span.end, it.span.end),
                );
                format!("{open}{inside}{close}")
            }
            None => self.slice(from, it.span.end).to_owned(),
        };
        if !it.optional {
            return text;
        }
        let dot = if it.computed.is_some() { "" } else { "." };
        text.replacen("?.", dot, 1)
    }

    /// Instruments the object of a member access.
    pub(super) fn watched(&mut self, it: &Member<'_, '_>, object: String) -> String {
        if self.is_certain(it.object) {
            return object;
        }
        let of = self.object_text(it.object);
        let from = self.from(it.object);
        let up = up(from.as_ref());
        let member = match &it.key {
            Key::Name(name) | Key::Computed(name) => name.clone(),
        };
        let what = SiteKind::Read {
            of: of.clone(),
            member,
        };
        let place = self.place(it.at, what, from.clone());
        let from = ValueOrigin {
            place,
            of,
            key: it.key.clone(),
            outer: from.filter(|_| it.optional).map(|mut from| {
                from.cut(CHAIN_MAX);
                Box::new(from)
            }),
            named_in_line: None,
        };
        self.read.insert((it.span.start, it.span.end), from);
        self.budget
            .written(format!("look__r({object},{place}{up})"))
    }
}

pub(super) fn of_static<'e, 'a>(it: &'e StaticMemberExpression<'a>) -> Member<'e, 'a> {
    Member {
        object: &it.object,
        span: it.span,
        optional: it.optional,
        at: it.property.span.start,
        key: Key::Name(name(&it.property.name)),
        computed: None,
    }
}

pub(super) fn of_private<'e, 'a>(it: &'e PrivateFieldExpression<'a>) -> Member<'e, 'a> {
    Member {
        object: &it.object,
        span: it.span,
        optional: it.optional,
        at: it.field.span.start,
        key: Key::Computed(format!("#{}", name(&it.field.name))),
        computed: None,
    }
}
