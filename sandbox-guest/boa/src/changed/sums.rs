//! Texts that grow by sums and in members, again and again: `text = text + a + b`, `o.text += a`,
//! `list.reduce((text, item) => text + item, '')`. Each `+` becomes what [`append`] does, which is
//! what `+` does, so it is only to be told where a text may become long.
//!
//! ```text
//! text = text + a + b     becomes   text = airlock_append(airlock_append(text, a), b)
//! o.text += a             becomes   o.text =airlock_append(o.text, a)
//! ```
//!
//! [`append`]: super::append

use std::ops::ControlFlow;

use boa_ast::declaration::{Binding, Variable};
use boa_ast::expression::access::{PropertyAccess, PropertyAccessField};
use boa_ast::expression::literal::{ObjectLiteral, PropertyDefinition};
use boa_ast::expression::operator::assign::{AssignOp, AssignTarget};
use boa_ast::expression::operator::{Assign, Binary};
use boa_ast::expression::{Call, Identifier};
use boa_ast::function::{ClassElement, FormalParameterList, FunctionBody};
use boa_ast::property::PropertyName;
use boa_ast::visitor::{VisitWith, Visitor};
use boa_ast::{Expression, Spanned};
use boa_interner::{Interner, Sym, ToInternedString};
use rustc_hash::FxHashSet;

use super::appends::{Ends, is_sum, is_text};
use super::{Edit, Names, marks};

/// Whether a script may have such a sum.
pub(super) fn is_likely(script: &str) -> bool {
    script.contains('+') && (script.contains('=') || script.contains("reduce"))
}

pub(super) fn edits(
    script: &str,
    names: &Names,
    body: &FunctionBody,
    interner: &Interner,
) -> Vec<Edit> {
    let mut begun = Begun::default();
    let _ = begun.visit_function_body(body);
    let mut finder = Finder {
        ends: Ends::new(script),
        names,
        interner,
        begun,
        reduced: Vec::new(),
        edits: Vec::new(),
    };
    let _ = finder.visit_function_body(body);
    finder.edits
}

/// What begins as a text somewhere: names, and members by their names.
#[derive(Default)]
struct Begun {
    names: FxHashSet<Sym>,
    members: FxHashSet<Sym>,
}

impl<'ast> Visitor<'ast> for Begun {
    type BreakTy = ();

    fn visit_variable(&mut self, node: &'ast Variable) -> ControlFlow<()> {
        if let (Binding::Identifier(name), Some(value)) = (node.binding(), node.init())
            && is_text(value)
        {
            self.names.insert(name.sym());
        }
        node.visit_with(self)
    }

    fn visit_assign(&mut self, node: &'ast Assign) -> ControlFlow<()> {
        if node.op() == AssignOp::Assign && is_text(node.rhs()) {
            match node.lhs() {
                AssignTarget::Identifier(name) => {
                    self.names.insert(name.sym());
                }
                AssignTarget::Access(access) => self.members.extend(member(access)),
                AssignTarget::Pattern(_) => {}
            }
        }
        node.visit_with(self)
    }

    fn visit_object_literal(&mut self, node: &'ast ObjectLiteral) -> ControlFlow<()> {
        for part in node.properties() {
            if let PropertyDefinition::Property(PropertyName::Literal(name), value) = part
                && is_text(value)
            {
                self.members.insert(name.sym());
            }
        }
        node.visit_with(self)
    }

    fn visit_class_element(&mut self, node: &'ast ClassElement) -> ControlFlow<()> {
        match node {
            ClassElement::FieldDefinition(field) | ClassElement::StaticFieldDefinition(field) => {
                if let (PropertyName::Literal(name), Some(value)) =
                    (field.name(), field.initializer())
                    && is_text(value)
                {
                    self.members.insert(name.sym());
                }
            }
            ClassElement::PrivateFieldDefinition(field)
            | ClassElement::PrivateStaticFieldDefinition(field) => {
                if field.initializer().is_some_and(is_text) {
                    self.members.insert(field.name().description());
                }
            }
            _ => {}
        }
        node.visit_with(self)
    }
}

