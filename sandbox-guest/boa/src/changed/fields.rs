//! Fields of a class whose first value may write to the class. The engine holds on to the class
//! while it makes the fields, so that `id = T.count++` would end the run. Such fields become
//! those of a class of their own, which is made where they stand and adds them to what is
//! constructed:
//!
//! ```text
//! class T {                  becomes   class T {#i(){new(this.#m.c??=this.#m())(this);return this}
//!     id = T.count++;                      #m(){return class c extends class{constructor(o){return o}}{id = T.count++}};
//!     #key = T.next();                     #key;… #p=this.#key = T.next(); …
//!     constructor() {…}                    constructor() {this.#i();…}
//! }
//! class U extends T {                  class U extends T {
//!     constructor() { super() }            constructor() { super()&&this.#i() }
//! }                                    }
//! ```
//!
//! They stay where they are, in their order, and are made at the same time as before. What has
//! a first value that nothing can come of ([`plain`]) stays the class's own where nothing that
//! moves stands before it.

mod plain;

use std::ops::ControlFlow;

use boa_ast::expression::{Identifier, SuperCall};
use boa_ast::function::{
    ClassDeclaration, ClassElement, ClassElementName, ClassExpression, FunctionExpression,
};
use boa_ast::operations::{ContainsSymbol, contains};
use boa_ast::property::PropertyName;
use boa_ast::visitor::{VisitWith, Visitor};
use boa_ast::{Expression, Position, Span, Spanned};
use boa_interner::Interner;

use super::spans::Text;
use super::statements::elements::{self, Element, Form};
use super::tokens::{self, Token};
use super::{Edit, flow};
use plain::Plain;

/// Whether a script may have such a field.
pub(super) fn is_likely(script: &str) -> bool {
    script.contains("class") && script.contains('=')
}

pub(super) fn edits(
    script: &str,
    name: &str,
    read: &impl VisitWith,
    interner: &Interner,
) -> Option<Vec<Edit>> {
    let text = Text::new(script);
    let tokens = tokens::of(&text, read)?;
    let mut finder = Finder {
        text,
        tokens,
        name,
        interner,
        plain: Plain::of(script, interner),
        edits: Vec::new(),
    };
    let _ = read.visit_with(&mut finder);
    Some(finder.edits)
}

struct Finder<'a> {
    text: Text<'a>,
    tokens: Vec<Token>,
    name: &'a str,
    interner: &'a Interner,
    plain: Plain<'a>,
    edits: Vec<Edit>,
}

/// A class as the parser read it.
struct Class<'a> {
    start: Position,
    name: Option<Identifier>,
    parent: Option<&'a Expression>,
    constructor: Option<&'a FunctionExpression>,
    elements: &'a [ClassElement],
}

