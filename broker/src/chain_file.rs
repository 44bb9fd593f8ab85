//! The files of run chains in the state directory: one append-only file per chain, which names the
//! runs that resumed, and holds what people stated and answered while no process ran. Like a
//! journal, each line holds the digest of the line before. Each line is signed with the key of the
//! state directory when it is written, because an answer counts at once. A process changes a file
//! only under the lock of its chain.
//!
//! A run that resumes creates and locks its journal, then records `began`, and only then starts. So
//! a `began` whose run has an empty journal that no process writes is void: nothing happened in that
//! run.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use airlock_core::id::{Digest, RunId};
use airlock_core::json::{self, Bounds};
use airlock_core::resume::Predecessor;
use airlock_core::resume::chain::{BeganRecord, ChainError, ChainRecord, RunChain};
use codegen::canonical;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::journal_file::JournalError;
use crate::private_file::{self, StateDir, make_private, open_to_write};
use crate::run_index::{IndexError, PublicKey, signed_bytes};

/// Version of the format of a chain's file.
const VERSION: u32 = 1;
/// The signed bytes begin with this text, so that a signature cannot be used for anything else.
const SIGNED_BYTES_BEGIN: &[u8] = b"airlock run chain\n";
/// Bounds of one line. A stated result is the longest part of a line.
const LINE: Bounds = Bounds {
    bytes_max: 8 * 1024 * 1024,
    depth_max: 16,
    nodes_max: 1_000,
};
/// How long to wait for the lock. Its holder reads a few lines and writes one.
const LOCK_WALL: Duration = Duration::from_secs(if cfg!(test) { 120 } else { 10 });
const SUFFIX: &str = ".jsonl";

#[derive(Debug, thiserror::Error)]
pub enum ChainFileError {
    #[error("{path} cannot be {verb}: {cause}")]
    Io {
        path: String,
        verb: &'static str,
        cause: io::Error,
    },
    #[error("{path}, line {line}: {why}")]
    Broken {
        path: String,
        line: usize,
        why: String,
    },
    #[error("{path}, line {line}: signed with another key, {key}")]
    OtherKey {
        path: String,
        line: usize,
        key: PublicKey,
    },
    #[error("{path} is locked by another process")]
    Locked { path: String },
    #[error(transparent)]
    Key(#[from] IndexError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error("run {0} is still running")]
    Running(String),
    #[error("something was recorded in the chain of run {0} while the run was being resumed")]
    Changed(String),
    #[error("the journal of run {0} is missing")]
    NoJournal(String),
}

/// One line of a file.
#[derive(Debug, Serialize, Deserialize)]
struct ChainLine {
    v: u32,
    seq: u64,
    /// Digest of the line before.
    prev: Option<Digest>,
    /// The host's time, in milliseconds since the epoch.
    at_ms: u64,
    /// The first run of the chain.
    chain: RunId,
    key: PublicKey,
    /// Signature of all other members, in base64.
    signature: String,
    #[serde(flatten)]
    record: ChainRecord,
}

/// The state of a run's journal, as far as a chain depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JournalState {
    Missing,
    /// No whole line, and no process that could write one.
    Void,
    Running,
    Written,
}

/// The file of one chain. Cheap to create; it need not exist.
#[derive(Debug, Clone)]
pub struct ChainFile {
    state: StateDir,
    root: RunId,
    path: PathBuf,
}

/// A file as it was read.
struct ReadChain {
    chain: RunChain,
    lines: u64,
    head: Option<Digest>,
    /// Time of the last record.
    last_at_ms: Option<u64>,
    /// Length of the whole lines.
    bytes: u64,
}

impl StateDir {
    /// Returns the file of the chain that begins with this run.
    #[must_use]
    pub fn chain(&self, root: &RunId) -> ChainFile {
        ChainFile {
            state: self.clone(),
            root: root.clone(),
            path: self.chains().join(format!("{}{SUFFIX}", root.0)),
        }
    }

