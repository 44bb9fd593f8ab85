//! Decides which parts of a script are instrumented, and visits each.

use oxc_allocator::Vec as ArenaVec;
use oxc_ast::ast::{
    Argument, ArrayExpressionElement, ArrayPattern, ArrowFunctionBody, ArrowFunctionExpression,
    AssignmentExpression, AssignmentTarget, AwaitExpression, BinaryExpression, BindingPattern,
    BindingProperty, CallExpression, ChainElement, ChainExpression, Class,
    ComputedMemberExpression, Expression, ExpressionStatement, ForOfStatement, ForStatementLeft,
    FormalParameters, Function, FunctionType, MethodDefinition, MethodDefinitionKind,
    NewExpression, ObjectProperty, PrivateFieldExpression, PrivateInExpression, ReturnStatement,
    StaticMemberExpression, TaggedTemplateExpression, TemplateLiteral, ThisExpression,
    ThrowStatement, UnaryExpression, UpdateExpression, VariableDeclarator, YieldExpression,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};
use oxc_syntax::operator::UnaryOperator;
use oxc_syntax::scope::ScopeFlags;

use super::names::is_function;
use super::patterns::is_unguarded;
use super::{EnclosingFunction, Rewriter};
use crate::instrument::place::{SiteKind, ValueOrigin, WaitKind};
use codegen_shared::message::InstrumentPass;

