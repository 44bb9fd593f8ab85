//! Builds the full entry of a tool in the list, for hosts that want all descriptions at once. A
//! tool with an invalid schema keeps its minimal entry, because a host might refuse the whole list
//! otherwise.

use serde_json::Value;

use crate::broker::ToolSnapshot;
use crate::broker::tool_index::{ListedTool, visible};
use crate::serve::listed_schema::listed_schema;
use crate::serve::rpc::set_member;

/// Builds the full entry without an output schema, because a direct call returns the value that
/// scripts get.
///
/// A text that is longer than `chars_max` is replaced by its summary; the tool is then read with
/// `get_tool_details` before it is called.
pub(super) fn tool_entry(
    known: &ToolSnapshot,
    shown: &ListedTool,
    minimal: Value,
    chars_max: usize,
) -> Value {
    let mut tool = minimal;
    let Some(description) = known.description(&shown.tool.id) else {
        return tool;
    };
    if let Some(title) = &description.title {
        set_member(&mut tool, "title", codegen::text::neutralise(title));
    }
    if let Some(text) = &description.text {
        if shown.text_chars() > chars_max {
            let summary = shown.summary();
            let text = format!("{summary} Read the full description with get_tool_details first.");
            set_member(&mut tool, "description", text);
        } else {
            set_member(&mut tool, "description", visible(text));
        }
    }
    if let Some(schema) = listed_schema(known, shown) {
        set_member(&mut tool, "inputSchema", schema);
    }
    tool
}
