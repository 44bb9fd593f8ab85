//! Seals journal entries one by one and writes several of them to disk together.

use airlock_core::id::RunId;
use airlock_core::journal::{Body, Chain, Entry};
use airlock_core::report::Status;

use crate::journal_file::{JournalError, JournalFile, JournalLock};
use crate::private_file::StateDir;
use crate::run_index::JournalEnd;
use crate::secrets::Secrets;

/// Writes the journal of one run.
#[derive(Debug)]
pub(crate) struct JournalWriter {
    state: StateDir,
    run: RunId,
    /// Created by the first write, unless [`JournalWriter::lock`] created it before.
    file: Option<JournalFile>,
    chain: Chain,
    pending: PendingEntries,
    /// The end of the journal, once it is written.
    end: Option<JournalEnd>,
}

#[derive(Debug, Default)]
struct PendingEntries {
    lines: String,
    sync: bool,
    bodies: Vec<Body>,
    ended: Option<(Status, u64)>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalWriteError {
    #[error(transparent)]
    File(#[from] JournalError),
    #[error(transparent)]
    Seal(#[from] airlock_core::journal::SealError),
}

impl JournalWriter {
    pub(crate) fn new(state: StateDir, run: RunId, secrets: &Secrets) -> Self {
        Self {
            state,
            run,
            file: None,
            chain: Chain::new(secrets.redaction()),
            pending: PendingEntries::default(),
            end: None,
        }
    }

    /// Creates the file now, and returns its lock. While the lock is held, the run counts as alive.
    /// If the file cannot be created, the first write reports it.
    pub(crate) fn lock(&mut self) -> Option<JournalLock> {
        let created = self.state.create(&self.run).ok()?;
        self.file.insert(created).lock().ok()
    }

    /// Removes the file of a run that did not begin.
    pub(crate) fn discard(self) {
        if let Some(file) = self.file {
            file.discard();
        }
    }

    pub(crate) fn add(&mut self, entry: Entry, sync: bool) -> Result<(), JournalWriteError> {
        self.pending.lines.push_str(&self.chain.seal(&entry)?);
        self.pending.sync |= sync;
        // A suspended run is continued in the journal of another run, so this is its end too.
        let status = match &entry.body {
            Body::Ended(ended) => Some(ended.status),
            Body::Suspended(_) => Some(Status::Paused),
            _ => None,
        };
        self.pending.ended = status.map(|status| (status, entry.at_ms));
        self.pending.bodies.push(entry.body);
        Ok(())
    }

    /// Writes the pending entries to disk, and returns them.
    pub(crate) fn flush(&mut self) -> Result<Vec<Body>, JournalWriteError> {
        let pending = std::mem::take(&mut self.pending);
        if pending.bodies.is_empty() {
            return Ok(Vec::new());
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(self.state.create(&self.run)?),
        };
        file.append(pending.lines.as_bytes(), pending.sync)?;
        if let (Some((status, at_ms)), Some(head)) = (pending.ended, self.chain.head()) {
            self.end = Some(JournalEnd {
                run: self.run.clone(),
                head,
                entries: self.chain.entries(),
                status,
                at_ms,
                is_synced: pending.sync,
            });
        }
        Ok(pending.bodies)
    }

    /// Returns the end of the journal, if it was written.
    pub(crate) fn end(&mut self) -> Option<JournalEnd> {
        self.end.take()
    }
}
