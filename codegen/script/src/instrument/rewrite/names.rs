//! Names functions for stacks, and instruments names that may not have a value.

use oxc_ast::ast::{Expression, IdentifierReference};
use oxc_ast_visit::Visit;
use oxc_semantic::SymbolId;

use super::{EnclosingFunction, Rewriter, shorten};
use crate::check::is_global;
use crate::instrument::place::SiteKind;

impl<'s> Rewriter<'s> {
    pub(super) fn named_value(&mut self, name: &str, value: &Expression<'_>) {
        if is_function(value) && !name.is_empty() {
            self.next_function = Some(name.to_owned());
        }
        self.visit_expression(value);
    }

    pub(super) fn enter(&mut self, name: Option<String>) {
        // This function is the whole script.
        let unnamed = if self.functions.is_empty() && self.is_one_function {
            "<script>"
        } else {
            "<anonymous>"
        };
        self.functions
            .push(shorten(name.as_deref().unwrap_or(unnamed)));
    }

    /// Whether a name used after its declaration can still be without a value: in its own
    /// initialiser, or in a function that can be called earlier.
    fn may_be_early(&self, symbol: SymbolId, declared_at: u32) -> bool {
        let is_hoisted = |it: &EnclosingFunction| it.hoisted_at.is_some_and(|at| declared_at < at);
        self.is_closer() && (self.beginning.contains(&symbol) || self.around.iter().any(is_hoisted))
    }

    pub(super) fn use_name(&mut self, it: &IdentifierReference<'_>) {
        let declared = match self.symbol(it) {
            Some(symbol) => {
                let span = self.scoping.symbol_span(symbol);
                let flags = self.scoping.symbol_flags(symbol);
                let is_early = it.span.start < span.start || self.may_be_early(symbol, span.start);
                if !flags.is_block_scoped() || !is_early {
                    return;
                }
                Some(self.lines.place(span.start).0)
            }
            None if is_global(&it.name) => return,
            None => None,
        };
        let name = &it.name;
        let what = SiteKind::Name {
            declared_in_line: declared,
            name: crate::instrument::name(name),
        };
        let place = self.place(it.span.start, what, None);
        self.replace(it.span, format!("look__u({place},()=>{name})"));
    }
}

pub(super) fn is_function(it: &Expression<'_>) -> bool {
    it.get_inner_expression().is_function()
}
