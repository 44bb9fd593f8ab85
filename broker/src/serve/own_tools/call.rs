//! Direct calls of one tool. A direct call is a run with a script of one line, so that the same
//! rules, limits and journal apply.

use serde_json::{Map, Value, json};

use super::{OwnToolAnswer, resume};
use crate::broker::Script;
use crate::broker::tool_index::args::{only, text_of};
use crate::broker::tool_index::{CALL, ListedTool, ToolIndex};
use crate::serve::context::ServeContext;
use crate::serve::disclosure;
use crate::serve::followed_run::FollowedScript;
use crate::serve::request::Request;
use crate::serve::rpc::sanitize;

pub(super) fn description() -> Value {
    json!({
        "name": CALL,
        "title": "Call a tool",
        "description": "Calls one tool by its name, after its description was read.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "A name such as server.tool"},
                "args": {"type": "object", "additionalProperties": true},
            },
            "required": ["name"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": false, "destructiveHint": true, "openWorldHint": true},
    })
}

pub(super) async fn call(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
    args: &Map<String, Value>,
) -> Result<OwnToolAnswer, OwnToolAnswer> {
    only(args, &["name", "args", "session"])?;
    let name = text_of(args, "name")?.ok_or("`name` is missing; expected server.tool")?;
    if let Some(why) = tool_index.denial(name) {
        return Err(OwnToolAnswer::error(disclosure::denied(&why)));
    }
    let tool = tool_index.find(name).ok_or_else(|| {
        let name = sanitize(name);
        format!("there is no tool `{name}`; find tools with search_tools")
    })?;
    let nothing = Map::new();
    let args = match args.get("args") {
        None | Some(Value::Null) => &nothing,
        Some(Value::Object(args)) => args,
        Some(_) => return Err("`args` is not an object".into()),
    };
    Ok(call_directly(context, tool_index, request, tool, name, args).await)
}

/// Calls a tool. `name` is the name that the host used.
pub(in crate::serve) async fn call_directly(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
    tool: &ListedTool,
    name: &str,
    args: &Map<String, Value>,
) -> OwnToolAnswer {
    let server = &*tool.tool.id.server.0;
    if request.session.disabled_servers().contains(server) {
        return OwnToolAnswer::error(disclosure::server_disabled(server));
    }
    if request.params.get("requestState").is_none()
        && !disclosure::disclosed_tools(context, tool_index, request)
            .allows(&tool_index.current(tool))
    {
        return OwnToolAnswer::error(disclosure::required(&[name.to_owned()]));
    }
    if let Some(state) = request.params.get("requestState") {
        return resume::take_answers(context, tool_index, request, state).await;
    }
    let code = format!("return await {}(input);", tool.in_scripts());
    let script = Script::body(code)
        .named(tool.name.clone())
        .with_input(&Value::Object(args.clone()));
    let followed = FollowedScript {
        name: tool.name.clone(),
        text: String::new(),
        is_direct: true,
    };
    super::run::start(context, tool_index, request, script, followed).await
}