    /// Returns the first runs of all chains that have a file.
    pub fn chain_roots(&self) -> Result<Vec<RunId>, ChainFileError> {
        let folder = self.chains();
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(failed(&folder, "read"))?,
        };
        let root = |entry: io::Result<std::fs::DirEntry>| {
            let name = entry.ok()?.file_name();
            Some(RunId(name.to_str()?.strip_suffix(SUFFIX)?.into()))
        };
        let mut roots: Vec<RunId> = entries.filter_map(root).collect();
        roots.sort();
        Ok(roots)
    }

    fn chains(&self) -> PathBuf {
        self.path().join("chains")
    }

    /// Whether a run did nothing: its journal has no whole line, and no process that could write one.
    pub(crate) fn is_void(&self, run: &RunId) -> bool {
        matches!(self.journal_state(run), Ok(JournalState::Void))
    }

    fn journal_state(&self, run: &RunId) -> Result<JournalState, JournalError> {
        let ends = match self.has_writer(run) {
            Ok(true) => return Ok(JournalState::Running),
            Ok(false) => self.ends(run),
            Err(error) => Err(error),
        };
        match ends {
            Ok(ends) if ends.is_first_cut || ends.first.ends_with(b"\n") => {
                Ok(JournalState::Written)
            }
            Ok(_) => Ok(JournalState::Void),
            Err(JournalError::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => {
                Ok(JournalState::Missing)
            }
            Err(error) => Err(error),
        }
    }
}

impl ChainFile {
    /// Reads the chain. Without a file, only the first run belongs to it. Refuses a line that was not
    /// signed with the key of the state directory.
    pub fn load(&self) -> Result<RunChain, ChainFileError> {
        self.read().map(|read| read.chain)
    }

    /// Reads the chain, and refuses a line that was signed with none of these keys.
    pub(crate) fn load_signed_with(&self, keys: &[PublicKey]) -> Result<RunChain, ChainFileError> {
        self.read_signed_with(keys).map(|read| read.chain)
    }

    /// Records that a run is about to resume the newest run of the chain, which still has this number
    /// of records. Returns when the record would survive a crash of the machine. The run's journal
    /// exists and is locked by this process.
    pub fn begin(
        &self,
        run: &RunId,
        (predecessor, records): (&Predecessor, u64),
        now_ms: u64,
    ) -> Result<(), ChainFileError> {
        let record = ChainRecord::Began(BeganRecord {
            run: run.clone(),
            predecessor: predecessor.clone(),
        });
        self.state.sync_journals()?;
        self.append(record, now_ms, |chain| {
            match self.state.journal_state(&predecessor.run)? {
                // A run that already resumed is the better reason, and `apply` gives it.
                _ if chain.newest() != &predecessor.run => Ok(()),
                JournalState::Running => {
                    Err(ChainFileError::Running(predecessor.run.0.to_string()))
                }
                JournalState::Missing => {
                    Err(ChainFileError::NoJournal(predecessor.run.0.to_string()))
                }
                // An answer or a statement that the plan of the run does not know would be lost.
                _ if chain.records() != records => {
                    Err(ChainFileError::Changed(predecessor.run.0.to_string()))
                }
                JournalState::Void | JournalState::Written => Ok(()),
            }
        })
    }

    /// Records what a person stated or answered. `check` gets the chain as it is under the lock.
    pub fn record(
        &self,
        record: ChainRecord,
        now_ms: u64,
        check: impl FnOnce(&RunChain) -> Result<(), ChainFileError>,
    ) -> Result<(), ChainFileError> {
        self.append(record, now_ms, check)
    }

