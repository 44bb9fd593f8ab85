//! `generateContent` of Gemini.

use serde_json::{Value, json};

use super::{Conversation, ShownTool, ToolResult, Turn, add_text, events, text_of};

pub(super) fn read(body: &Value) -> Conversation {
    let tools = body["tools"].as_array().into_iter().flatten();
    let tools = tools.filter_map(|it| it["functionDeclarations"].as_array());
    let tools = tools.flatten().map(|it| ShownTool {
        name: text_of(&it["name"]),
        description: text_of(&it["description"]),
        namespace: None,
    });
    let contents = body["contents"].as_array().into_iter().flatten();
    let parts = contents.filter_map(|it| it["parts"].as_array()).flatten();
    let mut results: Vec<ToolResult> = Vec::new();
    for part in parts {
        let response = &part["functionResponse"];
        if !response.is_null() {
            results.push(ToolResult::default());
        }
        let Some(result) = results.last_mut() else {
            continue;
        };
        if !response.is_null() {
            add_response(result, response);
        } else if let Some(data) = part["inlineData"]["data"].as_str() {
            result.images.push(data.to_owned());
        }
    }
    Conversation {
        tools: tools.collect(),
        results,
        ..Conversation::default()
    }
}

fn add_response(result: &mut ToolResult, response: &Value) {
    let said = &response["response"];
    let text = said["output"].as_str().or(said["error"].as_str());
    add_text(
        result,
        &text.map_or_else(|| said.to_string(), str::to_owned),
    );
    for part in response["parts"].as_array().into_iter().flatten() {
        let data = part["inlineData"]["data"].as_str();
        result.images.extend(data.map(str::to_owned));
    }
}

pub(super) fn whole(turn: &Turn) -> Value {
    let part = match turn {
        Turn::Say(text) => json!({"text": text}),
        Turn::Call { tool, id, args } => {
            json!({"functionCall": {"name": tool.name, "id": id, "args": args}})
        }
    };
    let content = json!({"role": "model", "parts": [part]});
    json!({
        "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20},
        "modelVersion": "scripted",
    })
}

pub(super) fn stream(turn: &Turn) -> String {
    events(&[whole(turn)], false)
}
