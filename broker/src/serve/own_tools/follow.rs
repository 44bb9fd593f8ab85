//! Follows a run for a request until the run ends or needs an answer. Continues following the run
//! when the answer has arrived.

use std::collections::HashSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use airlock_core::catalog::Catalog;
use airlock_core::decide::Answer;
use airlock_core::id::{CallId, RunId, ServerName};
use airlock_core::report::{Report, Status};
use airlock_core::resume::CallRef;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::OwnToolAnswer;
use super::handoff::{self, suspend_for_approver, suspend_for_host};
use super::late_answers;
use crate::client_bridge::ProgressReports;
use crate::run_event::RunEvent;
use crate::serve::client_request::{DeliveryMode, InFlightClientRequests, WithdrawnRequest};
use crate::serve::content_blocks;
use crate::serve::context::ServeContext;
use crate::serve::followed_run::{FollowedRun, FollowedScript, UnaskedCalls, next_report};
use crate::serve::host_approver;
use crate::serve::logging::LogTarget;
use crate::serve::progress::Progress;
use crate::serve::request::Request;
use crate::serve::rpc::RpcErrorResponse;
use crate::serve::run_text::{self, RunText, RunTextOptions};
use crate::upstream::Era;

/// The outcome of following a run.
#[derive(Debug)]
enum FollowOutcome {
    /// The run has ended.
    Over {
        report: Box<Report>,
        unasked: UnaskedCalls,
        /// The calls whose questions the host refused itself.
        passed_on: HashSet<CallId>,
        /// The unanswered questions.
        questions: Vec<CallId>,
        /// The questions that the host still shows, although the run was suspended.
        forms: Vec<WithdrawnRequest>,
    },
    /// The host has to answer the requests in [`FollowedRun::handed`].
    Wants(Box<FollowedRun>),
    /// The question is with an approver outside the host, which did not answer in time.
    Waits(Box<FollowedRun>),
}

/// The time limit of a request, after which the run is paused if it waits for an approver outside
/// the host. It starts with the request, because the host's own time limit does.
#[derive(Debug)]
struct WaitLimit {
    at: Instant,
    waits: bool,
}

impl WaitLimit {
    fn new(pause_after: Duration) -> Self {
        Self {
            at: Instant::now() + pause_after,
            waits: false,
        }
    }

    async fn ends(&self) {
        match Some(self.at).filter(|_| self.waits) {
            Some(at) => sleep_until(at).await,
            None => pending().await,
        }
    }
}

/// A run that was suspended while it was followed.
#[derive(Debug)]
pub(super) struct SuspendedRun {
    pub(super) run: RunId,
    pub(super) script: FollowedScript,
    passed_on: HashSet<CallId>,
    /// The unanswered questions.
    questions: Vec<CallId>,
    /// The answers that the host brought for its questions.
    pub(super) answers: Vec<(CallRef, Answer)>,
}

/// The result of following a run.
#[derive(Debug)]
pub(super) enum FollowResult {
    Answered(OwnToolAnswer),
    Suspended(Box<SuspendedRun>),
}

/// Follows a run to its end, or until someone has to answer first.
pub(super) async fn follow(
    context: &ServeContext,
    request: &Request,
    run: FollowedRun,
) -> OwnToolAnswer {
    let broker = run.links.broker.clone();
    match follow_on(context, request, run).await {
        FollowResult::Answered(answer) => answer,
        FollowResult::Suspended(suspended) => {
            handoff::waits(request, &broker, &suspended.run.0, &suspended.questions)
        }
    }
}

