//! Runs that wait for an answer: handed to the host with a sealed state that
//! can be used once, or left with whoever is asked elsewhere.

use codegen::canonical;
use serde_json::{Map, Value, json};

use super::desk::Desk;
use super::meta::{Answered, follow};
use super::request::Request;
use super::rpc::{self, Refusal};
use super::seal::{Seal, Sealed};
use super::suspended::Suspended;
use crate::upstream::Era;

const ROOM: &str = "too many runs of this session wait for answers; the run was ended";

/// The result that says which answers are wanted; the run keeps its place meanwhile.
pub(super) fn hand_over(desk: &Desk, request: &Request, run: Suspended) -> Answered {
    let requests: Map<String, Value> = run
        .handed
        .iter()
        .map(|wish| (wish.key.clone(), wish.as_request()))
        .collect();
    let Ok(token) = super::seal::token() else {
        run.cancel_handle().cancel("there is no chance to be had");
        return Answered::wrong("the operating system gives no random numbers; the run was ended");
    };
    let bound = bound(&request.session.id, &request.params);
    let sealed = desk.seal().seal(&token, &bound);
    // The session's id lets the newer era find it again, with what is sealed for it behind it.
    let state = format!("{}~{sealed}", request.session.id);
    if let Err(run) = request.session.suspend(token, run) {
        run.cancel_handle().cancel(ROOM);
        return Answered::wrong(ROOM);
    }
    Answered::InputRequired(json!({
        "resultType": "input_required",
        "inputRequests": requests,
        "requestState": state,
    }))
}

/// The same request again, with answers.
pub(super) async fn go_on(desk: &Desk, request: &Request, state: &Value) -> Answered {
    let bound = bound(&request.session.id, &request.params);
    let opened = state
        .as_str()
        .and_then(|state| state.split_once('~'))
        .and_then(|(_, sealed)| desk.seal().open(sealed, &bound));
    let Some(Sealed { token }) = opened else {
        let why = "`requestState` is not one that was given for this request in this session";
        return Answered::Refused(Refusal::invalid(why));
    };
    let Some(mut run) = request.session.take_suspended(&token) else {
        let why = "`requestState` was used already, or its run is over; run the script again";
        return Answered::Refused(Refusal::invalid(why));
    };
    let responses = request.params.get("inputResponses");
    for wish in std::mem::take(&mut run.handed) {
        match responses.and_then(|it| it.get(&wish.key)) {
            Some(response) => wish.fulfil(response.clone()),
            // Nobody waits any more for what was withdrawn meanwhile.
            None if wish.is_withdrawn() => {}
            None => run.handed.push(wish),
        }
    }
    if run.handed.is_empty() {
        follow(desk, request, run).await
    } else {
        // What nobody answered is asked once more.
        hand_over(desk, request, run)
    }
}

/// Whoever is asked elsewhere takes long; the host is not kept waiting.
pub(super) fn wait_elsewhere(request: &Request, run: Suspended) -> Answered {
    let id = run.run().to_owned();
    if let Err(run) = request.session.suspend(id.clone(), run) {
        run.cancel_handle().cancel(ROOM);
        return Answered::wrong(ROOM);
    }
    Answered::Done {
        text: format!(
            "paused: a call of the run waits until somebody approves it. Call resume_run with \
             {{\"run\": \"{id}\"}} to go on waiting; nothing is lost meanwhile."
        ),
        structured: Some(json!({"run": id, "status": "paused"})),
        is_error: false,
    }
}

/// Goes on with a run that waited.
pub(super) async fn resume(desk: &Desk, request: &Request, mut run: Suspended) -> Answered {
    run.handed.retain(|wish| !wish.is_withdrawn());
    match (run.handed.is_empty(), request.era) {
        (true, _) => follow(desk, request, run).await,
        (false, Era::Modern) => hand_over(desk, request, run),
        (false, Era::Legacy) => {
            let id = run.run().to_owned();
            match request.session.suspend(id, run) {
                Ok(()) => Answered::wrong("the run waits for an answer in the newer protocol era"),
                Err(run) => {
                    run.cancel_handle().cancel(ROOM);
                    Answered::wrong(ROOM)
                }
            }
        }
    }
}

/// The session in which a state was given, for a request with these params.
pub(super) fn session_of(seal: &Seal, params: &Value, state: &str) -> Option<String> {
    let (session, sealed) = state.split_once('~')?;
    let opened = seal.open(sealed, &bound(session, params));
    opened.map(|_| session.to_owned())
}

/// What a state is good for: this request, in this session.
fn bound(session: &str, params: &Value) -> String {
    let asked = json!({
        "name": params.get("name"),
        "arguments": params.get("arguments"),
    });
    let digest = canonical::digest(&asked);
    format!("{}/{digest}", rpc::shown(session))
}