impl<'a> Visit<'a> for Rewriter<'_> {
    fn visit_static_member_expression(&mut self, it: &StaticMemberExpression<'a>) {
        let text = self.static_member(it, &mut String::new());
        self.replace(it.span, text);
    }

    fn visit_computed_member_expression(&mut self, it: &ComputedMemberExpression<'a>) {
        let text = self.computed_member(it, &mut String::new());
        self.replace(it.span, text);
    }

    fn visit_private_field_expression(&mut self, it: &PrivateFieldExpression<'a>) {
        let text = self.private_member(it, &mut String::new());
        self.replace(it.span, text);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        let text = self.called(it, &mut String::new());
        self.replace(it.span, text);
    }

    /// Writes a chain as nested conditions. The text starts with a name, so that it is not parsed
    /// as the arguments of a call on the line before.
    fn visit_chain_expression(&mut self, it: &ChainExpression<'a>) {
        let mut before = String::new();
        let text = match &it.expression {
            ChainElement::CallExpression(call) => self.called(call, &mut before),
            ChainElement::StaticMemberExpression(it) => self.static_member(it, &mut before),
            ChainElement::ComputedMemberExpression(it) => self.computed_member(it, &mut before),
            ChainElement::PrivateFieldExpression(it) => self.private_member(it, &mut before),
            ChainElement::TSNonNullExpression(_) => return,
        };
        self.replace(it.span, format!("look__v({before}{text})"));
    }

    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        let text = self.made(it);
        self.replace(it.span, text);
    }

    /// Leaves the operands of `delete` and `typeof` unchanged: `delete` needs a member access, and
    /// `typeof` accepts undeclared names.
    fn visit_unary_expression(&mut self, it: &UnaryExpression<'a>) {
        let is_chain = matches!(
            it.argument.get_inner_expression(),
            Expression::ChainExpression(_)
        );
        let is_name = matches!(it.argument, Expression::Identifier(_));
        match it.operator {
            UnaryOperator::Delete if is_chain => {}
            UnaryOperator::Typeof if is_name => {}
            _ => match self.unary(it) {
                Some(text) => self.replace(it.span, text),
                None => walk::walk_unary_expression(self, it),
            },
        }
    }

    fn visit_binary_expression(&mut self, it: &BinaryExpression<'a>) {
        match self.binary(it) {
            Some(text) => self.replace(it.span, text),
            None => walk::walk_binary_expression(self, it),
        }
    }

    fn visit_template_literal(&mut self, it: &TemplateLiteral<'a>) {
        self.template(it);
    }

    fn visit_tagged_template_expression(&mut self, it: &TaggedTemplateExpression<'a>) {
        self.tag(it);
    }

    fn visit_private_in_expression(&mut self, it: &PrivateInExpression<'a>) {
        self.private_in(it);
    }

    fn visit_update_expression(&mut self, it: &UpdateExpression<'a>) {
        self.updated(it);
    }

    fn visit_await_expression(&mut self, it: &AwaitExpression<'a>) {
        self.awaited(it);
    }

    fn visit_return_statement(&mut self, it: &ReturnStatement<'a>) {
        self.returned(it);
    }

    /// Instruments a script that is one expression; its value is awaited.
    fn visit_expression_statement(&mut self, it: &ExpressionStatement<'a>) {
        if self.look == InstrumentPass::Awaits
            && self.is_one_expression
            && self.functions.is_empty()
        {
            let at = it.expression.span().start;
            self.waited(&it.expression, at, WaitKind::Return);
        } else {
            self.visit_expression(&it.expression);
        }
    }

    fn visit_this_expression(&mut self, it: &ThisExpression) {
        self.this(it);
    }

    fn visit_arguments(&mut self, them: &ArenaVec<'a, Argument<'a>>) {
        them.iter().for_each(|it| self.visit_argument(it));
    }

    fn visit_argument(&mut self, it: &Argument<'a>) {
        match it {
            Argument::SpreadElement(it) => self.spread(it),
            other => match other.as_expression() {
                Some(it) if is_function(it) => self.callback(it),
                _ => walk::walk_argument(self, other),
            },
        }
    }

    fn visit_array_expression_element(&mut self, it: &ArrayExpressionElement<'a>) {
        match it {
            ArrayExpressionElement::SpreadElement(it) => self.spread(it),
            other => walk::walk_array_expression_element(self, other),
        }
    }

    fn visit_for_of_statement(&mut self, it: &ForOfStatement<'a>) {
        self.visit_for_statement_left(&it.left);
        self.over(&it.right, it.r#await);
        if self.is_closer()
            && !it.r#await
            && let ForStatementLeft::VariableDeclaration(declared) = &it.left
            && let Some(declared) = declared.declarations.first()
        {
            self.each_apart(&declared.id, it.right.span());
        }
        self.visit_statement(&it.body);
    }

    fn visit_yield_expression(&mut self, it: &YieldExpression<'a>) {
        match &it.argument {
            Some(value) if it.delegate => self.over(value, true),
            _ => walk::walk_yield_expression(self, it),
        }
    }

    fn visit_throw_statement(&mut self, it: &ThrowStatement<'a>) {
        let text = self.expression(&it.argument);
        // If the error was created elsewhere, the place of its creation was already recorded.
        let is_new = matches!(it.argument, Expression::NewExpression(_));
        let at = if is_new {
            it.argument.span().start
        } else {
            it.span.start
        };
        let place = self.place(at, SiteKind::Throw, None);
        let text = format!("look__x({text},{place},{is_new})");
        self.replace(it.argument.span(), text);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        self.visit_binding_pattern(&it.id);
        let Some(value) = &it.init else {
            return;
        };
        match &it.id {
            BindingPattern::BindingIdentifier(name) => {
                self.beginning.extend(name.symbol_id.get());
                self.named_value(&name.name, value);
                self.beginning.pop();
                if let Some(from) = self.from(value) {
                    let line = self.lines.place(it.span.start).0;
                    let named_in_line = Some(from.named_in_line.unwrap_or(line));
                    self.name(
                        name.symbol_id.get(),
                        ValueOrigin {
                            named_in_line,
                            ..from
                        },
                    );
                }
            }
            pattern => {
                let is_list = matches!(pattern, BindingPattern::ArrayPattern(_));
                let mut inner = Vec::new();
                self.inner(pattern, &[], &mut inner);
                let place = self.apart(pattern.span(), is_list, value, inner);
                self.name_members(pattern, place, value);
            }
        }
    }

    fn visit_assignment_expression(&mut self, it: &AssignmentExpression<'a>) {
        let is_list = match &it.left {
            AssignmentTarget::ArrayAssignmentTarget(_) => true,
            AssignmentTarget::ObjectAssignmentTarget(_) => false,
            left => {
                if let Some(text) = self.assigned(it) {
                    return self.replace(it.span, text);
                }
                self.visit_assignment_target(left);
                let name = left.get_identifier_name().unwrap_or_default();
                return self.named_value(name, &it.right);
            }
        };
        self.visit_assignment_target(&it.left);
        self.apart(it.left.span(), is_list, &it.right, Vec::new());
    }

    fn visit_object_property(&mut self, it: &ObjectProperty<'a>) {
        if it.shorthand {
            let value = self.expression(&it.value);
            let name = self.slice(it.span.start, it.span.end);
            if value != name {
                self.replace(it.span, format!("{name}:{value}"));
            }
            return;
        }
        self.visit_property_key(&it.key);
        let name = it.key.static_name().unwrap_or_default();
        self.named_value(&name, &it.value);
    }

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        self.visit_property_key(&it.key);
        let name = match (it.kind, self.classes.last()) {
            (MethodDefinitionKind::Constructor, Some(class)) => format!("new {class}"),
            _ => it.key.name().unwrap_or_default().into_owned(),
        };
        self.next_function = Some(name);
        self.begins_derived = it.kind == MethodDefinitionKind::Constructor && self.is_derived_class;
        self.visit_function(&it.value, ScopeFlags::Function);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        let name = it.id.as_ref().map(|id| id.name.to_string());
        self.classes
            .push(name.unwrap_or_else(|| "a class".to_owned()));
        self.extended(it);
        let outer = std::mem::replace(&mut self.is_derived_class, it.heritage.is_some());
        self.visit_class_body(&it.body);
        self.is_derived_class = outer;
        self.classes.pop();
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        let given = self.next_function.take();
        let own = it.id.as_ref().map(|id| id.name.to_string());
        let is_declared = it.r#type == FunctionType::FunctionDeclaration;
        self.enter(own.or(given));
        self.around.push(EnclosingFunction {
            is_async: it.r#async,
            hoisted_at: is_declared.then_some(it.span.start),
            is_derived: std::mem::take(&mut self.begins_derived),
        });
        walk::walk_function(self, it, flags);
        self.around.pop();
        self.functions.pop();
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        let given = self.next_function.take();
        self.enter(given);
        self.around.push(EnclosingFunction {
            is_async: it.r#async,
            hoisted_at: None,
            is_derived: self.around.last().is_some_and(|it| it.is_derived),
        });
        match &it.body {
            ArrowFunctionBody::FunctionBody(_) => walk::walk_arrow_function_expression(self, it),
            value => {
                self.visit_formal_parameters(&it.params);
                match value.as_expression() {
                    Some(value) if it.r#async && self.look == InstrumentPass::Awaits => {
                        self.waited(value, value.span().start, WaitKind::Return);
                    }
                    Some(value) => self.visit_expression(value),
                    None => {}
                }
            }
        }
        self.around.pop();
        self.functions.pop();
    }

    /// Instruments a name that may not have a value yet, or that is not declared.
    fn visit_expression(&mut self, it: &Expression<'a>) {
        match it {
            _ if self.budget.is_spent() => {}
            Expression::Identifier(name) => self.use_name(name),
            other => walk::walk_expression(self, other),
        }
    }

    fn visit_binding_property(&mut self, it: &BindingProperty<'a>) {
        walk::walk_binding_property(self, it);
        self.nested_member(it);
    }

    fn visit_array_pattern(&mut self, it: &ArrayPattern<'a>) {
        walk::walk_array_pattern(self, it);
        for element in it.elements.iter().flatten() {
            self.nested(element, None);
        }
    }

    /// Instruments parameters. A pattern without a default value gets one that reports a missing
    /// argument.
    fn visit_formal_parameters(&mut self, it: &FormalParameters<'a>) {
        for (at, parameter) in it.items.iter().enumerate() {
            let pattern = &parameter.pattern;
            if is_unguarded(parameter) {
                let span = pattern.span();
                let what = SiteKind::Given {
                    pattern: self.quote(span),
                    number: at + 1,
                };
                let place = self.place(span.start, what, None);
                self.given.insert(span.start, place);
                let text = format!("=look__p({place})");
                self.replace(Span::new(span.end, span.end), text);
            }
        }
        walk::walk_formal_parameters(self, it);
    }
}