/// The name of a member that is written out.
fn member(access: &PropertyAccess) -> Option<Sym> {
    match access {
        PropertyAccess::Simple(access) => match access.field() {
            PropertyAccessField::Const(name) => Some(name.sym()),
            PropertyAccessField::Expr(_) => None,
        },
        PropertyAccess::Private(access) => Some(access.field().description()),
        PropertyAccess::Super(_) => None,
    }
}

/// A member of something that nothing happens by reading twice.
fn is_plain(access: &PropertyAccess) -> bool {
    let target = match access {
        PropertyAccess::Simple(simple) => {
            if !matches!(simple.field(), PropertyAccessField::Const(_)) {
                return false;
            }
            simple.target()
        }
        PropertyAccess::Private(private) => private.target(),
        PropertyAccess::Super(_) => return false,
    };
    matches!(target, Expression::Identifier(_) | Expression::This(_))
}

/// A sum of many, the first of them first.
fn operands(sum: &Binary) -> Vec<&Expression> {
    let mut row = match sum.lhs() {
        Expression::Binary(first) if is_sum(first.op()) => operands(first),
        first => vec![first],
    };
    row.push(sum.rhs());
    row
}

struct Finder<'a> {
    ends: Ends<'a>,
    names: &'a Names,
    interner: &'a Interner,
    begun: Begun,
    /// What the functions around that reduce lists call what they make, and whether that begins
    /// as a text.
    reduced: Vec<(Sym, bool)>,
    edits: Vec<Edit>,
}

impl Finder<'_> {
    /// The sum becomes calls. An error in one of them belongs to the place.
    fn sum(&mut self, row: &[&Expression], place: Option<usize>) -> Option<()> {
        let text = &self.ends.text;
        let start = text.start(row.first()?)?;
        let place = place.unwrap_or(start);
        let mut edits = Vec::new();
        let opening = format!("{}(", self.names.append).repeat(row.len() - 1);
        let opening = marks::marked(&self.names.mark, &opening, "");
        edits.push(put(start, start, opening, place));
        for pair in row.windows(2) {
            let [before, after] = pair else { return None };
            let (end, next) = (self.ends.end(before)?, text.start(after)?);
            let between = text.slice(end, next)?;
            let sign = end + between.find('+')?;
            if between.trim() != "+" {
                return None;
            }
            let comma = marks::marked(&self.names.mark, ",", "+");
            edits.push(put(sign, sign + 1, comma, place));
            let end = self.ends.end(after)?;
            let close = format!("/*{}*/)", self.names.append);
            edits.push(put(end, end, close, end));
        }
        self.edits.extend(edits);
        Some(())
    }

    /// `o.text += more`
    fn append(&mut self, access: &PropertyAccess, more: &Expression) -> Option<()> {
        let text = &self.ends.text;
        let start = text.start_of_access(access)?;
        let end = match access {
            PropertyAccess::Simple(simple) => match simple.field() {
                PropertyAccessField::Const(name) => text.offset(name.span().end())?,
                PropertyAccessField::Expr(_) => return None,
            },
            PropertyAccess::Private(private) => text.offset(private.field().span().end())?,
            PropertyAccess::Super(_) => return None,
        };
        let written = text.slice(start, end)?;
        let is_as_written = written
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '$' | '#'));
        let rest = text.script.get(end..)?;
        let sign = end + (rest.len() - rest.trim_start().len());
        let more_end = self.ends.end(more)?;
        if !is_as_written || text.slice(sign, sign + 2)? != "+=" || more_end <= sign {
            return None;
        }
        let call = format!("={}({written},", self.names.append);
        let call = marks::marked(&self.names.mark, &call, "+=");
        let close = format!("/*{}*/)", self.names.append);
        let edits = [
            put(sign, sign + 2, call, start),
            put(more_end, more_end, close, more_end),
        ];
        self.edits.extend(edits);
        Some(())
    }

    /// Whether what is written to is what the sum begins with.
    fn begins_with(&self, first: &Expression, target: &AssignTarget) -> bool {
        match (first, target) {
            (Expression::Identifier(first), AssignTarget::Identifier(target)) => {
                first.sym() == target.sym()
            }
            (Expression::PropertyAccess(first), AssignTarget::Access(target)) => {
                is_plain(first)
                    && is_plain(target)
                    && first.to_interned_string(self.interner)
                        == target.to_interned_string(self.interner)
            }
            _ => false,
        }
    }

    fn reduced_to(&self, name: &Identifier) -> Option<(Sym, bool)> {
        let mut around = self.reduced.iter().rev();
        around.find(|(reduced, _)| *reduced == name.sym()).copied()
    }

    fn is_begun(&self, target: &AssignTarget) -> bool {
        match target {
            AssignTarget::Identifier(name) => self.begun.names.contains(&name.sym()),
            AssignTarget::Access(access) => {
                member(access).is_some_and(|member| self.begun.members.contains(&member))
            }
            AssignTarget::Pattern(_) => false,
        }
    }
}

