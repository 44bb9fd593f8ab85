//! `resume_run`: going on with a run that waited for an answer.

use serde_json::{Map, Value, json};

use super::{Answered, only};
use crate::serve::desk::Desk;
use crate::serve::handing;
use crate::serve::request::Request;
use crate::serve::rpc::{shown, text_of};

pub(super) fn description() -> Value {
    json!({
        "name": super::RESUME,
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

pub(super) async fn call(desk: &Desk, request: &Request, args: &Map<String, Value>) -> Answered {
    if let Some(state) = request.params.get("requestState") {
        return handing::go_on(desk, request, state).await;
    }
    let run = match only(args, &["run", "session"]).and_then(|()| text_of(args, "run")) {
        Ok(Some(run)) => run,
        Ok(None) => return Answered::wrong("`run` is missing: the id of the run that was paused"),
        Err(why) => return Answered::wrong(why),
    };
    match request.session.take_run(run) {
        Some(waiting) => handing::resume(desk, request, waiting).await,
        None => Answered::wrong(format!(
            "no run `{}` waits in this session; it is over, or was never paused",
            shown(run)
        )),
    }
}
