//! `get_tool_details`: returns full descriptions. A tool whose description was returned is callable
//! in the session.

use serde_json::{Map, Value, json};

use super::OwnToolAnswer;
use crate::broker::tool_index::details::{ToolDetails, wanted};
use crate::broker::tool_index::{DETAILS, ToolIndex};
use crate::serve::context::ServeContext;
use crate::serve::disclosure::{self, FormatDetails};
use crate::serve::request::Request;

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
) -> Result<OwnToolAnswer, OwnToolAnswer> {
    let (wanted, as_json) = wanted(args)?;
    let handle = request.own_handle();
    let format = |details: ToolDetails<'_>, others: &[String]| {
        if as_json || details.found.is_empty() {
            json_text(details, others, handle)
        } else {
            let declarations = typescript(details, others);
            match handle {
                Some(handle) => format!(
                    "// pass to run_script and call_tool: session = \"{handle}\"\n{declarations}"
                ),
                None => declarations,
            }
        }
    };
    let encoded_bytes_max = request.limits(context.settings()).encoded_bytes_max;
    let within = (&format as FormatDetails<'_>, encoded_bytes_max);
    let session = &request.session;
    let shown = disclosure::disclose_within(context, tool_index, session, &wanted, within)?;
    Ok(OwnToolAnswer::Done {
        text: shown.text,
        structured: None,
        is_error: !shown.is_found,
    })
}

/// Formats descriptions as JSON. The session's handle comes first, because a long text is cut.
fn json_text(details: ToolDetails<'_>, others: &[String], handle: Option<&str>) -> String {
    let mut entries = details.entries;
    if let Some(handle) = handle {
        entries.shift_insert(0, "session".into(), handle.into());
    }
    if !others.is_empty() {
        entries.insert("not_shown".into(), disclosure::left_out(others).into());
    }
    Value::Object(entries).to_string()
}

/// Formats descriptions as declarations.
pub(super) fn typescript(details: ToolDetails<'_>, others: &[String]) -> String {
    let mut text = details.declarations();
    if !others.is_empty() {
        text.push_str(&format!("// {}\n", disclosure::left_out(others)));
    }
    text
}
