//! The format of hosts' requests, and the envelope of every answer. Output follows the protocol
//! strictly; input is parsed within limits.

use airlock_core::json::{self, Bounds};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::render::escape;
use crate::upstream::Era;
use crate::upstream::era::{LEGACY_VERSIONS, MODERN_VERSION};
use crate::upstream::jsonrpc::{self, IncomingMessage};

pub(super) use crate::broker::tool_index::args::sanitize;

pub(super) const PARSE_ERROR: i64 = -32_700;
pub(super) const INVALID_REQUEST: i64 = -32_600;
pub(super) const INVALID_PARAMS: i64 = -32_602;
pub(super) const INTERNAL: i64 = -32_603;
/// Code for a missing resource in the older era.
pub(super) const RESOURCE_NOT_FOUND: i64 = -32_002;

pub(super) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";
pub(super) const CLIENT_INFO_KEY: &str = "io.modelcontextprotocol/clientInfo";
/// The `_meta` key of the session handle, for transports without sessions.
pub(super) const SESSION_KEY: &str = "dev.airlock/session";
/// The `_meta` key of a run's report, in a result without structured content.
pub(super) const REPORT_KEY: &str = "dev.airlock/report";
/// The `_meta` key of the server that an item comes from, for programs.
pub(super) const SERVER_KEY: &str = "dev.airlock/server";

const PARAMS: Bounds = Bounds {
    // The length of the whole message is limited elsewhere.
    bytes_max: u32::MAX,
    depth_max: 256,
    nodes_max: 2_000_000,
};

/// Time for which a host may cache a list, in milliseconds.
const TTL_MS: u64 = 300_000;
const BRIEF_TTL_MS: u64 = 1_000;

/// A JSON-RPC error response, without its id.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RpcErrorResponse {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

impl RpcErrorResponse {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Builds the error for a message that is too long to be read.
    pub(super) fn too_long(bytes_max: usize) -> Self {
        let message = format!(
            "the message is longer than {bytes_max} bytes; the maximum follows from the limits \
             `script` and `input`"
        );
        Self {
            data: Some(json!({"code": "limit-payload", "bytes_max": bytes_max})),
            ..Self::new(INVALID_REQUEST, message)
        }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub(super) fn no_method(method: &str) -> Self {
        let message = format!("there is no method `{}`", sanitize(method));
        Self::new(jsonrpc::METHOD_NOT_FOUND, message)
    }

    pub(super) fn no_resource(uri: &str, era: Era) -> Self {
        let code = match era {
            Era::Legacy => RESOURCE_NOT_FOUND,
            Era::Modern => INVALID_PARAMS,
        };
        Self {
            data: Some(json!({ "uri": sanitize(uri) })),
            ..Self::new(code, format!("there is no resource `{}`", sanitize(uri)))
        }
    }

    pub(super) fn message(&self, id: &RawValue) -> Vec<u8> {
        let message = escape::block(&self.message);
        jsonrpc::error_with(id, self.code, &message, self.data.as_ref())
    }

    /// Formats the error for a message whose id could not be read.
    pub(super) fn message_to_nobody(&self) -> Vec<u8> {
        let mut error = json!({"code": self.code, "message": escape::block(&self.message)});
        if let Some(data) = &self.data {
            set_member(&mut error, "data", data.clone());
        }
        json!({"jsonrpc": "2.0", "id": null, "error": error})
            .to_string()
            .into_bytes()
    }
}

/// Parses one message of a host. A request with a null id is invalid: it cannot be answered as a
/// request, and it must not count as a notification, because its sender expects an answer.
pub(super) fn parse(bytes: &[u8]) -> IncomingMessage<'_> {
    match jsonrpc::parse(bytes) {
        IncomingMessage::Notification { method, .. }
            if !method.starts_with("notifications/") && jsonrpc::names_an_id(bytes) =>
        {
            IncomingMessage::Stray
        }
        incoming => incoming,
    }
}

/// Parses the params of a request. Missing params count as an empty object.
pub(super) fn params(raw: Option<&RawValue>) -> Result<Value, RpcErrorResponse> {
    let Some(raw) = raw else {
        return Ok(json!({}));
    };
    let params = json::parse_strict(raw.get().as_bytes(), PARAMS)
        .map_err(|bad| RpcErrorResponse::invalid(format!("invalid params: {bad}")))?;
    if params.is_object() {
        Ok(params)
    } else {
        Err(RpcErrorResponse::invalid("`params` is not an object"))
    }
}

/// Returns the era of a request. Requests of the newer era contain their version.
pub(super) fn era_of(params: &Value) -> Result<Era, RpcErrorResponse> {
    let meta = params.get("_meta");
    let Some(version) = meta.and_then(|meta| meta.get(VERSION_KEY)) else {
        return Ok(Era::Legacy);
    };
    if version != MODERN_VERSION {
        return Err(unsupported(version.as_str().unwrap_or_default()));
    }
    match meta.and_then(|meta| meta.get(CAPABILITIES_KEY)) {
        Some(Value::Object(_)) => Ok(Era::Modern),
        _ => Err(RpcErrorResponse::invalid(format!(
            "`_meta` lacks `{CAPABILITIES_KEY}`"
        ))),
    }
}