    /// Deletes the journals of the chain, if it is still the same one, and then its file. `note` is
    /// called before, under the lock. Journals that do not exist are passed over. The lock's file
    /// stays, because another process may wait for it.
    pub(crate) fn delete<E: From<ChainFileError>>(
        &self,
        chain: &RunChain,
        note: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let _lock = self.lock()?;
        let now = self.load()?;
        let newest = now.newest().0.to_string();
        if self.state.is_running(now.newest()) {
            return Err(ChainFileError::Running(newest).into());
        }
        if now != *chain {
            return Err(ChainFileError::Changed(newest).into());
        }
        note()?;
        // The newest journal goes first, so that a chain that is deleted in part cannot be resumed.
        for run in chain.runs().iter().rev() {
            let deleted = self.state.delete_journal(run);
            deleted.map_err(ChainFileError::from)?;
        }
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => Ok(removed.map_err(failed(&self.path, "removed"))?),
        }
    }

    /// Returns the time of the last record; `None` without a file.
    pub(crate) fn last_recorded_ms(&self) -> Result<Option<u64>, ChainFileError> {
        let read = self.read()?;
        Ok(read.last_at_ms)
    }

    fn append(
        &self,
        record: ChainRecord,
        now_ms: u64,
        check: impl FnOnce(&RunChain) -> Result<(), ChainFileError>,
    ) -> Result<(), ChainFileError> {
        let _lock = self.lock()?;
        let mut read = self.read()?;
        check(&read.chain)?;
        read.chain.apply(record.clone())?;
        let mut line = ChainLine {
            v: VERSION,
            seq: read.lines,
            prev: read.head,
            at_ms: now_ms,
            chain: self.root.clone(),
            key: self.state.public_key()?,
            signature: String::new(),
            record,
        };
        line.signature = self.state.signature(&line.signed_bytes())?;
        let mut text = canonical::canonical(&serde_json::to_value(&line).unwrap_or_default());
        text.push(b'\n');
        let write = || -> io::Result<()> {
            let mut file = open_to_write(&self.path, OpenOptions::new().append(true).create(true))?;
            // A process that died while it wrote left a part of a line.
            file.set_len(read.bytes)?;
            file.write_all(&text)?;
            file.sync_data()?;
            File::open(self.state.chains())?.sync_all()
        };
        write().map_err(failed(&self.path, "written"))
    }

    fn lock(&self) -> Result<File, ChainFileError> {
        let folder = self.state.chains();
        make_private(&folder).map_err(failed(&folder, "created"))?;
        let path = self.path.with_extension("lock");
        private_file::lock(&path, LOCK_WALL).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => ChainFileError::Locked {
                path: path.display().to_string(),
            },
            _ => failed(&path, "locked")(error),
        })
    }

    fn read(&self) -> Result<ReadChain, ChainFileError> {
        self.read_signed_with(self.state.existing_public_key()?.as_slice())
    }

    fn read_signed_with(&self, keys: &[PublicKey]) -> Result<ReadChain, ChainFileError> {
        let bytes = match private_file::read(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            other => other.map_err(failed(&self.path, "read"))?,
        };
        let mut read = ReadChain {
            chain: RunChain::new(self.root.clone()),
            lines: 0,
            head: None,
            last_at_ms: None,
            bytes: 0,
        };
        for text in bytes.split_inclusive(|byte| *byte == b'\n') {
            let Some(text) = text.strip_suffix(b"\n") else {
                break;
            };
            let (path, number) = (self.path.display().to_string(), read.lines as usize + 1);
            let line = match self.line(text, &read) {
                Ok(line) if keys.contains(&line.key) => line,
                Ok(ChainLine { key, .. }) => {
                    return Err(ChainFileError::OtherKey {
                        path,
                        line: number,
                        key,
                    });
                }
                Err(why) => {
                    return Err(ChainFileError::Broken {
                        path,
                        line: number,
                        why,
                    });
                }
            };
            if let ChainRecord::Began(began) = &line.record
                && began.predecessor.run != *read.chain.newest()
            {
                self.void(
                    &mut read.chain,
                    &[JournalState::Void, JournalState::Missing],
                )?;
            }
            read.chain.apply(line.record)?;
            read.head = Some(Digest::sha256(text));
            read.last_at_ms = Some(line.at_ms);
            read.lines += 1;
            read.bytes += text.len() as u64 + 1;
        }
        self.void(&mut read.chain, &[JournalState::Void])?;
        Ok(read)
    }

    /// Removes the newest run from the chain if its journal is in one of these states.
    fn void(&self, chain: &mut RunChain, states: &[JournalState]) -> Result<(), ChainFileError> {
        let newest = chain.newest().clone();
        if newest != self.root && states.contains(&self.state.journal_state(&newest)?) {
            chain.void_newest(&newest);
        }
        Ok(())
    }

    /// Parses one line, which must follow the lines that were read. The caller must check whether the
    /// key of the line is trusted.
    fn line(&self, text: &[u8], read: &ReadChain) -> Result<ChainLine, String> {
        let value = json::read(text, LINE).map_err(|bad| bad.to_string())?;
        if canonical::canonical(&value) != text {
            return Err("not in canonical form".into());
        }
        let members = value.as_object().map_or(0, Map::len);
        let line: ChainLine = serde_json::from_value(value).map_err(|error| error.to_string())?;
        let parsed = serde_json::to_value(&line).map_err(|error| error.to_string())?;
        let has_known_members = parsed.as_object().map_or(0, Map::len) == members;
        for (fits, expected) in [
            (has_known_members, "known members only"),
            (line.v == VERSION, "version 1"),
            (line.seq == read.lines, "the next line number"),
            (line.prev == read.head, "the digest of the previous line"),
            (line.chain == self.root, "a line of this chain"),
            (
                line.key.has_signed(&line.signed_bytes(), &line.signature),
                "a correct signature",
            ),
        ] {
            if !fits {
                return Err(format!("expected {expected}"));
            }
        }
        Ok(line)
    }
}

impl ChainLine {
    fn signed_bytes(&self) -> Vec<u8> {
        signed_bytes(SIGNED_BYTES_BEGIN, self)
    }
}

