//! `read_result`: reads a part of a value, a console or a binary that a result did not contain. Many
//! hosts give their model no access to resources, so there is a tool for it.

use serde_json::{Map, Value, json};

use super::OwnToolAnswer;
use crate::broker::tool_index::READ;
use crate::broker::tool_index::args::{count_of, only, text_of};
use crate::serve::content_blocks;
use crate::serve::context::ServeContext;
use crate::serve::request::Request;
use crate::serve::resources::Page;
use crate::serve::result_store::{StoredContent, read_call};
use crate::serve::rpc::sanitize;

pub(super) fn description() -> Value {
    json!({
        "name": READ,
        "title": "Read a result",
        "description": "Reads more of a result that was cut, or an image. Each part ends with the call that reads the next part.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "uri": {"type": "string", "description": "From the result"},
                "from": {"type": "integer", "minimum": 0, "description": "First byte"},
                "length": {"type": "integer", "minimum": 1, "description": "In bytes"},
            },
            "required": ["uri"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    })
}

pub(super) fn call(
    context: &ServeContext,
    request: &Request,
    args: &Map<String, Value>,
) -> Result<OwnToolAnswer, OwnToolAnswer> {
    only(args, &["uri", "from", "length", "session"])?;
    let uri = text_of(args, "uri")?.ok_or("`uri` is missing; expected a `uri` from a result")?;
    let stored = request.session.stored_results.find(uri).ok_or_else(|| {
        format!(
            "there is no stored result `{}` in this session; if it was deleted to make room for \
             newer results, repeat the call that returned it",
            sanitize(uri)
        )
    })?;
    match stored {
        StoredContent::Text(text) => Ok(page(context, request, args, uri, &text)?),
        StoredContent::Binary { bytes, mime } => {
            let image = content_blocks::image(&bytes, &mime);
            let image = image.ok_or_else(|| {
                format!(
                    "`{uri}` is {} bytes of {mime}, which a model cannot read; only the host can \
                     read it, as a resource",
                    bytes.len()
                )
            })?;
            Ok(OwnToolAnswer::Content(vec![image]))
        }
    }
}

/// Returns the requested part, at most as much as the host shows. It has no structured content,
/// because some hosts then show only that.
fn page(
    context: &ServeContext,
    request: &Request,
    args: &Map<String, Value>,
    uri: &str,
    text: &str,
) -> Result<OwnToolAnswer, String> {
    let limits = request.limits(context.settings());
    let bytes_max = limits.value_bytes_max;
    let from = count_of(args, "from")?.unwrap_or(0);
    let length = count_of(args, "length")?.unwrap_or(bytes_max);
    let page = Page::new(text, from, length.min(bytes_max))?;
    let page = page.within(text, limits.encoded_bytes_max);
    let part = page.from..page.next;
    request.session.note_part(uri, part, text.len());
    let mut shown = text
        .get(page.from..page.next)
        .unwrap_or_default()
        .to_owned();
    if page.next < text.len() {
        let (from, next, bytes) = (page.from, page.next, text.len());
        let following = read_call(uri, next);
        shown.push_str(&format!(
            "\n… bytes {from} to {next} of {bytes}; continue with {following}"
        ));
    }
    Ok(OwnToolAnswer::Done {
        text: shown,
        structured: None,
        is_error: false,
    })
}
