//! Finds runs in the state directory that a host can resume: those of the same caller and project,
//! from any session and any process. Journals are read away from the threads that answer requests.

use airlock_core::decide::Answer;
use airlock_core::id::{CallId, Digest, RunId};
use airlock_core::journal::Body;
use airlock_core::labels::Labels;
use airlock_core::report::{CanResume, Report, ReportedOutcome, Status};
use airlock_core::resume::CallRef;
use codegen::canonical;
use serde_json::json;
use serde_json::value::RawValue;

use super::OwnToolAnswer;
use crate::broker::tool_index::ToolIndex;
use crate::broker::{Broker, ResumeOptions, Script};
use crate::run_chain::{ResumeError, StoredChain};
use crate::serve::host_approver;
use crate::serve::request::Request;
use crate::serve::rpc::sanitize;

const RUN_ID_BYTES_MAX: usize = 64;

/// A run of the state directory.
pub(super) enum FoundRun {
    Open(Box<RecordedRun>),
    /// The newest run of the chain has ended.
    Ended(Box<EndedRun>),
}

impl FoundRun {
    /// Returns the run that can be resumed.
    pub(super) fn open_run(&self) -> Option<RunId> {
        match self {
            Self::Open(recorded) => Some(recorded.run.clone()),
            Self::Ended(_) => None,
        }
    }

    /// Whether the run still waits for the answers to its questions.
    pub(super) fn waits(&self) -> bool {
        matches!(self, Self::Open(recorded) if recorded.waits)
    }
}

/// What the journal holds of the end of a run.
pub(super) struct EndedRun {
    pub(super) report: Report,
    pub(super) script_name: String,
    /// The labels of the data that the report may contain.
    pub(super) labels: Labels,
}

/// A run that did not end, with its recorded script.
pub(super) struct RecordedRun {
    /// The newest run of the chain, which is the one that is resumed.
    pub(super) run: RunId,
    /// The script, in the form that resumes the run.
    pub(super) script: Script,
    /// Whether the run is suspended, has unanswered questions and no answers, and its rules are
    /// unchanged.
    pub(super) waits: bool,
    /// The unanswered questions.
    pub(super) questions: Vec<CallId>,
}

/// Returns a script in the form that resumes a run.
pub(super) async fn edited(
    tool_index: &ToolIndex,
    request: &Request,
    run: &str,
    script: Script,
) -> Result<Script, OwnToolAnswer> {
    let id = RunId(run.into());
    with_chain(tool_index, request, run, move |broker, stored| {
        let stored = stored.of_newest(&id).map_err(|error| refusal(&error))?;
        resuming(broker, &stored, Some(script))
    })
    .await
}

/// Returns the recorded script of a run that did not end, or the recorded result of one that did. If
/// another run has resumed the run and has ended or is suspended, that one counts.
pub(super) async fn recorded(
    tool_index: &ToolIndex,
    request: &Request,
    run: &str,
) -> Result<FoundRun, OwnToolAnswer> {
    let (id, origin) = (RunId(run.into()), origin(tool_index, request));
    with_chain(tool_index, request, run, move |broker, stored| {
        // Another caller or a person may have resumed the run.
        let newest = broker.origin_of(stored.chain.newest());
        let is_own = newest.is_some_and(|newest| newest == origin);
        if let Some(status) = stored.newest_status().filter(|_| is_own) {
            let ended = ended(&stored).ok_or_else(|| {
                OwnToolAnswer::wrong(format!(
                    "the run has ended ({status}), and its value is not recorded whole; to do more, call \
                     run_script with resume \"{}\"",
                    stored.chain.newest().0
                ))
            });
            return Ok(FoundRun::Ended(Box::new(ended?)));
        }
        let newest = stored.journals.last();
        let is_suspended = newest.is_some_and(|newest| newest.suspended().is_some());
        // A run that was resumed without an answer was suspended again, under another id.
        let stored = match is_own && is_suspended {
            true => stored,
            false => stored.of_newest(&id).map_err(|error| refusal(&error))?,
        };
        let rules = stored.newest_started().map(|started| &started.rules);
        let has_same_rules = rules.is_some_and(|rules| *rules == broker.rules().to_lines());
        let open = stored.open_questions();
        Ok(FoundRun::Open(Box::new(RecordedRun {
            run: stored.chain.newest().clone(),
            waits: has_same_rules && !stored.has_answers() && !open.is_empty(),
            questions: open.iter().map(|it| it.at.call).collect(),
            script: resuming(broker, &stored, None)?,
        })))
    })
    .await
}

/// Whether the newest run of a chain has ended, or its journals were deleted. `false` if that cannot
/// be read.
pub(super) async fn has_ended(tool_index: &ToolIndex, request: &Request, run: &str) -> bool {
    if !tool_index.broker.journal_path(&RunId(run.into())).exists() {
        return true;
    }
    let ended = with_chain(tool_index, request, run, |_, stored| {
        Ok(stored.newest_status().is_some())
    });
    ended.await.unwrap_or(false)
}