impl Finder<'_> {
    fn class(&self, class: &Class<'_>) -> Option<Vec<Edit>> {
        let first = self.first_that_moves(class)?;
        let (open, found) = self.elements(class)?;
        let moves = |number: usize, element: &ClassElement| match element {
            ClassElement::FieldDefinition(_) => number >= first,
            ClassElement::PrivateFieldDefinition(field) => field
                .initializer()
                .is_some_and(|value| !self.plain.is(value)),
            _ => false,
        };
        let mut runs: Vec<Vec<(&Element, &ClassElement)>> = Vec::new();
        let mut goes_on = false;
        let mut own = class.elements.iter().enumerate();
        for element in &found {
            if element.is_constructor {
                goes_on = false;
                continue;
            }
            let (number, read) = own.next()?;
            let is_moved = moves(number, read);
            if is_moved && !self.can_move(read) {
                return None;
            }
            match runs.last_mut().filter(|_| goes_on) {
                Some(run) if is_moved => run.push((element, read)),
                None if is_moved => runs.push(vec![(element, read)]),
                _ => {}
            }
            goes_on = is_moved;
        }
        let begins = format!("#{}i{open}", self.name);
        let mut edits = vec![self.begins(open, &begins, class, &runs)?];
        for run in &runs {
            edits.extend(self.run(class, run)?);
        }
        if let Some(constructor) = class.constructor {
            match class.parent {
                None => edits.push(self.before_all(constructor, &begins)?),
                Some(_) => edits.extend(self.behind_super(constructor, &begins)?),
            }
        }
        Some(edits)
    }

    /// Makes the fields before anything that a constructor does.
    fn before_all(&self, constructor: &FunctionExpression, begins: &str) -> Option<Edit> {
        let body = self.text.offset(constructor.body().span().start())?;
        let is_body = self.text.slice(body, body + 1)? == "{";
        is_body.then(|| self.inserted(body + 1, &format!("this.{begins}();")))
    }

    /// Makes them where `super()` has answered; it answers the same then.
    fn behind_super(&self, constructor: &FunctionExpression, begins: &str) -> Option<Vec<Edit>> {
        let mut calls = SuperCalls::default();
        let _ = constructor.visit_with(&mut calls);
        let edits = calls.0.iter().map(|call| {
            let start = self.text.offset(call.start())?;
            let end = self.text.offset(call.end())?;
            let behind = self.inserted(end, &format!("&&this.{begins}()"));
            self.stands_alone(start, end)?.then_some(Edit {
                // Where it runs, `super()` does.
                place: Some(start),
                ..behind
            })
        });
        edits.collect()
    }

    /// Whether no operator binds what stands there closer than `&&` does.
    fn stands_alone(&self, start: usize, end: usize) -> Option<bool> {
        let says = |token: &Token| self.text.script.get(token.range.clone());
        let first = self
            .tokens
            .partition_point(|token| token.range.start < start);
        let next = self.tokens.partition_point(|token| token.range.start < end);
        let begins_line = self.tokens.get(first)?.begins_line;
        let before = says(self.tokens.get(first.checked_sub(1)?)?)?;
        let behind = self.tokens.get(next)?;
        let second = says(self.tokens.get(next + 1)?)?;
        let is_open = match before {
            ";" | "{" | "}" | "(" | "," | "=" | ">" | "[" | ":" | "return" | "else" => true,
            ")" => true,
            _ => begins_line && !before.ends_with(['+', '-', '*', '/', '%', '!', '~', '<', '^']),
        };
        let is_closed = match says(behind)? {
            ";" | "," | ")" | "]" | "}" | ":" => true,
            "?" => !matches!(second, "?" | "."),
            _ => behind.begins_line && behind.kind == tokens::Kind::Word,
        };
        Some(is_open && is_closed)
    }

    /// The first field whose value something can come of.
    fn first_that_moves(&self, class: &Class<'_>) -> Option<usize> {
        // Before the body of a constructor come its parameters, and before those the fields.
        if let (Some(constructor), None) = (class.constructor, class.parent)
            && !self.plain.are_parameters(constructor.parameters())
        {
            return None;
        }
        class
            .elements
            .iter()
            .position(|element| value(element).is_some_and(|value| !self.plain.is(value)))
    }

    /// What the tokens of a class are, when that is what the parser read.
    fn elements(&self, class: &Class<'_>) -> Option<(usize, Vec<Element>)> {
        let start = self.text.offset(class.start)?;
        let word = self
            .tokens
            .binary_search_by_key(&start, |token| token.range.start);
        let (open, found) = elements::of(self.text.script, &self.tokens, word.ok()?)?;
        let own: Vec<_> = found
            .iter()
            .filter(|element| !element.is_constructor)
            .collect();
        let is_as_read = own.len() == class.elements.len()
            && found.len() == own.len() + usize::from(class.constructor.is_some())
            && own
                .iter()
                .zip(class.elements)
                .all(|(found, read)| is_as_read(found, read));
        is_as_read.then_some((open, found))
    }

    /// Whether nobody can tell that a field is made elsewhere.
    fn can_move(&self, element: &ClassElement) -> bool {
        let key_is_plain = match element {
            ClassElement::FieldDefinition(field) => match field.name() {
                PropertyName::Literal(_) => true,
                PropertyName::Computed(key) => self.plain.is_key(key),
            },
            // One without a name gets that of what it is assigned to.
            _ => !value(element).is_some_and(plain::is_class),
        };
        key_is_plain
            && !value(element).is_some_and(|value| contains(value, ContainsSymbol::SuperProperty))
    }

    /// What makes all fields, and the constructor where the class has none.
    fn begins(
        &self,
        open: usize,
        begins: &str,
        class: &Class<'_>,
        runs: &[Vec<(&Element, &ClassElement)>],
    ) -> Option<Edit> {
        let name = self.name;
        let makes = runs
            .iter()
            .filter_map(|run| run.first())
            .map(|(element, _)| {
                let made = self.made(element);
                format!("new(this.{made}.{name}??=this.{made}())(this);")
            });
        let makes: String = makes.collect();
        let constructor = match (class.constructor, class.parent) {
            (Some(_), _) => String::new(),
            (None, None) => format!("constructor(){{this.{begins}()}}"),
            (None, Some(_)) => {
                format!("constructor(...{name}){{super(...{name})&&this.{begins}()}}")
            }
        };
        let at = self.tokens.get(open)?.range.end;
        Some(self.inserted(
            at,
            &format!("{begins}(){{{makes}return this}}{constructor}"),
        ))
    }

    /// Fields that stand one behind the other, as those of a class of their own.
    fn run(&self, class: &Class<'_>, run: &[(&Element, &ClassElement)]) -> Option<Vec<Edit>> {
        let name = self.name;
        // Its name is that of the class in stacks, where the beginning is taken off.
        let own = class
            .name
            .map(|name| self.interner.resolve_expect(name.sym()).to_string());
        let own = own.unwrap_or_default();
        let ((first, _), (last, _)) = (run.first()?, run.last()?);
        let mut before = String::new();
        let mut privates = Vec::new();
        for (element, read) in run {
            if let ClassElement::PrivateFieldDefinition(_) = read {
                let start = self.tokens.get(element.first)?.range.start;
                let written = self.tokens.get(element.name)?.range.clone();
                before.push_str(&format!("#{};", self.text.script.get(written)?));
                let assigns = format!("#{name}p{}=this.", element.first);
                privates.push(self.inserted(start, &assigns));
            }
        }
        let made = self.made(first);
        let begin = format!(
            "{before}{made}(){{return class {name}_{own} extends class{{constructor(o){{return o}}}}{{"
        );
        let start = self.tokens.get(first.first)?.range.start;
        let end = self.tokens.get(last.last)?.range.end;
        let mut edits = vec![self.inserted(start, &begin)];
        edits.extend(privates);
        edits.push(self.inserted(end, "}}"));
        Some(edits)
    }

    /// What answers the class of a run of fields.
    fn made(&self, first: &Element) -> String {
        format!("#{}m{}", self.name, first.first)
    }

    /// What is put in; nobody sees that it runs.
    fn inserted(&self, at: usize, text: &str) -> Edit {
        Edit {
            start: at,
            end: at,
            text: flow::marked(self.name, text, ""),
            place: None,
        }
    }

    fn inside(&mut self, class: &Class<'_>) {
        let edits = self.class(class);
        self.edits.extend(edits.unwrap_or_default());
    }
}

