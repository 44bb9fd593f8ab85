//! Detects the form of a script: a body, one function, one expression, or a module. The guest
//! detects the form on its own; a test checks that both agree.

use oxc_ast::ast::{Expression, ImportOrExportKind, Program, Statement};
use oxc_span::GetSpan;

use codegen_shared::finding::{FindingCode, Form};

use super::findings::Findings;
use super::parse::ParsedScript;

/// Maximum length in bytes of a script that is parsed as one expression although its start does not
/// look like one.
const EXPRESSION_BYTES_MAX: usize = 4_096;

/// Detects the form of `text`, which is the script without types.
pub(crate) fn detect(program: &Program<'_>, text: &str) -> Form {
    let mut real = program.body.iter().filter(|it| !is_erased(it));
    if program.body.iter().any(is_module_item) {
        return Form::Module;
    }
    let (Some(only), None) = (real.next(), real.next()) else {
        return Form::Body;
    };
    if !program.directives.is_empty() || !may_be_single(only.span().start, text) {
        return Form::Body;
    }
    match only {
        Statement::FunctionDeclaration(function) if !function.generator => Form::Function,
        Statement::ExpressionStatement(statement) => of_expression(&statement.expression),
        _ => Form::Body,
    }
}

/// Reports syntax that the form does not allow.
pub(super) fn check(
    program: &Program<'_>,
    form: Form,
    parsed: &ParsedScript<'_>,
    findings: &mut Findings<'_>,
) {
    let exports = program
        .body
        .iter()
        .any(|it| is_module_item(it) && !is_import(it));
    for statement in &program.body {
        imports(statement, findings);
        if form == Form::Module && exports {
            top_level_return(statement, findings);
            begins_no_line(statement, parsed.text, findings);
        }
    }
}

fn imports(statement: &Statement<'_>, findings: &mut Findings<'_>) {
    let source = match statement {
        Statement::ImportDeclaration(import) if !is_erased(statement) => &import.source,
        Statement::ExportFromDeclaration(export) if !is_erased(statement) => &export.source,
        Statement::ExportAllDeclaration(export) if !is_erased(statement) => &export.source,
        _ => return,
    };
    findings.error(
        FindingCode::NoModules,
        statement.span().start,
        format!("there is no module `{}` here", source.value),
        Some(
            "Remove the line: servers are globals, and only types can be imported (`import type`)."
                .to_owned(),
        ),
    );
}

fn top_level_return(statement: &Statement<'_>, findings: &mut Findings<'_>) {
    if let Statement::ReturnStatement(found) = statement {
        findings.error(
            FindingCode::Syntax,
            found.span.start,
            "a module has no top-level `return`".to_owned(),
            Some("Write `export default` and the value, or remove the exports.".to_owned()),
        );
    }
}

/// Reports `export` in the middle of a line: the guest recognises a module by a line that starts
/// with `export`.
fn begins_no_line(statement: &Statement<'_>, text: &str, findings: &mut Findings<'_>) {
    if !is_module_item(statement) {
        return;
    }
    let start = statement.span().start;
    let before = text.get(..start as usize).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    if !line.trim().is_empty() {
        findings.error(
            FindingCode::Syntax,
            start,
            "`export` is in the middle of a line".to_owned(),
            Some("Move it to the start of a line.".to_owned()),
        );
    }
}

/// Whether a statement consists of types only.
pub(super) fn is_erased(statement: &Statement<'_>) -> bool {
    use ImportOrExportKind::Type;
    match statement {
        Statement::TSTypeAliasDeclaration(_) | Statement::TSInterfaceDeclaration(_) => true,
        Statement::TSEnumDeclaration(it) => it.declare,
        Statement::TSNamespaceDeclaration(it) => it.declare,
        Statement::TSExternalModuleDeclaration(_) | Statement::TSGlobalDeclaration(_) => true,
        Statement::TSNamespaceExportDeclaration(_) => true,
        Statement::TSImportEqualsDeclaration(it) => it.import_kind == Type,
        Statement::VariableDeclaration(it) => it.declare,
        Statement::FunctionDeclaration(it) => it.declare || it.body.is_none(),
        Statement::ClassDeclaration(it) => it.declare,
        Statement::ImportDeclaration(it) => {
            it.import_kind == Type || it.specifiers.as_ref().is_some_and(|them| only_types(them))
        }
        Statement::ExportNamedDeclaration(it) => it.export_kind == Type,
        Statement::ExportFromDeclaration(it) => it.export_kind == Type,
        Statement::ExportAllDeclaration(it) => it.export_kind == Type,
        Statement::ExportDeclaration(it) => is_erased_declaration(&it.declaration),
        Statement::ExportDefaultDeclaration(it) => {
            use oxc_ast::ast::ExportDefaultDeclarationKind as Kind;
            match &it.declaration {
                Kind::TSInterfaceDeclaration(_) => true,
                Kind::FunctionDeclaration(function) => function.body.is_none(),
                _ => false,
            }
        }
        _ => false,
    }
}

fn is_erased_declaration(declaration: &oxc_ast::ast::Declaration<'_>) -> bool {
    use oxc_ast::ast::Declaration;
    match declaration {
        Declaration::TSTypeAliasDeclaration(_) | Declaration::TSInterfaceDeclaration(_) => true,
        Declaration::FunctionDeclaration(function) => function.declare || function.body.is_none(),
        other => other.declare(),
    }
}

fn only_types(specifiers: &[oxc_ast::ast::ImportDeclarationSpecifier<'_>]) -> bool {
    use oxc_ast::ast::ImportDeclarationSpecifier::ImportSpecifier;
    let is_type =
        |it: &_| matches!(it, ImportSpecifier(it) if it.import_kind == ImportOrExportKind::Type);
    !specifiers.is_empty() && specifiers.iter().all(is_type)
}

fn is_module_item(statement: &Statement<'_>) -> bool {
    statement.is_module_declaration() && !is_erased(statement)
}

fn is_import(statement: &Statement<'_>) -> bool {
    matches!(statement, Statement::ImportDeclaration(_))
}

fn may_be_single(start: u32, text: &str) -> bool {
    // A function without a name was parsed in parentheses, so its offsets are one byte larger.
    let own = text.trim_start();
    let start = text.get(start as usize..).unwrap_or(own);
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let begins = |text: &str| {
        ["(", "async", "function"]
            .iter()
            .any(|it| text.starts_with(it))
    };
    let arrow = |text: &str| {
        text.split_once("=>")
            .is_some_and(|(before, _)| before.trim().chars().all(word))
    };
    let likely = begins(start) || begins(own) || arrow(start);
    likely || (text.len() <= EXPRESSION_BYTES_MAX && !text.contains("return"))
}

fn of_expression(expression: &Expression<'_>) -> Form {
    match expression {
        Expression::ParenthesizedExpression(inner) => match of_expression(&inner.expression) {
            Form::Function => Form::Function,
            _ => Form::Expression,
        },
        Expression::FunctionExpression(function) if function.generator => Form::Expression,
        Expression::FunctionExpression(_) | Expression::ArrowFunctionExpression(_) => {
            Form::Function
        }
        Expression::SequenceExpression(_) => Form::Body,
        _ => Form::Expression,
    }
}
