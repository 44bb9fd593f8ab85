//! A tool in the list with all that is said of it, for hosts that want everything
//! at once. One strange schema is no reason for a host to refuse the whole list:
//! such a tool stays in its minimal form.

use serde_json::{Map, Value};

use crate::broker::Known;
use crate::serve::rpc::put;
use crate::serve::shelf::{Shown, visible};
use crate::upstream::headers;

/// Without a schema of what it answers: a direct call answers with the value that scripts get.
pub(super) fn of(known: &Known, shown: &Shown, minimal: Value) -> Value {
    let mut tool = minimal;
    let Some(description) = known.description(&shown.tool.id) else {
        return tool;
    };
    if let Some(title) = &description.title {
        put(&mut tool, "title", codegen::text::neutralise(title));
    }
    if let Some(text) = &description.text {
        put(&mut tool, "description", visible(text));
    }
    if let Some(schema) = schema(known, shown) {
        put(&mut tool, "inputSchema", schema);
    }
    tool
}

/// The schema of its arguments as it is listed; none where hosts could not read it.
pub(in crate::serve) fn schema(known: &Known, shown: &Shown) -> Option<Value> {
    if shown.tool.input.unusable().is_some() {
        return None;
    }
    let description = known.description(&shown.tool.id)?;
    readable(&description.input_schema)
}

/// Arguments are an object, whether or not their schema says so.
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
    // A host must not use a tool that marks arguments as it may not.
    (is_readable && headers::mirrored(&listed).is_ok()).then_some(listed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_is_listed_as_it_is_where_every_host_can_read_it() {
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
