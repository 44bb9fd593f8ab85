//! Functions in the computed names of methods, `class { [names.map((n) => n)]() {} }`. The engine
//! looks for what they name in the wrong place, so nothing that is given to the script could be
//! found there: such a script stays as it is.

use std::ops::ControlFlow;

use boa_ast::Expression;
use boa_ast::expression::literal::ObjectMethodDefinition;
use boa_ast::function::{ArrowFunction, ClassElement, ClassElementName, FunctionBody};
use boa_ast::property::PropertyName;
use boa_ast::visitor::{VisitWith, Visitor};

/// Whether a class has a method that is named by what a function answers.
pub(super) fn have_functions(read: &impl VisitWith) -> bool {
    let mut keys = Keys { is_in_key: false };
    read.visit_with(&mut keys).is_break()
}

struct Keys {
    is_in_key: bool,
}

impl Keys {
    fn key(&mut self, key: &Expression) -> ControlFlow<()> {
        let around = std::mem::replace(&mut self.is_in_key, true);
        self.visit_expression(key)?;
        self.is_in_key = around;
        ControlFlow::Continue(())
    }

    fn function(&self) -> ControlFlow<()> {
        match self.is_in_key {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl<'ast> Visitor<'ast> for Keys {
    type BreakTy = ();

    fn visit_class_element(&mut self, node: &'ast ClassElement) -> ControlFlow<()> {
        if let ClassElement::MethodDefinition(method) = node
            && let ClassElementName::PropertyName(PropertyName::Computed(key)) = method.name()
        {
            self.key(key)?;
        }
        node.visit_with(self)
    }

    fn visit_function_body(&mut self, node: &'ast FunctionBody) -> ControlFlow<()> {
        self.function()?;
        node.visit_with(self)
    }

    fn visit_arrow_function(&mut self, node: &'ast ArrowFunction) -> ControlFlow<()> {
        self.function()?;
        node.visit_with(self)
    }

    fn visit_object_method_definition(
        &mut self,
        node: &'ast ObjectMethodDefinition,
    ) -> ControlFlow<()> {
        self.function()?;
        node.visit_with(self)
    }
}
