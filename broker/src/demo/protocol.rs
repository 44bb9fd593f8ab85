//! MCP for the demo server: the handshake of both eras, and the envelope of every answer. The tools
//! themselves are in `tools`.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::tools::{self, DemoTools, ToolReply};
use crate::upstream::era::{LEGACY_VERSIONS, MODERN_VERSION};
use crate::upstream::jsonrpc;

const INVALID_PARAMS: i64 = -32_602;
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const INSTRUCTIONS: &str = "A log store and a ticket tracker for trials. Query the logs with `logs_query`, \
    and file problems with `tickets_create`. Nothing outside this process changes.";

#[derive(Default)]
pub(super) struct DemoServer {
    tools: DemoTools,
}

#[derive(Deserialize)]
struct Call {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// A JSON-RPC error as an answer.
struct DemoError {
    code: i64,
    message: String,
    data: Option<Value>,
}

impl DemoServer {
    /// Returns the complete message that answers this request.
    pub(super) fn answer(
        &mut self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
    ) -> ToolReply<Vec<u8>> {
        let params = params.map_or_else(
            || Ok(Value::Null),
            |params| serde_json::from_str(params.get()),
        );
        let answered = match params {
            Ok(params) => self.result(method, &params),
            Err(error) => Err(invalid(format!("the params cannot be read: {error}"))),
        };
        match answered {
            Ok(result) => result.map(|result| jsonrpc::result(id, &result.to_string())),
            Err(refusal) => ToolReply::Now(jsonrpc::error_with(
                id,
                refusal.code,
                &refusal.message,
                refusal.data.as_ref(),
            )),
        }
    }

    fn result(&mut self, method: &str, params: &Value) -> Result<ToolReply<Value>, DemoError> {
        let modern = is_modern(params)?;
        if method == "tools/call" {
            let told = self.call(params)?;
            return Ok(told.map(|result| enveloped(result, modern, false)));
        }
        let (result, lasting) = match method {
            "initialize" => (initialized(params), false),
            "server/discover" if modern => (discovered(), true),
            "server/discover" => return Err(invalid(format!("`_meta` lacks `{VERSION_KEY}`"))),
            "ping" => (json!({}), false),
            "tools/list" => (listed(params)?, true),
            _ => {
                let message = format!("there is no method `{method}`");
                return Err(DemoError {
                    code: jsonrpc::METHOD_NOT_FOUND,
                    message,
                    data: None,
                });
            }
        };
        Ok(ToolReply::Now(enveloped(result, modern, lasting)))
    }

    fn call(&mut self, params: &Value) -> Result<ToolReply<Value>, DemoError> {
        let call = Call::deserialize(params).map_err(|error| invalid(error.to_string()))?;
        match self.tools.call(&call.name, call.arguments) {
            Some(told) => Ok(told),
            None => Err(invalid(format!("there is no tool `{}`", call.name))),
        }
    }
}

/// Whether the request is of the newer era, whose requests contain their version.
fn is_modern(params: &Value) -> Result<bool, DemoError> {
    let meta = params.get("_meta");
    let Some(version) = meta.and_then(|meta| meta.get(VERSION_KEY)) else {
        return Ok(false);
    };
    if version != MODERN_VERSION {
        let data = json!({"supported": [MODERN_VERSION], "requested": version});
        let message = "unsupported protocol revision".to_owned();
        return Err(DemoError {
            code: jsonrpc::UNSUPPORTED_VERSION,
            message,
            data: Some(data),
        });
    }
    match meta.and_then(|meta| meta.get(CAPABILITIES_KEY)) {
        Some(Value::Object(_)) => Ok(true),
        _ => Err(invalid(format!("`_meta` lacks `{CAPABILITIES_KEY}`"))),
    }
}

fn initialized(params: &Value) -> Value {
    let wanted = params
        .get("protocolVersion")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let [newest, ..] = LEGACY_VERSIONS;
    let version = LEGACY_VERSIONS
        .into_iter()
        .find(|version| *version == wanted)
        .unwrap_or(newest);
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    })
}

fn discovered() -> Value {
    json!({
        "supportedVersions": [MODERN_VERSION],
        "capabilities": {"tools": {}},
        "instructions": INSTRUCTIONS,
    })
}

fn listed(params: &Value) -> Result<Value, DemoError> {
    match params.get("cursor") {
        None | Some(Value::Null) => Ok(json!({"tools": tools::descriptions()})),
        Some(_) => Err(invalid("there is only one page".to_owned())),
    }
}

/// Adds the members that the newer era requires in every result and in cacheable results.
fn enveloped(mut result: Value, modern: bool, lasting: bool) -> Value {
    const TTL_MS: u64 = 3_600_000;
    if let Some(members) = result.as_object_mut().filter(|_| modern) {
        members.insert("resultType".into(), "complete".into());
        members.insert(
            "_meta".into(),
            json!({"io.modelcontextprotocol/serverInfo": server_info()}),
        );
        if lasting {
            members.insert("ttlMs".into(), TTL_MS.into());
            members.insert("cacheScope".into(), "public".into());
        }
    }
    result
}

fn server_info() -> Value {
    json!({"name": "airlock-demo", "title": "Airlock demo server", "version": env!("CARGO_PKG_VERSION")})
}

fn invalid(message: String) -> DemoError {
    DemoError {
        code: INVALID_PARAMS,
        message,
        data: None,
    }
}
