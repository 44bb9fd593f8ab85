//! Entries on their way to the disk: sealed one by one, written together.

use airlock_core::id::RunId;
use airlock_core::journal::{Body, Chain, Entry, Redact};

use crate::config::Secrets;
use crate::journal_file::{JournalError, JournalFile, StateDir};

/// The journal of one run. The file is made with the first write.
#[derive(Debug)]
pub(crate) struct Record {
    state: StateDir,
    run: RunId,
    file: Option<JournalFile>,
    chain: Chain,
    pending: Pending,
}

#[derive(Debug, Default)]
struct Pending {
    lines: String,
    sync: bool,
    bodies: Vec<Body>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error(transparent)]
    File(#[from] JournalError),
    #[error(transparent)]
    Seal(#[from] airlock_core::journal::Unsealable),
}

impl Record {
    pub(crate) fn new(state: StateDir, run: RunId, secrets: &Secrets) -> Self {
        let redact = if secrets.is_empty() {
            Redact::nothing()
        } else {
            let secrets = secrets.clone();
            Redact::new(move |text| secrets.strike(text))
        };
        Self {
            state,
            run,
            file: None,
            chain: Chain::new(redact),
            pending: Pending::default(),
        }
    }

    pub(crate) fn add(&mut self, entry: Entry, sync: bool) -> Result<(), RecordError> {
        self.pending.lines.push_str(&self.chain.seal(&entry)?);
        self.pending.sync |= sync;
        self.pending.bodies.push(entry.body);
        Ok(())
    }

    /// Puts what was added on disk, and gives back what is there now.
    pub(crate) fn flush(&mut self) -> Result<Vec<Body>, RecordError> {
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
