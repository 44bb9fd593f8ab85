//! Follows a run for a request until the run ends or needs an answer. Continues following the run
//! when the answer has arrived.

use std::future::pending;
use std::time::Duration;

use airlock_core::id::ServerName;
use airlock_core::report::Report;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::OwnToolAnswer;
use super::handoff::{self, suspend_for_approver, suspend_for_host};
use crate::serve::client_request::{DeliveryMode, InFlightClientRequests};
use crate::serve::content_blocks;
use crate::serve::context::ServeContext;
use crate::serve::followed_run::FollowedRun;
use crate::serve::logging::LogTarget;
use crate::serve::progress::Progress;
use crate::serve::request::Request;
use crate::serve::rpc::RpcErrorResponse;
use crate::serve::run_text::{self, RunText};
use crate::upstream::Era;

/// Maximum time that a request waits for an approver outside the host. Hosts give up on requests
/// that take much longer.
const PATIENCE: Duration = Duration::from_secs(40);

/// The outcome of following a run.
#[derive(Debug)]
enum FollowOutcome {
    Over(Box<Report>),
    /// The host has to answer the requests in [`FollowedRun::handed`].
    Wants(Box<FollowedRun>),
    /// The question is with an approver outside the host, which did not answer within [`PATIENCE`].
    Waits(Box<FollowedRun>),
}

/// A time limit that starts when waiting begins. Other events do not restart it.
#[derive(Debug, Default)]
struct WaitLimit(Option<Instant>);

impl WaitLimit {
    fn waits(&mut self, waits: bool) {
        self.0 = waits.then(|| self.0.unwrap_or_else(|| Instant::now() + PATIENCE));
    }

    async fn ends(&self) {
        match self.0 {
            Some(at) => sleep_until(at).await,
            None => pending().await,
        }
    }
}

/// Follows a run to its end, or until someone has to answer first.
pub(super) async fn follow(
    context: &ServeContext,
    request: &Request,
    run: FollowedRun,
) -> OwnToolAnswer {
    let script = run.script.clone();
    match wait(run, request).await {
        FollowOutcome::Over(report) => {
            if let Some(carried) = &report.flow {
                request.session.add_labels(&carried.labels);
            }
            let told = run_text::of_run(
                &report,
                &script,
                &request.session,
                context.settings().text_bytes_max,
            );
            let blocks = report
                .value
                .as_ref()
                .filter(|_| script.is_direct && !told.is_error);
            match blocks
                .and_then(|it| content_blocks::of_value(it, context.settings().text_bytes_max))
            {
                Some(blocks) => OwnToolAnswer::Content(blocks),
                None => result_of(told, &report, script.is_direct),
            }
        }
        FollowOutcome::Wants(run) => suspend_for_host(context, request, *run),
        FollowOutcome::Waits(run) => suspend_for_approver(request, *run),
    }
}

/// Waits for the end of the run, or for requests that the host has to answer first.
async fn wait(mut run: FollowedRun, request: &Request) -> FollowOutcome {
    let mut progress = Progress::for_request(request);
    let cancel = run.running.cancel_handle();
    let mut is_cancelled = false;
    let mut carrying = InFlightClientRequests::new(&request.peer, &request.session.open);
    let mut patience = WaitLimit::default();
    let broker = run.links.broker.clone();
    let before_send = |server: &ServerName| request.session.hear_from(&broker, server);
    loop {
        patience.waits(!run.asked_elsewhere.is_empty() && carrying.is_idle());
        tokio::select! {
            event = run.running.next_event() => match event {
                Some(event) => {
                    run.note(&event);
                    if progress.tells(&event) {
                        note_heard(&run, request);
                    }
                    progress.tell(&event).await;
                }
                None => break,
            },
            Some(client_request) = run.links.client_requests.recv() => {
                note_heard(&run, request);
                match run.links.delivery {
                    DeliveryMode::Return => {
                        run.hand(client_request).await;
                        if !run.handed.is_empty() {
                            return FollowOutcome::Wants(Box::new(run));
                        }
                    }
                    DeliveryMode::Request => carrying.carry(client_request),
                }
            }
            () = carrying.settled() => {}
            log_message = run.links.logs.next() => {
                run.links.logs.tell(&log_target(request, &before_send), log_message);
            }
            why = request.cancel.cancelled(), if !is_cancelled => {
                is_cancelled = true;
                cancel.cancel(&why);
            }
            () = patience.ends() => return FollowOutcome::Waits(Box::new(run)),
        }
    }
    drop(carrying);
    run.links
        .logs
        .tell_rest(&log_target(request, &before_send))
        .await;
    let report = run.running.report().await;
    FollowOutcome::Over(Box::new(report))
}

