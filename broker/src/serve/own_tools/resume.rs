//! `resume_run`: continues a run that waited for an answer, or that was interrupted. The run may
//! belong to any session of the same caller, and to a process that has ended.

use serde_json::{Map, Value, json};

use super::follow::{FollowResult, SuspendedRun};
use super::resumable::{FoundRun, RecordedRun};
use super::run::start;
use super::{OwnToolAnswer, follow, handoff, late_answers, resumable, run};
use crate::broker::tool_index::args::{only, text_of};
use crate::broker::tool_index::{RESUME, ToolIndex};
use crate::serve::context::ServeContext;
use crate::serve::followed_run::FollowedScript;
use crate::serve::request::Request;
use crate::serve::resumed_runs::{ResumeTurn, ResumedResult};

pub(super) fn description() -> Value {
    json!({
        "name": RESUME,
        "title": "Resume a run",
        "description": "Continues a run that was paused or interrupted, and returns its result.",
        "inputSchema": {
            "type": "object",
            "properties": {"run": {"type": "string", "description": "The run's id"}},
            "required": ["run"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": false, "openWorldHint": true},
    })
}

pub(super) async fn call(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
    args: &Map<String, Value>,
) -> OwnToolAnswer {
    let run = match only(args, &["run", "session"]).and_then(|()| text_of(args, "run")) {
        Ok(Some(run)) => run,
        Ok(None) => {
            return OwnToolAnswer::wrong("`run` is missing; expected the id of a run");
        }
        Err(why) => return OwnToolAnswer::wrong(why),
    };
    if let Some(waiting) = request.session.take_run(run) {
        match follow::resume(context, request, waiting).await {
            FollowResult::Answered(answer) => return answer,
            // The run was suspended while it waited in the session.
            FollowResult::Suspended(_) => {}
        }
    }
    resume_once(context, tool_index, request, run, None).await
}

/// Handles a repeated request that contains answers. If the run was suspended meanwhile, the answers
/// are recorded, and another run continues it.
pub(super) async fn take_answers(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
    state: &Value,
) -> OwnToolAnswer {
    let suspended = match follow::take_answers(context, request, state).await {
        FollowResult::Answered(answer) => return answer,
        FollowResult::Suspended(suspended) => *suspended,
    };
    let SuspendedRun {
        run,
        script,
        answers,
        ..
    } = suspended;
    if !answers.is_empty()
        && let Err(refusal) = resumable::store_answers(&tool_index.broker, &run, answers).await
    {
        return refusal;
    }
    resume_once(context, tool_index, request, &run.0, Some(script)).await
}

/// Resumes a run. A second request for the same run gets the same result.
async fn resume_once(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
    run: &str,
    followed: Option<FollowedScript>,
) -> OwnToolAnswer {
    let origin = resumable::origin(tool_index, request);
    let resuming = match context.resumed_runs().turn(run, &origin) {
        ResumeTurn::First(resuming) => resuming,
        ResumeTurn::Later(mut result) => {
            // An error means that the first request ended without a result.
            let ended = request.cancel.or(result.wait_for(Option::is_some)).await;
            let ended = ended.and_then(|ended| ended.ok()?.clone());
            return match ended {
                Some(ended) => {
                    // Another session may have made the run, so the record of this session may
                    // lack its labels. The labels are saved before the answer is sent.
                    request.session.add_labels(&ended.labels);
                    OwnToolAnswer::Done {
                        text: ended.text,
                        structured: ended.structured,
                        is_error: ended.is_error,
                    }
                }
                None => OwnToolAnswer::wrong("the run has no result yet; ask again"),
            };
        }
    };
    let answer = match resume(context, tool_index, request, run, followed).await {
        Ok(answer) => answer,
        Err(refusal) => return refusal,
    };
    // Without a final result, a later request resumes the run again or learns how it ended.
    if let OwnToolAnswer::Done {
        text,
        structured: Some(report),
        is_error,
    } = &answer
        && let Some(result) = ResumedResult::of_report(text, report, *is_error)
    {
        resuming.end(result);
    }
    answer
}

/// Resumes a run of the state directory with its recorded script. An error means that nothing was
/// started.
async fn resume(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
    run: &str,
    followed: Option<FollowedScript>,
) -> Result<OwnToolAnswer, OwnToolAnswer> {
    let mut found = resumable::recorded(tool_index, request, run).await?;
    if let Some(open) = found.open_run()
        && let Some(mut forms) = request.session.take_forms(&open.0)
    {
        let pause_after = request.limits(context.settings()).pause_after;
        let answered = late_answers::are_answered(&mut forms, pause_after);
        if found.waits() && request.cancel.or(answered).await != Some(true) {
            request.session.keep_forms(&open.0, forms);
        } else {
            found = resumable::recorded(tool_index, request, run).await?;
        }
    }
    let recorded = match found {
        FoundRun::Open(recorded) => *recorded,
        FoundRun::Ended(ended) => {
            // The labels are saved before the answer is sent.
            request.session.add_labels(&ended.labels);
            let script = FollowedScript {
                name: ended.script_name,
                text: String::new(),
                is_direct: false,
            };
            return Ok(follow::ended(context, request, &ended.report, &script));
        }
    };
    let RecordedRun {
        run,
        script,
        waits,
        questions,
    } = recorded;
    let run = &*run.0;
    let broker = &tool_index.broker;
    let is_asked_elsewhere = || !request.reaches_person() && broker.remind_person();
    // Another run would only put the same questions again.
    if request.session.has_forms(run) || (waits && is_asked_elsewhere()) {
        return Ok(handoff::waits(request, broker, run, &questions));
    }
    run::check_disclosed(context, tool_index, request, (&script.text, &[])).await?;
    let quoted = || match broker.is_quotable(&script.text) {
        true => script.text.clone(),
        false => String::new(),
    };
    let followed = followed.unwrap_or_else(|| FollowedScript {
        name: script.name.clone(),
        text: quoted(),
        is_direct: false,
    });
    Ok(start(context, tool_index, request, script, followed).await)
}
