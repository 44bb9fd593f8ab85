//! Refuses TypeScript syntax that has an effect at run time and that the engine does not support,
//! and suggests what to write instead. Plain types are not refused; [`super::erase_types`] erases them.

use oxc_ast::AstKind;
use oxc_ast::ast::{Expression, ImportOrExportKind, TSTypeAssertion};
use oxc_semantic::{AstNode, Semantic};
use oxc_span::GetSpan;

use super::findings::Findings;
use codegen_shared::finding::{FindingCode, Severity};
use codegen_shared::lines::ends_line;

/// The offset of the syntax, its name, and what to write instead.
type Refusal = (u32, &'static str, &'static str);

/// Reports all syntax that the engine cannot run.
pub(super) fn refuse(semantic: &Semantic<'_>, findings: &mut Findings<'_>) {
    for node in semantic.nodes().iter() {
        if let Some(refusal) = refusal(node, semantic) {
            say(node, refusal, semantic, findings);
        }
    }
}

fn say(
    node: &AstNode<'_>,
    (at, what, instead): Refusal,
    semantic: &Semantic<'_>,
    findings: &mut Findings<'_>,
) {
    if !findings.wants(Severity::Error) {
        return findings.count(1);
    }
    let ambient = semantic
        .nodes()
        .ancestors(node.id())
        .any(|it| is_ambient(it.kind()));
    if !ambient {
        let message = format!("{what} cannot run here");
        findings.error(
            FindingCode::NotErasable,
            at,
            message,
            Some(instead.to_owned()),
        );
    }
}

fn refusal(node: &AstNode<'_>, semantic: &Semantic<'_>) -> Option<Refusal> {
    Some(match node.kind() {
        AstKind::TSEnumDeclaration(it) if !it.declare => (
            it.span.start,
            "an enum",
            "Write an object, `const Level = { Low: \"low\", High: \"high\" }`, or plain literals.",
        ),
        AstKind::TSNamespaceDeclaration(it) if !it.declare => (
            it.span.start,
            "a namespace",
            "Write an object, or move its members to the top level.",
        ),
        AstKind::TSImportEqualsDeclaration(it) if it.import_kind != ImportOrExportKind::Type => (
            it.span.start,
            "`import x =`",
            "Write `const x = …`; servers are globals, and there are no modules.",
        ),
        AstKind::TSExportAssignment(it) => (it.span.start, "`export =`", "Write `export default`."),
        AstKind::Decorator(it) => (
            it.span.start,
            "a decorator",
            "Call the function yourself, on the class or the method.",
        ),
        AstKind::AccessorProperty(it) => (
            it.span.start,
            "an `accessor` field",
            "Write a field, or a getter and a setter.",
        ),
        AstKind::FormalParameter(it)
            if it.accessibility.is_some() || it.readonly || it.r#override =>
        {
            (
                it.span.start,
                "a parameter property",
                "Declare the field, and assign it in the constructor: `this.x = x`.",
            )
        }
        AstKind::TSTypeAssertion(it) if !is_blankable(it, node, semantic) => (
            it.span.start,
            "a `<Type>value` cast",
            "Write `value as Type`.",
        ),
        _ => return None,
    })
}

fn is_ambient(kind: AstKind<'_>) -> bool {
    match kind {
        AstKind::TSNamespaceDeclaration(it) => it.declare,
        AstKind::TSExternalModuleDeclaration(_) | AstKind::TSGlobalDeclaration(_) => true,
        AstKind::Class(it) => it.declare,
        AstKind::Function(it) => it.declare,
        _ => false,
    }
}

/// Whether a cast can be erased without a change to how the rest is parsed.
fn is_blankable(it: &TSTypeAssertion<'_>, node: &AstNode<'_>, semantic: &Semantic<'_>) -> bool {
    let first = leftmost(&it.expression);
    let reads_otherwise = matches!(
        first,
        Expression::ObjectExpression(_)
            | Expression::FunctionExpression(_)
            | Expression::ClassExpression(_)
    );
    let source = semantic.source_text();
    let between = source.get(it.span.start as usize..it.expression.span().start as usize);
    let one_line = between.is_some_and(|between| !between.contains(ends_line));
    let around = semantic.nodes().ancestors(node.id());
    let begins_statement = around
        .take_while(|parent| parent.kind().span().start == it.span.start)
        .any(|parent| matches!(parent.kind(), AstKind::ExpressionStatement(_)));
    one_line && !reads_otherwise && !begins_statement
}

fn leftmost<'e, 'a>(expression: &'e Expression<'a>) -> &'e Expression<'a> {
    let mut here = expression;
    loop {
        here = match here {
            Expression::CallExpression(it) => &it.callee,
            Expression::StaticMemberExpression(it) => &it.object,
            Expression::ComputedMemberExpression(it) => &it.object,
            Expression::TSAsExpression(it) => &it.expression,
            Expression::TSNonNullExpression(it) => &it.expression,
            Expression::TSTypeAssertion(it) => &it.expression,
            other => return other,
        };
    }
}