pub(super) fn unsupported(version: &str) -> RpcErrorResponse {
    let supported = json!({"supported": [MODERN_VERSION], "requested": sanitize(version)});
    RpcErrorResponse {
        data: Some(supported),
        ..RpcErrorResponse::new(
            jsonrpc::UNSUPPORTED_VERSION,
            "this protocol version is not supported",
        )
    }
}

/// Returns the version to use in the older era: the host's version if airlock supports it, else
/// airlock's newest.
pub(super) fn agreed_version(params: &Value) -> &'static str {
    let wanted = params.get("protocolVersion").and_then(Value::as_str);
    let [newest, ..] = LEGACY_VERSIONS;
    LEGACY_VERSIONS
        .into_iter()
        .find(|version| Some(*version) == wanted)
        .unwrap_or(newest)
}

/// Whether and how long a host may cache a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CachePolicy {
    No,
    /// The result may be cached for this host only.
    Private,
    /// The result may be cached for this host only, and for a short time, because it will soon
    /// change.
    Briefly,
    /// The result must be requested each time, because reading it has an effect.
    Once,
}

/// Adds the members that the newer era requires in every result and in cacheable results.
pub(super) fn enveloped(mut result: Value, era: Era, lasting: CachePolicy) -> Value {
    let Some(members) = result.as_object_mut().filter(|_| era == Era::Modern) else {
        return result;
    };
    members
        .entry("resultType")
        .or_insert_with(|| "complete".into());
    let meta = members.entry("_meta").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut() {
        meta.insert(SERVER_INFO_KEY.into(), server_info());
    }
    if lasting != CachePolicy::No {
        let ttl_ms = match lasting {
            CachePolicy::Private => TTL_MS,
            CachePolicy::Briefly => BRIEF_TTL_MS,
            CachePolicy::No | CachePolicy::Once => 0,
        };
        members.insert("ttlMs".into(), ttl_ms.into());
        members.insert("cacheScope".into(), "private".into());
    }
    result
}

pub(super) fn server_info() -> Value {
    json!({"name": "airlock", "title": "airlock", "version": env!("CARGO_PKG_VERSION")})
}

/// Sets a member of a value that is an object.
pub(super) fn set_member(object: &mut Value, key: &str, value: impl Into<Value>) {
    if let Some(members) = object.as_object_mut() {
        members.insert(key.to_owned(), value.into());
    }
}

pub(super) fn remove_member(object: &mut Value, key: &str) {
    if let Some(members) = object.as_object_mut() {
        members.shift_remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(params: &Value, expected: Result<Era, i64>) {
        assert_eq!(era_of(params).map_err(|it| it.code), expected, "{params}");
    }

    #[test]
    fn request_declares_newer_era_itself() {
        let meta = |version: &str, more: Value| {
            let mut meta = json!({ VERSION_KEY: version });
            meta[CAPABILITIES_KEY] = more;
            json!({ "_meta": meta })
        };
        check(&json!({}), Ok(Era::Legacy));
        check(&json!({"_meta": {"progressToken": 1}}), Ok(Era::Legacy));
        check(&meta(MODERN_VERSION, json!({})), Ok(Era::Modern));
        check(&meta(MODERN_VERSION, Value::Null), Err(INVALID_PARAMS));
        check(
            &meta("2099-01-01", json!({})),
            Err(jsonrpc::UNSUPPORTED_VERSION),
        );
    }

    #[test]
    fn null_id_request_is_invalid_and_notification_with_id_is_accepted() {
        for (message, is_heard) in [
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, false),
            (
                r#"{"method":"tools/list","jsonrpc":"2.0","id": null}"#,
                false,
            ),
            (r#"{"jsonrpc":"2.0","method":"ping"}"#, true),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"notifications/initialized"}"#,
                true,
            ),
        ] {
            let heard = matches!(
                parse(message.as_bytes()),
                IncomingMessage::Notification { .. }
            );
            assert_eq!(heard, is_heard, "{message}");
        }
    }

    #[test]
    fn params_must_be_bounded_object() {
        let read = |text: &str| {
            params(Some(&RawValue::from_string(text.to_owned()).unwrap())).map_err(|it| it.message)
        };
        assert_eq!(params(None).unwrap(), json!({}));
        assert_eq!(read(r#"{"a":1}"#), Ok(json!({"a": 1})));
        assert_eq!(read("[1]"), Err("`params` is not an object".into()));
        assert!(
            read(r#"{"a":1,"a":2}"#)
                .unwrap_err()
                .contains("duplicate key")
        );
        let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
        assert!(read(&deep).unwrap_err().contains("deeper"));
    }

    #[test]
    fn newer_era_results_carry_result_type() {
        let old = enveloped(json!({"tools": []}), Era::Legacy, CachePolicy::Private);
        assert_eq!(old, json!({"tools": []}));
        let new = enveloped(json!({"tools": []}), Era::Modern, CachePolicy::Private);
        assert_eq!(new["resultType"], "complete");
        assert_eq!(new["cacheScope"], "private");
        assert_eq!(new["_meta"][SERVER_INFO_KEY]["name"], "airlock");
        let open = json!({"resultType": "input_required"});
        let open = enveloped(open, Era::Modern, CachePolicy::No);
        assert_eq!(open["resultType"], "input_required");
        assert!(open.get("ttlMs").is_none());
    }
}
