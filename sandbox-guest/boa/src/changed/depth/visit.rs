//! The way through a script, on which its functions are found.

use std::ops::ControlFlow;

use boa_ast::Expression;
use boa_ast::declaration::{Binding, Variable};
use boa_ast::expression::access::PropertyAccessField;
use boa_ast::expression::literal::PropertyDefinition;
use boa_ast::expression::operator::Assign;
use boa_ast::expression::operator::assign::{AssignOp, AssignTarget};
use boa_ast::expression::{
    Call, Identifier, New, Optional, OptionalOperationKind, SuperCall, TaggedTemplate,
};
use boa_ast::function::{
    ArrowFunction, AsyncArrowFunction, AsyncFunctionDeclaration, AsyncFunctionExpression,
    AsyncGeneratorDeclaration, AsyncGeneratorExpression, ClassDeclaration, ClassElement,
    ClassElementName, ClassExpression, FunctionDeclaration, FunctionExpression,
    GeneratorDeclaration, GeneratorExpression, PrivateName,
};
use boa_ast::property::PropertyName;
use boa_ast::visitor::{VisitWith, Visitor};

use super::finder::Finder;
use super::values::{is_function, member};

impl<'ast> Visitor<'ast> for Finder<'ast> {
    type BreakTy = ();

    fn visit_expression(&mut self, node: &'ast Expression) -> ControlFlow<()> {
        match node {
            Expression::Identifier(name) => {
                self.mentions(name.sym());
                ControlFlow::Continue(())
            }
            other => other.visit_with(self),
        }
    }

    /// A name that is given a value, whatever that is.
    fn visit_identifier(&mut self, node: &'ast Identifier) -> ControlFlow<()> {
        self.found.variables.insert(node.sym());
        ControlFlow::Continue(())
    }

    fn visit_property_name(&mut self, node: &'ast PropertyName) -> ControlFlow<()> {
        match node {
            PropertyName::Literal(_) => ControlFlow::Continue(()),
            PropertyName::Computed(name) => self.visit_expression(name),
        }
    }

    fn visit_property_access_field(&mut self, node: &'ast PropertyAccessField) -> ControlFlow<()> {
        match node {
            PropertyAccessField::Const(name) => {
                self.mentions(name.sym());
                ControlFlow::Continue(())
            }
            PropertyAccessField::Expr(name) => self.visit_expression(name),
        }
    }

    fn visit_private_name(&mut self, node: &'ast PrivateName) -> ControlFlow<()> {
        self.mentions(node.description());
        ControlFlow::Continue(())
    }

    fn visit_variable(&mut self, node: &'ast Variable) -> ControlFlow<()> {
        match (node.binding(), node.init()) {
            (Binding::Identifier(name), Some(value)) => self.variable_is(name.sym(), value),
            (binding, _) => self.visit_binding(binding)?,
        }
        match node.init() {
            Some(value) => self.visit_expression(value),
            None => ControlFlow::Continue(()),
        }
    }

    fn visit_assign(&mut self, node: &'ast Assign) -> ControlFlow<()> {
        let value = node.rhs();
        let is_given = matches!(
            node.op(),
            AssignOp::Assign | AssignOp::BoolAnd | AssignOp::BoolOr | AssignOp::Coalesce
        );
        match node.lhs() {
            AssignTarget::Identifier(name) if is_given => self.variable_is(name.sym(), value),
            AssignTarget::Identifier(_) => {}
            AssignTarget::Access(access) => {
                self.visit_property_access(access)?;
                match member(access) {
                    Some(name) if is_given => self.member_is(name, value),
                    Some(_) => {}
                    None => self.found.implied |= is_function(value),
                }
            }
            AssignTarget::Pattern(pattern) => self.visit_pattern(pattern)?,
        }
        self.visit_expression(value)
    }

    fn visit_property_definition(&mut self, node: &'ast PropertyDefinition) -> ControlFlow<()> {
        match node {
            PropertyDefinition::IdentifierReference(name) => {
                self.found.implied |= self.words.is_called(name.sym());
                self.alike.insert(name.sym());
                self.mentions(name.sym());
                ControlFlow::Continue(())
            }
            PropertyDefinition::Property(name, value) => {
                self.visit_property_name(name)?;
                match name.literal() {
                    Some(name) => self.member_is(name.sym(), value),
                    None => self.found.implied |= is_function(value),
                }
                self.visit_expression(value)
            }
            PropertyDefinition::MethodDefinition(method) => {
                self.visit_property_name(method.name())?;
                let name = method.name().literal().map(|name| name.sym());
                self.method(name, method.kind(), method.parameters(), method.body())
            }
            other => other.visit_with(self),
        }
    }

    fn visit_class_element(&mut self, node: &'ast ClassElement) -> ControlFlow<()> {
        match node {
            ClassElement::MethodDefinition(method) => {
                let name = match method.name() {
                    ClassElementName::PropertyName(name) => {
                        self.visit_property_name(name)?;
                        name.literal().map(|name| name.sym())
                    }
                    ClassElementName::PrivateName(name) => Some(name.description()),
                };
                self.method(name, method.kind(), method.parameters(), method.body())
            }
            ClassElement::FieldDefinition(field) | ClassElement::StaticFieldDefinition(field) => {
                self.visit_property_name(field.name())?;
                let Some(value) = field.initializer() else {
                    return ControlFlow::Continue(());
                };
                match field.name().literal() {
                    Some(name) => self.member_is(name.sym(), value),
                    None => self.found.implied |= is_function(value),
                }
                self.visit_expression(value)
            }
            ClassElement::PrivateFieldDefinition(field)
            | ClassElement::PrivateStaticFieldDefinition(field) => {
                let Some(value) = field.initializer() else {
                    return ControlFlow::Continue(());
                };
                self.member_is(field.name().description(), value);
                self.visit_expression(value)
            }
            ClassElement::StaticBlock(_) => node.visit_with(self),
        }
    }

    fn visit_call(&mut self, node: &'ast Call) -> ControlFlow<()> {
        self.calls_with(node.function(), node.args());
        node.visit_with(self)
    }

    fn visit_new(&mut self, node: &'ast New) -> ControlFlow<()> {
        self.calls_with(node.constructor(), node.arguments());
        self.visit_expression(node.constructor())?;
        let mut arguments = node.arguments().iter();
        arguments.try_for_each(|argument| self.visit_expression(argument))
    }

    fn visit_super_call(&mut self, node: &'ast SuperCall) -> ControlFlow<()> {
        self.calls_anything();
        node.visit_with(self)
    }

    fn visit_tagged_template(&mut self, node: &'ast TaggedTemplate) -> ControlFlow<()> {
        self.calls(node.tag());
        node.visit_with(self)
    }

    fn visit_optional(&mut self, node: &'ast Optional) -> ControlFlow<()> {
        let mut last = None;
        for (at, operation) in node.chain().iter().enumerate() {
            last = match operation.kind() {
                OptionalOperationKind::SimplePropertyAccess {
                    field: PropertyAccessField::Const(name),
                } => Some(name.sym()),
                OptionalOperationKind::SimplePropertyAccess { .. } => None,
                OptionalOperationKind::PrivatePropertyAccess { field } => Some(field.description()),
                OptionalOperationKind::Call { args } => {
                    match last {
                        Some(name) => {
                            self.calls_member(name);
                            self.hands(name, args);
                        }
                        None if at == 0 => self.calls_with(node.target(), args),
                        None => self.calls_anything(),
                    }
                    None
                }
            };
        }
        node.visit_with(self)
    }

    fn visit_function_declaration(&mut self, node: &'ast FunctionDeclaration) -> ControlFlow<()> {
        self.function(Some(node.name()), node.parameters(), node.body(), false)
    }

    fn visit_function_expression(&mut self, node: &'ast FunctionExpression) -> ControlFlow<()> {
        self.function(node.name(), node.parameters(), node.body(), false)
    }

    fn visit_async_function_declaration(
        &mut self,
        node: &'ast AsyncFunctionDeclaration,
    ) -> ControlFlow<()> {
        self.function(Some(node.name()), node.parameters(), node.body(), false)
    }

    fn visit_async_function_expression(
        &mut self,
        node: &'ast AsyncFunctionExpression,
    ) -> ControlFlow<()> {
        self.function(node.name(), node.parameters(), node.body(), false)
    }

    fn visit_generator_declaration(&mut self, node: &'ast GeneratorDeclaration) -> ControlFlow<()> {
        self.function(Some(node.name()), node.parameters(), node.body(), true)
    }

    fn visit_generator_expression(&mut self, node: &'ast GeneratorExpression) -> ControlFlow<()> {
        self.function(node.name(), node.parameters(), node.body(), true)
    }

    fn visit_async_generator_declaration(
        &mut self,
        node: &'ast AsyncGeneratorDeclaration,
    ) -> ControlFlow<()> {
        self.function(Some(node.name()), node.parameters(), node.body(), true)
    }

    fn visit_async_generator_expression(
        &mut self,
        node: &'ast AsyncGeneratorExpression,
    ) -> ControlFlow<()> {
        self.function(node.name(), node.parameters(), node.body(), true)
    }

    fn visit_arrow_function(&mut self, node: &'ast ArrowFunction) -> ControlFlow<()> {
        self.function(None, node.parameters(), node.body(), false)
    }

    fn visit_async_arrow_function(&mut self, node: &'ast AsyncArrowFunction) -> ControlFlow<()> {
        self.function(None, node.parameters(), node.body(), false)
    }

    fn visit_class_declaration(&mut self, node: &'ast ClassDeclaration) -> ControlFlow<()> {
        let name = Some(node.name());
        self.class(name, node.super_ref(), node.constructor(), node.elements())
    }

    fn visit_class_expression(&mut self, node: &'ast ClassExpression) -> ControlFlow<()> {
        self.class(
            node.name(),
            node.super_ref(),
            node.constructor(),
            node.elements(),
        )
    }
}
