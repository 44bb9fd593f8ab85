//! Messages of Anthropic.

use serde_json::{Value, json};

use super::{
    Conversation, OF_AIRLOCK, ShownTool, ToolResult, Turn, add_content, add_text, events, text_of,
};

/// The tool of Claude Code that loads tools by their names, and the id of its call.
const LOADER: &str = "ToolSearch";
const LOADING: &str = "load";
/// How Claude Code begins the names of airlock's tools.
const PREFIX: &str = "mcp__airlock__";

pub(super) fn load(body: &Value) -> Option<Turn> {
    let shown = tools(body);
    let loader = shown.iter().find(|it| it.name == LOADER)?;
    if shown.iter().any(|it| it.name.ends_with(OF_AIRLOCK)) {
        return None;
    }
    let text = body["messages"].to_string();
    let named = text.split(PREFIX).skip(1).map(|rest| {
        let end = rest.find(|it: char| !it.is_alphanumeric() && it != '_');
        format!(
            "{PREFIX}{}",
            rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()
        )
    });
    let names: Vec<_> = named.collect();
    Some(Turn::Call {
        tool: loader.clone(),
        id: LOADING.to_owned(),
        args: json!({"query": format!("select:{}", names.join(","))}),
    })
}

pub(super) fn read(body: &Value) -> Conversation {
    let messages = body["messages"].as_array().into_iter().flatten();
    let parts = messages.filter_map(|it| it["content"].as_array()).flatten();
    let loading = id_of(LOADING);
    let results = parts.filter(|it| it["type"] == "tool_result" && it["tool_use_id"] != loading);
    let results = results.map(|part| {
        let mut result = ToolResult::default();
        add_content(&mut result, &part["content"], add_part);
        result
    });
    Conversation {
        tools: tools(body),
        results: results.collect(),
        ..Conversation::default()
    }
}

fn tools(body: &Value) -> Vec<ShownTool> {
    let tools = body["tools"].as_array().into_iter().flatten();
    let tools = tools.map(|it| ShownTool {
        name: text_of(&it["name"]),
        description: text_of(&it["description"]),
        namespace: None,
    });
    tools.collect()
}

fn id_of(call: &str) -> String {
    format!("toolu_{call}")
}

fn add_part(result: &mut ToolResult, part: &Value) {
    match part["source"]["data"].as_str() {
        Some(data) => result.images.push(data.to_owned()),
        None => add_text(result, part["text"].as_str().unwrap_or_default()),
    }
}

fn block(turn: &Turn) -> (Value, &'static str) {
    match turn {
        Turn::Say(text) => (json!({"type": "text", "text": text}), "end_turn"),
        Turn::Call { tool, id, args } => {
            let block =
                json!({"type": "tool_use", "id": id_of(id), "name": tool.name, "input": args});
            (block, "tool_use")
        }
    }
}

pub(super) fn whole(turn: &Turn) -> Value {
    let (block, end) = block(turn);
    json!({
        "id": "message", "type": "message", "role": "assistant", "model": "scripted",
        "content": [block], "stop_reason": end, "stop_sequence": null,
        "usage": {"input_tokens": 10, "output_tokens": 10},
    })
}

pub(super) fn stream(turn: &Turn) -> String {
    let (block, end) = block(turn);
    let mut message = whole(turn);
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    let (empty, delta) = match turn {
        Turn::Say(text) => (
            json!({"type": "text", "text": ""}),
            json!({"type": "text_delta", "text": text}),
        ),
        Turn::Call { args, .. } => {
            let mut empty = block;
            empty["input"] = json!({});
            let delta = json!({"type": "input_json_delta", "partial_json": args.to_string()});
            (empty, delta)
        }
    };
    let ending = json!({"stop_reason": end, "stop_sequence": null});
    let all = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": empty}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": ending, "usage": {"output_tokens": 10}}),
        json!({"type": "message_stop"}),
    ];
    events(&all, true)
}
