//! What is noted of a script's functions while it is gone through ([`super::visit`]).

use std::ops::ControlFlow;

use boa_ast::Expression;
use boa_ast::expression::Identifier;
use boa_ast::expression::access::PropertyAccess;
use boa_ast::function::{ClassElement, FormalParameterList, FunctionBody, FunctionExpression};
use boa_ast::property::MethodDefinitionKind;
use boa_ast::visitor::{VisitWith, Visitor};
use boa_interner::{Interner, Sym};
use rustc_hash::FxHashSet;

use super::functions::{Function, Functions};
use super::implied::Words;
use super::values::{is_function, is_no_function, member};

/// The functions of a script.
pub(super) fn of<'a>(body: &'a FunctionBody, interner: &Interner) -> Functions<'a> {
    let mut finder = Finder {
        words: Words::of(interner),
        found: Functions::default(),
        around: Vec::new(),
        named: Vec::new(),
        classes: FxHashSet::default(),
        parents: Vec::new(),
        alike: FxHashSet::default(),
    };
    let _ = body.visit_with(&mut finder);
    let is_plain = |name: &Sym| finder.classes.contains(name) || finder.words.is_plain(*name);
    let has_others = !finder.parents.iter().all(is_plain);
    finder.found.implied |= has_others;
    let held = finder.alike.intersection(&finder.found.variables);
    finder.found.members.extend(held);
    finder.found
}

pub(super) struct Finder<'a> {
    pub(super) words: Words,
    pub(super) found: Functions<'a>,
    /// The functions around, by their numbers.
    around: Vec<usize>,
    /// What the next function is called.
    named: Vec<Sym>,
    classes: FxHashSet<Sym>,
    parents: Vec<Sym>,
    /// Members that hold what the variable of the same name does.
    pub(super) alike: FxHashSet<Sym>,
}

impl<'a> Finder<'a> {
    pub(super) fn here(&mut self) -> Option<&mut Function<'a>> {
        self.found.all.get_mut(*self.around.last()?)
    }

    pub(super) fn inside(&mut self, function: Function<'a>, visit: impl FnOnce(&mut Self)) {
        let number = self.found.all.len();
        self.found.all.push(function);
        if let Some(around) = self.here() {
            around.inside.push(number);
        }
        self.around.push(number);
        visit(self);
        self.around.pop();
    }

    pub(super) fn function(
        &mut self,
        own: Option<Identifier>,
        parameters: &'a FormalParameterList,
        body: &'a FunctionBody,
        is_generator: bool,
    ) -> ControlFlow<()> {
        let mut names = std::mem::take(&mut self.named);
        names.extend(own.map(|name| name.sym()));
        let function = Function {
            names,
            body: Some(body),
            // It goes on wherever somebody asks it for more.
            calls_anything: is_generator,
            ..Function::default()
        };
        self.inside(function, |this| {
            for parameter in parameters.as_ref() {
                let _ = this.visit_variable(parameter.variable());
            }
            let _ = body.visit_with(this);
        });
        ControlFlow::Continue(())
    }

    pub(super) fn class(
        &mut self,
        name: Option<Identifier>,
        parent: Option<&'a Expression>,
        constructor: Option<&'a FunctionExpression>,
        elements: &'a [ClassElement],
    ) -> ControlFlow<()> {
        let mut names = std::mem::take(&mut self.named);
        names.extend(name.map(|name| name.sym()));
        self.classes.extend(&names);
        let class = Function {
            names: names.clone(),
            ..Function::default()
        };
        self.inside(class, |this| {
            match parent {
                Some(Expression::Identifier(name)) => this.parents.push(name.sym()),
                Some(_) => this.found.implied = true,
                None => {}
            }
            if let Some(parent) = parent {
                let _ = this.visit_expression(parent);
            }
            if let Some(constructor) = constructor {
                this.named = names;
                let (parameters, body) = (constructor.parameters(), constructor.body());
                let _ = this.function(None, parameters, body, false);
            }
            for element in elements {
                let _ = this.visit_class_element(element);
            }
        });
        ControlFlow::Continue(())
    }

    pub(super) fn mentions(&mut self, name: Sym) {
        self.found.implied |= self.words.makes(name);
        if let Some(here) = self.here() {
            here.mentions.insert(name);
        }
    }

    /// Something is called, or handed to what calls it.
    pub(super) fn calls(&mut self, callee: &Expression) {
        match callee {
            Expression::Parenthesized(inner) => self.calls(inner.expression()),
            Expression::Identifier(name) => {
                if let Some(here) = self.here() {
                    here.variables.insert(name.sym());
                }
            }
            Expression::PropertyAccess(access) => match member(access) {
                Some(name) => self.calls_member(name),
                None => self.calls_anything(),
            },
            other if is_function(other) || is_no_function(other) => {}
            _ => self.calls_anything(),
        }
    }

    pub(super) fn calls_member(&mut self, name: Sym) {
        let is_any = self.words.is_any(name);
        if let Some(here) = self.here() {
            here.members.insert(name);
            here.calls_anything |= is_any;
        }
    }

    pub(super) fn calls_anything(&mut self) {
        if let Some(here) = self.here() {
            here.calls_anything = true;
        }
    }

    /// A call with what it hands on: what is built in may call it.
    pub(super) fn calls_with(&mut self, callee: &Expression, arguments: &[Expression]) {
        self.calls(callee);
        match callee {
            Expression::Identifier(name) => self.hands(name.sym(), arguments),
            Expression::PropertyAccess(access) => {
                let Some(name) = member(access) else { return };
                if let PropertyAccess::Simple(access) = access
                    && self.words.is_of_functions(name)
                {
                    self.calls(access.target());
                }
                self.hands(name, arguments);
            }
            _ => {}
        }
    }

    pub(super) fn hands(&mut self, name: Sym, arguments: &[Expression]) {
        self.found.implied |= self.words.describes(name, arguments);
        for argument in self.words.calls(name, arguments) {
            self.calls(argument);
        }
    }

    pub(super) fn member_is(&mut self, name: Sym, value: &Expression) {
        self.found.implied |= self.words.is_called(name);
        if is_function(value) {
            self.named.push(name);
        } else if !is_no_function(value) {
            self.found.members.insert(name);
        }
    }

    pub(super) fn variable_is(&mut self, name: Sym, value: &Expression) {
        if is_function(value) {
            self.named.push(name);
        } else if !is_no_function(value) {
            self.found.variables.insert(name);
        }
    }

    pub(super) fn method(
        &mut self,
        name: Option<Sym>,
        kind: MethodDefinitionKind,
        parameters: &'a FormalParameterList,
        body: &'a FunctionBody,
    ) -> ControlFlow<()> {
        let is_called = |name| self.words.is_called(name);
        self.found.implied |= name.is_none_or(is_called)
            || matches!(kind, MethodDefinitionKind::Get | MethodDefinitionKind::Set);
        self.named.extend(name);
        let is_generator = matches!(
            kind,
            MethodDefinitionKind::Generator | MethodDefinitionKind::AsyncGenerator
        );
        self.function(None, parameters, body, is_generator)
    }
}
