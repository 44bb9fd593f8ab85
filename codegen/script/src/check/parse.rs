//! From text to a syntax tree. A script is read as JavaScript first, so that
//! what is JavaScript stays exactly that; then as TypeScript; then as a function
//! without a name, which is no statement of either.

use oxc_allocator::Allocator;
use oxc_ast::AstKind;
use oxc_ast::ast::{Expression, Program, TSType, TSTypeName, TSTypeParameterInstantiation};
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::{Semantic, SemanticBuilder, SemanticBuilderReturn};
use oxc_span::{GetSpan, SourceType};

use super::findings::Findings;
use codegen_shared::finding::FindingCode;

/// A module in any case: a script may wait at its top, with `for await` too.
const TYPESCRIPT: SourceType = SourceType::ts().with_module(true);

/// A script that can be parsed.
pub(crate) struct Parsed<'a> {
    /// What was parsed: the script, or the script in brackets.
    pub(crate) text: &'a str,
    /// How many bytes stand before the script in it; as many and a line end stand behind.
    pub(crate) shift: u32,
    pub(crate) program: Program<'a>,
    pub(crate) typescript: bool,
}

pub(crate) struct Wrong {
    /// In the script's own bytes.
    pub(super) at: u32,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

pub(crate) fn parse<'a>(
    allocator: &'a Allocator,
    is_typescript: bool,
    text: &'a str,
) -> Result<Parsed<'a>, Wrong> {
    let mut wrong: Option<Wrong> = None;
    if !is_typescript {
        match attempt(allocator, text, SourceType::mjs()) {
            Ok(program) if !may_have_type_arguments(text) => {
                return Ok(whole(text, program, false));
            }
            Ok(program) => {
                let typed = attempt(allocator, text, TYPESCRIPT).ok();
                return Ok(match typed.filter(means_type_arguments) {
                    Some(typed) => whole(text, typed, true),
                    None => whole(text, program, false),
                });
            }
            Err(found) => wrong = Some(found),
        }
    }
    match attempt(allocator, text, TYPESCRIPT) {
        Ok(program) => return Ok(whole(text, program, true)),
        Err(found) => wrong = Some(farther(wrong, found)),
    }
    if let Some(parsed) = nameless_function(allocator, text) {
        return Ok(parsed);
    }
    Err(wrong.unwrap_or_else(|| Wrong {
        at: 0,
        message: "the script cannot be parsed".to_owned(),
        help: None,
    }))
}

fn whole<'a>(text: &'a str, program: Program<'a>, typescript: bool) -> Parsed<'a> {
    Parsed {
        text,
        shift: 0,
        program,
        typescript,
    }
}

/// Early errors that parsing alone does not see, such as a name declared twice.
pub(super) fn report(built: &SemanticBuilderReturn<'_>, findings: &mut Findings<'_>) {
    for diagnostic in built.diagnostics.iter() {
        // Of several places the last is where the mistake is, as when a name is declared twice.
        let places = diagnostic.labels.iter().map(|it| offset(it.offset()));
        let at = places.max().unwrap_or_default();
        findings.error(
            FindingCode::Syntax,
            at,
            sentence(&diagnostic.message),
            diagnostic.help.as_ref().map(|it| sentence_end(it)),
        );
    }
}

fn attempt<'a>(
    allocator: &'a Allocator,
    text: &'a str,
    source_type: SourceType,
) -> Result<Program<'a>, Wrong> {
    let options = ParseOptions {
        allow_return_outside_function: true,
        ..ParseOptions::default()
    };
    let parsed = Parser::new(allocator, text, source_type)
        .with_options(options)
        .parse();
    match parsed.diagnostics.iter().next() {
        None if !parsed.panicked => Ok(parsed.program),
        None => Err(Wrong {
            at: 0,
            message: "the script cannot be parsed".to_owned(),
            help: None,
        }),
        Some(first) => Err(Wrong {
            at: first.labels.first().map_or(0, |it| offset(it.offset())),
            message: sentence(&first.message),
            help: first.help.as_ref().map(|it| sentence_end(it)),
        }),
    }
}

