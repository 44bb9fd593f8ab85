//! Instruments assignments: to constants, and to members that cannot be set.

use oxc_ast::ast::{
    AssignmentExpression, AssignmentTarget, IdentifierReference, SimpleAssignmentTarget,
    UpdateExpression,
};
use oxc_ast_visit::walk;
use oxc_span::GetSpan;

use super::Rewriter;
use super::members::Member;
use crate::instrument::place::{Key, SiteKind};
use crate::text::literal;

impl<'s> Rewriter<'s> {
    /// Instruments the assignment itself; its two sides are instrumented elsewhere.
    pub(super) fn assigned(&mut self, it: &AssignmentExpression<'_>) -> Option<String> {
        if !self.is_closer() || it.operator.is_logical() {
            return None;
        }
        if let AssignmentTarget::AssignmentTargetIdentifier(name) = &it.left {
            let constant = self.constant(name, it.span.start);
            let operator = it.operator.to_binary_operator().map(|it| it.as_str());
            if constant.is_none() && operator.is_none() {
                return None;
            }
            self.next_function = Some(name.name.to_string());
            let mut value = self.expression(&it.right);
            let lines = self.lines_between(it.left.span(), it.right.span());
            if let Some(operator) = operator {
                let place = self.operation(it, operator);
                let before = self.named(name);
                value = format!("look__o({place},'{operator}',{before},{value})");
            }
            if let Some(place) = constant {
                value = format!("look__k({place},{value})");
            }
            let text = format!("{}={lines}{value}", name.name);
            return Some(self.budget.written(text));
        }
        let member = self.target(&it.left)?;
        self.written_member(it, &member)
    }

    /// Writes `a.b = c` as a call of the instrumentation. Code inside the script sets the member,
    /// because in strict mode a read-only member throws and in sloppy mode it does not.
    fn written_member(
        &mut self,
        it: &AssignmentExpression<'_>,
        member: &Member<'_, '_>,
    ) -> Option<String> {
        if member.object.is_super() {
            return None;
        }
        let mut object = self.chained(member.object, &mut String::new());
        object = self.watched(member, object);
        let key = member.computed.map(|key| self.expression(key));
        let place = self.write_place(member);
        let operator = it.operator.to_binary_operator().map(|it| it.as_str());
        let doing = operator.map(|operator| (self.operation(it, operator), operator));
        self.next_function = None;
        let value = self.expression(&it.right);
        let lines = self.lines_between(member.span, it.right.span());
        let name = match member.computed {
            Some(_) => "[k]".to_owned(),
            None => format!(".{}", self.slice(member.at, member.span.end)),
        };
        let key = key.unwrap_or_else(|| match &member.key {
            Key::Name(name) => literal(name),
            Key::Computed(_) => "void 0".to_owned(),
        });
        let set = format!("(o,k,v)=>o{name}=v");
        let text = match doing {
            None => format!("look__w({place},{object},{key},{lines}{value},{set})"),
            Some((doing, operator)) => format!(
                "look__w2({place},{doing},'{operator}',{object},{key},(o,k)=>o{name},{set})({lines}{value})"
            ),
        };
        Some(self.budget.written(text))
    }

    /// Instruments `a++` on a constant.
    pub(super) fn updated(&mut self, it: &UpdateExpression<'_>) {
        if let SimpleAssignmentTarget::AssignmentTargetIdentifier(name) = &it.argument
            && let Some(place) = self.constant(name, it.span.start)
        {
            let before = self.named(name);
            return self.replace(it.span, format!("look__k({place},{before})"));
        }
        walk::walk_update_expression(self, it);
    }

    fn constant(&mut self, name: &IdentifierReference<'_>, at: u32) -> Option<usize> {
        let symbol = self.symbol(name)?;
        if !self.is_closer() || !self.scoping.symbol_flags(symbol).is_const_variable() {
            return None;
        }
        let what = SiteKind::Constant {
            name: crate::instrument::name(&name.name),
            declared_in_line: self.lines.place(self.scoping.symbol_span(symbol).start).0,
        };
        Some(self.place(at, what, None))
    }

    fn operation(&mut self, it: &AssignmentExpression<'_>, operator: &str) -> usize {
        let what = SiteKind::Operation {
            operator: operator.to_owned(),
            left: self.quote(it.left.span()),
            right: Some(self.quote(it.right.span())),
        };
        self.place(it.span.start, what, None)
    }

    fn write_place(&mut self, member: &Member<'_, '_>) -> usize {
        let (Key::Name(name) | Key::Computed(name)) = &member.key;
        let what = SiteKind::Write {
            of: self.object_text(member.object),
            member: name.clone(),
        };
        let from = self.from(member.object);
        self.place(member.object.span().start, what, from)
    }

    /// Writes the current value of a name.
    fn named(&mut self, name: &IdentifierReference<'_>) -> String {
        self.render(name.span, |this| this.use_name(name))
    }

    fn target<'e, 'a>(&self, it: &'e AssignmentTarget<'a>) -> Option<Member<'e, 'a>> {
        match it {
            AssignmentTarget::StaticMemberExpression(it) => Some(super::members::of_static(it)),
            AssignmentTarget::ComputedMemberExpression(it) => Some(self.of_computed(it)),
            AssignmentTarget::PrivateFieldExpression(it) => Some(super::members::of_private(it)),
            _ => None,
        }
    }
}
