//! Calls within calls within calls. The engine's own bound ends the run, and no `catch` sees
//! it. So in a script that catches errors, functions that may call themselves ask here first
//! how deep they are, and what is too deep is a `RangeError`. One that nobody catches ends
//! the run as the engine's bound does.

use std::ops::ControlFlow;

use boa_ast::Spanned;
use boa_ast::declaration::{Binding, Variable};
use boa_ast::expression::access::{PropertyAccess, PropertyAccessField};
use boa_ast::expression::literal::PropertyDefinition;
use boa_ast::expression::operator::Assign;
use boa_ast::expression::operator::assign::AssignTarget;
use boa_ast::expression::{Call, Expression, Identifier, New};
use boa_ast::function::{
    AsyncFunctionDeclaration, ClassDeclaration, ClassElement, ClassElementName, ClassExpression,
    FunctionBody, FunctionDeclaration,
};
use boa_ast::property::{MethodDefinitionKind, PropertyName};
use boa_ast::visitor::{VisitWith, Visitor};
use boa_engine::builtins::error::Error;
use boa_engine::{Context, JsNativeError, JsObject, JsResult, JsValue};
use boa_interner::Sym;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Edit;
use crate::explain::spans::Text;
use crate::quiet;
use crate::run::Run;

/// Asks in the body of each function that may call itself.
pub(super) fn edits(script: &str, name: &str, body: &FunctionBody) -> Vec<Edit> {
    let mut calls = Calls::default();
    let _ = body.visit_with(&mut calls);
    let text = Text::new(script);
    let bodies = calls.bodies.iter();
    let own = bodies.filter(|(names, _)| names.iter().any(|name| calls.comes_back_to(*name)));
    own.filter_map(|(_, body)| {
        let start = text.offset(body.span().start())?;
        let after = start + 1;
        (text.slice(start, after)? == "{").then(|| Edit {
            start: after,
            end: after,
            text: format!("{name}();"),
            place: after,
        })
    })
    .collect()
}

/// Who calls whom, by names: a function is whatever has its name.
#[derive(Default)]
struct Calls<'a> {
    /// What the next function is called.
    named: Vec<Sym>,
    /// The names of the functions around.
    around: Vec<Vec<Sym>>,
    calls: FxHashMap<Sym, FxHashSet<Sym>>,
    bodies: Vec<(Vec<Sym>, &'a FunctionBody)>,
}

impl Calls<'_> {
    fn comes_back_to(&self, name: Sym) -> bool {
        let mut seen = FxHashSet::default();
        let mut open = vec![name];
        while let Some(next) = open.pop() {
            for called in self.calls.get(&next).into_iter().flatten() {
                if *called == name {
                    return true;
                }
                if seen.insert(*called) {
                    open.push(*called);
                }
            }
        }
        false
    }

    fn called(&mut self, function: &Expression) {
        let name = match function {
            Expression::Identifier(name) => name.sym(),
            Expression::PropertyAccess(PropertyAccess::Simple(access)) => match access.field() {
                PropertyAccessField::Const(name) => name.sym(),
                PropertyAccessField::Expr(_) => return,
            },
            _ => return,
        };
        for caller in self.around.iter().flatten() {
            self.calls.entry(*caller).or_default().insert(name);
        }
    }

    fn name(&mut self, name: Option<Identifier>) {
        self.named.extend(name.map(|name| name.sym()));
    }

    fn name_of_property(&mut self, name: &PropertyName) {
        if let PropertyName::Literal(name) = name {
            self.named.push(name.sym());
        }
    }

    fn is_function(value: &Expression) -> bool {
        matches!(
            value,
            Expression::FunctionExpression(_)
                | Expression::ArrowFunction(_)
                | Expression::AsyncArrowFunction(_)
                | Expression::AsyncFunctionExpression(_)
        )
    }
}

