//! The runs whose journals airlock deleted because they were old: one signed line each. With these
//! lines, `airlock runs verify` recognises journals that were deleted without the signing key.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use airlock_core::id::{Digest, RunId};
use codegen::canonical;
use serde::{Deserialize, Serialize};

use crate::private_file::{self, StateDir, open_to_write};
use crate::run_index::{IndexError, PublicKey, failed, signed_bytes};

/// Version of the format.
const VERSION: u32 = 1;
/// The signed bytes begin with this text, so that a signature cannot be used for anything else.
const SIGNED_BYTES_BEGIN: &[u8] = b"airlock pruned run\n";
/// How long to wait for another process that deletes journals.
const LOCK_WALL: Duration = Duration::from_secs(10);

/// A run whose journal was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PrunedRun {
    v: u32,
    pub(crate) run: RunId,
    /// Digest of the last line of the run's journal.
    pub(crate) head: Digest,
    /// The host's time, in milliseconds since the epoch.
    at_ms: u64,
    pub(crate) key: PublicKey,
    /// Signature of all other members, in base64.
    signature: String,
}

impl PrunedRun {
    fn signed_bytes(&self) -> Vec<u8> {
        signed_bytes(SIGNED_BYTES_BEGIN, self)
    }
}

impl StateDir {
    fn pruned_path(&self) -> PathBuf {
        self.path().join("pruned.jsonl")
    }

    /// Records that the journals of these runs are about to be deleted. Each run comes with the digest
    /// of the last line of its journal.
    pub(crate) fn note_pruned(
        &self,
        runs: &[(RunId, Digest)],
        now_ms: u64,
    ) -> Result<(), IndexError> {
        let path = self.pruned_path();
        let mut text = Vec::new();
        for (run, head) in runs {
            let mut pruned = PrunedRun {
                v: VERSION,
                run: run.clone(),
                head: *head,
                at_ms: now_ms,
                key: self.public_key()?,
                signature: String::new(),
            };
            pruned.signature = self.signature(&pruned.signed_bytes())?;
            text.extend(canonical::canonical(
                &serde_json::to_value(&pruned).unwrap_or_default(),
            ));
            text.push(b'\n');
        }
        let lock = path.with_extension("lock");
        let _lock = private_file::lock(&lock, LOCK_WALL).map_err(failed(&lock, "locked"))?;
        let write = || -> io::Result<()> {
            let mut file = open_to_write(&path, OpenOptions::new().append(true).create(true))?;
            // A process that died while it wrote left a part of a line.
            let whole = private_file::read(&path)?;
            let end = whole.iter().rposition(|byte| *byte == b'\n');
            file.set_len(end.map_or(0, |end| end as u64 + 1))?;
            file.write_all(&text)?;
            file.sync_data()
        };
        write().map_err(failed(&path, "written"))
    }

    /// Returns the runs whose journals airlock deleted. Lines whose signature is not correct are left
    /// out. The caller must check whether the key is trusted.
    pub(crate) fn pruned_runs(&self) -> Result<BTreeMap<RunId, PrunedRun>, IndexError> {
        let path = self.pruned_path();
        let bytes = match private_file::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
            bytes => bytes.map_err(failed(&path, "read"))?,
        };
        let lines = bytes.split(|byte| *byte == b'\n');
        let runs = lines.filter_map(|line| serde_json::from_slice::<PrunedRun>(line).ok());
        let signed = runs.filter(|it| it.key.has_signed(&it.signed_bytes(), &it.signature));
        Ok(signed.map(|it| (it.run.clone(), it)).collect())
    }
}
