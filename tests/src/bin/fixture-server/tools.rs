//! The server's tools and their results.

use serde_json::{Map, Value, json};

/// The tools. A server called `test` lists them under the names that the conformance suite calls.
const TOOLS: [&str; 31] = [
    "simple_text",
    "image_content",
    "audio_content",
    "embedded_resource",
    "multiple_content_types",
    "error_handling",
    "tool_with_progress",
    "tool_with_logging",
    "logging_tool",
    "sampling",
    "elicitation",
    "elicitation_sep1034_defaults",
    "elicitation_sep1330_enums",
    "elicitation_address",
    "address_first",
    "opened",
    "streaming_elicitation",
    "input_required_result_elicitation",
    "input_required_result_sampling",
    "input_required_result_list_roots",
    "input_required_result_multiple_inputs",
    "input_required_result_multi_round",
    "input_required_result_request_state",
    "input_required_result_tampered_state",
    "input_required_result_capabilities",
    "trigger_tool_change",
    "trigger_prompt_change",
    "wait",
    "crash",
    "mirrored",
    // The suite calls `json_schema_2020_12_tool`, as if a server `json` had this tool.
    "schema_2020_12_tool",
];
/// A tool that `trigger_tool_change` alternately adds and removes.
const NOW_AND_THEN: &str = "now_and_then";
/// One red pixel.
pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
/// A RIFF header without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

pub(crate) struct Tools(Vec<&'static str>);

impl Tools {
    pub(crate) fn new() -> Self {
        Self(TOOLS.to_vec())
    }

    pub(crate) fn list(&self) -> Vec<Value> {
        self.0.iter().map(|name| tool_of(name)).collect()
    }

    /// Changes the list of tools and sends the notification.
    pub(crate) fn change(&mut self) -> std::io::Result<()> {
        match self.0.iter().position(|name| *name == NOW_AND_THEN) {
            Some(at) => drop(self.0.remove(at)),
            None => self.0.push(NOW_AND_THEN),
        }
        super::send(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
    }
}

fn tool_of(name: &str) -> Value {
    if name == "schema_2020_12_tool" {
        return json!({"name": name, "description": "Takes a person.", "inputSchema": person()});
    }
    let text = json!({"type": "string"});
    let properties = match name {
        "sampling" => json!({"prompt": text}),
        "elicitation" => json!({"message": text}),
        "elicitation_address" => json!({"hidden": {"type": "boolean"}}),
        "mirrored" => json!({"region": {"type": "string", "x-mcp-header": "Region"}}),
        _ => json!({}),
    };
    json!({
        "name": name,
        "description": format!("Answers for `{name}`."),
        "inputSchema": {"type": "object", "properties": properties, "additionalProperties": false},
    })
}

/// Returns a schema with keywords of JSON Schema 2020-12.
fn person() -> Value {
    let texts = ["street", "city"].map(|it| (it, json!({"type": "string"})));
    let street = Map::from_iter(texts.map(|(name, text)| (name.to_owned(), text)));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": street}},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

/// Returns the result of a call with the answers of each of its rounds.
pub(crate) fn called(params: &Value, rounds: &[Map<String, Value>]) -> Value {
    let tool = params["name"].as_str().unwrap_or_default();
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let audio = json!({"type": "audio", "data": WAV, "mimeType": "audio/wav"});
    let resource = json!({
        "type": "resource",
        "resource": {"uri": "test://embedded", "mimeType": "text/plain", "text": "embedded"},
    });
    match tool {
        "image_content" => json!({"content": [image]}),
        "audio_content" => json!({"content": [audio]}),
        "embedded_resource" => json!({"content": [resource]}),
        "multiple_content_types" => json!({"content": [text("several"), image, resource]}),
        "error_handling" => json!({"content": [text("it fails on purpose")], "isError": true}),
        _ if rounds.is_empty() => json!({"content": [text(&format!("this is {tool}"))]}),
        // Reports only the actions, because only this server may see the answers.
        _ => {
            let said = rounds.iter().flatten();
            let ends: Vec<_> = said
                .map(|(key, said)| {
                    format!("{key} {}", said["action"].as_str().unwrap_or("answered"))
                })
                .collect();
            json!({"content": [text(&format!("state-ok: {}", ends.join(", ")))]})
        }
    }
}
