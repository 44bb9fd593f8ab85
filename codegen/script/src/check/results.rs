//! Compares the members that a script reads from a result with the tool's declared result. Results
//! may have more members than declared, so these findings are at most warnings.

use oxc_ast::AstKind;
use oxc_ast::ast::{
    Argument, BindingPattern, Expression, ForStatementLeft, FormalParameters, ObjectPattern,
};
use oxc_semantic::NodeId;
use oxc_span::GetSpan;

use super::context::CheckContext;
use super::expect;
use crate::shape::{ExtraKeys, Kind, Object, Shape, ToolShape};
use codegen_shared::finding::{FindingCode, Severity};

/// Array methods that call a function with each element as its first argument.
const EACH: [&str; 10] = [
    "map",
    "filter",
    "forEach",
    "find",
    "findLast",
    "some",
    "every",
    "flatMap",
    "findIndex",
    "findLastIndex",
];

/// Array methods that return an array with elements of the same shape.
const SAME: [&str; 7] = [
    "filter",
    "slice",
    "sort",
    "reverse",
    "toSorted",
    "toReversed",
    "concat",
];

/// Members that every array has.
pub(crate) const OF_AN_ARRAY: [&str; 42] = [
    "length",
    "at",
    "concat",
    "constructor",
    "copyWithin",
    "entries",
    "every",
    "fill",
    "filter",
    "find",
    "findIndex",
    "findLast",
    "findLastIndex",
    "flat",
    "flatMap",
    "forEach",
    "hasOwnProperty",
    "includes",
    "indexOf",
    "join",
    "keys",
    "lastIndexOf",
    "map",
    "pop",
    "push",
    "reduce",
    "reduceRight",
    "reverse",
    "shift",
    "slice",
    "some",
    "sort",
    "splice",
    "toLocaleString",
    "toReversed",
    "toSorted",
    "toSpliced",
    "toString",
    "unshift",
    "values",
    "valueOf",
    "with",
];

/// Members that every object has.
const OF_AN_OBJECT: [&str; 9] = [
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toJSON",
    "toLocaleString",
    "toString",
    "valueOf",
    "__proto__",
];

impl<'a> CheckContext<'a, '_, '_> {
    /// Checks how the script uses the expression `node`, whose value has this shape.
    pub(super) fn result(&mut self, node: NodeId, shape: &Shape, tool: &ToolShape) {
        let Some(shape) = resolved(shape, tool) else {
            return;
        };
        let node = self.outermost(node);
        let own = self.kind(node).span();
        let parent = self.parent(node);
        match self.kind(parent) {
            AstKind::StaticMemberExpression(it) if it.object.span() == own => {
                let name = it.property.name.as_str();
                if let Some(inner) = self.part(name, it.property.span.start, shape) {
                    self.result(parent, inner, tool);
                } else if let Kind::Array(items) = &shape.kind {
                    self.array_method(parent, name, (shape, items), tool);
                }
            }
            AstKind::ComputedMemberExpression(it) if it.object.span() == own => {
                match (&shape.kind, it.expression.get_inner_expression()) {
                    (Kind::Array(items), Expression::NumericLiteral(_)) => {
                        self.result(parent, items, tool);
                    }
                    (Kind::Object(_), key) => {
                        if let Some(name) = self.text_of(key)
                            && let Some(inner) = self.part(name, key.span().start, shape)
                        {
                            self.result(parent, inner, tool);
                        }
                    }
                    _ => {}
                }
            }
            AstKind::VariableDeclarator(it) => self.bound(&it.id, shape, tool),
            AstKind::ForOfStatement(it) if it.right.span() == own => {
                if let (Kind::Array(items), ForStatementLeft::VariableDeclaration(left)) =
                    (&shape.kind, &it.left)
                    && let Some(declarator) = left.declarations.first()
                {
                    self.bound(&declarator.id, items, tool);
                }
            }
            _ => {}
        }
    }