/// Adds the run's labels to the session, because the host gets a message of the run before the run
/// ends. Such a message may contain any data that has reached the run.
fn note_heard(run: &FollowedRun, request: &Request) {
    request.session.add_labels(&run.links.reached.labels());
}

fn log_target<'a>(
    request: &'a Request,
    before_send: &'a (dyn Fn(&ServerName) + Sync),
) -> LogTarget<'a> {
    LogTarget {
        peer: &request.peer,
        level: request.log_level(),
        before_send,
    }
}

/// Formats the end of a run as a tool result. A direct call returns only its value.
fn result_of(told: RunText, report: &Report, is_direct: bool) -> OwnToolAnswer {
    let structured = if !is_direct {
        Some(told.report)
    } else if told.is_error {
        report
            .error
            .as_ref()
            .map(|error| json!({"error": {"code": error.code, "message": error.message}}))
    } else {
        Some(told.report.get("value").cloned().unwrap_or_default()).filter(Value::is_object)
    };
    OwnToolAnswer::Done {
        text: told.text,
        structured,
        is_error: told.is_error,
    }
}

/// Handles a repeated request that contains answers.
pub(super) async fn go_on(
    context: &ServeContext,
    request: &Request,
    state: &Value,
) -> OwnToolAnswer {
    let Some(token) = handoff::token_of(context, request, state) else {
        return OwnToolAnswer::Refused(handoff::invalid_state());
    };
    let Some(mut run) = request.session.take_suspended(&token) else {
        let why = "`requestState` was used already, or its run has ended; run the script again";
        return OwnToolAnswer::Refused(RpcErrorResponse::invalid(why));
    };
    let responses = request.params.get("inputResponses");
    for client_request in std::mem::take(&mut run.handed) {
        match responses.and_then(|it| it.get(&client_request.key)) {
            Some(response) => client_request.fulfil(response.clone()),
            // Withdrawn requests need no answer.
            None if client_request.is_withdrawn() => {}
            None => run.handed.push(client_request),
        }
    }
    if run.handed.is_empty() {
        follow(context, request, run).await
    } else {
        // Requests without an answer are sent again.
        suspend_for_host(context, request, run)
    }
}

/// Continues a run that waited.
pub(super) async fn resume(
    context: &ServeContext,
    request: &Request,
    mut run: FollowedRun,
) -> OwnToolAnswer {
    run.handed
        .retain(|client_request| !client_request.is_withdrawn());
    match (run.handed.is_empty(), request.era) {
        (true, _) => follow(context, request, run).await,
        (false, Era::Modern) => suspend_for_host(context, request, run),
        (false, Era::Legacy) => {
            let id = run.run().to_owned();
            match request.session.suspend(id, run) {
                Ok(()) => {
                    OwnToolAnswer::wrong("the run waits for an answer from a host of the newer era")
                }
                Err(run) => {
                    run.cancel_handle().cancel(handoff::ROOM);
                    OwnToolAnswer::wrong(handoff::ROOM)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn wait_limit_ends_even_while_another_is_asked() {
        let begun = Instant::now();
        let mut patience = WaitLimit::default();
        patience.waits(true);
        // One iteration for each line that a server logs.
        for _ in 0..3 {
            let ended = timeout(PATIENCE / 4, patience.ends()).await;
            assert!(ended.is_err());
            patience.waits(true);
        }
        patience.ends().await;
        assert_eq!(begun.elapsed().as_secs(), PATIENCE.as_secs());
        patience.waits(false);
        assert!(timeout(2 * PATIENCE, patience.ends()).await.is_err());
    }
}
