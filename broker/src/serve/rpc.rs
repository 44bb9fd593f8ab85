//! What a request of a host may look like, and the envelope of every answer.
//! Strict about what leaves; what comes in is read within bounds.

use airlock_core::json::{self, Bounds};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::upstream::Era;
use crate::upstream::era::{LEGACY_VERSIONS, MODERN_VERSION};
use crate::upstream::jsonrpc::{self, Incoming};

pub(super) const PARSE_ERROR: i64 = -32_700;
pub(super) const INVALID_REQUEST: i64 = -32_600;
pub(super) const INVALID_PARAMS: i64 = -32_602;
pub(super) const INTERNAL: i64 = -32_603;
/// A resource that is not there, as the older era has it.
pub(super) const RESOURCE_NOT_FOUND: i64 = -32_002;

pub(super) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";
/// The handle of a session that no transport carries.
pub(super) const SESSION_KEY: &str = "dev.airlock/session";

const PARAMS: Bounds = Bounds {
    // The message that they are in has a bound of its own.
    bytes_max: u32::MAX,
    depth_max: 256,
    nodes_max: 2_000_000,
};

/// How long a host may keep a list, in milliseconds.
const TTL_MS: u64 = 300_000;
const BRIEF_TTL_MS: u64 = 1_000;

/// An answer that is a JSON-RPC error.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

impl Refusal {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Of a message that is not looked at.
    pub(super) fn too_long(bytes_max: usize) -> Self {
        let message = format!(
            "a message is longer than {bytes_max} bytes, which is room for a script and its \
             input within the limits `script` and `input`"
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
        let message = format!("there is no method `{}`", shown(method));
        Self::new(jsonrpc::METHOD_NOT_FOUND, message)
    }

    pub(super) fn no_resource(uri: &str, era: Era) -> Self {
        let code = match era {
            Era::Legacy => RESOURCE_NOT_FOUND,
            Era::Modern => INVALID_PARAMS,
        };
        Self {
            data: Some(json!({ "uri": shown(uri) })),
            ..Self::new(code, format!("there is no resource `{}`", shown(uri)))
        }
    }

    pub(super) fn message(&self, id: &RawValue) -> Vec<u8> {
        jsonrpc::error_with(id, self.code, &self.message, self.data.as_ref())
    }

    /// For a message whose id could not be read.
    pub(super) fn message_to_nobody(&self) -> Vec<u8> {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            put(&mut error, "data", data.clone());
        }
        json!({"jsonrpc": "2.0", "id": null, "error": error})
            .to_string()
            .into_bytes()
    }
}

/// Reads one message of a host. A request whose id is null cannot be answered as one, and is no
/// notification either: nobody who sends one waits for nothing.
pub(super) fn parse(bytes: &[u8]) -> Incoming<'_> {
    match jsonrpc::parse(bytes) {
        Incoming::Notification { method, .. }
            if !method.starts_with("notifications/") && jsonrpc::names_an_id(bytes) =>
        {
            Incoming::Stray
        }
        incoming => incoming,
    }
}

/// The params of a request; no params are an empty object.
pub(super) fn params(raw: Option<&RawValue>) -> Result<Value, Refusal> {
    let Some(raw) = raw else {
        return Ok(json!({}));
    };
    let params = json::parse_strict(raw.get().as_bytes(), PARAMS)
        .map_err(|bad| Refusal::invalid(format!("the params cannot be read: {bad}")))?;
    if params.is_object() {
        Ok(params)
    } else {
        Err(Refusal::invalid("`params` is not an object"))
    }
}

/// Which era a request is of; those of the newer one say so themselves.
pub(super) fn era_of(params: &Value) -> Result<Era, Refusal> {
    let meta = params.get("_meta");
    let Some(version) = meta.and_then(|meta| meta.get(VERSION_KEY)) else {
        return Ok(Era::Legacy);
    };
    if version != MODERN_VERSION {
        return Err(unsupported(version.as_str().unwrap_or_default()));
    }
    match meta.and_then(|meta| meta.get(CAPABILITIES_KEY)) {
        Some(Value::Object(_)) => Ok(Era::Modern),
        _ => Err(Refusal::invalid(format!(
            "`_meta` lacks `{CAPABILITIES_KEY}`"
        ))),
    }
}