/// The first value of a field that objects of the class have.
fn value(element: &ClassElement) -> Option<&Expression> {
    match element {
        ClassElement::FieldDefinition(_) | ClassElement::PrivateFieldDefinition(_) => {
            any_value(element)
        }
        _ => None,
    }
}

fn any_value(element: &ClassElement) -> Option<&Expression> {
    match element {
        ClassElement::FieldDefinition(field) | ClassElement::StaticFieldDefinition(field) => {
            field.initializer()
        }
        ClassElement::PrivateFieldDefinition(field)
        | ClassElement::PrivateStaticFieldDefinition(field) => field.initializer(),
        _ => None,
    }
}

fn is_as_read(found: &Element, read: &ClassElement) -> bool {
    let (form, is_static, is_private) = match read {
        ClassElement::MethodDefinition(method) => {
            (Form::Method, method.is_static(), method.is_private())
        }
        ClassElement::FieldDefinition(_) => (Form::Field, false, false),
        ClassElement::StaticFieldDefinition(_) => (Form::Field, true, false),
        ClassElement::PrivateFieldDefinition(_) => (Form::Field, false, true),
        ClassElement::PrivateStaticFieldDefinition(_) => (Form::Field, true, true),
        ClassElement::StaticBlock(_) => (Form::Block, true, false),
    };
    (found.form, found.is_static, found.is_private) == (form, is_static, is_private)
}

impl<'ast> Visitor<'ast> for Finder<'_> {
    type BreakTy = ();

    fn visit_class_declaration(&mut self, node: &'ast ClassDeclaration) -> ControlFlow<()> {
        self.inside(&Class {
            start: node.name().span().start(),
            name: Some(node.name()),
            parent: node.super_ref(),
            constructor: node.constructor(),
            elements: node.elements(),
        });
        node.visit_with(self)
    }

    fn visit_class_expression(&mut self, node: &'ast ClassExpression) -> ControlFlow<()> {
        self.inside(&Class {
            start: node.span().start(),
            name: node.name(),
            parent: node.super_ref(),
            constructor: node.constructor(),
            elements: node.elements(),
        });
        node.visit_with(self)
    }
}

/// The calls of `super` that are a constructor's own. Within a class inside of it only what is
/// read before that class is there may have one.
#[derive(Default)]
struct SuperCalls(Vec<Span>);

impl SuperCalls {
    fn class(&mut self, parent: Option<&Expression>, elements: &[ClassElement]) {
        if let Some(parent) = parent {
            let _ = self.visit_expression(parent);
        }
        for element in elements {
            let name = match element {
                ClassElement::MethodDefinition(method) => match method.name() {
                    ClassElementName::PropertyName(name) => name,
                    ClassElementName::PrivateName(_) => continue,
                },
                ClassElement::FieldDefinition(field)
                | ClassElement::StaticFieldDefinition(field) => field.name(),
                _ => continue,
            };
            let _ = self.visit_property_name(name);
        }
    }
}

impl<'ast> Visitor<'ast> for SuperCalls {
    type BreakTy = ();

    fn visit_super_call(&mut self, node: &'ast SuperCall) -> ControlFlow<()> {
        self.0.push(node.span());
        node.visit_with(self)
    }

    fn visit_class_declaration(&mut self, node: &'ast ClassDeclaration) -> ControlFlow<()> {
        self.class(node.super_ref(), node.elements());
        ControlFlow::Continue(())
    }

    fn visit_class_expression(&mut self, node: &'ast ClassExpression) -> ControlFlow<()> {
        self.class(node.super_ref(), node.elements());
        ControlFlow::Continue(())
    }
}
