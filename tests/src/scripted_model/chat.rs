//! Chat completions of OpenAI.

use serde_json::{Value, json};

use super::{Conversation, ShownTool, ToolResult, Turn, add_content, add_text, events, text_of};

pub(super) fn read(body: &Value) -> Conversation {
    let tools = body["tools"].as_array().into_iter().flatten();
    let tools = tools.map(|it| ShownTool {
        name: text_of(&it["function"]["name"]),
        description: text_of(&it["function"]["description"]),
        namespace: None,
    });
    let mut results: Vec<ToolResult> = Vec::new();
    for message in body["messages"].as_array().into_iter().flatten() {
        match message["role"].as_str().unwrap_or_default() {
            "tool" => results.push(ToolResult::default()),
            // A host sends the images of a result in a message of the user that follows it.
            "user" => (),
            _ => continue,
        }
        if let Some(result) = results.last_mut() {
            add_content(result, &message["content"], add_part);
        }
    }
    Conversation {
        tools: tools.collect(),
        results,
        ..Conversation::default()
    }
}

fn add_part(result: &mut ToolResult, part: &Value) {
    match part["image_url"]["url"].as_str() {
        Some(url) => result.images.push(url.to_owned()),
        None => add_text(result, part["text"].as_str().unwrap_or_default()),
    }
}

fn message(turn: &Turn) -> (Value, &'static str) {
    match turn {
        Turn::Say(text) => (json!({"role": "assistant", "content": text}), "stop"),
        Turn::Call { tool, id, args } => {
            let function = json!({"name": tool.name, "arguments": args.to_string()});
            let call = json!({"index": 0, "id": id, "type": "function", "function": function});
            let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
            (message, "tool_calls")
        }
    }
}

/// Returns the id of a message. Some hosts keep only one message of each id.
fn id(turn: &Turn) -> String {
    match turn {
        Turn::Say(_) => "chat".to_owned(),
        Turn::Call { id, .. } => format!("chat_{id}"),
    }
}

fn usage() -> Value {
    json!({"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20})
}

pub(super) fn whole(turn: &Turn) -> Value {
    let (message, end) = message(turn);
    json!({
        "id": id(turn), "object": "chat.completion", "created": 1, "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": end}],
        "usage": usage(),
    })
}

pub(super) fn stream(turn: &Turn) -> String {
    let (message, end) = message(turn);
    let chunk = |choices: Value| {
        json!({
            "id": id(turn), "object": "chat.completion.chunk", "created": 1, "model": "scripted",
            "choices": choices,
        })
    };
    let mut last = chunk(json!([]));
    last["usage"] = usage();
    let chunks = [
        chunk(json!([{"index": 0, "delta": message, "finish_reason": null}])),
        chunk(json!([{"index": 0, "delta": {}, "finish_reason": end}])),
        last,
    ];
    format!("{}data: [DONE]\n\n", events(&chunks, false))
}
