//! The tool `log_in` of a server that requires a login, and whose tools are therefore not known yet. A
//! call asks the person to log in. The server's own tools then take its place.

use airlock_core::decide::CallParts;
use airlock_core::outcome::Reply;
use codegen::description::Description;
use serde_json::{Value, json};

const NAME: &str = "log_in";

/// Returns the description that the tool has for hosts.
pub(super) fn description() -> Value {
    json!({
        "name": NAME,
        "description": "Asks the person to log in to this server. The server shows its tools only \
                        after a login.",
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": false},
    })
}

/// Whether a call is for this tool, and not for a tool of the server with the same name.
pub(super) fn is_called(call: &CallParts) -> bool {
    *call.tool.tool.0 == *NAME
        && Description::digest_of(&description()) == Some(call.upstream_digest)
}

/// Returns the reply after the person has logged in.
pub(super) fn reply() -> Reply {
    let text =
        "The person has logged in. The tools of the server can be used from the next script on.";
    Reply::Result {
        is_error: false,
        content: json!([{"type": "text", "text": text}])
            .to_string()
            .into_bytes(),
        structured_content: None,
    }
}
