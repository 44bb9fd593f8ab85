//! Lists the ways in which TypeScript and a schema may disagree about a value; any other
//! disagreement fails the test.

use codegen::validate::{Severity, Validator};
use jsonschema::error::{TypeKind, ValidationErrorKind as Fault};
use jsonschema::types::JsonType;
use jsonschema::{Draft, ValidationError};
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exception {
    // The schema refuses the value, and TypeScript cannot.
    /// `minimum`, `maximum` and their exclusive forms, `multipleOf`
    NumberBounds,
    /// `minLength`, `maxLength`
    TextLength,
    /// `pattern`
    Pattern,
    /// `type: integer`
    WholeNumber,
    /// `minItems`, `maxItems` of anything but a tuple
    ItemCount,
    /// `minProperties`, `maxProperties`
    KeyCount,
    /// `uniqueItems`
    UniqueItems,
    /// `oneOf`, where more than one alternative fits
    MoreThanOneFits,
    /// Keys of one closed alternative on a value of another one
    MixedAlternatives,
    /// An array where an object with any keys is expected
    ArrayAsOpenObject,
    // The schema accepts the value, and TypeScript does not.
    /// A key that the schema neither names nor forbids
    UnknownKey,
    // Either of them may refuse the value.
    /// The tool is listed as degraded
    Degraded,
}

/// Returns why TypeScript accepts a value that the schema refuses; `None` if it should not.
pub(crate) fn of_refused(schema: &Value, value: &Value) -> Option<Vec<Exception>> {
    let compiled = compile(schema);
    let faults: Vec<_> = compiled.iter_errors(value).collect();
    all(&faults, false)
}

/// Returns why TypeScript refuses a value that the schema accepts; `None` if it should not.
pub(crate) fn of_accepted(schema: &Value, value: &Value) -> Option<Vec<Exception>> {
    let findings = Validator::compile(schema).unwrap().check("args", value);
    let warns = findings.iter().any(|it| it.severity == Severity::Warning);
    let names_none = schema
        .get("properties")
        .is_some_and(|it| it == &serde_json::json!({}));
    (warns || names_none).then(|| vec![Exception::UnknownKey])
}

fn compile(schema: &Value) -> jsonschema::Validator {
    let drafts = [Draft::Draft202012, Draft::Draft7, Draft::Draft4];
    let compiled = drafts.iter().find_map(|draft| {
        let options = jsonschema::options().should_validate_formats(false);
        options.with_draft(*draft).build(schema).ok()
    });
    compiled.unwrap()
}

fn all(faults: &[ValidationError<'_>], in_union: bool) -> Option<Vec<Exception>> {
    let mut found = Vec::new();
    for fault in faults {
        found.extend(of_fault(fault, in_union)?);
    }
    Some(found)
}

fn of_fault(fault: &ValidationError<'_>, in_union: bool) -> Option<Vec<Exception>> {
    let one = match fault.kind() {
        Fault::Minimum { .. }
        | Fault::Maximum { .. }
        | Fault::ExclusiveMinimum { .. }
        | Fault::ExclusiveMaximum { .. }
        | Fault::MultipleOf { .. } => Exception::NumberBounds,
        Fault::MinLength { .. } | Fault::MaxLength { .. } => Exception::TextLength,
        Fault::Pattern { .. } => Exception::Pattern,
        Fault::MinItems { .. } | Fault::MaxItems { .. } => Exception::ItemCount,
        Fault::MinProperties { .. } | Fault::MaxProperties { .. } => Exception::KeyCount,
        Fault::UniqueItems => Exception::UniqueItems,
        Fault::OneOfMultipleValid { .. } => Exception::MoreThanOneFits,
        Fault::AdditionalProperties { .. } if in_union => Exception::MixedAlternatives,
        Fault::Type {
            kind: TypeKind::Single(JsonType::Integer),
        } if fault.instance().is_number() => Exception::WholeNumber,
        Fault::Type {
            kind: TypeKind::Single(JsonType::Object),
        } if fault.instance().is_array() => Exception::ArrayAsOpenObject,
        Fault::AnyOf { context } | Fault::OneOfNotValid { context } => {
            return context.iter().find_map(|branch| all(branch, true));
        }
        _ => return None,
    };
    Some(vec![one])
}
