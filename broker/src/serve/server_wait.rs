//! Decides which servers with unknown tools a request waits for.

use codegen::names;
use serde_json::{Map, Value};

use super::method::Method;
use super::request::Request;
use crate::broker::ServerStatus;
use crate::broker::tool_index::{RUN, ToolIndex};

/// Returns the servers that a request names and whose tools are not known.
pub(super) async fn needed(tool_index: &ToolIndex, request: &Request) -> Vec<String> {
    let unknown = |it: &&ServerStatus| it.tools.is_none();
    let unknown: Vec<_> = tool_index.known.servers.iter().filter(unknown).collect();
    if unknown.is_empty() {
        return Vec::new();
    }
    let said = mentioned_names(tool_index, request).await;
    let is_said = |server: &str| {
        let global = names::globals(&[server]).concat();
        said.iter().any(|name| {
            let rest = name.strip_prefix(server);
            let rest = rest.or_else(|| name.strip_prefix(&global));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '_']))
        })
    };
    let unknown = unknown.iter().filter(|it| is_said(&it.name));
    unknown.map(|it| it.name.clone()).collect()
}

/// Returns the names of tools and servers in a request.
async fn mentioned_names(tool_index: &ToolIndex, request: &Request) -> Vec<String> {
    let params = &request.params;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    match request.method {
        Method::ReadResource => {
            let uri = text(params.get("uri")).unwrap_or_default();
            let (_, query) = uri.split_once("tools=").unwrap_or_default();
            return query.split(['&', ',']).map(str::to_owned).collect();
        }
        Method::CallTool => {}
        _ => return Vec::new(),
    }
    let nothing = Map::new();
    let args = params.get("arguments").and_then(Value::as_object);
    let args = args.unwrap_or(&nothing);
    let mut said: Vec<String> = text(params.get("name")).into_iter().collect();
    for key in ["tools", "servers", "name"] {
        match args.get(key) {
            Some(Value::String(list)) => {
                said.extend(list.split(',').map(|it| it.trim().to_owned()));
            }
            Some(Value::Array(items)) => {
                said.extend(items.iter().filter_map(|it| text(Some(it))));
            }
            _ => {}
        }
    }
    if said.first().is_some_and(|name| name == RUN)
        && let Some(code) = args.get("code").and_then(Value::as_str)
    {
        // If no capacity is left for checking the script, the run itself reports the error later.
        let used = tool_index
            .broker
            .uses(&request.caller, code, &request.cancel);
        let used = used.await.unwrap_or_default();
        said.extend(used.members.into_iter().map(|(global, _)| global));
        said.extend(used.names);
    }
    said
}
