//! Completion of the arguments of servers' prompts and resource templates.

use airlock_core::id::ServerName;
use serde_json::{Map, Value, json};

use super::{fetched, is_plain, prompts, refusal, resources};
use crate::broker::tool_index::ToolIndex;
use crate::serve::context::ServeContext;
use crate::serve::prompt;
use crate::serve::request::Request;
use crate::serve::resources as own;
use crate::serve::rpc::RpcErrorResponse;
use crate::upstream::fetch::Fetch;

/// The maximum number of values that the protocol allows.
const VALUES_MAX: usize = 100;
const VALUE_BYTES_MAX: usize = 2_000;

pub(in crate::serve) async fn complete(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
) -> Result<Value, RpcErrorResponse> {
    let params = &request.params;
    let is_argument = |it: &&Value| it.get("name").is_some_and(Value::is_string);
    let Some(argument) = params.get("argument").filter(is_argument) else {
        return Err(RpcErrorResponse::invalid(
            "`argument` is missing, or has no `name`",
        ));
    };
    let Some((server, reference)) = meant(context, tool_index, request).await? else {
        return Ok(json!({"completion": {"values": [], "hasMore": false}}));
    };
    let mut asked = Map::new();
    asked.insert("ref".into(), reference);
    asked.insert("argument".into(), argument.clone());
    if let Some(context @ Value::Object(_)) = params.get("context") {
        asked.insert("context".into(), context.clone());
    }
    let fetch = Fetch {
        method: "completion/complete",
        params: asked,
        name: None,
        bytes_max: usize::MAX,
    };
    let result = fetched(context, tool_index, request, &server, fetch).await;
    let result = result.map_err(|unfetched| refusal(&server, unfetched))?;
    let completion = result.get("completion").unwrap_or(&Value::Null);
    let values = completion.get("values").and_then(Value::as_array);
    let texts = values.into_iter().flatten().filter_map(Value::as_str);
    // Values that would have to be escaped are dropped, because a host sends a value back to its
    // server unchanged.
    let plain = texts.filter(|it| is_plain(it, VALUE_BYTES_MAX));
    let values: Vec<_> = plain.take(VALUES_MAX).collect();
    let mut said = json!({"values": values});
    for key in ["total", "hasMore"] {
        if let Some(value) = completion
            .get(key)
            .filter(|it| it.is_u64() || it.is_boolean())
        {
            crate::serve::rpc::set_member(&mut said, key, value.clone());
        }
    }
    Ok(json!({"completion": said}))
}

/// Returns the prompt or template to complete, with its name at its server. Returns `None` for
/// airlock's own prompt and templates.
async fn meant(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
) -> Result<Option<(ServerName, Value)>, RpcErrorResponse> {
    let reference = request.params.get("ref");
    let text = |key: &str| reference.and_then(|it| it.get(key)).and_then(Value::as_str);
    match text("type") {
        Some("ref/prompt") => {
            let name = text("name").unwrap_or_default();
            if name == prompt::NAME {
                return Ok(None);
            }
            let (server, theirs) = prompts::whose(context, tool_index, name)?;
            Ok(Some((
                server,
                json!({"type": "ref/prompt", "name": theirs}),
            )))
        }
        Some("ref/resource") => {
            let uri = text("uri").unwrap_or_default();
            if own::is_own(uri) {
                return Ok(None);
            }
            let whose = resources::whose(context, tool_index, request, uri).await;
            let (server, theirs) = whose.map_err(|none| RpcErrorResponse::invalid(none.message))?;
            Ok(Some((
                server,
                json!({"type": "ref/resource", "uri": theirs}),
            )))
        }
        _ => Err(RpcErrorResponse::invalid(
            "`ref` must be a prompt or a resource",
        )),
    }
}
