//! The server's prompts, resources and completions.

use serde_json::{Value, json};

use super::tools::PNG;

/// The prompts. A server called `test` lists them under the names that the conformance suite
/// expects.
const PROMPTS: [(&str, &[&str]); 4] = [
    ("simple_prompt", &[]),
    ("prompt_with_arguments", &["arg1", "arg2"]),
    ("prompt_with_embedded_resource", &["resourceUri"]),
    ("prompt_with_image", &[]),
];
const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";

/// Returns the result of a request, or `None` for an unknown name or method.
pub(crate) fn answer(method: &str, params: &Value) -> Option<Value> {
    let uri = params["uri"].as_str().unwrap_or_default();
    let mut result = match method {
        "prompts/list" => json!({"prompts": PROMPTS.map(|(name, args)| listed(name, args))}),
        "prompts/get" => prompt(params)?,
        "resources/list" => json!({"resources": [
            {"uri": TEXT, "name": "text", "description": "A text", "mimeType": "text/plain"},
            {"uri": BINARY, "name": "picture", "mimeType": "image/png"},
        ]}),
        "resources/templates/list" => json!({"resourceTemplates": [
            {"uriTemplate": "test://template/{id}/data", "name": "template"},
        ]}),
        "resources/read" => json!({"contents": [contents(uri)?]}),
        "completion/complete" => {
            let begun = params["argument"]["value"].as_str().unwrap_or_default();
            let words = ["paris", "park", "party"];
            let fitting: Vec<_> = words.iter().filter(|it| it.starts_with(begun)).collect();
            json!({"completion": {"values": fitting, "total": fitting.len(), "hasMore": false}})
        }
        _ => return None,
    };
    result["resultType"] = "complete".into();
    Some(result)
}

fn listed(name: &str, args: &[&str]) -> Value {
    let argument = |name: &&str| json!({"name": name, "description": "Any", "required": true});
    let args: Vec<_> = args.iter().map(argument).collect();
    json!({"name": name, "description": format!("Is `{name}`."), "arguments": args})
}

fn prompt(params: &Value) -> Option<Value> {
    let args = &params["arguments"];
    let user = |content: Value| json!({"role": "user", "content": content});
    let text = |text: String| user(json!({"type": "text", "text": text}));
    let messages = match params["name"].as_str()? {
        "simple_prompt" => vec![text("This is a simple prompt for testing.".to_owned())],
        "prompt_with_arguments" => vec![text(format!(
            "Prompt with arguments: arg1={}, arg2={}",
            args["arg1"], args["arg2"]
        ))],
        "prompt_with_embedded_resource" => {
            let resource =
                json!({"uri": args["resourceUri"], "mimeType": "text/plain", "text": "x"});
            vec![
                user(json!({"type": "resource", "resource": resource})),
                text("Read it".to_owned()),
            ]
        }
        "prompt_with_image" => {
            let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
            vec![user(image), text("Look at it".to_owned())]
        }
        _ => return None,
    };
    Some(json!({"messages": messages}))
}

fn contents(uri: &str) -> Option<Value> {
    let id = uri
        .strip_prefix("test://template/")
        .and_then(|it| it.strip_suffix("/data"));
    match (uri, id) {
        (TEXT, _) => Some(json!({"uri": uri, "mimeType": "text/plain", "text": "static text"})),
        (BINARY, _) => Some(json!({"uri": uri, "mimeType": "image/png", "blob": PNG})),
        (_, Some(id)) => {
            let text =
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            Some(json!({"uri": uri, "mimeType": "application/json", "text": text.to_string()}))
        }
        _ => None,
    }
}