/// Follows a run like [`follow`], and returns a run that is suspended.
async fn follow_on(context: &ServeContext, request: &Request, run: FollowedRun) -> FollowResult {
    let (script, origin, broker) = (run.script.clone(), run.origin, run.links.broker.clone());
    let pause_after = request.limits(context.settings()).pause_after;
    let (report, unasked, passed_on, questions, forms) = match wait(run, request, pause_after).await
    {
        FollowOutcome::Over {
            report,
            unasked,
            passed_on,
            questions,
            forms,
        } => (report, unasked, passed_on, questions, forms),
        // Not noted as paused: a host that repeats the request instead of answering is asked again, as
        // the protocol says.
        FollowOutcome::Wants(run) => {
            return FollowResult::Answered(suspend_for_host(context, request, *run));
        }
        FollowOutcome::Waits(run) => {
            context.paused_runs().note(origin, run.run());
            return FollowResult::Answered(suspend_for_approver(request, *run));
        }
    };
    if let Some(carried) = &report.flow {
        request.session.note_ended_run(&carried.labels);
    }
    if report.status == Status::Paused {
        let run = RunId(report.run.into());
        context.paused_runs().note(origin, &run.0);
        late_answers::keep_forms(request, &broker, &run, forms);
        return FollowResult::Suspended(Box::new(SuspendedRun {
            run,
            script,
            passed_on,
            questions,
            answers: Vec::new(),
        }));
    }
    let value_bytes_max = request.limits(context.settings()).value_bytes_max;
    let value = report.value.as_ref().filter(|_| script.is_direct);
    // A host that called a tool directly gets its content blocks.
    FollowResult::Answered(
        match value.and_then(|it| content_blocks::of_value(it, value_bytes_max)) {
            Some(blocks) if report.status == Status::Done => OwnToolAnswer::Content(blocks),
            _ => {
                let told = run_text::of_run(
                    &report,
                    &script,
                    &request.session,
                    RunTextOptions {
                        value_bytes_max,
                        unasked: &unasked,
                        catalog: &catalog_now(context),
                    },
                );
                result_of(told, &report, script.is_direct)
            }
        },
    )
}

