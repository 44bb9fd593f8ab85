//! Finds secrets in the parts of a tool that decide what it is called and what it accepts: its name,
//! and everything in its schemas except descriptions, titles, defaults and examples. A mask there
//! would change the tool, so such a tool cannot be used.

use serde_json::{Map, Value};

use super::Secrets;

/// Members of a schema, or of a tool, that only people and models read.
const TEXTS: [&str; 6] = [
    "description",
    "title",
    "default",
    "examples",
    "example",
    "$comment",
];
/// Members of a tool that are not offered to anyone, or whose only text is a title.
const DECORATION: [&str; 4] = ["annotations", "_meta", "icons", "execution"];
/// Members of a schema that are objects with names chosen by the schema's author, such as
/// `properties`.
const NAMED: [&str; 6] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
];
/// Members of a schema that are values, and not schemas.
const VALUES: [&str; 2] = ["enum", "const"];

/// Returns whether the structure of a tool contains a secret.
pub(super) fn contains_secret(secrets: &Secrets, tool: &Value) -> bool {
    let Some(members) = tool.as_object() else {
        return is_in_value(secrets, tool);
    };
    let mut members = members.iter();
    members.any(|(name, member)| match name.as_str() {
        name if TEXTS.contains(&name) || DECORATION.contains(&name) => false,
        "name" => is_in_value(secrets, member),
        _ => is_in_text(secrets, name) || is_in_schema(secrets, member),
    })
}

/// Returns whether the structure of a schema contains a secret.
pub(super) fn is_in_schema(secrets: &Secrets, schema: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().any(|item| is_in_schema(secrets, item)),
        Value::Object(members) => is_in_members(secrets, members),
        value => is_in_value(secrets, value),
    }
}

fn is_in_members(secrets: &Secrets, members: &Map<String, Value>) -> bool {
    members.iter().any(|(name, member)| match member {
        _ if TEXTS.contains(&name.as_str()) => false,
        _ if VALUES.contains(&name.as_str()) => is_in_value(secrets, member),
        Value::Object(named) if NAMED.contains(&name.as_str()) => named
            .iter()
            .any(|(name, schema)| is_in_text(secrets, name) || is_in_schema(secrets, schema)),
        _ => is_in_text(secrets, name) || is_in_schema(secrets, member),
    })
}

/// Returns whether a value contains a secret at any place.
fn is_in_value(secrets: &Secrets, value: &Value) -> bool {
    match value {
        Value::String(text) => is_in_text(secrets, text),
        Value::Number(number) => secrets.is_number(number),
        Value::Array(items) => items.iter().any(|item| is_in_value(secrets, item)),
        Value::Object(members) => members
            .iter()
            .any(|(name, member)| is_in_text(secrets, name) || is_in_value(secrets, member)),
        Value::Null | Value::Bool(_) => false,
    }
}

fn is_in_text(secrets: &Secrets, text: &str) -> bool {
    secrets.redact(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TOKEN: &str = "tok-12345";

    fn check(tool: Value, is_clean: bool) {
        let mut masked = tool.clone();
        assert_eq!(
            Secrets::new([TOKEN, "123456"]).redact_tool(&mut masked),
            is_clean,
            "{tool}"
        );
        if is_clean {
            let text = masked.to_string();
            assert!(text.contains("***") && !text.contains(TOKEN), "{text}");
        }
    }

    fn with(schema: Value) -> Value {
        json!({"name": "x", "inputSchema": schema})
    }

    #[test]
    fn secret_in_the_structure_of_a_tool_is_found() {
        check(json!({"name": TOKEN, "inputSchema": {}}), false);
        check(
            json!({"name": "x", "outputSchema": {"required": [TOKEN]}}),
            false,
        );
        check(json!({"name": "x", TOKEN: {}}), false);
        for schema in [
            json!({"properties": {TOKEN: {}}}),
            json!({"properties": {"a": {"enum": ["b", TOKEN]}}}),
            json!({"properties": {"a": {"const": {"description": TOKEN}}}}),
            json!({"properties": {"a": {"enum": [123_456]}}}),
            json!({"properties": {"description": {"pattern": format!("^{TOKEN}$")}}}),
            json!({"properties": {"title": {"properties": {TOKEN: true}}}}),
            json!({"patternProperties": {format!("^{TOKEN}"): {}}}),
            json!({"required": [TOKEN]}),
            json!({"$defs": {TOKEN: {}}}),
            json!({"definitions": {TOKEN: {}}}),
            json!({"$ref": format!("#/$defs/{TOKEN}")}),
            json!({"anyOf": [{"items": {"format": TOKEN}}]}),
            json!({"dependentRequired": {"a": [TOKEN]}}),
            json!({"dependencies": {TOKEN: ["a"]}}),
            json!({"x-note": TOKEN}),
            json!({"properties": {"a": {"enum": ["dG9rLTEyMzQ1"]}}}),
        ] {
            check(with(schema), false);
        }
    }

    #[test]
    fn secret_in_text_for_readers_is_masked() {
        check(
            json!({"name": "x", "description": TOKEN, "inputSchema": {}}),
            true,
        );
        check(
            json!({"name": "x", "title": TOKEN, "inputSchema": {}}),
            true,
        );
        check(json!({"name": "x", "annotations": {"title": TOKEN}}), true);
        check(json!({"name": "x", "_meta": {TOKEN: TOKEN}}), true);
        for schema in [
            json!({"description": TOKEN}),
            json!({"properties": {"description": {"title": TOKEN}}}),
            json!({"properties": {"a": {"default": TOKEN}}}),
            json!({"properties": {"a": {"default": {TOKEN: [TOKEN]}}}}),
            json!({"properties": {"a": {"default": 123_456}}}),
            json!({"properties": {"a": {"examples": [TOKEN]}}}),
            json!({"items": {"$comment": TOKEN}}),
        ] {
            check(with(schema), true);
        }
    }
}
