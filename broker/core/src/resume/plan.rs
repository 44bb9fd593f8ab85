//! Decides whether and how the newest run of a chain can be resumed.

use super::chain::{ChainError, RunChain, StoredAnswer, StoredAnswerWord};
use super::ledger::Ledger;
use super::recording::{RecordedConditions, Recording};
use super::{CallRef, ChainPosition, Predecessor, ResumeMode, ResumeSpec};
use crate::flow::StartLabels;
use crate::id::{Digest, RunId};
use crate::journal::{AnswerWord, Body, VerifiedJournal};

/// What a run that resumes is started with.
#[derive(Debug, Clone, Copy)]
pub struct ResumeRequest {
    /// Digest of the script as a journal records it, after secrets are masked.
    pub script: Digest,
    /// Digest of the input as a journal records it.
    pub input: Digest,
    pub guest: Digest,
    pub reads_max_age_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotResume {
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error("the journal of run {0} holds no complete line")]
    Empty(String),
    #[error("the seed `{0}` in the journal is not a number")]
    BadSeed(String),
}

/// Returns what a run needs to resume the newest run of a chain. `journals` are those of the runs of
/// the chain, in their order.
pub fn plan(
    chain: &RunChain,
    journals: &[VerifiedJournal],
    request: ResumeRequest,
) -> Result<ResumeSpec, CannotResume> {
    let ledger = Ledger::new(chain, journals)?;
    let newest = chain.newest();
    let empty = || CannotResume::Empty(newest.0.to_string());
    let (first, latest) = journals.first().zip(journals.last()).ok_or_else(empty)?;
    let first_line = first.lines.first().ok_or_else(empty)?;
    let started = latest.started().ok_or_else(empty)?;
    let head = latest.head.ok_or_else(empty)?;
    let seed = started.seed.parse();
    let seed = seed.map_err(|_| CannotResume::BadSeed(started.seed.clone()))?;
    // The digests are those of the masked texts, so different secrets look equal.
    let is_same = !started.masked
        && started.script_digest == request.script
        && started.input_digest == request.input
        && started.guest_digest == request.guest;
    let is_open = latest.ended().is_none();
    let recording = (is_same && is_open).then(|| Recording::new(latest, &ledger));
    let recording = recording.flatten();
    let mode = match recording {
        Some(recording) => ResumeMode::Continue(Box::new(recording)),
        None => ResumeMode::Edited,
    };
    Ok(ResumeSpec {
        position: ChainPosition {
            root: chain.root().clone(),
            number: chain.number().saturating_add(1),
            predecessor: Predecessor {
                run: newest.clone(),
                head,
            },
        },
        records: chain.records(),
        seed,
        started_ms: first_line.at_ms,
        answers: match is_same {
            true => answers(chain, journals),
            false => Vec::new(),
        },
        mode,
        conditions: RecordedConditions::of(started),
        ledger,
        labels: start_labels(journals),
        same_servers: Vec::new(),
        reads_max_age_ms: request.reads_max_age_ms,
    })
}

/// Returns the labels with which the runs of a chain started.
fn start_labels(journals: &[VerifiedJournal]) -> StartLabels {
    let mut labels = StartLabels::default();
    for started in journals.iter().filter_map(VerifiedJournal::started) {
        match &started.labels {
            Some(of_run) => labels.join(of_run),
            None => labels.join(&StartLabels::worst()),
        }
    }
    labels
}

/// Returns the answers that no run of the chain has used, those of the newest run first. A run that
/// ended before it put the question again has used no answer of its predecessor.
fn answers(chain: &RunChain, journals: &[VerifiedJournal]) -> Vec<StoredAnswer> {
    let mut answers = Vec::new();
    let mut later: Vec<&VerifiedJournal> = Vec::new();
    for (run, journal) in chain.runs().iter().zip(journals).rev() {
        // Answers are about calls by their numbers, and were given under the rules of their run.
        if later.last().is_some_and(|it| !is_repeated(journal, it)) {
            break;
        }
        let is_open = |it: &StoredAnswer| {
            let call = it.about.call;
            later
                .iter()
                .all(|later| later.of_call(call).next().is_none())
        };
        let kept = chain.answers().iter().filter(|it| it.about.run == *run);
        let found = kept.cloned().chain(unused(run, journal));
        answers.extend(found.filter(is_open));
        later.push(journal);
    }
    answers
}

/// Whether a later run had the script, input, rules and tools of an earlier one.
fn is_repeated(earlier: &VerifiedJournal, later: &VerifiedJournal) -> bool {
    let (Some(earlier), Some(later)) = (earlier.started(), later.started()) else {
        return false;
    };
    let is_same_script = earlier.script_digest == later.script_digest
        && earlier.input_digest == later.input_digest
        && earlier.guest_digest == later.guest_digest;
    is_same_script
        && !later.masked
        && earlier.rules == later.rules
        && earlier.servers == later.servers
        && earlier.tools == later.tools
}

/// Returns the answers that a run got and did not act on before it ended.
pub fn unused(run: &RunId, journal: &VerifiedJournal) -> impl Iterator<Item = StoredAnswer> {
    journal
        .lines
        .iter()
        .filter_map(move |line| match &line.body {
            Body::Answered(answered) if journal.decided(answered.call).is_none() => {
                let answer = match answered.answer {
                    AnswerWord::AllowOnce => StoredAnswerWord::AllowOnce,
                    AnswerWord::AllowDeclassified => StoredAnswerWord::AllowDeclassified,
                    AnswerWord::Refuse => StoredAnswerWord::Refuse,
                    _ => return None,
                };
                Some(StoredAnswer {
                    about: CallRef {
                        run: run.clone(),
                        call: answered.call,
                    },
                    shown: answered.shown,
                    answer,
                    by: String::new(),
                })
            }
            _ => None,
        })
}
