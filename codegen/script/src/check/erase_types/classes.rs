//! Erases what TypeScript adds to classes and functions: modifiers, members without a body,
//! declared fields, `implements`.

use oxc_ast::AstKind;
use oxc_ast::ast::{
    Class, ClassElement, MethodDefinition, MethodDefinitionType, PropertyDefinition,
    PropertyDefinitionType,
};
use oxc_span::{GetSpan, Span};

use super::Eraser;

/// Modifiers before a member's name that have a meaning for types only.
const MODIFIERS: [&str; 7] = [
    "public",
    "private",
    "protected",
    "readonly",
    "override",
    "abstract",
    "declare",
];

pub(super) fn erase(kind: AstKind<'_>, eraser: &mut Eraser<'_>) {
    match kind {
        AstKind::Class(class) => erase_class(class, eraser),
        AstKind::ClassBody(body) => {
            for element in &body.body {
                erase_element(element, eraser);
            }
        }
        _ => {}
    }
}

fn erase_class(class: &Class<'_>, eraser: &mut Eraser<'_>) {
    if class.r#abstract
        && let Some(at) = eraser.find(class.span.start, class.body.span.start, "abstract")
    {
        eraser.erase(at, at + 8);
    }
    if class.implements.is_empty() {
        return;
    }
    let heritage = class.heritage.as_ref();
    let arguments = heritage.and_then(|it| it.type_arguments.as_ref());
    let before = [
        arguments.map(|it| it.span.end),
        heritage.map(|it| it.expression.span().end),
        class.type_parameters.as_ref().map(|it| it.span.end),
        class.id.as_ref().map(|it| it.span.end),
        Some(class.span.start),
    ];
    let from = before.into_iter().flatten().max().unwrap_or_default();
    if let Some(at) = eraser.find(from, class.body.span.start, "implements") {
        eraser.erase(at, class.body.span.start);
    }
}

fn erase_element(element: &ClassElement<'_>, eraser: &mut Eraser<'_>) {
    match element {
        ClassElement::TSIndexSignature(it) => whole(it.span, eraser),
        ClassElement::MethodDefinition(it) => method(it, eraser),
        ClassElement::PropertyDefinition(it) => property(it, eraser),
        ClassElement::AccessorProperty(it) => modifiers(it.span.start, it.key.span(), eraser),
        ClassElement::StaticBlock(_) => {}
    }
}

fn method(it: &MethodDefinition<'_>, eraser: &mut Eraser<'_>) {
    let is_abstract = it.r#type == MethodDefinitionType::TSAbstractMethodDefinition;
    if is_abstract || it.value.body.is_none() {
        return whole(it.span, eraser);
    }
    modifiers(it.span.start, it.key.span(), eraser);
    if it.optional {
        eraser.erase_sign(it.key.span().end, it.value.params.span.start, "?");
    }
}

fn property(it: &PropertyDefinition<'_>, eraser: &mut Eraser<'_>) {
    let is_abstract = it.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition;
    if is_abstract || it.declare {
        return whole(it.span, eraser);
    }
    modifiers(it.span.start, it.key.span(), eraser);
    let annotation = it.type_annotation.as_ref().map(|it| it.span.start);
    let value = it.value.as_ref().map(|it| it.span().start);
    let end = annotation.or(value).unwrap_or(it.span.end);
    for (is_there, sign) in [(it.optional, "?"), (it.definite, "!")] {
        if is_there {
            eraser.erase_sign(it.key.span().end, end, sign);
        }
    }
    // A field without `;` ends at the line end, but the next line could continue it.
    if let Some(annotation) = annotation.filter(|_| it.value.is_none())
        && !eraser.slice(it.span.start, it.span.end).ends_with(';')
    {
        eraser.mark(annotation, ';');
    }
}

/// Erases a whole member. A `;` replaces it, so that the member before it does not run into the
/// next one.
fn whole(span: Span, eraser: &mut Eraser<'_>) {
    eraser.erase(span.start, span.end);
    eraser.mark(span.start, ';');
}

fn modifiers(start: u32, key: Span, eraser: &mut Eraser<'_>) {
    let mut at = eraser.skip_blank(start);
    while at < key.start {
        let word: String = eraser
            .slice(at, key.start)
            .chars()
            .take_while(char::is_ascii_alphabetic)
            .collect();
        let end = at + u32::try_from(word.len()).unwrap_or_default();
        if MODIFIERS.contains(&word.as_str()) {
            eraser.erase(at, end);
            if at == start {
                eraser.mark(at, ';');
            }
        }
        // Skips at least one byte: a bracket of a computed name or the star of a generator.
        at = eraser.skip_blank(end.max(at + 1));
    }
}
