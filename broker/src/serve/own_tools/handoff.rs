//! Suspends runs that wait for an answer. If the host has to answer, it gets a sealed state that
//! can be used once. If another approver has to answer, the host gets the id of the run.

use airlock_core::id::CallId;
use codegen::canonical;
use serde_json::{Map, Value, json};

use super::OwnToolAnswer;
use crate::broker::Broker;
use crate::serve::context::ServeContext;
use crate::serve::followed_run::FollowedRun;
use crate::serve::request::Request;
use crate::serve::rpc::{self, RpcErrorResponse};
use crate::serve::seal::{self, OpenedSeal, Seal};

/// Maximum number of questions for which a result names the command that answers them.
const COMMANDS_SHOWN: usize = 4;
pub(super) const ROOM: &str = "too many runs of this session wait for answers; this run was ended";

/// Suspends a run in the session, and returns an `input_required` result with the run's requests to
/// the host.
pub(super) fn suspend_for_host(
    context: &ServeContext,
    request: &Request,
    run: FollowedRun,
) -> OwnToolAnswer {
    let requests: Map<String, Value> = run
        .handed
        .iter()
        .map(|client_request| (client_request.key.clone(), client_request.as_request()))
        .collect();
    let Ok(token) = seal::token() else {
        run.cancel_handle().cancel("no random numbers");
        return OwnToolAnswer::wrong(
            "the operating system gives no random numbers; the run was ended",
        );
    };
    let bound = bound(&request.session.id, &request.params);
    let sealed = context.seal().seal(&token, &bound);
    // The part before `~` is the id of the session, so that a request of the newer era finds its
    // session. The part after `~` is sealed for that session.
    let state = format!("{}~{sealed}", request.session.id);
    if let Err(run) = request.session.suspend(token, run) {
        run.cancel_handle().cancel(ROOM);
        return OwnToolAnswer::wrong(ROOM);
    }
    OwnToolAnswer::InputRequired(json!({
        "resultType": "input_required",
        "inputRequests": requests,
        "requestState": state,
    }))
}

/// Suspends a run in the session, and returns a `paused` result, so that the host does not wait for
/// the approver.
pub(super) fn suspend_for_approver(request: &Request, run: FollowedRun) -> OwnToolAnswer {
    let id = run.run().to_owned();
    let place = run.links.broker.approval_place();
    let place = place.unwrap_or_else(|| "outside this host".to_owned());
    if let Err(run) = request.session.suspend(id.clone(), run) {
        run.cancel_handle().cancel(ROOM);
        return OwnToolAnswer::wrong(ROOM);
    }
    paused(&id, &place, "ask the user to answer, then")
}

/// Returns the `paused` result of a run that was suspended: it waits for answers to these questions,
/// and has no process.
pub(super) fn waits(
    request: &Request,
    broker: &Broker,
    run: &str,
    questions: &[CallId],
) -> OwnToolAnswer {
    if request.session.has_forms(run) {
        let place = "in the host's form, which is still open";
        return paused(run, place, "after the user has answered it,");
    }
    if request.reaches_person() {
        let place = "and the run was suspended because no answer came";
        return paused(run, place, "to ask the user again,");
    }
    let place = broker.approval_place();
    let place = place.unwrap_or_else(|| "on this machine".to_owned());
    let commands = commands(run, questions);
    let place = format!("{place}; at a terminal, {commands} answers it");
    paused(run, &place, "ask the user to answer, then")
}

/// Names the commands that answer the questions of a suspended run.
fn commands(run: &str, questions: &[CallId]) -> String {
    let command = |call: &CallId| format!("`airlock runs answer {run}:{} allow`", call.0);
    let shown = questions.iter().take(COMMANDS_SHOWN).map(command);
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = questions.len().checked_sub(COMMANDS_SHOWN) {
        text.push_str(&format!(
            " and {more} more, which `airlock runs waiting` lists"
        ));
    }
    text + " (or `refuse`)"
}

/// Returns the `paused` result for a script that a paused run of the same caller has already begun.
pub(super) fn begun_before(run: &str) -> OwnToolAnswer {
    let why = format!(
        "run {run} of the same script with the same input is paused, so no second run was started"
    );
    let next = format!(
        "ask the user to answer its questions, then call resume_run with {{\"run\": \"{run}\"}}"
    );
    paused_because(run, &why, &next)
}

/// Returns the result of a run that waits for a person.
fn paused(run: &str, place: &str, first: &str) -> OwnToolAnswer {
    let why = format!("a call of the run waits for a person's approval, {place}");
    let next = format!("{first} call resume_run with {{\"run\": \"{run}\"}}; nothing is lost");
    paused_because(run, &why, &next)
}

fn paused_because(run: &str, why: &str, next: &str) -> OwnToolAnswer {
    OwnToolAnswer::Done {
        text: format!("paused: {why}\nnext: {next}"),
        structured: Some(json!({"run": run, "status": "paused", "why": why, "next": next})),
        is_error: false,
    }
}

/// Returns the error for a `requestState` that does not open.
pub(in crate::serve) fn invalid_state() -> RpcErrorResponse {
    let why = "invalid `requestState`: it was not issued for this request in this session";
    RpcErrorResponse::invalid(why)
}

/// Checks that the state in a request, if any, was issued for this request in its session.
pub(in crate::serve) fn check_state(
    context: &ServeContext,
    request: &Request,
) -> Result<(), RpcErrorResponse> {
    match request.params.get("requestState") {
        Some(state) if token_of(context, request, state).is_none() => Err(invalid_state()),
        _ => Ok(()),
    }
}

/// Returns the session in which a state was issued, if the state belongs to a request with these
/// params.
pub(in crate::serve) fn session_of(seal: &Seal, params: &Value, state: &str) -> Option<String> {
    let (session, sealed) = state.split_once('~')?;
    let opened = seal.unseal(sealed, &bound(session, params));
    opened.map(|_| session.to_owned())
}

/// Returns the token of the run whose state a request contains.
pub(super) fn token_of(context: &ServeContext, request: &Request, state: &Value) -> Option<String> {
    let (_, sealed) = state.as_str()?.split_once('~')?;
    let bound = bound(&request.session.id, &request.params);
    let opened = context.seal().unseal(sealed, &bound);
    opened.map(|OpenedSeal { token }| token)
}

/// Returns the text that a state is bound to: this request, in this session.
fn bound(session: &str, params: &Value) -> String {
    let asked = json!({
        "name": params.get("name"),
        "arguments": params.get("arguments"),
    });
    let digest = canonical::digest(&asked);
    format!("{}/{digest}", rpc::sanitize(session))
}