pub(super) fn unsupported(version: &str) -> Refusal {
    let supported = json!({"supported": [MODERN_VERSION], "requested": shown(version)});
    Refusal {
        data: Some(supported),
        ..Refusal::new(
            jsonrpc::UNSUPPORTED_VERSION,
            "that protocol version is not spoken here",
        )
    }
}

/// The revision of the older era that both sides speak.
pub(super) fn agreed_version(params: &Value) -> &'static str {
    let wanted = params.get("protocolVersion").and_then(Value::as_str);
    let [newest, ..] = LEGACY_VERSIONS;
    LEGACY_VERSIONS
        .into_iter()
        .find(|version| Some(*version) == wanted)
        .unwrap_or(newest)
}

/// Whether a host may keep a result for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lasting {
    No,
    /// The result is kept for this host alone.
    Private,
    /// The same, and it will soon be another one.
    Briefly,
    /// Reading it does something, so it is read anew each time.
    Once,
}

/// What the newer era wants in every result, and in those that may be kept.
pub(super) fn enveloped(mut result: Value, era: Era, lasting: Lasting) -> Value {
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
    if lasting != Lasting::No {
        let ttl_ms = match lasting {
            Lasting::Private => TTL_MS,
            Lasting::Briefly => BRIEF_TTL_MS,
            Lasting::No | Lasting::Once => 0,
        };
        members.insert("ttlMs".into(), ttl_ms.into());
        members.insert("cacheScope".into(), "private".into());
    }
    result
}

pub(super) fn server_info() -> Value {
    json!({"name": "airlock", "title": "airlock", "version": env!("CARGO_PKG_VERSION")})
}

/// Sets a member of what is an object.
pub(super) fn put(object: &mut Value, key: &str, value: impl Into<Value>) {
    if let Some(members) = object.as_object_mut() {
        members.insert(key.to_owned(), value.into());
    }
}

/// A member of an object that has to be a string when it is there.
pub(super) fn text_of<'a>(
    args: &'a Map<String, Value>,
    key: &str,
) -> Result<Option<&'a str>, String> {
    match args.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{key}` is not a string")),
    }
}

/// Text of the other side inside a message of ours.
pub(super) fn shown(text: &str) -> String {
    codegen::text::clip(&codegen::text::neutralise(text), 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(params: &Value, expected: Result<Era, i64>) {
        assert_eq!(era_of(params).map_err(|it| it.code), expected, "{params}");
    }

    #[test]
    fn a_request_says_itself_that_it_is_of_the_newer_era() {
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
    fn a_request_with_an_id_of_null_is_none_and_a_notification_with_one_is_heard() {
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
            let heard = matches!(parse(message.as_bytes()), Incoming::Notification { .. });
            assert_eq!(heard, is_heard, "{message}");
        }
    }

    #[test]
    fn params_are_an_object_within_bounds() {
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
    fn every_result_of_the_newer_era_says_what_it_is() {
        let old = enveloped(json!({"tools": []}), Era::Legacy, Lasting::Private);
        assert_eq!(old, json!({"tools": []}));
        let new = enveloped(json!({"tools": []}), Era::Modern, Lasting::Private);
        assert_eq!(new["resultType"], "complete");
        assert_eq!(new["cacheScope"], "private");
        assert_eq!(new["_meta"][SERVER_INFO_KEY]["name"], "airlock");
        let open = json!({"resultType": "input_required"});
        let open = enveloped(open, Era::Modern, Lasting::No);
        assert_eq!(open["resultType"], "input_required");
        assert!(open.get("ttlMs").is_none());
    }
}