    /// Checks a name or pattern that receives a value of this shape.
    fn bound(&mut self, pattern: &BindingPattern<'a>, shape: &Shape, tool: &ToolShape) {
        let Some(shape) = resolved(shape, tool) else {
            return;
        };
        match (pattern, &shape.kind) {
            (BindingPattern::BindingIdentifier(name), _) => {
                let symbol = name.symbol_id.get().and_then(|it| self.fixed(it));
                if let Some(symbol) = symbol {
                    self.follow(symbol, |reading, node| reading.result(node, shape, tool));
                }
            }
            (BindingPattern::ObjectPattern(pattern), Kind::Object(_)) => {
                self.taken_apart(pattern, shape, tool);
            }
            (BindingPattern::ArrayPattern(pattern), Kind::Array(items)) => {
                for element in pattern.elements.iter().flatten() {
                    self.bound(element, items, tool);
                }
            }
            (BindingPattern::ObjectPattern(pattern), Kind::Array(_)) => {
                for property in &pattern.properties {
                    if let Some(name) = property.key.static_name() {
                        let at = property.key.span().start;
                        self.part(&name, at, shape);
                    }
                }
            }
            _ => {}
        }
    }

    fn taken_apart(&mut self, pattern: &ObjectPattern<'a>, shape: &Shape, tool: &ToolShape) {
        for property in &pattern.properties {
            let Some(name) = property.key.static_name() else {
                continue;
            };
            let inner = self.part(&name, property.key.span().start, shape);
            // With a default value, the part may have another shape.
            if let Some(inner) = inner
                && !matches!(property.value, BindingPattern::AssignmentPattern(_))
            {
                self.bound(&property.value, inner, tool);
            }
        }
    }

    /// Returns the shape of a member, or adds a finding if it is not declared.
    fn part<'t>(&mut self, name: &str, at: u32, shape: &'t Shape) -> Option<&'t Shape> {
        match &shape.kind {
            Kind::Object(object) => {
                let property = object.properties.iter().find(|it| it.name == name);
                if property.is_none() {
                    self.no_part(name, at, object);
                }
                property.map(|it| &it.shape)
            }
            Kind::Array(_) if !OF_AN_ARRAY.contains(&name) => {
                let message = format!("the result is an array and has no `{name}`");
                let suggestion = Some("Use the array itself.".to_owned());
                self.warning(FindingCode::UnknownProperty, at, message, suggestion);
                None
            }
            _ => None,
        }
    }

    fn no_part(&mut self, name: &str, at: u32, object: &Object) {
        if matches!(object.rest, ExtraKeys::Allowed(_)) || OF_AN_OBJECT.contains(&name) {
            return;
        }
        let names = || object.properties.iter().map(|it| it.name.as_str());
        if !self.findings.wants(Severity::Warning) {
            return self.findings.count(1);
        }
        let close = self.findings.patience.closest(name, names());
        let is_closed = object.rest == ExtraKeys::Forbidden;
        if close.is_none() && !is_closed {
            return;
        }
        let suggestion = match close {
            Some(close) => format!("Did you mean `{close}`?"),
            None => {
                let names: Vec<_> = names().map(|it| format!("`{it}`")).collect();
                format!("Properties: {}.", expect::listed(&names))
            }
        };
        let message = format!("the declared result has no `{name}`");
        self.warning(FindingCode::UnknownProperty, at, message, Some(suggestion));
    }

    fn array_method(
        &mut self,
        member: NodeId,
        name: &str,
        (array, items): (&Shape, &Shape),
        tool: &ToolShape,
    ) {
        let member = self.outermost(member);
        let parent = self.parent(member);
        let AstKind::CallExpression(call) = self.kind(parent) else {
            return;
        };
        if call.callee.span() != self.kind(member).span() {
            return;
        }
        if EACH.contains(&name)
            && let Some(given) = call.arguments.first().and_then(Argument::as_expression)
        {
            self.parameter(given, items, tool);
        }
        if SAME.contains(&name) {
            self.result(parent, array, tool);
        }
    }

    /// Checks the first parameter of a function that receives a value of this shape.
    pub(super) fn parameter(
        &mut self,
        function: &'a Expression<'a>,
        shape: &Shape,
        tool: &ToolShape,
    ) {
        let parameters: &FormalParameters<'a> = match function.get_inner_expression() {
            Expression::ArrowFunctionExpression(it) => &it.params,
            Expression::FunctionExpression(it) => &it.params,
            _ => return,
        };
        if let Some(first) = parameters.items.first()
            && first.initializer.is_none()
        {
            self.bound(&first.pattern, shape, tool);
        }
    }
}

/// Resolves named shapes; returns `None` unless the result is certain.
fn resolved<'t>(shape: &'t Shape, tool: &'t ToolShape) -> Option<&'t Shape> {
    let mut here = shape;
    for _ in 0..8 {
        match &here.kind {
            Kind::Named(index) => here = &tool.named.get(*index)?.shape,
            _ => return Some(here),
        }
    }
    None
}
