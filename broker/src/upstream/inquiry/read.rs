//! An inquiry as a server wrote it: read by method within bounds, and cut down to
//! what the protocol has for it. Everything else is refused in the protocol's words.

use airlock_core::id::ServerName;
use airlock_core::inquiry::Wants;
use airlock_core::json::{self, Bounds};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{INVALID_PARAMS, Refused};
use crate::carrier::{Abilities, Inquiry};
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
    abilities: Abilities,
) -> Result<Inquiry, Refused> {
    let mut params = match params {
        None => Map::new(),
        Some(raw) => match json::read(raw.get().as_bytes(), BOUNDS) {
            Ok(Value::Object(params)) => params,
            Ok(_) => return Err(invalid("`params` is not an object")),
            Err(bad) => {
                return Err(invalid(format!("the params cannot be read: {bad}")));
            }
        },
    };
    let wants = match method {
        "elicitation/create" => match params.get("mode").map(Value::as_str) {
            None | Some(Some("form")) => Wants::Form,
            Some(Some("url")) => Wants::Address,
            Some(_) => return Err(invalid("unknown elicitation mode")),
        },
        "sampling/createMessage" => Wants::Sampling,
        "roots/list" => Wants::Roots,
        _ => return Err(Refused::new(METHOD_NOT_FOUND, "there is no such method")),
    };
    if !abilities.has(wants) {
        return Err(unable(wants));
    }
    let params = match wants {
        Wants::Form => form(&mut params)?,
        Wants::Address => address(&mut params)?,
        Wants::Sampling => sampling(&mut params, abilities)?,
        Wants::Roots => json!({}),
    };
    Ok(Inquiry {
        server: server.clone(),
        wants,
        params,
        key: None,
    })
}

fn unable(wants: Wants) -> Refused {
    let code = match wants {
        Wants::Form | Wants::Address => INVALID_PARAMS,
        Wants::Sampling | Wants::Roots => METHOD_NOT_FOUND,
    };
    let what = wants.in_words();
    Refused::new(
        code,
        format!("whoever runs this call cannot be asked for {what}"),
    )
}

fn form(params: &mut Map<String, Value>) -> Result<Value, Refused> {
    let schema = params.remove("requestedSchema");
    let Some(Value::Object(schema)) = schema else {
        return Err(invalid("`requestedSchema` is missing or not an object"));
    };
    let message = message(params)?;
    Ok(json!({"mode": "form", "message": message, "requestedSchema": schema}))
}

/// Only addresses that a browser opens, and none that runs something.
fn address(params: &mut Map<String, Value>) -> Result<Value, Refused> {
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
        // Only the older era has one.
        (None, _) => {}
        _ => return Err(invalid("`elicitationId` is not a string")),
    }
    Ok(address)
}

fn message(params: &mut Map<String, Value>) -> Result<String, Refused> {
    match params.remove("message") {
        Some(Value::String(message)) => Ok(message),
        _ => Err(invalid("`message` is missing or not a string")),
    }
}

/// Without `includeContext`: the host would take all servers behind us for the one that asks.
fn sampling(params: &mut Map<String, Value>, abilities: Abilities) -> Result<Value, Refused> {
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
        return Err(invalid("whoever runs this call cannot sample with tools"));
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

fn invalid(message: impl Into<String>) -> Refused {
    Refused::new(INVALID_PARAMS, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, params: Value, abilities: Abilities) -> Result<Value, i64> {
        let raw = RawValue::from_string(params.to_string()).unwrap();
        let read = inquiry(&ServerName("s".into()), method, Some(&raw), abilities);
        read.map(|it| it.params).map_err(|it| it.code)
    }

    #[test]
    fn an_inquiry_is_cut_down_to_what_the_protocol_has_for_it() {
        let schema = json!({"type": "object", "properties": {}});
        let asked = json!({"message": "?", "requestedSchema": schema, "_meta": {"x": 1}, "y": 2});
        let form = json!({"mode": "form", "message": "?", "requestedSchema": schema});
        assert_eq!(check("elicitation/create", asked, Abilities::ALL), Ok(form));
        let asked = json!({
            "messages": [], "maxTokens": 9, "includeContext": "allServers", "metadata": {}, "task": {},
        });
        let kept = json!({"messages": [], "maxTokens": 9});
        assert_eq!(
            check("sampling/createMessage", asked, Abilities::ALL),
            Ok(kept)
        );
        let roots = check("roots/list", json!({"cursor": 1}), Abilities::ALL);
        assert_eq!(roots, Ok(json!({})));
    }

    #[test]
    fn what_a_host_cannot_be_asked_is_refused_in_the_words_of_the_protocol() {
        let form = json!({"message": "?", "requestedSchema": {}});
        let url =
            |url: &str| json!({"mode": "url", "message": "?", "url": url, "elicitationId": "1"});
        let good = "https://example.com/a?b=c";
        let sampling = json!({"messages": [], "maxTokens": 1});
        let tools = json!({"messages": [], "maxTokens": 1, "tools": []});
        let nothing = Abilities::default();
        let no_tools = Abilities {
            sampling_tools: false,
            ..Abilities::ALL
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
                Abilities::ALL,
                INVALID_PARAMS,
            ),
            (
                "elicitation/create",
                json!({"mode": 1}),
                Abilities::ALL,
                INVALID_PARAMS,
            ),
            (
                "elicitation/create",
                json!({"message": "?"}),
                Abilities::ALL,
                INVALID_PARAMS,
            ),
            (
                "elicitation/create",
                json!([]),
                Abilities::ALL,
                INVALID_PARAMS,
            ),
            (
                "elicitation/create",
                url("javascript:alert(1)"),
                Abilities::ALL,
                INVALID_PARAMS,
            ),
            (
                "elicitation/create",
                url("file:///etc"),
                Abilities::ALL,
                INVALID_PARAMS,
            ),
            (
                "sampling/createMessage",
                json!({"messages": []}),
                Abilities::ALL,
                INVALID_PARAMS,
            ),
            ("tasks/get", json!({}), Abilities::ALL, METHOD_NOT_FOUND),
        ] {
            let what = format!("{method} {params}");
            assert_eq!(check(method, params, abilities), Err(code), "{what}");
        }
        assert!(check("elicitation/create", url(good), Abilities::ALL).is_ok());
    }
}