/// Waits for the end of the run, or for requests that the host has to answer first.
async fn wait(mut run: FollowedRun, request: &Request, pause_after: Duration) -> FollowOutcome {
    let mut progress = Progress::for_request(request);
    let cancel = run.running.cancel_handle();
    let mut is_cancelled = false;
    let mut carrying = InFlightClientRequests::new(&request.peer, &request.session.open);
    let mut patience = WaitLimit::new(pause_after);
    let broker = run.links.broker.clone();
    let before_send = |server: &ServerName| request.session.hear_from(&broker, server);
    let mut forms = Vec::new();
    loop {
        patience.waits = !run.asked_elsewhere.is_empty() && carrying.is_idle();
        tokio::select! {
            event = run.running.next_event() => match event {
                Some(event) => {
                    // The event may be the answer to a question that was passed on before.
                    run.note_all_passed_on();
                    run.note(&event);
                    if let RunEvent::CallSettled { call, .. } = &event
                        && let Some(last) = run.take_last_report(*call)
                    {
                        before_send(&last.server);
                        progress.tell_report(&last).await;
                    }
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
            // The answer to a question of a suspended run counts when it comes. Other questions that
            // were withdrawn are withdrawn at the host too.
            withdrawn = carrying.settled() => {
                forms.extend(withdrawn.filter(|_| run.links.suspended.is_set()));
            }
            Some(call) = run.links.passed_on.recv() => run.note_passed_on(call),
            report = next_report(&mut run.links.reports) => {
                before_send(&report.server);
                progress.tell_report(&report).await;
            }
            log_message = run.links.logs.next() => {
                run.links.logs.tell(&log_target(request, &before_send), log_message);
            }
            why = request.cancel.cancelled(), if !is_cancelled => {
                is_cancelled = true;
                match request.cancel.is_abandoned() {
                    true => cancel.abandon(&why),
                    false => cancel.cancel(&why),
                }
            }
            () = patience.ends() => return FollowOutcome::Waits(Box::new(run)),
        }
    }
    if run.links.suspended.is_set() {
        forms.extend(carrying.last_question().await);
    }
    let rest = run.links.reports.as_mut().map(ProgressReports::take_rest);
    for report in rest.unwrap_or_default() {
        before_send(&report.server);
        progress.tell_report(&report).await;
    }
    run.links
        .logs
        .tell_rest(&log_target(request, &before_send))
        .await;
    run.note_all_passed_on();
    let unasked = run.unasked();
    let passed_on = std::mem::take(&mut run.passed_on);
    let questions = run.open_questions.iter().copied().collect();
    let report = Box::new(run.running.report().await);
    FollowOutcome::Over {
        report,
        unasked,
        passed_on,
        questions,
        forms,
    }
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

/// Formats the report of a run that another request, session or process has ended.
pub(super) fn ended(
    context: &ServeContext,
    request: &Request,
    report: &Report,
    script: &FollowedScript,
) -> OwnToolAnswer {
    let options = RunTextOptions {
        value_bytes_max: request.limits(context.settings()).value_bytes_max,
        unasked: &UnaskedCalls::Declined(HashSet::new()),
        catalog: &catalog_now(context),
    };
    let told = run_text::of_run(report, script, &request.session, options);
    result_of(told, report, false)
}

/// Returns the current tools, or none after the broker has shut down.
fn catalog_now(context: &ServeContext) -> Arc<Catalog> {
    let tool_index = context.tool_index_now();
    tool_index.map_or_else(Arc::default, |it| it.broker.catalog())
}

/// Formats the end of a run as a tool result. A direct call returns only its value.
fn result_of(told: RunText, report: &Report, is_direct: bool) -> OwnToolAnswer {
    let of_report = |key: &str| told.report.get(key).cloned().unwrap_or_default();
    let structured = if !is_direct {
        Some(told.report.clone())
    } else if told.is_error {
        report.error.as_ref().map(|error| {
            let next = of_report("next");
            json!({"error": {"code": error.code, "message": error.message, "next": next}})
        })
    } else {
        Some(of_report("value")).filter(Value::is_object)
    };
    if !told.images.is_empty() {
        return OwnToolAnswer::WithImages {
            text: told.text,
            images: told.images,
            report: structured.unwrap_or_default(),
        };
    }
    OwnToolAnswer::Done {
        text: told.text,
        structured,
        is_error: told.is_error,
    }
}

/// Handles a repeated request that contains answers.
pub(super) async fn take_answers(
    context: &ServeContext,
    request: &Request,
    state: &Value,
) -> FollowResult {
    let Some(token) = handoff::token_of(context, request, state) else {
        return FollowResult::Answered(OwnToolAnswer::Refused(handoff::invalid_state()));
    };
    let Some(mut run) = request.session.take_suspended(&token) else {
        let why = "`requestState` was used already, or its run has ended; run the script again";
        return FollowResult::Answered(OwnToolAnswer::Refused(RpcErrorResponse::invalid(why)));
    };
    let responses = request.params.get("inputResponses");
    let mut answers = Vec::new();
    for client_request in std::mem::take(&mut run.handed) {
        match responses.and_then(|it| it.get(&client_request.key)) {
            Some(response) => {
                answers.extend(host_approver::stored_answer(&client_request.key, response));
                client_request.fulfil(response.clone());
            }
            // Withdrawn requests need no answer.
            None if client_request.is_withdrawn() => {}
            None => run.handed.push(client_request),
        }
    }
    if !run.handed.is_empty() {
        // Requests without an answer are sent again.
        return FollowResult::Answered(suspend_for_host(context, request, run));
    }
    match follow_on(context, request, run).await {
        // The run did not wait for these answers, so they are stored for a later run.
        FollowResult::Suspended(mut suspended) => {
            let run = suspended.run.clone();
            let about = |call| CallRef {
                run: run.clone(),
                call,
            };
            // A refusal by the host itself is not the user's answer.
            let answers = answers.into_iter();
            let answers = answers.filter(|(call, _)| !suspended.passed_on.contains(call));
            suspended.answers = answers.map(|(call, word)| (about(call), word)).collect();
            FollowResult::Suspended(suspended)
        }
        answered @ FollowResult::Answered(_) => answered,
    }
}

/// Continues a run that waited.
pub(super) async fn resume(
    context: &ServeContext,
    request: &Request,
    mut run: FollowedRun,
) -> FollowResult {
    run.handed
        .retain(|client_request| !client_request.is_withdrawn());
    let answer = match (run.handed.is_empty(), request.era) {
        (true, _) => return follow_on(context, request, run).await,
        (false, Era::Modern) => suspend_for_host(context, request, run),
        (false, Era::Legacy) => {
            let id = run.run().to_owned();
            match request.session.suspend(id, run) {
                Ok(()) => OwnToolAnswer::wrong(
                    "the run waits for an answer from a host that uses the protocol revision 2026-07-28",
                ),
                Err(run) => {
                    run.cancel_handle().cancel(handoff::ROOM);
                    OwnToolAnswer::wrong(handoff::ROOM)
                }
            }
        }
    };
    FollowResult::Answered(answer)
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn wait_limit_counts_from_start_of_request() {
        let after = Duration::from_secs(40);
        let begun = Instant::now();
        let mut patience = WaitLimit::new(after);
        assert!(timeout(after / 2, patience.ends()).await.is_err());
        patience.waits = true;
        patience.ends().await;
        assert_eq!(begun.elapsed().as_secs(), after.as_secs());
        patience.waits = false;
        assert!(timeout(2 * after, patience.ends()).await.is_err());
    }
}
