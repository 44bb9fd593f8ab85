//! State that all parts of one check share. The check goes through the tree's nodes as a list. It
//! starts at names that the script does not declare and looks upwards from there, so a local
//! variable with a server's name is ignored.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use oxc_ast::AstKind;
use oxc_ast::ast::{BindingPattern, Expression, VariableDeclarator};
use oxc_semantic::{NodeId, Scoping, Semantic, SymbolId};

use codegen_shared::finding::{FindingCode, Form, Severity};

use super::findings::Findings;
use super::surface::{Surface, Tool};
use crate::shape::ToolShape;

/// Maximum number of assignments and destructurings that are followed from one name.
const STEPS_MAX: usize = 16;

pub(super) struct CheckContext<'a, 's, 'f> {
    pub(super) semantic: &'s Semantic<'a>,
    pub(super) surface: &'s Surface<'s>,
    pub(super) form: Form,
    pub(super) findings: Findings<'f>,
    /// Cache: whether a name is never assigned after its declaration.
    fixed: RefCell<HashMap<SymbolId, bool>>,
    /// Number of names followed so far.
    pub(super) steps: usize,
}

impl<'a, 's, 'f> CheckContext<'a, 's, 'f> {
    pub(super) fn new(
        semantic: &'s Semantic<'a>,
        surface: &'s Surface<'s>,
        form: Form,
        findings: Findings<'f>,
    ) -> Self {
        Self {
            semantic,
            surface,
            form,
            findings,
            fixed: RefCell::default(),
            steps: 0,
        }
    }

