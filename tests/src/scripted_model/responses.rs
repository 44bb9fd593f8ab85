//! Responses of OpenAI.

use serde_json::{Value, json};

use super::{Conversation, ShownTool, ToolResult, Turn, add_content, add_text, events, text_of};

pub(super) fn read(body: &Value) -> Conversation {
    let mut tools = Vec::new();
    for tool in body["tools"].as_array().into_iter().flatten() {
        let shown = |it: &Value, namespace: Option<String>| ShownTool {
            name: text_of(&it["name"]),
            description: text_of(&it["description"]),
            namespace,
        };
        match tool["tools"].as_array() {
            Some(inner) => {
                let namespace = text_of(&tool["name"]);
                tools.extend(inner.iter().map(|it| shown(it, Some(namespace.clone()))));
            }
            None => tools.push(shown(tool, None)),
        }
    }
    let mut results: Vec<ToolResult> = Vec::new();
    for item in body["input"].as_array().into_iter().flatten() {
        let is_output = item["type"] == "function_call_output";
        if is_output {
            results.push(ToolResult::default());
        }
        let content = match is_output {
            true => &item["output"],
            false if item["role"] == "user" => &item["content"],
            false => continue,
        };
        if let Some(result) = results.last_mut() {
            add_content(result, content, add_part);
        }
    }
    Conversation {
        tools,
        results,
        ..Conversation::default()
    }
}

fn add_part(result: &mut ToolResult, part: &Value) {
    match part["image_url"].as_str() {
        Some(url) => result.images.push(url.to_owned()),
        None => add_text(result, part["text"].as_str().unwrap_or_default()),
    }
}

fn item(turn: &Turn) -> Value {
    match turn {
        Turn::Say(text) => {
            let content = json!({"type": "output_text", "text": text, "annotations": []});
            json!({
                "type": "message", "id": "message", "role": "assistant", "status": "completed",
                "content": [content],
            })
        }
        Turn::Call { tool, id, args } => {
            let mut call = json!({
                "type": "function_call", "id": format!("fc_{id}"), "call_id": id,
                "status": "completed", "name": tool.name, "arguments": args.to_string(),
            });
            if let Some(namespace) = &tool.namespace {
                call["namespace"] = namespace.clone().into();
            }
            call
        }
    }
}

fn response(output: &[Value], status: &str) -> Value {
    json!({
        "id": "response", "object": "response", "created_at": 1, "model": "scripted",
        "status": status, "output": output, "parallel_tool_calls": false, "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 10, "output_tokens": 10, "total_tokens": 20,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    })
}

pub(super) fn whole(turn: &Turn) -> Value {
    response(&[item(turn)], "completed")
}

pub(super) fn stream(turn: &Turn) -> String {
    let item = item(turn);
    let all = [
        json!({"type": "response.created", "response": response(&[], "in_progress")}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": response(&[item], "completed")}),
    ];
    let numbered = all.into_iter().enumerate().map(|(number, mut event)| {
        event["sequence_number"] = number.into();
        event
    });
    events(&numbered.collect::<Vec<_>>(), true)
}