impl<'ast> Visitor<'ast> for Calls<'ast> {
    type BreakTy = ();

    fn visit_function_body(&mut self, node: &'ast FunctionBody) -> ControlFlow<()> {
        let names = std::mem::take(&mut self.named);
        if !names.is_empty() {
            self.bodies.push((names.clone(), node));
        }
        self.around.push(names);
        let flow = node.visit_with(self);
        self.around.pop();
        flow
    }

    fn visit_function_declaration(&mut self, node: &'ast FunctionDeclaration) -> ControlFlow<()> {
        self.name(Some(node.name()));
        node.visit_with(self)
    }

    fn visit_async_function_declaration(
        &mut self,
        node: &'ast AsyncFunctionDeclaration,
    ) -> ControlFlow<()> {
        self.name(Some(node.name()));
        node.visit_with(self)
    }

    fn visit_variable(&mut self, node: &'ast Variable) -> ControlFlow<()> {
        if let (Binding::Identifier(name), Some(value)) = (node.binding(), node.init())
            && Self::is_function(value)
        {
            self.name(Some(*name));
        }
        node.visit_with(self)
    }

    fn visit_assign(&mut self, node: &'ast Assign) -> ControlFlow<()> {
        if Self::is_function(node.rhs()) {
            match node.lhs() {
                AssignTarget::Identifier(name) => self.name(Some(*name)),
                AssignTarget::Access(PropertyAccess::Simple(access)) => {
                    if let PropertyAccessField::Const(name) = access.field() {
                        self.name(Some(*name));
                    }
                }
                _ => {}
            }
        }
        node.visit_with(self)
    }

    fn visit_property_definition(&mut self, node: &'ast PropertyDefinition) -> ControlFlow<()> {
        match node {
            PropertyDefinition::Property(name, value) if Self::is_function(value) => {
                self.name_of_property(name);
            }
            PropertyDefinition::MethodDefinition(method)
                if !matches!(
                    method.kind(),
                    MethodDefinitionKind::Get | MethodDefinitionKind::Set
                ) =>
            {
                self.name_of_property(method.name());
            }
            _ => {}
        }
        node.visit_with(self)
    }

    fn visit_class_element(&mut self, node: &'ast ClassElement) -> ControlFlow<()> {
        if let ClassElement::MethodDefinition(method) = node
            && let ClassElementName::PropertyName(name) = method.name()
        {
            self.name_of_property(name);
        }
        node.visit_with(self)
    }

    fn visit_class_declaration(&mut self, node: &'ast ClassDeclaration) -> ControlFlow<()> {
        if let Some(constructor) = node.constructor() {
            self.name(Some(node.name()));
            let _ = self.visit_function_body(constructor.body());
        }
        node.visit_with(self)
    }

    fn visit_class_expression(&mut self, node: &'ast ClassExpression) -> ControlFlow<()> {
        self.named.clear();
        node.visit_with(self)
    }

    fn visit_call(&mut self, node: &'ast Call) -> ControlFlow<()> {
        self.called(node.function());
        node.visit_with(self)
    }

    fn visit_new(&mut self, node: &'ast New) -> ControlFlow<()> {
        self.called(node.constructor());
        node.visit_with(self)
    }
}

const TOO_DEEP: &str = "too many calls within each other";

/// `airlock_depth()`
pub(super) fn ask(_: &JsValue, _: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let run = Run::of(context)?;
    // An iterator that knows its length.
    let depth = context.stack_trace().size_hint().0;
    if depth < run.limits.get().recursion_max as usize {
        return Ok(JsValue::undefined());
    }
    run.was_too_deep.set(true);
    Err(JsNativeError::range().with_message(TOO_DEEP).into())
}

/// Whether an error that nobody caught is the one above.
pub(crate) fn ended(reason: &JsValue, run: &Run) -> bool {
    let is_ours = |error: &JsObject| {
        let message = quiet::read(error, "message").and_then(|message| message.as_string());
        error.is::<Error>() && message.is_some_and(|message| message == TOO_DEEP)
    };
    run.was_too_deep.get() && reason.as_object().as_ref().is_some_and(is_ours)
}