fn failed(path: &Path, verb: &'static str) -> impl FnOnce(io::Error) -> ChainFileError {
    let path = path.display().to_string();
    move |cause| ChainFileError::Io { path, verb, cause }
}

#[cfg(test)]
mod tests {
    use airlock_core::id::CallId;
    use airlock_core::resume::CallRef;
    use airlock_core::statement::{StatedOutcome, Statement};

    use super::*;
    use crate::tempdir::TempDir;

    fn id(text: &str) -> RunId {
        RunId(text.into())
    }

    fn state(scratch: &TempDir) -> StateDir {
        StateDir::open(scratch.path().join("state")).unwrap()
    }

    /// Creates the journal of a run that has written something and ended.
    fn ended(state: &StateDir, run: &str) {
        let mut journal = state.create(&id(run)).unwrap();
        journal.append(b"{}\n", false).unwrap();
    }

    fn of(run: &str) -> Predecessor {
        Predecessor {
            run: id(run),
            head: Digest::sha256(run.as_bytes()),
        }
    }

    fn newest(state: &StateDir) -> String {
        state.chain(&id("a")).load().unwrap().newest().0.to_string()
    }

    fn statement(run: &str) -> ChainRecord {
        let digest = Digest::sha256(b"x");
        ChainRecord::Statement(Statement {
            about: CallRef {
                run: id(run),
                call: CallId(1),
            },
            args_digest: digest,
            outcome: StatedOutcome::DidNotHappen,
            by: "ada".into(),
            shown: digest,
        })
    }

    #[test]
    fn newest_run_is_resumed_once_and_records_survive() {
        let scratch = TempDir::new();
        let state = state(&scratch);
        ended(&state, "a");
        let file = state.chain(&id("a"));
        ended(&state, "b");
        file.begin(&id("b"), (&of("a"), 0), 1).unwrap();
        ended(&state, "c");
        assert!(matches!(
            file.begin(&id("c"), (&of("a"), 0), 2),
            Err(ChainFileError::Chain(ChainError::AlreadyResumed { .. }))
        ));
        file.record(statement("b"), 3, |_| Ok(())).unwrap();
        file.begin(&id("c"), (&of("b"), 2), 4).unwrap();
        let chain = file.load().unwrap();
        assert_eq!(chain.runs(), [id("a"), id("b"), id("c")]);
        assert_eq!(chain.statements().len(), 1);
        assert_eq!(state.chain_roots().unwrap(), [id("a")]);
    }

    #[test]
    fn record_that_the_plan_does_not_know_refuses_the_run() {
        let scratch = TempDir::new();
        let state = state(&scratch);
        ended(&state, "a");
        let file = state.chain(&id("a"));
        let planned = file.load().unwrap().records();
        file.record(statement("a"), 1, |_| Ok(())).unwrap();
        ended(&state, "b");
        let begun = file.begin(&id("b"), (&of("a"), planned), 2);
        assert!(matches!(begun, Err(ChainFileError::Changed(run)) if run == "a"));
        assert_eq!(newest(&state), "a");
        let planned = file.load().unwrap().records();
        file.begin(&id("b"), (&of("a"), planned), 3).unwrap();
    }

    #[test]
    fn chain_that_changed_is_not_deleted() {
        let scratch = TempDir::new();
        let state = state(&scratch);
        ended(&state, "a");
        let file = state.chain(&id("a"));
        let chain = file.load().unwrap();
        file.record(statement("a"), 7, |_| Ok(())).unwrap();
        let deleted = file.delete(&chain, || -> Result<(), ChainFileError> {
            panic!("nothing is noted")
        });
        assert!(matches!(deleted, Err(ChainFileError::Changed(run)) if run == "a"));
        assert_eq!(file.last_recorded_ms().unwrap(), Some(7));
        let chain = file.load().unwrap();
        file.delete(&chain, || Ok::<(), ChainFileError>(()))
            .unwrap();
        assert!(!state.journal_path(&id("a")).exists() && !file.path.exists());
    }

