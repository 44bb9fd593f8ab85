//! Instruments what a script awaits.

use oxc_ast::ast::{AwaitExpression, Expression, ReturnStatement};
use oxc_ast_visit::Visit;
use oxc_span::GetSpan;

use super::Rewriter;
use crate::instrument::place::{SiteKind, WaitKind};
use codegen_shared::message::InstrumentPass;

impl<'s> Rewriter<'s> {
    pub(super) fn awaited(&mut self, it: &AwaitExpression<'_>) {
        if self.look == InstrumentPass::Calls {
            return self.visit_expression(&it.argument);
        }
        self.waited(&it.argument, it.span.start, WaitKind::Await);
    }

    /// Instruments the value that an async function returns, which is awaited as well.
    pub(super) fn returned(&mut self, it: &ReturnStatement<'_>) {
        let Some(value) = &it.argument else {
            return;
        };
        let is_async = self.around.last().is_none_or(|it| it.is_async);
        if self.look == InstrumentPass::Awaits && is_async {
            self.waited(value, value.span().start, WaitKind::Return);
        } else {
            self.visit_expression(value);
        }
    }

    pub(super) fn waited(&mut self, value: &Expression<'_>, at: u32, kind: WaitKind) {
        let text = self.expression(value);
        let place = self.wait_place(value, at, kind);
        let text = self.budget.written(format!("look__y({place},{text})"));
        self.replace(value.span(), text);
    }

    pub(super) fn wait_place(&mut self, of: &Expression<'_>, at: u32, kind: WaitKind) -> usize {
        let of = self.quote(of.span());
        self.place(at, SiteKind::Wait { of, kind }, None)
    }
}
