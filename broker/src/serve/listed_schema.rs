//! The schema of a tool's arguments, as a list of tools contains it.

use serde_json::{Map, Value};

use crate::broker::ToolSnapshot;
use crate::broker::tool_index::ListedTool;
use crate::upstream::headers;

/// Returns the schema of the arguments as listed, or `None` if hosts might not accept it.
pub(super) fn listed_schema(known: &ToolSnapshot, shown: &ListedTool) -> Option<Value> {
    if shown.tool.args_check.unusable().is_some() {
        return None;
    }
    let description = known.description(&shown.tool.id)?;
    readable(&description.input_schema)
}

/// Returns the schema with `type: object`, because arguments are always an object.
fn readable(schema: &Value) -> Option<Value> {
    let schema = schema.as_object()?;
    let properties = schema.get("properties").map(Value::as_object);
    let required = schema.get("required").map(Value::as_array);
    let is_readable = properties
        .is_none_or(|it| it.is_some_and(|it| it.values().all(Value::is_object)))
        && required.is_none_or(|it| it.is_some_and(|it| it.iter().all(Value::is_string)));
    let mut listed = match schema.get("type") {
        None => Map::from_iter([("type".to_owned(), "object".into())]),
        Some(kind) if kind == "object" => Map::new(),
        Some(_) => return None,
    };
    listed.extend(schema.clone());
    let listed = Value::Object(listed);
    // A host must reject a tool with an invalid `x-mcp-header`.
    (is_readable && headers::mirrored(&listed).is_ok()).then_some(listed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schema_is_listed_unchanged_if_every_host_can_read_it() {
        let whole = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"a": {"$anchor": "b", "type": "string"}},
            "properties": {"x": {"$ref": "#/$defs/a", "x-mcp-header": "X", "type": "string"}},
            "if": {"required": ["x"]}, "then": {}, "additionalProperties": false,
        });
        assert_eq!(readable(&whole), Some(whole.clone()));
        let typed = readable(&json!({"properties": {}})).unwrap();
        assert_eq!(typed, json!({"type": "object", "properties": {}}));
        for strange in [
            json!(true),
            json!({"type": ["object", "null"]}),
            json!({"type": "object", "properties": {"x": true}}),
            json!({"type": "object", "properties": []}),
            json!({"type": "object", "required": "x"}),
            json!({"properties": {"x": {"type": "array", "x-mcp-header": "X"}}}),
        ] {
            assert_eq!(readable(&strange), None, "{strange}");
        }
    }
}
