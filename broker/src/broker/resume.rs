//! Prepares a script to resume a run of the state directory.

use std::time::Duration;

use airlock_core::decide::Answer;
use airlock_core::id::{Digest, RunId, ServerName};
use airlock_core::journal::{Body, JournalLine, RunStartedEntry};
use airlock_core::resume::CallRef;
use airlock_core::resume::plan::{ResumeRequest, plan};

use super::{Broker, RunContext, RunHandle, Script};
use crate::host_record::HostRecord;
use crate::run_chain::{ResumeError, StoredChain};
use crate::suspended_runs::AnswerRecorder;

/// Age up to which recorded results of reads are reused.
pub(crate) const READS_MAX_AGE: Duration = Duration::from_secs(600);

/// How a run is resumed.
#[derive(Debug, Clone)]
pub struct ResumeOptions {
    /// The script; `None` for the recorded one.
    pub script: Option<Script>,
    /// Recorded results of reads that are older are read again.
    pub reads_max_age: Duration,
    /// Servers whose results are reused although their address, command or credentials have changed.
    pub same_servers: Vec<ServerName>,
}

impl Default for ResumeOptions {
    fn default() -> Self {
        Self {
            script: None,
            reads_max_age: READS_MAX_AGE,
            same_servers: Vec::new(),
        }
    }
}

impl Broker {
    /// Resumes a run, which must be the newest one of its chain and must have ended. Calls that
    /// earlier runs of the chain made are not made again. Without input in the script, the recorded
    /// input is used.
    pub fn resume(
        &self,
        context: RunContext,
        run: &RunId,
        options: ResumeOptions,
    ) -> Result<RunHandle, ResumeError> {
        let chain = self.stored_chain(run)?;
        Ok(self.run_in(context, self.resuming(&chain, options)?))
    }

    /// Returns who starts a run in this host's session, as journals name it.
    pub(crate) fn origin_in(&self, session: Option<&HostRecord>, caller: &str) -> String {
        let shares = self.0.shares.in_host_session(session.cloned());
        shares.origin(caller)
    }

    /// Returns who started a run, according to the header of its journal.
    pub(crate) fn origin_of(&self, run: &RunId) -> Option<String> {
        let ends = self.0.state.ends(run).ok()?;
        let line = serde_json::from_slice::<JournalLine>(&ends.first).ok()?;
        match line.body {
            Body::RunStarted(started) => started.caller,
            _ => None,
        }
    }

    /// Reads the chain that a run belongs to.
    pub(crate) fn chain_of(&self, run: &RunId) -> Result<StoredChain, ResumeError> {
        self.0.state.stored_chain(run)
    }

    /// Reads the chain of a run, which must be its newest one.
    pub(crate) fn stored_chain(&self, run: &RunId) -> Result<StoredChain, ResumeError> {
        self.0.state.stored_chain(run)?.of_newest(run)
    }

    /// Records a person's answers to questions of a suspended run.
    pub(crate) fn store_answers(
        &self,
        run: &RunId,
        answers: &[(CallRef, Answer)],
        by: &str,
    ) -> Result<(), ResumeError> {
        let recorder = AnswerRecorder {
            state: &self.0.state,
            secrets: &self.0.secrets,
            by: by.to_owned(),
            now_ms: self.0.clock.now_ms(),
        };
        recorder.record(run, answers).map(drop)
    }

    /// Returns the script that resumes the newest run of a chain.
    pub(crate) fn resuming(
        &self,
        stored: &StoredChain,
        options: ResumeOptions,
    ) -> Result<Script, ResumeError> {
        let mut script = options
            .script
            .map_or_else(|| stored.recorded_script(), Ok)?;
        if script.input.is_empty()
            && let Some(started) = stored.newest_started()
        {
            script.input = recorded_input(started)?;
        }
        let request = ResumeRequest {
            script: self.recorded_digest(script.text.as_bytes()),
            input: self.recorded_input_digest(&script),
            guest: self.0.guest.digest,
            reads_max_age_ms: u64::try_from(options.reads_max_age.as_millis()).unwrap_or(u64::MAX),
        };
        let mut spec = plan(&stored.chain, &stored.journals, request)?;
        spec.same_servers = options.same_servers;
        script.resume = Some(Box::new(spec));
        Ok(script)
    }

    /// Whether the rules differ from those of the newest run of a chain.
    pub(crate) fn has_other_rules(&self, stored: &StoredChain) -> bool {
        let rules = self.known().decision_context.rules.to_lines();
        stored
            .newest_started()
            .is_some_and(|started| started.rules != rules)
    }

    /// Returns the digest of a text as a journal records it, after secrets are masked.
    fn recorded_digest(&self, text: &[u8]) -> Digest {
        let masked = std::str::from_utf8(text)
            .ok()
            .and_then(|text| self.0.secrets.redact(text));
        match masked {
            Some(masked) => Digest::sha256(masked.as_bytes()),
            None => Digest::sha256(text),
        }
    }

    /// Returns the digest of the input. A journal masks only an input that it records as a whole.
    fn recorded_input_digest(&self, script: &Script) -> Digest {
        let limits = self.0.limits_of(script);
        match script.input.len() <= limits.journal_payload_bytes_max as usize {
            true => self.recorded_digest(&script.input),
            false => Digest::sha256(&script.input),
        }
    }
}

impl StoredChain {
    /// Returns the script of the newest run.
    pub(crate) fn recorded_script(&self) -> Result<Script, ResumeError> {
        let Some(started) = self.newest_started() else {
            return Err(not_recorded(
                "script",
                self.chain.newest(),
                "the journal has no header",
            ));
        };
        if started.masked {
            let why = "it contains a credential, which is masked";
            return Err(not_recorded("script", &started.run, why));
        }
        match &started.script {
            Some(text) => Ok(Script::body(text.clone()).named(started.script_name.clone())),
            None => Err(not_recorded("script", &started.run, "it is too long")),
        }
    }
}

/// Returns the recorded input of a run; empty if it had none.
fn recorded_input(started: &RunStartedEntry) -> Result<Vec<u8>, ResumeError> {
    match &started.input {
        Some(input) if input.is_empty() => Ok(Vec::new()),
        Some(_) if started.masked => {
            let why = "the script or the input contains a credential, which is masked";
            Err(not_recorded("input", &started.run, why))
        }
        Some(input) => Ok(input.clone().into_bytes()),
        None => Err(not_recorded("input", &started.run, "it is too long")),
    }
}

fn not_recorded(what: &'static str, run: &RunId, why: &'static str) -> ResumeError {
    ResumeError::NotRecorded {
        what,
        run: run.0.to_string(),
        why,
    }
}
