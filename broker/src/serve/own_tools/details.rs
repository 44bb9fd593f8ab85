//! `get_tool_details`: returns full descriptions. A tool whose description was returned is callable
//! in the session.

use serde_json::{Map, Value, json};

use super::OwnToolAnswer;
use crate::broker::tool_index::details::{ToolDetails, look_up, wanted};
use crate::broker::tool_index::{DETAILS, ToolIndex};
use crate::serve::context::ServeContext;
use crate::serve::request::Request;
use crate::serve::session::HostSession;

pub(super) fn description() -> Value {
    json!({
        "name": DETAILS,
        "title": "Get tool details",
        "description": "Full descriptions of tools by name, as TypeScript declarations or JSON. Needed once per session before a tool can be called.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "tools": {"type": "array", "items": {"type": "string"}, "description": "Names such as server.tool"},
                "format": {"type": "string", "enum": ["typescript", "json"], "default": "typescript"},
            },
            "required": ["tools"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    })
}

pub(super) fn call(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
    args: &Map<String, Value>,
) -> OwnToolAnswer {
    let (wanted, as_json) = match wanted(args) {
        Ok(wanted) => wanted,
        Err(why) => return OwnToolAnswer::wrong(why),
    };
    let details = match disclose(context, tool_index, &request.session, &wanted) {
        Ok(details) => details,
        Err(too_often) => return OwnToolAnswer::wrong(too_often),
    };
    let is_error = details.found.is_empty();
    let text = if as_json || is_error {
        let mut entries = details.entries;
        if let Some(handle) = request.own_handle() {
            entries.insert("session".into(), handle.into());
        }
        Value::Object(entries).to_string()
    } else {
        let mut text = details.declarations();
        if let Some(handle) = request.own_handle() {
            text.push_str(&format!(
                "// pass to run_script and call_tool: session = \"{handle}\"\n"
            ));
        }
        text
    };
    OwnToolAnswer::Done {
        text,
        structured: None,
        is_error,
    }
}

/// Returns full descriptions and records in the session that they were shown.
pub(in crate::serve) fn disclose<'a>(
    context: &ServeContext,
    tool_index: &'a ToolIndex,
    session: &HostSession,
    wanted: &[String],
) -> Result<ToolDetails<'a>, String> {
    let fetched = session.fetch(context.now_ms());
    tool_index.broker.note_fetch(fetched.is_err());
    fetched.map_err(|too_often| too_often.to_string())?;
    let details = look_up(tool_index, wanted);
    session.disclose(&details.current());
    Ok(details)
}