    pub(super) fn kind(&self, node: NodeId) -> AstKind<'a> {
        self.semantic.nodes().kind(node)
    }

    pub(super) fn parent(&self, node: NodeId) -> NodeId {
        self.semantic.nodes().parent_id(node)
    }

    pub(super) fn scoping(&self) -> &'s Scoping {
        self.semantic.scoping()
    }

    pub(super) fn shape(&self, tool: Tool<'_>) -> Rc<ToolShape> {
        self.surface.shape(tool)
    }

    /// Adds an error, or a warning if the code is in a function that is never used.
    pub(super) fn error(
        &mut self,
        node: NodeId,
        code: FindingCode,
        at: u32,
        message: String,
        suggestion: Option<String>,
    ) {
        if !self.findings.wants(Severity::Error) {
            return self.findings.count(1);
        }
        let severity = if self.is_in_unused_function(node) {
            Severity::Warning
        } else {
            Severity::Error
        };
        self.findings.add(severity, code, at, message, suggestion);
    }

    pub(super) fn warning(
        &mut self,
        code: FindingCode,
        at: u32,
        message: String,
        suggestion: Option<String>,
    ) {
        self.findings
            .add(Severity::Warning, code, at, message, suggestion);
    }

    /// Returns the outermost expression with the same value, through parentheses and type
    /// assertions.
    pub(super) fn outermost(&self, node: NodeId) -> NodeId {
        let mut here = node;
        loop {
            let parent = self.parent(here);
            let is_same = matches!(
                self.kind(parent),
                AstKind::ParenthesizedExpression(_)
                    | AstKind::TSAsExpression(_)
                    | AstKind::TSSatisfiesExpression(_)
                    | AstKind::TSNonNullExpression(_)
                    | AstKind::TSTypeAssertion(_)
                    | AstKind::TSInstantiationExpression(_)
                    | AstKind::ChainExpression(_)
            );
            if !is_same {
                return here;
            }
            here = parent;
        }
    }

    /// Returns the name and the value of a declaration if nothing assigns to the name later.
    pub(super) fn declared<'e>(
        &self,
        declarator: &'e VariableDeclarator<'a>,
    ) -> Option<(SymbolId, &'e Expression<'a>)> {
        let BindingPattern::BindingIdentifier(name) = &declarator.id else {
            return None;
        };
        let symbol = self.fixed(name.symbol_id.get()?)?;
        Some((symbol, declarator.init.as_ref()?))
    }

    /// Returns the name if nothing assigns to it after its declaration.
    pub(super) fn fixed(&self, symbol: SymbolId) -> Option<SymbolId> {
        // Cached: the answer requires a visit to all uses of the name, and each use may ask for it.
        let mut known = self.fixed.borrow_mut();
        let is_fixed = known.entry(symbol).or_insert_with(|| {
            !self.scoping().symbol_is_mutated(symbol)
                && self.scoping().symbol_redeclarations(symbol).is_empty()
        });
        is_fixed.then_some(symbol)
    }

    /// Returns the nodes that use a name as a value.
    pub(super) fn uses(&self, symbol: SymbolId) -> Vec<NodeId> {
        let references = self.scoping().get_resolved_references(symbol);
        let values = references.filter(|it| it.is_value());
        values.map(|it| it.node_id()).collect()
    }

    /// Whether exactly one node uses a name as a value.
    pub(super) fn is_used_once(&self, symbol: SymbolId) -> bool {
        let references = self.scoping().get_resolved_references(symbol);
        references.filter(|it| it.is_value()).take(2).count() == 1
    }

    /// Calls `each` for the uses of a name, up to [`STEPS_MAX`] names deep.
    pub(super) fn follow(&mut self, symbol: SymbolId, mut each: impl FnMut(&mut Self, NodeId)) {
        if self.steps >= STEPS_MAX {
            return;
        }
        self.steps += 1;
        for node in self.uses(symbol) {
            each(self, node);
        }
        self.steps -= 1;
    }

    /// Returns the initial value of a name that never changes.
    pub(super) fn value_of(&self, symbol: SymbolId) -> Option<&'a Expression<'a>> {
        self.fixed(symbol)?;
        let node = self.scoping().symbol_declaration(symbol);
        match self.kind(node) {
            AstKind::VariableDeclarator(declarator) => {
                self.declared(declarator)?;
                declarator.init.as_ref()
            }
            _ => None,
        }
    }

    pub(super) fn symbol_of(&self, expression: &Expression<'_>) -> Option<SymbolId> {
        let Expression::Identifier(name) = expression else {
            return None;
        };
        let reference = self.scoping().get_reference(name.reference_id.get()?);
        reference.symbol_id()
    }

    /// Returns the name if the expression is a global.
    pub(super) fn global_of<'e>(&self, expression: &'e Expression<'_>) -> Option<&'e str> {
        let Expression::Identifier(name) = expression else {
            return None;
        };
        let is_global = self.symbol_of(expression).is_none();
        is_global.then(|| name.name.as_str())
    }

    /// Returns a text that is known before the run: a literal, or a name whose value is a literal.
    pub(super) fn text_of(&self, expression: &Expression<'a>) -> Option<&'a str> {
        match expression.get_inner_expression() {
            Expression::StringLiteral(text) => Some(text.value.as_str()),
            Expression::TemplateLiteral(template) => Some(template.single_quasi()?.as_str()),
            name @ Expression::Identifier(_) => {
                match self.value_of(self.symbol_of(name)?)?.get_inner_expression() {
                    Expression::StringLiteral(text) => Some(text.value.as_str()),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Whether a node is in a named function that nothing uses. Also true if the budget for the
    /// search is used up.
    fn is_in_unused_function(&self, node: NodeId) -> bool {
        let nodes = self.semantic.nodes();
        nodes.ancestors(node).any(|it| {
            if !self.findings.patience.climbs() {
                return true;
            }
            let name = match it.kind() {
                AstKind::Function(function) if function.is_declaration() => function.id.as_ref(),
                AstKind::ArrowFunctionExpression(_) | AstKind::Function(_) => {
                    match nodes.parent_kind(it.id()) {
                        AstKind::VariableDeclarator(declarator) => {
                            declarator.id.get_binding_identifier()
                        }
                        _ => None,
                    }
                }
                _ => None,
            };
            let symbol = name.and_then(|name| name.symbol_id.get());
            let is_the_script = self.form == Form::Function
                && matches!(nodes.parent_kind(it.id()), AstKind::Program(_));
            let is_exported = matches!(
                nodes.parent_kind(it.id()),
                AstKind::ExportDefaultDeclaration(_) | AstKind::ExportDeclaration(_)
            );
            !is_the_script
                && !is_exported
                && symbol.is_some_and(|symbol| self.scoping().symbol_is_unused(symbol))
        })
    }

    /// Whether the script would catch an error at this node. Also true if the budget for the search
    /// is used up.
    pub(super) fn is_tried(&self, node: NodeId) -> bool {
        let nodes = self.semantic.nodes();
        let mut child = node;
        for parent in nodes.ancestors(node) {
            if !self.findings.patience.climbs() {
                return true;
            }
            if let AstKind::TryStatement(it) = parent.kind()
                && it.handler.is_some()
                && it.block.node_id.get() == child
            {
                return true;
            }
            child = parent.id();
        }
        false
    }
}
