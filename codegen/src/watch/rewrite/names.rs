//! Names: those that functions go by, and those that may not be there.

use oxc_ast::ast::{Expression, IdentifierReference};
use oxc_ast_visit::Visit;

use super::{Rewriter, shorten};
use crate::check::is_global;
use crate::watch::place::What;

impl<'s> Rewriter<'s> {
    pub(super) fn named_value(&mut self, name: &str, value: &Expression<'_>) {
        if is_function(value) && !name.is_empty() {
            self.next_function = Some(name.to_owned());
        }
        self.visit_expression(value);
    }

    pub(super) fn enter(&mut self, name: Option<String>) {
        // The script itself, where it is one function.
        let unnamed = if self.functions.is_empty() && self.is_one_function {
            "<script>"
        } else {
            "<anonymous>"
        };
        self.functions
            .push(shorten(name.as_deref().unwrap_or(unnamed)));
    }

    pub(super) fn use_name(&mut self, it: &IdentifierReference<'_>) {
        let declared = match self.symbol(it) {
            Some(symbol) => {
                let span = self.scoping.symbol_span(symbol);
                let flags = self.scoping.symbol_flags(symbol);
                if !flags.is_block_scoped() || span.start < it.span.start {
                    return;
                }
                Some(self.lines.place(span.start).0)
            }
            None if is_global(&it.name) => return,
            None => None,
        };
        let name = &it.name;
        let what = What::Name {
            declared_in_line: declared,
            name: crate::watch::name(name),
        };
        let place = self.place(it.span.start, what, None);
        self.replace(it.span, format!("look__u({place},()=>{name})"));
    }
}

pub(super) fn is_function(it: &Expression<'_>) -> bool {
    it.get_inner_expression().is_function()
}
