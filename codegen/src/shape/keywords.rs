//! Finds the effect of single keywords on a shape, and the type names that schemas suggest.

use serde_json::{Map, Value};

use crate::text;

/// Keywords that a type cannot express and that are therefore shown unchanged.
pub(super) const UNSAYABLE: [&str; 10] = [
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "contains",
    "minContains",
    "maxContains",
];

/// Returns the declared types, or the types that the other keywords imply if there is no `type`.
pub(super) fn type_names(fields: &Map<String, Value>) -> Vec<&str> {
    if fields.contains_key("type") {
        let one = fields.get("type").and_then(Value::as_str);
        return one.map_or_else(|| strings(fields.get("type")), |one| vec![one]);
    }
    const IMPLIED: [(&str, &[&str]); 4] = [
        (
            "object",
            &[
                "properties",
                "additionalProperties",
                "patternProperties",
                "propertyNames",
            ],
        ),
        ("array", &["items", "prefixItems"]),
        (
            "string",
            &[
                "pattern",
                "minLength",
                "maxLength",
                "contentEncoding",
                "format",
            ],
        ),
        (
            "number",
            &[
                "minimum",
                "maximum",
                "exclusiveMinimum",
                "exclusiveMaximum",
                "multipleOf",
            ],
        ),
    ];
    let says = |keywords: &[&str]| keywords.iter().any(|keyword| fields.contains_key(*keyword));
    let implied = IMPLIED.iter().find(|(_, keywords)| says(keywords));
    implied.map(|(name, _)| vec![*name]).unwrap_or_default()
}

/// Whether a branch only requires some of the properties.
pub(super) fn only_constrains(branch: &Value) -> bool {
    branch.as_object().is_some_and(|fields| {
        let speaks = fields.contains_key("required") || fields.contains_key("not");
        speaks
            && fields
                .keys()
                .all(|key| matches!(key.as_str(), "required" | "not" | "description" | "title"))
    })
}

pub(super) fn constraint_text(keyword: &str, branches: &[Value]) -> String {
    let plain: Option<Vec<String>> = branches
        .iter()
        .map(|branch| {
            let names = strings(branch.get("required")).join("+");
            let said = branch.get("description").and_then(Value::as_str);
            let said = said.map(|it| format!(" ({it})")).unwrap_or_default();
            branch.get("not").is_none().then(|| names + &said)
        })
        .collect();
    let how_many = if keyword == "oneOf" {
        "exactly one of"
    } else {
        "at least one of"
    };
    match plain {
        Some(groups) => text::neutralise(&format!("{how_many} {}", groups.join(", "))),
        None => format!("{keyword} {}", text::json(&Value::Array(branches.to_vec()))),
    }
}

pub(super) fn strings(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Converts `search_query` to `SearchQuery`.
pub(super) fn type_name(text: &str) -> String {
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let capitalised = words.map(|word| {
        let mut letters = word.chars();
        let first: String = letters
            .next()
            .into_iter()
            .flat_map(char::to_uppercase)
            .collect();
        first + letters.as_str()
    });
    let name: String = capitalised.collect();
    if name.starts_with(|c: char| c.is_numeric()) {
        format!("T{name}")
    } else {
        name
    }
}

pub(super) fn is_keyword(name: &str) -> bool {
    matches!(
        name,
        "Defs" | "Definitions" | "Items" | "Properties" | "AnyOf" | "OneOf" | "AllOf"
    ) || name
        .strip_prefix('T')
        .is_some_and(|rest| rest.chars().all(char::is_numeric))
}