/// The reading that came farther knows better what is wrong.
fn farther(before: Option<Wrong>, now: Wrong) -> Wrong {
    match before {
        Some(before) if before.at >= now.at => before,
        _ => now,
    }
}

fn nameless_function<'a>(allocator: &'a Allocator, text: &str) -> Option<Parsed<'a>> {
    let trimmed = text.trim_end();
    let bare = trimmed.trim_end_matches(';');
    let blanks = " ".repeat(text.len() - bare.len());
    let wrapped = allocator.alloc_str(&format!("({bare}{blanks}\n)"));
    let is_function = |program: &Program<'_>| {
        let [only] = program.body.as_slice() else {
            return false;
        };
        matches!(only, oxc_ast::ast::Statement::ExpressionStatement(it)
            if matches!(it.expression.without_parentheses(), Expression::FunctionExpression(_)))
    };
    let read = |source_type| {
        let program = attempt(allocator, wrapped, source_type).ok()?;
        is_function(&program).then_some(program)
    };
    let (program, typescript) = match read(SourceType::mjs()) {
        Some(program) => (program, false),
        None => (read(TYPESCRIPT)?, true),
    };
    Some(Parsed {
        text: wrapped,
        shift: 1,
        program,
        typescript,
    })
}

/// `f<T>(x)` is also two comparisons. Nearly no script compares so: only one that
/// has a `>` before a bracket is looked at closer.
fn may_have_type_arguments(text: &str) -> bool {
    if !text.contains('<') {
        return false;
    }
    text.match_indices('>').any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        let after = text.get(at + 1..).unwrap_or_default().trim_start();
        !before.ends_with('=') && after.starts_with(['(', '`'])
    })
}

/// Whether the type arguments in this reading are types for sure: nothing of
/// their names is a value that the script could compare with.
fn means_type_arguments(program: &Program<'_>) -> bool {
    // Made again for the reading that is used; this one is rare.
    let built = SemanticBuilder::new().with_build_nodes(true).build(program);
    let semantic = &built.semantic;
    let mut arguments = semantic
        .nodes()
        .iter()
        .filter_map(|node| match node.kind() {
            AstKind::CallExpression(it) => it.type_arguments.as_deref(),
            AstKind::TaggedTemplateExpression(it) => it.type_arguments.as_deref(),
            AstKind::NewExpression(it) => it.type_arguments.as_deref(),
            _ => None,
        });
    arguments.any(|arguments| are_types(arguments, semantic))
}

fn are_types(arguments: &TSTypeParameterInstantiation<'_>, semantic: &Semantic<'_>) -> bool {
    arguments.params.iter().any(|param| match param {
        TSType::TSTypeReference(reference) => match &reference.type_name {
            TSTypeName::IdentifierReference(name) => {
                let scoping = semantic.scoping();
                let id = name.reference_id.get();
                let symbol = id.and_then(|id| scoping.get_reference(id).symbol_id());
                symbol.is_none_or(|symbol| !scoping.symbol_flags(symbol).is_value())
            }
            _ => false,
        },
        TSType::TSNullKeyword(_) | TSType::TSUndefinedKeyword(_) | TSType::TSThisType(_) => false,
        TSType::TSLiteralType(_) | TSType::TSTypeQuery(_) => false,
        other => other.span().end > other.span().start,
    })
}

fn offset(at: impl TryInto<u32>) -> u32 {
    at.try_into().unwrap_or(u32::MAX)
}

/// The parser's words, with a small first letter, as all messages here have it.
fn sentence(words: &str) -> String {
    let text = crate::text::neutralise(words);
    let text = text.trim_end_matches('.');
    let mut chars = text.chars();
    match (chars.next(), chars.clone().next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}

fn sentence_end(words: &str) -> String {
    let text = crate::text::neutralise(words);
    if text.ends_with(['.', '?', '!']) {
        text
    } else {
        format!("{text}.")
    }
}
