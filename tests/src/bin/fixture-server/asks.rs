//! The requests that some tools send to their host before they answer, in rounds.

use serde_json::{Map, Value, json};

/// Returns the requests of a round, by their keys. The map is empty if the call can be answered.
pub(crate) fn round(params: &Value, round: usize, host: &Value) -> Map<String, Value> {
    let tool = params["name"].as_str().unwrap_or_default();
    let args = &params["arguments"];
    let name = || form("What is your name?", "name");
    let capital = || sample("What is the capital of France?");
    let requests = match (tool, round) {
        ("sampling", 0) => vec![(
            "answer",
            sample(args["prompt"].as_str().unwrap_or_default()),
        )],
        ("elicitation", 0) => {
            let message = args["message"].as_str().unwrap_or_default();
            vec![("answer", form(message, "username"))]
        }
        ("elicitation_sep1034_defaults", 0) => vec![("answer", defaults())],
        ("elicitation_sep1330_enums", 0) => vec![("answer", enums())],
        ("elicitation_address", 0) => {
            vec![("answer", address(host.is_object(), args["hidden"] == true))]
        }
        ("streaming_elicitation", 0) => vec![("answer", name())],
        ("input_required_result_elicitation", 0) => vec![("user_name", name())],
        ("input_required_result_sampling", 0) => vec![("capital_question", capital())],
        ("input_required_result_list_roots", 0) => vec![("client_roots", roots())],
        ("input_required_result_multiple_inputs", 0) => vec![
            ("user_name", name()),
            ("greeting", sample("Generate a greeting")),
            ("client_roots", roots()),
        ],
        ("input_required_result_multi_round", 0) => vec![("step1", name())],
        ("input_required_result_multi_round", 1) => {
            vec![("step2", form("What is your favorite color?", "color"))]
        }
        ("input_required_result_request_state" | "input_required_result_tampered_state", 0) => {
            vec![("confirm", form("Please confirm", "ok"))]
        }
        ("input_required_result_capabilities", 0) => {
            let both = [("elicitation", name()), ("sampling", capital())];
            let can = |(what, _): &(&str, Value)| host.get(what).is_some();
            both.into_iter().filter(can).collect()
        }
        _ => Vec::new(),
    };
    let named = requests.into_iter();
    named
        .map(|(key, request)| (key.to_owned(), request))
        .collect()
}

fn elicit(message: &str, properties: Value) -> Value {
    let schema = json!({"type": "object", "properties": properties});
    let params = json!({"message": message, "requestedSchema": schema});
    json!({"method": "elicitation/create", "params": params})
}

fn form(message: &str, field: &str) -> Value {
    elicit(message, json!({ field: {"type": "string"} }))
}

/// Returns a request to open an address. Only the older era has an id for it.
fn address(is_newer: bool, hides: bool) -> Value {
    let (message, url) = match hides {
        true => ("Sign in\u{202e}", "https://example.com/\u{202e}"),
        false => ("Sign in", "https://example.com/a"),
    };
    let mut params = json!({"mode": "url", "message": message, "url": url});
    if !is_newer {
        params["elicitationId"] = "theirs".into();
    }
    json!({"method": "elicitation/create", "params": params})
}

/// Returns the error for a call that needs an address to be opened first.
pub(crate) fn first(id: &Value) -> Value {
    let address = json!({
        "mode": "url", "message": "Sign in first", "url": "https://example.com/first",
        "elicitationId": "theirs",
    });
    let data = json!({"elicitations": [address]});
    let error = json!({"code": -32042, "message": "sign in first", "data": data});
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

fn sample(prompt: &str) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    let params = json!({"messages": [message], "maxTokens": 100});
    json!({"method": "sampling/createMessage", "params": params})
}

fn roots() -> Value {
    json!({"method": "roots/list", "params": {}})
}

fn defaults() -> Value {
    let words = ["active", "inactive", "pending"];
    let properties = json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": words, "default": "active"},
        "verified": {"type": "boolean", "default": true},
    });
    elicit("Please look through these", properties)
}

fn enums() -> Value {
    let plain = ["option1", "option2", "option3"];
    let titled = |title: &str| {
        let one = |n: u32| json!({"const": format!("value{n}"), "title": format!("{title} {n}")});
        json!([one(1), one(2), one(3)])
    };
    let names = ["Option One", "Option Two", "Option Three"];
    let properties = json!({
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
    });
    elicit("Please choose", properties)
}
