//! The recorded steps of a run that did not end, for its replay.

use std::collections::BTreeMap;

use sandbox_protocol::Outcome;

use super::CallRef;
use super::ledger::{CallKey, Ledger};
use super::matching::{not_known, reused_outcome};
use crate::catalog::Catalog;
use crate::code::Code;
use crate::id::{CallId, RunId, ServerName, ToolId};
use crate::journal::{
    Body, DecidedEntry, ResumedEntry, RunStartedEntry, StartedServer, Verdict, VerifiedJournal,
};
use crate::report::ReportedOutcome;
use crate::rules::Rules;

/// A call of the recording and what its script got.
#[derive(Debug, Clone)]
pub struct RecordedCall {
    pub key: CallKey,
    pub told: Option<RecordedOutcome>,
}

#[derive(Debug, Clone)]
pub struct RecordedOutcome {
    pub outcome: Outcome,
    pub source: OutcomeSource,
}

/// Where a recorded outcome came from.
#[derive(Debug, Clone)]
pub enum OutcomeSource {
    /// The call left in this or an earlier run.
    Call {
        at: CallRef,
        outcome: ReportedOutcome,
        code: Option<Code>,
    },
    /// The call was denied.
    Denial(Box<DecidedEntry>),
}

/// The recorded steps of one run.
#[derive(Debug, Clone)]
pub struct Recording {
    run: RunId,
    calls: BTreeMap<CallId, RecordedCall>,
    frames: BTreeMap<u64, ResumedEntry>,
}

/// The rules and servers of a recorded run. Its steps are replayed, and answers to its questions
/// count, only if these are the same.
#[derive(Debug, Clone)]
pub struct RecordedConditions {
    rules: Vec<String>,
    servers: Vec<StartedServer>,
}

impl RecordedConditions {
    #[must_use]
    pub fn of(started: &RunStartedEntry) -> Self {
        Self {
            rules: started.rules.clone(),
            servers: started.servers.clone(),
        }
    }

    /// Accepts the server's new target, because of `--same-server`.
    pub fn accept_target(&mut self, server: &ServerName, target: Option<&str>) {
        for recorded in self.servers.iter_mut().filter(|it| it.name == *server) {
            recorded.target = target.map(str::to_owned);
        }
    }

    #[must_use]
    pub fn has_same_rules(&self, rules: &Rules) -> bool {
        self.rules == rules.to_lines()
    }

    /// Whether the server of a tool is reached as in the recorded run.
    #[must_use]
    pub fn has_same_target(&self, tool: &ToolId, catalog: &Catalog) -> bool {
        let server = self.servers.iter().find(|it| it.name == tool.server);
        server.and_then(|server| server.target.as_deref()) == catalog.target_of(&tool.server)
    }
}

impl Recording {
    /// Returns the recording of a run. `None` if something that its script got is not recorded whole
    /// or belongs to masked arguments, or if a person has made a statement since about a call whose
    /// outcome the script got.
    #[must_use]
    pub fn new(journal: &VerifiedJournal, ledger: &Ledger) -> Option<Self> {
        let started = journal.started()?;
        let run = started.run.clone();
        let mut recording = Self {
            run,
            calls: BTreeMap::new(),
            frames: BTreeMap::new(),
        };
        for line in &journal.lines {
            match &line.body {
                Body::Asked(asked) => {
                    let key = CallKey {
                        tool: asked.tool.clone(),
                        args: asked.args_digest,
                    };
                    recording.add(asked.call, key);
                }
                Body::Decided(decided) => {
                    let key = CallKey {
                        tool: decided.tool.clone(),
                        args: decided.args_digest,
                    };
                    recording.add(decided.call, key);
                }
                Body::Reused(reused) => {
                    let key = CallKey {
                        tool: reused.tool.clone(),
                        args: reused.args_digest,
                    };
                    recording.add(reused.call, key);
                }
                Body::Resumed(resumed) => {
                    recording.frames.insert(resumed.step, resumed.clone());
                }
                _ => {}
            }
        }
        let frames: Vec<_> = recording.frames.values().cloned().collect();
        for call in frames.iter().flat_map(|frame| &frame.calls) {
            let told = recording.outcome(*call, journal, ledger)?;
            recording.calls.get_mut(call)?.told = Some(told);
        }
        Some(recording)
    }

    fn add(&mut self, call: CallId, key: CallKey) {
        self.calls
            .entry(call)
            .or_insert(RecordedCall { key, told: None });
    }

    fn outcome(
        &self,
        call: CallId,
        journal: &VerifiedJournal,
        ledger: &Ledger,
    ) -> Option<RecordedOutcome> {
        let at = CallRef {
            run: self.run.clone(),
            call,
        };
        match journal.decided(call) {
            // A person has stated since what became of the call that blocked this one.
            Some(decided) if is_stated_since(decided.blocked_by.as_ref(), ledger) => None,
            // Different arguments look equal when secrets in them are masked.
            Some(decided) if decided.masked => None,
            Some(decided) if decided.decision != Verdict::Allow => Some(RecordedOutcome {
                outcome: decided.denial()?,
                source: OutcomeSource::Denial(Box::new(decided.clone())),
            }),
            _ => {
                let entry = ledger.entry(&at).filter(|entry| !entry.is_masked)?;
                if entry.is_statement_unused {
                    return None;
                }
                let (told, outcome, code) = match journal.reused(call) {
                    // The stated result did not fit the tool's output schema.
                    Some(reused)
                        if entry.stated.is_some() && reused.code == Some(Code::ResultInvalid) =>
                    {
                        (not_known(entry), reused.outcome, reused.code)
                    }
                    Some(reused) => (reused_outcome(entry), reused.outcome, reused.code),
                    None => (entry.recorded.clone()?, entry.outcome, entry.code),
                };
                let at = entry.at.clone();
                Some(RecordedOutcome {
                    outcome: told,
                    source: OutcomeSource::Call { at, outcome, code },
                })
            }
        }
    }

    #[must_use]
    pub fn call(&self, call: CallId) -> Option<&RecordedCall> {
        self.calls.get(&call)
    }

    /// Returns the calls that left and whose outcomes the script got.
    pub fn told_calls(&self) -> impl Iterator<Item = &CallRef> {
        let told = self.calls.values().filter_map(|call| call.told.as_ref());
        told.filter_map(|told| match &told.source {
            OutcomeSource::Call { at, .. } => Some(at),
            OutcomeSource::Denial(_) => None,
        })
    }

    /// Returns the tools of all recorded calls.
    pub fn tools(&self) -> impl Iterator<Item = &ToolId> {
        self.calls.values().map(|call| &call.key.tool)
    }

    /// Returns the recorded resume with this number.
    #[must_use]
    pub fn frame(&self, step: u64) -> Option<&ResumedEntry> {
        self.frames.get(&step)
    }

    /// Returns the number of the last recorded resume; 0 if the guest was never resumed.
    #[must_use]
    pub fn last_step(&self) -> u64 {
        self.frames.keys().next_back().copied().unwrap_or_default()
    }
}

/// Whether a person has made a statement about a call since the recorded run began.
fn is_stated_since(at: Option<&CallRef>, ledger: &Ledger) -> bool {
    let entry = at.and_then(|at| ledger.entry(at));
    entry.is_some_and(|entry| entry.is_statement_unused)
}
