//! Parses text into a syntax tree. A script is parsed as JavaScript first, so that valid JavaScript
//! keeps its meaning; then as TypeScript; then as a function without a name, which is not a valid
//! statement in either language.

use oxc_allocator::Allocator;
use oxc_ast::AstKind;
use oxc_ast::ast::{Expression, Program, TSType, TSTypeName, TSTypeParameterInstantiation};
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::{Semantic, SemanticBuilder, SemanticBuilderReturn};
use oxc_span::{GetSpan, SourceType};

use super::findings::Findings;
use codegen_shared::finding::FindingCode;

/// Scripts are always parsed as modules, because they may use `await` and `for await` at the top
/// level.
const TYPESCRIPT: SourceType = SourceType::ts().with_module(true);

/// A script that parsed without errors.
pub(crate) struct ParsedScript<'a> {
    /// The parsed text: the script, or the script in parentheses.
    pub(crate) text: &'a str,
    /// Number of bytes before the script in `text`. After the script, `text` has a line end and the
    /// same number of bytes.
    pub(crate) shift: u32,
    pub(crate) program: Program<'a>,
    pub(crate) typescript: bool,
}

pub(crate) struct ParseError {
    /// Byte offset in the script.
    pub(super) at: u32,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

pub(crate) fn parse<'a>(
    allocator: &'a Allocator,
    is_typescript: bool,
    text: &'a str,
) -> Result<ParsedScript<'a>, ParseError> {
    let mut wrong: Option<ParseError> = None;
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
        Err(found) => wrong = Some(furthest(wrong, found)),
    }
    if let Some(parsed) = nameless_function(allocator, text) {
        return Ok(parsed);
    }
    Err(wrong.unwrap_or_else(|| ParseError {
        at: 0,
        message: "the script cannot be parsed".to_owned(),
        help: None,
    }))
}

fn whole<'a>(text: &'a str, program: Program<'a>, typescript: bool) -> ParsedScript<'a> {
    ParsedScript {
        text,
        shift: 0,
        program,
        typescript,
    }
}

/// Reports early errors that the parser alone does not find, such as a name that is declared twice.
pub(super) fn report(built: &SemanticBuilderReturn<'_>, findings: &mut Findings<'_>) {
    for diagnostic in built.diagnostics.iter() {
        // The last location is that of the mistake, for example of the second declaration.
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
) -> Result<Program<'a>, ParseError> {
    let options = ParseOptions {
        allow_return_outside_function: true,
        ..ParseOptions::default()
    };
    let parsed = Parser::new(allocator, text, source_type)
        .with_options(options)
        .parse();
    match parsed.diagnostics.iter().next() {
        None if !parsed.panicked => Ok(parsed.program),
        None => Err(ParseError {
            at: 0,
            message: "the script cannot be parsed".to_owned(),
            help: None,
        }),
        Some(first) => Err(ParseError {
            at: first.labels.first().map_or(0, |it| offset(it.offset())),
            message: sentence(&first.message),
            help: first.help.as_ref().map(|it| sentence_end(it)),
        }),
    }
}

/// Returns the error that is further into the text. The parser that reported this error understood
/// more of the script.
fn furthest(before: Option<ParseError>, now: ParseError) -> ParseError {
    match before {
        Some(before) if before.at >= now.at => before,
        _ => now,
    }
}

fn nameless_function<'a>(allocator: &'a Allocator, text: &str) -> Option<ParsedScript<'a>> {
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
    Some(ParsedScript {
        text: wrapped,
        shift: 1,
        program,
        typescript,
    })
}

/// Whether the script may contain `f<T>(x)`, which is also valid as two comparisons. Such
/// comparisons are rare, so only a script with a `>` before a parenthesis or a template is examined
/// further.
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

/// Whether some type arguments in this parse are certainly types: the script has no values with
/// their names.
fn means_type_arguments(program: &Program<'_>) -> bool {
    // The caller builds the semantic tree again later; this case is rare.
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

/// Returns the parser's message with a lower-case first letter, like all messages here.
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