    #[test]
    fn fifty_concurrent_begins_have_one_winner() {
        let scratch = TempDir::new();
        let state = state(&scratch);
        ended(&state, "a");
        let begin = |number: u32| {
            // Each thread works like a separate process: they have only the files in common.
            let run = id(&format!("b{number}"));
            let mut journal = state.create(&run).unwrap();
            let begun = state.chain(&id("a")).begin(&run, (&of("a"), 0), 1);
            begun.map(|()| {
                journal.append(b"{}\n", false).unwrap();
            })
        };
        let begun: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..50)
                .map(|number| scope.spawn(move || begin(number)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert_eq!(begun.iter().filter(|it| it.is_ok()).count(), 1);
    }

    #[test]
    fn began_without_journal_entry_is_void() {
        let scratch = TempDir::new();
        let state = state(&scratch);
        ended(&state, "a");
        let file = state.chain(&id("a"));
        let journal = state.create(&id("b")).unwrap();
        file.begin(&id("b"), (&of("a"), 0), 1).unwrap();
        // While the process lives, the run may still begin.
        assert_eq!(newest(&state), "b");
        drop(journal);
        assert_eq!(newest(&state), "a");
        ended(&state, "c");
        file.begin(&id("c"), (&of("a"), 1), 2).unwrap();
        std::fs::remove_file(state.journal_path(&id("b"))).unwrap();
        assert_eq!(newest(&state), "c");
    }

    #[test]
    fn lost_journal_does_not_make_predecessor_resumable() {
        let scratch = TempDir::new();
        let state = state(&scratch);
        ended(&state, "a");
        ended(&state, "b");
        state
            .chain(&id("a"))
            .begin(&id("b"), (&of("a"), 0), 1)
            .unwrap();
        std::fs::remove_file(state.journal_path(&id("b"))).unwrap();
        assert_eq!(newest(&state), "b");
        ended(&state, "c");
        let begun = state.chain(&id("a")).begin(&id("c"), (&of("b"), 1), 2);
        assert!(matches!(begun, Err(ChainFileError::NoJournal(run)) if run == "b"));
    }

    #[test]
    fn run_with_header_over_limit_is_not_void() {
        let scratch = TempDir::new();
        let state = state(&scratch);
        ended(&state, "a");
        let journal = state.create(&id("b")).unwrap();
        state
            .chain(&id("a"))
            .begin(&id("b"), (&of("a"), 0), 1)
            .unwrap();
        let file = OpenOptions::new().write(true).open(journal.path()).unwrap();
        file.set_len(64 * 1024 * 1024 + 1).unwrap();
        drop(journal);
        assert_eq!(newest(&state), "b");
    }

    #[test]
    fn running_predecessor_is_refused() {
        let scratch = TempDir::new();
        let state = state(&scratch);
        let _running = state.create(&id("a")).unwrap();
        ended(&state, "b");
        let begun = state.chain(&id("a")).begin(&id("b"), (&of("a"), 0), 1);
        assert!(matches!(begun, Err(ChainFileError::Running(run)) if run == "a"));
    }

    #[test]
    fn altered_copied_and_cut_files_are_noticed() {
        let scratch = TempDir::new();
        let state = state(&scratch);
        for run in ["a", "b", "c", "x"] {
            ended(&state, run);
        }
        let file = state.chain(&id("a"));
        file.begin(&id("b"), (&of("a"), 0), 1).unwrap();
        file.record(statement("a"), 2, |_| Ok(())).unwrap();
        let whole = std::fs::read_to_string(&file.path).unwrap();
        let second = whole.lines().nth(1).unwrap();
        for altered in [
            whole.replace("\"at_ms\":1", "\"at_ms\":9"),
            whole.replace("ada", "eve"),
            whole.replace("\"v\":1", "\"more\":1,\"v\":1"),
            whole.replace("\"v\":1", "\"v\":2"),
            format!("{second}\n"),
            format!("{whole}{second}\n"),
        ] {
            std::fs::write(&file.path, &altered).unwrap();
            let refused = file.load();
            assert!(
                matches!(refused, Err(ChainFileError::Broken { .. })),
                "{altered}"
            );
        }
        // The same records, signed with another key.
        let other = StateDir::open(scratch.path().join("other")).unwrap();
        ended(&other, "a");
        let foreign = other.chain(&id("a"));
        foreign.record(statement("a"), 1, |_| Ok(())).unwrap();
        std::fs::copy(&foreign.path, &file.path).unwrap();
        assert!(matches!(
            file.load(),
            Err(ChainFileError::OtherKey { line: 1, .. })
        ));
        let key = other.public_key().unwrap();
        assert!(file.load_signed_with(&[key]).is_ok());
        std::fs::write(&state.chain(&id("x")).path, &whole).unwrap();
        assert!(matches!(
            state.chain(&id("x")).load(),
            Err(ChainFileError::Broken { line: 1, .. })
        ));
        // A part of a line, as left by a process that died, does not hide what follows.
        std::fs::write(&file.path, format!("{whole}{{\"at_ms\":3,\"cha")).unwrap();
        file.begin(&id("c"), (&of("b"), 2), 3).unwrap();
        assert_eq!(newest(&state), "c");
    }
}
