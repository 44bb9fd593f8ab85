//! Seals journal entries one by one and writes several of them to disk together.

use airlock_core::id::RunId;
use airlock_core::journal::{Body, Chain, Entry, Redact};

use crate::journal_file::{JournalError, JournalFile};
use crate::private_file::StateDir;
use crate::secrets::Secrets;

/// Writes the journal of one run. The first write creates the file.
#[derive(Debug)]
pub(crate) struct JournalWriter {
    state: StateDir,
    run: RunId,
    file: Option<JournalFile>,
    chain: Chain,
    pending: PendingEntries,
}

#[derive(Debug, Default)]
struct PendingEntries {
    lines: String,
    sync: bool,
    bodies: Vec<Body>,
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
        let redact = if secrets.is_empty() {
            Redact::nothing()
        } else {
            let secrets = secrets.clone();
            Redact::new(move |text| secrets.redact(text))
        };
        Self {
            state,
            run,
            file: None,
            chain: Chain::new(redact),
            pending: PendingEntries::default(),
        }
    }

    pub(crate) fn add(&mut self, entry: Entry, sync: bool) -> Result<(), JournalWriteError> {
        self.pending.lines.push_str(&self.chain.seal(&entry)?);
        self.pending.sync |= sync;
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
        Ok(pending.bodies)
    }
}