/// Returns the recorded end of the newest run of a chain. `None` if the run returned a value that is
/// not recorded whole.
fn ended(stored: &StoredChain) -> Option<EndedRun> {
    let (journal, started) = (stored.journals.last()?, stored.newest_started()?);
    let ended = journal.ended()?;
    let value = ended.value.as_ref().filter(|_| !ended.masked);
    if ended.value_digest.is_some() && value.is_none() {
        return None;
    }
    let indeterminate = stored.indeterminate().map_or(0, |calls| calls.len());
    let is_returned = |outcome: ReportedOutcome| outcome == ReportedOutcome::Returned;
    let count = |counts: &dyn Fn(&Body) -> bool| {
        let lines = journal.lines.iter().filter(|line| counts(&line.body));
        u32::try_from(lines.count()).unwrap_or(u32::MAX)
    };
    let settled = count(&|body| matches!(body, Body::Settled(it) if is_returned(it.outcome)));
    let reused = count(&|body| matches!(body, Body::Reused(_)));
    let reused_results = count(&|body| matches!(body, Body::Reused(it) if is_returned(it.outcome)));
    let can_resume = CanResume {
        run: started.run.0.to_string(),
        recorded: settled.saturating_add(reused_results),
        indeterminate: u32::try_from(indeterminate).unwrap_or(u32::MAX),
    };
    let is_any = can_resume.recorded > 0 || indeterminate > 0;
    Some(EndedRun {
        report: Report {
            run: started.run.0.to_string(),
            value: match value {
                Some(value) => Some(RawValue::from_string(value.clone()).ok()?),
                None => None,
            },
            error: ended.error.clone(),
            usage: ended.usage,
            reused,
            can_resume: (ended.status != Status::Done && is_any).then_some(can_resume),
            ..Report::empty(ended.status, ended.code)
        },
        script_name: started.script_name.clone(),
        // The journal does not hold the labels of the result.
        labels: Labels::worst(),
    })
}

/// Records answers to questions of a suspended run.
pub(super) async fn store_answers(
    broker: &Broker,
    run: &RunId,
    answers: Vec<(CallRef, Answer)>,
) -> Result<(), OwnToolAnswer> {
    let (broker, run) = (broker.clone(), run.clone());
    blocking(move || {
        let stored = broker.store_answers(&run, &answers, host_approver::USER);
        stored.map_err(|error| refusal(&error))
    })
    .await
}

/// Reads the chain of a run, and does work with it. A run of another caller or project is not found,
/// as if it did not exist.
async fn with_chain<T: Send + 'static>(
    tool_index: &ToolIndex,
    request: &Request,
    run: &str,
    work: impl FnOnce(&Broker, StoredChain) -> Result<T, OwnToolAnswer> + Send + 'static,
) -> Result<T, OwnToolAnswer> {
    let unknown = OwnToolAnswer::wrong(format!(
        "no run `{}` can be resumed; use the id from the result of a failed or paused run",
        sanitize(run)
    ));
    let is_id =
        run.len() <= RUN_ID_BYTES_MAX && run.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_id || run.is_empty() {
        return Err(unknown);
    }
    let (broker, run) = (tool_index.broker.clone(), RunId(run.into()));
    let origin = origin(tool_index, request);
    blocking(move || {
        if broker.origin_of(&run).is_none_or(|it| it != origin) {
            return Err(unknown);
        }
        let stored = broker.chain_of(&run);
        work(&broker, stored.map_err(|error| refusal(&error))?)
    })
    .await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, OwnToolAnswer> + Send + 'static,
) -> Result<T, OwnToolAnswer> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| {
        Err(OwnToolAnswer::wrong(
            "the journals of the run cannot be read",
        ))
    })
}

/// Returns the caller and the project of a request, as journals name them.
pub(super) fn origin(tool_index: &ToolIndex, request: &Request) -> String {
    let session = request.session.record();
    tool_index.broker.origin_in(session, &request.caller)
}

/// Returns a digest of the caller, the project, the script and its input.
pub(super) fn origin_of_script(
    tool_index: &ToolIndex,
    request: &Request,
    script: &Script,
) -> Digest {
    let input = String::from_utf8_lossy(&script.input);
    let origin = origin(tool_index, request);
    canonical::digest(&json!({"input": input, "origin": origin, "script": script.text}))
}

/// Returns the script that resumes the newest run of a chain; without a script, the recorded one.
fn resuming(
    broker: &Broker,
    stored: &StoredChain,
    script: Option<Script>,
) -> Result<Script, OwnToolAnswer> {
    let options = ResumeOptions {
        script,
        ..ResumeOptions::default()
    };
    let script = broker.resuming(stored, options);
    script.map_err(|error| refusal(&error))
}

/// The error for the model. It contains no path.
fn refusal(error: &ResumeError) -> OwnToolAnswer {
    OwnToolAnswer::wrong(error.told())
}
