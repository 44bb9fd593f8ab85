//! Calling one tool without a script of one's own: a run of one line, so that
//! the same rules, limits and journal hold for it.

use serde_json::{Map, Value, json};

use super::{Answered, only};
use crate::broker::Script;
use crate::serve::desk::Desk;
use crate::serve::disclosure;
use crate::serve::request::Request;
use crate::serve::rpc::{shown, text_of};
use crate::serve::shelf::{Shelf, Shown};
use crate::serve::suspended::FollowedScript;

pub(super) fn description() -> Value {
    json!({
        "name": super::CALL,
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
    desk: &Desk,
    shelf: &Shelf,
    request: &Request,
    args: &Map<String, Value>,
) -> Answered {
    let name = match only(args, &["name", "args", "session"]).and_then(|()| text_of(args, "name")) {
        Ok(Some(name)) => name,
        Ok(None) => return Answered::wrong("`name` is missing, such as server.tool"),
        Err(why) => return Answered::wrong(why),
    };
    let Some(tool) = shelf.find(name) else {
        return Answered::wrong(format!(
            "there is no tool `{}`; find tools with search_tools",
            shown(name)
        ));
    };
    let nothing = Map::new();
    let args = match args.get("args") {
        None | Some(Value::Null) => &nothing,
        Some(Value::Object(args)) => args,
        Some(_) => return Answered::wrong("`args` is not an object"),
    };
    call_directly(desk, shelf, request, (tool, name), args).await
}

/// Calls a tool under the name by which the host knows it.
pub(in crate::serve) async fn call_directly(
    desk: &Desk,
    shelf: &Shelf,
    request: &Request,
    (tool, name): (&Shown, &str),
    args: &Map<String, Value>,
) -> Answered {
    if request.params.get("requestState").is_none()
        && !disclosure::of(desk, shelf, &request.session).allows(&shelf.current(tool))
    {
        return Answered::error(disclosure::required(&[name.to_owned()]));
    }
    if let Some(state) = request.params.get("requestState") {
        return crate::serve::handing::go_on(desk, request, state).await;
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
    super::run::start(desk, shelf, request, script, followed).await
}
