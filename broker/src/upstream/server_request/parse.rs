//! Parses an inquiry of a server by method and within limits, and keeps only the members that the
//! protocol defines. Anything else is refused with a protocol error.

use airlock_core::id::ServerName;
use airlock_core::inquiry::InquiryKind;
use airlock_core::json::{self, Bounds};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{INVALID_PARAMS, RequestError};
use crate::client_bridge::{ClientCapabilities, ServerRequest};
use crate::upstream::jsonrpc::METHOD_NOT_FOUND;

const BOUNDS: Bounds = Bounds {
    bytes_max: 4 * 1024 * 1024,
    depth_max: 64,
    nodes_max: 100_000,
};

pub(super) fn inquiry(
    server: &ServerName,
    method: &str,
    params: Option<&RawValue>,
    abilities: ClientCapabilities,
) -> Result<ServerRequest, RequestError> {
    let mut params = match params {
        None => Map::new(),
        Some(raw) => match json::read(raw.get().as_bytes(), BOUNDS) {
            Ok(Value::Object(params)) => params,
            Ok(_) => return Err(invalid("`params` is not an object")),
            Err(bad) => return Err(invalid(format!("invalid params: {bad}"))),
        },
    };
    let wants = match method {
        "elicitation/create" => match params.get("mode").map(Value::as_str) {
            None | Some(Some("form")) => InquiryKind::Form,
            Some(Some("url")) => InquiryKind::Address,
            Some(_) => return Err(invalid("unknown elicitation mode")),
        },
        "sampling/createMessage" => InquiryKind::Sampling,
        "roots/list" => InquiryKind::Roots,
        _ => {
            return Err(RequestError::new(
                METHOD_NOT_FOUND,
                "this method is not supported",
            ));
        }
    };
    if !abilities.has(wants) {
        return Err(unable(wants));
    }
    let params = match wants {
        InquiryKind::Form => form(&mut params)?,
        InquiryKind::Address => address(&mut params)?,
        InquiryKind::Sampling => sampling(&mut params, abilities)?,
        InquiryKind::Roots => json!({}),
    };
    Ok(ServerRequest {
        server: server.clone(),
        wants,
        params,
        key: None,
    })
}

fn unable(wants: InquiryKind) -> RequestError {
    let code = match wants {
        InquiryKind::Form | InquiryKind::Address => INVALID_PARAMS,
        InquiryKind::Sampling | InquiryKind::Roots => METHOD_NOT_FOUND,
    };
    let what = wants.in_words();
    RequestError::new(
        code,
        format!("the caller of this run cannot be asked for {what}"),
    )
}

fn form(params: &mut Map<String, Value>) -> Result<Value, RequestError> {
    let schema = params.remove("requestedSchema");
    let Some(Value::Object(schema)) = schema else {
        return Err(invalid("`requestedSchema` is missing or not an object"));
    };
    let message = message(params)?;
    Ok(json!({"mode": "form", "message": message, "requestedSchema": schema}))
}

/// Checks an address: only schemes that a browser opens, and none that executes code.
fn address(params: &mut Map<String, Value>) -> Result<Value, RequestError> {
    let text = params
        .get("url")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let url = reqwest::Url::parse(text).ok();
    let Some(url) = url.filter(|it| matches!(it.scheme(), "http" | "https")) else {
        return Err(invalid("`url` is not an http or https address"));
    };
    let id = params.remove("elicitationId");
    let message = message(params)?;
    let mut address = json!({"mode": "url", "message": message, "url": url.as_str()});
    match (id, address.as_object_mut()) {
        (Some(id @ Value::String(_)), Some(members)) => {
            members.insert("elicitationId".into(), id);
        }
        // The newer era has no such id.
        (None, _) => {}
        _ => return Err(invalid("`elicitationId` is not a string")),
    }
    Ok(address)
}

fn message(params: &mut Map<String, Value>) -> Result<String, RequestError> {
    match params.remove("message") {
        Some(Value::String(message)) => Ok(message),
        _ => Err(invalid("`message` is missing or not a string")),
    }
}

