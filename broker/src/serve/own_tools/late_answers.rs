//! Answers that a host's user gives after the run that asked was suspended. The form stays open at the
//! host, and its answer is recorded for the run that resumes the suspended one.

use std::time::Duration;

use airlock_core::id::RunId;
use airlock_core::resume::CallRef;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::resumable;
use crate::broker::Broker;
use crate::client_bridge::ClientReply;
use crate::serve::client_request::WithdrawnRequest;
use crate::serve::host_approver;
use crate::serve::request::Request;

/// Lets the host show these forms until they are answered or another run asks again.
pub(super) fn keep_forms(
    request: &Request,
    broker: &Broker,
    run: &RunId,
    forms: Vec<WithdrawnRequest>,
) {
    let mut tasks = JoinSet::new();
    for form in forms {
        tasks.spawn(record_answer(broker.clone(), run.clone(), form));
    }
    request.session.keep_forms(&run.0, tasks);
}

/// Waits until the user has answered the forms. Returns `false` if this takes longer than `wait`.
pub(super) async fn are_answered(forms: &mut JoinSet<()>, wait: Duration) -> bool {
    let all = async { while forms.join_next().await.is_some() {} };
    timeout(wait, all).await.is_ok()
}

/// Records the answer of the host's user. A form that was closed without an answer records nothing,
/// and an answer that can no longer be recorded is dropped: the run that resumes asks again.
async fn record_answer(broker: Broker, run: RunId, mut form: WithdrawnRequest) {
    let ClientReply::Result(result) = form.request.reply().await else {
        return;
    };
    if let Some((call, answer)) = host_approver::stored_answer(&form.key, &result) {
        let about = CallRef {
            run: run.clone(),
            call,
        };
        let _ = resumable::store_answers(&broker, &run, vec![(about, answer)]).await;
    }
}