fn put(start: usize, end: usize, text: String, place: usize) -> Edit {
    Edit {
        start,
        end,
        text,
        place: Some(place),
    }
}

fn first_name(parameters: &FormalParameterList) -> Option<Identifier> {
    let first = parameters.as_ref().first()?;
    match first.variable().binding() {
        Binding::Identifier(name) => Some(*name),
        Binding::Pattern(_) => None,
    }
}

impl<'ast> Visitor<'ast> for Finder<'_> {
    type BreakTy = ();

    fn visit_assign(&mut self, node: &'ast Assign) -> ControlFlow<()> {
        let is_text = self.is_begun(node.lhs()) || is_text(node.rhs());
        if let (AssignOp::Assign, Expression::Binary(sum)) = (node.op(), node.rhs())
            && is_text
            && is_sum(sum.op())
        {
            let row = operands(sum);
            let first = row.first().copied();
            let place = self.ends.text.start_of_target(node.lhs());
            if first.is_some_and(|first| self.begins_with(first, node.lhs()))
                && self.sum(&row, place).is_some()
            {
                for operand in row {
                    self.visit_expression(operand)?;
                }
                return ControlFlow::Continue(());
            }
        }
        if let (AssignOp::Add, AssignTarget::Access(access)) = (node.op(), node.lhs())
            && is_text
            && is_plain(access)
        {
            self.append(access, node.rhs());
        }
        node.visit_with(self)
    }

    fn visit_call(&mut self, node: &'ast Call) -> ControlFlow<()> {
        let (function, first) = (node.function(), node.args().first());
        let reduces = match function {
            Expression::PropertyAccess(access) => member(access).is_some_and(|name| {
                let name = self.interner.resolve_expect(name).to_string();
                name == "reduce" || name == "reduceRight"
            }),
            _ => false,
        };
        let name = match first {
            Some(Expression::ArrowFunction(arrow)) => first_name(arrow.parameters()),
            Some(Expression::FunctionExpression(function)) => first_name(function.parameters()),
            _ => None,
        };
        let (Some(name), Some(reducer), true) = (name, first, reduces) else {
            return node.visit_with(self);
        };
        self.visit_expression(function)?;
        let begins_as_text = node.args().get(1).is_some_and(is_text);
        self.reduced.push((name.sym(), begins_as_text));
        self.visit_expression(reducer)?;
        self.reduced.pop();
        for argument in node.args().iter().skip(1) {
            self.visit_expression(argument)?;
        }
        ControlFlow::Continue(())
    }

    fn visit_binary(&mut self, node: &'ast Binary) -> ControlFlow<()> {
        if is_sum(node.op()) {
            let row = operands(node);
            if let Some(Expression::Identifier(first)) = row.first()
                && let Some((_, is_made_text)) = self.reduced_to(first)
                && (is_made_text || row.iter().any(|operand| is_text(operand)))
                && self.sum(&row, None).is_some()
            {
                for operand in row {
                    self.visit_expression(operand)?;
                }
                return ControlFlow::Continue(());
            }
        }
        node.visit_with(self)
    }
}