/// Parses a sampling request. `includeContext` is removed: the host would include the context of
/// all servers behind airlock, not only of the asking server.
fn sampling(
    params: &mut Map<String, Value>,
    abilities: ClientCapabilities,
) -> Result<Value, RequestError> {
    const KEPT: [&str; 8] = [
        "messages",
        "modelPreferences",
        "systemPrompt",
        "temperature",
        "maxTokens",
        "stopSequences",
        "tools",
        "toolChoice",
    ];
    if params.contains_key("tools") && !abilities.sampling_tools {
        return Err(invalid(
            "the caller of this run does not support sampling with tools",
        ));
    }
    if !params.get("messages").is_some_and(Value::is_array) {
        return Err(invalid("`messages` is missing or not an array"));
    }
    if !params.get("maxTokens").is_some_and(Value::is_number) {
        return Err(invalid("`maxTokens` is missing or not a number"));
    }
    params.retain(|key, _| KEPT.contains(&key.as_str()));
    Ok(Value::Object(std::mem::take(params)))
}

fn invalid(message: impl Into<String>) -> RequestError {
    RequestError::new(INVALID_PARAMS, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, params: Value, abilities: ClientCapabilities) -> Result<Value, i64> {
        let raw = RawValue::from_string(params.to_string()).unwrap();
        let read = inquiry(&ServerName("s".into()), method, Some(&raw), abilities);
        read.map(|it| it.params).map_err(|it| it.code)
    }

    #[test]
    fn request_is_reduced_to_protocol_fields() {
        let schema = json!({"type": "object", "properties": {}});
        let asked = json!({"message": "?", "requestedSchema": schema, "_meta": {"x": 1}, "y": 2});
        let form = json!({"mode": "form", "message": "?", "requestedSchema": schema});
        assert_eq!(
            check("elicitation/create", asked, ClientCapabilities::ALL),
            Ok(form)
        );
        let asked = json!({
            "messages": [], "maxTokens": 9, "includeContext": "allServers", "metadata": {}, "task": {},
        });
        let kept = json!({"messages": [], "maxTokens": 9});
        assert_eq!(
            check("sampling/createMessage", asked, ClientCapabilities::ALL),
            Ok(kept)
        );
        let roots = check("roots/list", json!({"cursor": 1}), ClientCapabilities::ALL);
        assert_eq!(roots, Ok(json!({})));
    }

    #[test]
    fn unsupported_request_is_refused_with_protocol_error() {
        let form = json!({"message": "?", "requestedSchema": {}});
        let url =
            |url: &str| json!({"mode": "url", "message": "?", "url": url, "elicitationId": "1"});
        let good = "https://example.com/a?b=c";
        let sampling = json!({"messages": [], "maxTokens": 1});
        let tools = json!({"messages": [], "maxTokens": 1, "tools": []});
        let nothing = ClientCapabilities::default();
        let no_tools = ClientCapabilities {
            sampling_tools: false,
            ..ClientCapabilities::ALL
        };
        for (method, params, abilities, code) in [
            ("elicitation/create", form.clone(), nothing, INVALID_PARAMS),
            ("elicitation/create", url(good), nothing, INVALID_PARAMS),
            (
                "sampling/createMessage",
                sampling,
                nothing,
                METHOD_NOT_FOUND,
            ),
            ("roots/list", json!({}), nothing, METHOD_NOT_FOUND),
            ("sampling/createMessage", tools, no_tools, INVALID_PARAMS),
            (
                "elicitation/create",
                json!({"mode": "x"}),
                ClientCapabilities::ALL,
                INVALID_PARAMS,
            ),
            (
                "elicitation/create",
                json!({"mode": 1}),
                ClientCapabilities::ALL,
                INVALID_PARAMS,
            ),
            (
                "elicitation/create",
                json!({"message": "?"}),
                ClientCapabilities::ALL,
                INVALID_PARAMS,
            ),
            (
                "elicitation/create",
                json!([]),
                ClientCapabilities::ALL,
                INVALID_PARAMS,
            ),
            (
                "elicitation/create",
                url("javascript:alert(1)"),
                ClientCapabilities::ALL,
                INVALID_PARAMS,
            ),
            (
                "elicitation/create",
                url("file:///etc"),
                ClientCapabilities::ALL,
                INVALID_PARAMS,
            ),
            (
                "sampling/createMessage",
                json!({"messages": []}),
                ClientCapabilities::ALL,
                INVALID_PARAMS,
            ),
            (
                "tasks/get",
                json!({}),
                ClientCapabilities::ALL,
                METHOD_NOT_FOUND,
            ),
        ] {
            let what = format!("{method} {params}");
            assert_eq!(check(method, params, abilities), Err(code), "{what}");
        }
        assert!(check("elicitation/create", url(good), ClientCapabilities::ALL).is_ok());
    }
}
