//! `resume_run`: continues a run that waited for an answer.

use serde_json::{Map, Value, json};

use super::{OwnToolAnswer, follow};
use crate::broker::tool_index::RESUME;
use crate::broker::tool_index::args::{only, text_of};
use crate::serve::context::ServeContext;
use crate::serve::request::Request;
use crate::serve::rpc::sanitize;

pub(super) fn description() -> Value {
    json!({
        "name": RESUME,
        "title": "Resume a run",
        "description": "Continues a run that was paused for an answer, and returns its result.",
        "inputSchema": {
            "type": "object",
            "properties": {"run": {"type": "string", "description": "The run's id, from its paused result"}},
            "required": ["run"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": false, "openWorldHint": true},
    })
}

pub(super) async fn call(
    context: &ServeContext,
    request: &Request,
    args: &Map<String, Value>,
) -> OwnToolAnswer {
    if let Some(state) = request.params.get("requestState") {
        return follow::go_on(context, request, state).await;
    }
    let run = match only(args, &["run", "session"]).and_then(|()| text_of(args, "run")) {
        Ok(Some(run)) => run,
        Ok(None) => {
            return OwnToolAnswer::wrong("`run` is missing; expected the id of the paused run");
        }
        Err(why) => return OwnToolAnswer::wrong(why),
    };
    match request.session.take_run(run) {
        Some(waiting) => follow::resume(context, request, waiting).await,
        None => OwnToolAnswer::wrong(format!(
            "no run `{}` is paused in this session; it may have ended already",
            sanitize(run)
        )),
    }
}
