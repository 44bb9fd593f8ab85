//! The journals in the state directory: one append-only file per run. No other module writes
//! journals. The core defines the lines; this module puts them on disk.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use airlock_core::id::RunId;
use rustix::fs::{FlockOperation, flock};

use crate::private_file::{self, StateDir, make_private, open_to_read, open_to_write};

/// Maximum size of the first line in bytes. The header contains a script and its input, which have
/// their own limits.
const FIRST_LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Maximum size of the last line in bytes. The entry that ends a run is short.
const LAST_LINE_BYTES_MAX: u64 = 256 * 1024;
/// Maximum number of runs in a list, which contains the newest ones.
const LISTED_MAX: usize = 100_000;
const LOOK_AGAIN: Duration = Duration::from_millis(2);
const SUFFIX: &str = ".jsonl";

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("{path} cannot be {verb}: {cause}")]
    Io {
        path: String,
        verb: &'static str,
        cause: io::Error,
    },
    #[error("no run begins with `{id}`")]
    Unknown { id: String },
    #[error("{count} runs begin with `{id}`, such as {example}")]
    Ambiguous {
        id: String,
        count: usize,
        example: String,
    },
}

impl JournalError {
    /// Whether the journal does not exist.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Io { cause, .. } if cause.kind() == io::ErrorKind::NotFound)
    }
}

impl StateDir {
    #[must_use]
    pub fn journal_path(&self, run: &RunId) -> PathBuf {
        self.runs().join(format!("{}{SUFFIX}", run.0))
    }

    /// Creates a journal that only this process may write, and that no other user may read.
    pub fn create(&self, run: &RunId) -> Result<JournalFile, JournalError> {
        let (folder, path) = (self.runs(), self.journal_path(run));
        let file = match open_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_private(&folder).map_err(failed(&folder, "created"))?;
                open_new(&path)
            }
            other => other,
        };
        let file = file.map_err(failed(&path, "created"))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|errno| failed(&path, "locked")(errno.into()))?;
        Ok(JournalFile {
            file,
            folder,
            path,
            folder_is_synced: false,
        })
    }

    /// Returns the runs that have a journal, newest first. The list has a maximum length.
    pub fn runs_newest_first(&self) -> Result<Vec<RunId>, JournalError> {
        let mut runs = self.all_runs()?;
        runs.truncate(LISTED_MAX);
        Ok(runs)
    }

    /// Returns all runs that have a journal, newest first.
    pub(crate) fn all_runs(&self) -> Result<Vec<RunId>, JournalError> {
        let folder = self.runs();
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(failed(&folder, "read"))?,
        };
        let mut ids: Vec<RunId> = entries
            .filter_map(|entry| {
                Some(RunId(
                    entry
                        .ok()?
                        .file_name()
                        .to_str()?
                        .strip_suffix(SUFFIX)?
                        .into(),
                ))
            })
            .collect();
        ids.sort_by(|a, b| b.cmp(a));
        Ok(ids)
    }

    /// Returns the only run whose id begins with this text.
    pub fn find(&self, id: &str) -> Result<RunId, JournalError> {
        let matching: Vec<RunId> = self
            .all_runs()?
            .into_iter()
            .filter(|run| run.0.starts_with(id))
            .collect();
        match matching.as_slice() {
            [] => Err(JournalError::Unknown { id: id.to_owned() }),
            [run] => Ok(run.clone()),
            [first, ..] => matching
                .iter()
                .find(|run| &*run.0 == id)
                .cloned()
                .ok_or_else(|| JournalError::Ambiguous {
                    id: id.to_owned(),
                    count: matching.len(),
                    example: first.0.to_string(),
                }),
        }
    }

    /// Returns a whole journal as it is on disk.
    pub fn read(&self, run: &RunId) -> Result<Vec<u8>, JournalError> {
        let path = self.journal_path(run);
        private_file::read(&path).map_err(failed(&path, "read"))
    }

    /// Returns the first and the last whole line of a journal, for lists. A long first line is cut.
    /// The last line is only returned if it is short.
    pub fn ends(&self, run: &RunId) -> Result<JournalEnds, JournalError> {
        let path = self.journal_path(run);
        let read = || -> io::Result<JournalEnds> {
            let mut file = open_to_read(&path)?;
            let mut first = Vec::new();
            BufReader::new((&file).take(FIRST_LINE_BYTES_MAX)).read_until(b'\n', &mut first)?;
            let length = file.metadata()?.len();
            file.seek(io::SeekFrom::Start(
                length.saturating_sub(LAST_LINE_BYTES_MAX),
            ))?;
            let mut tail = Vec::new();
            file.take(LAST_LINE_BYTES_MAX).read_to_end(&mut tail)?;
            Ok(JournalEnds {
                is_first_cut: !first.ends_with(b"\n") && (first.len() as u64) < length,
                first,
                last: last_line(&tail).unwrap_or_default().to_vec(),
            })
        };
        read().map_err(failed(&path, "read"))
    }

    /// Returns whether a living process still writes the journal of this run.
    pub fn is_running(&self, run: &RunId) -> bool {
        is_locked(&self.journal_path(run))
    }

    /// Like [`StateDir::is_running`], but returns an error if the journal cannot be opened.
    pub(crate) fn has_writer(&self, run: &RunId) -> Result<bool, JournalError> {
        let path = self.journal_path(run);
        has_lock(&path).map_err(failed(&path, "read"))
    }

    /// Deletes a journal that no process writes, if it exists.
    pub(crate) fn delete_journal(&self, run: &RunId) -> Result<(), JournalError> {
        let path = self.journal_path(run);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(failed(&path, "removed")),
        }
    }

    /// Returns when the journals that exist now would still exist after a crash of the machine.
    pub(crate) fn sync_journals(&self) -> Result<(), JournalError> {
        let folder = self.runs();
        let synced = File::open(&folder).and_then(|folder| folder.sync_all());
        synced.map_err(failed(&folder, "synced"))
    }

    fn runs(&self) -> PathBuf {
        self.path().join("runs")
    }
}

/// Returns whether a living process holds the lock of a journal. A journal that exists and cannot be
/// opened counts as locked.
pub(crate) fn is_locked(path: &Path) -> bool {
    has_lock(path).unwrap_or_else(|error| error.kind() != io::ErrorKind::NotFound)
}

fn has_lock(path: &Path) -> io::Result<bool> {
    let file = open_to_read(path)?;
    Ok(flock(&file, FlockOperation::NonBlockingLockShared).is_err())
}

/// Waits until no process holds the lock of a journal, at most for this time.
pub(crate) fn wait_until_unlocked(path: &Path, wall: Duration) {
    let since = Instant::now();
    while is_locked(path) && since.elapsed() < wall {
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// The journal of a run in progress.
#[derive(Debug)]
pub struct JournalFile {
    file: File,
    folder: PathBuf,
    path: PathBuf,
    folder_is_synced: bool,
}

impl JournalFile {
    /// Appends whole lines with one write. With `sync`, returns when the lines would survive a
    /// crash of the machine. After an error the caller must not append again.
    pub fn append(&mut self, lines: &[u8], sync: bool) -> Result<(), JournalError> {
        self.file
            .write_all(lines)
            .map_err(failed(&self.path, "written"))?;
        if !sync {
            return Ok(());
        }
        self.file
            .sync_data()
            .map_err(failed(&self.path, "synced"))?;
        if !self.folder_is_synced {
            File::open(&self.folder)
                .and_then(|folder| folder.sync_all())
                .map_err(failed(&self.folder, "synced"))?;
            self.folder_is_synced = true;
        }
        Ok(())
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a handle that keeps the journal locked after it is complete.
    pub(crate) fn lock(&self) -> io::Result<JournalLock> {
        self.file.try_clone().map(JournalLock)
    }

    /// Removes a journal without lines.
    pub(crate) fn discard(self) {
        if self.file.metadata().is_ok_and(|it| it.len() == 0) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The lock of a journal. While it is held, [`StateDir::is_running`] returns true.
#[derive(Debug)]
pub(crate) struct JournalLock(#[expect(dead_code, reason = "held until dropped")] File);

fn open_new(path: &Path) -> io::Result<File> {
    open_to_write(path, OpenOptions::new().append(true).create_new(true))
}

/// The first and the last line of a journal, which contain what a list shows of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEnds {
    pub first: Vec<u8>,
    /// Whether the first line is longer than `first`.
    pub is_first_cut: bool,
    pub last: Vec<u8>,
}

/// Returns the last line without its line end. Text after the last line end is an incomplete line
/// and is ignored.
fn last_line(tail: &[u8]) -> Option<&[u8]> {
    let whole = tail.get(..tail.iter().rposition(|b| *b == b'\n')?)?;
    let begin = whole
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    whole.get(begin..)
}

fn failed(path: &Path, verb: &'static str) -> impl FnOnce(io::Error) -> JournalError {
    let path = path.display().to_string();
    move |cause| JournalError::Io { path, verb, cause }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::tempdir::TempDir;

    fn id(text: &str) -> RunId {
        RunId(text.into())
    }

    #[test]
    fn appended_lines_read_back_and_partial_line_is_dropped() {
        let scratch = TempDir::new();
        let state = StateDir::open(scratch.path().join("state")).unwrap();
        let mut journal = state.create(&id("a1")).unwrap();
        journal.append(b"one\ntwo\n", true).unwrap();
        journal.append(b"thr", false).unwrap();
        assert_eq!(state.read(&id("a1")).unwrap(), b"one\ntwo\nthr");
        let ends = state.ends(&id("a1")).unwrap();
        assert_eq!((&*ends.first, &*ends.last), (&b"one\n"[..], &b"two"[..]));
    }

    #[test]
    fn journal_file_is_private_and_created_once() {
        let scratch = TempDir::new();
        let state = StateDir::open(scratch.path().join("state")).unwrap();
        let journal = state.create(&id("a1")).unwrap();
        assert!(state.create(&id("a1")).is_err());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(journal.path()), mode(state.path())), (0o600, 0o700));
    }

    #[test]
    fn run_is_running_while_journal_is_open() {
        let scratch = TempDir::new();
        let state = StateDir::open(scratch.path().join("state")).unwrap();
        let journal = state.create(&id("a1")).unwrap();
        assert!(state.is_running(&id("a1")));
        drop(journal);
        assert!(!state.is_running(&id("a1")) && !state.is_running(&id("zz")));
        // A folder cannot be opened as a journal.
        std::fs::create_dir(state.journal_path(&id("b2"))).unwrap();
        assert!(state.is_running(&id("b2")) && state.has_writer(&id("b2")).is_err());
    }

    #[test]
    fn run_is_found_by_id_prefix_and_newest_is_listed_first() {
        let scratch = TempDir::new();
        let state = StateDir::open(scratch.path().join("state")).unwrap();
        assert_eq!(state.runs_newest_first().unwrap(), []);
        for run in ["01b", "01a", "02c"] {
            state.create(&id(run)).unwrap();
        }
        assert_eq!(
            state.runs_newest_first().unwrap(),
            [id("02c"), id("01b"), id("01a")]
        );
        assert_eq!(state.find("02").unwrap(), id("02c"));
        assert!(matches!(
            state.find("01"),
            Err(JournalError::Ambiguous { count: 2, .. })
        ));
        assert!(matches!(state.find("x"), Err(JournalError::Unknown { .. })));
    }

    #[test]
    fn full_disk_fails_append() {
        let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let mut journal = JournalFile {
            file,
            folder: "/dev".into(),
            path: "/dev/full".into(),
            folder_is_synced: true,
        };
        assert!(matches!(
            journal.append(b"line\n", false),
            Err(JournalError::Io {
                verb: "written",
                ..
            })
        ));
    }
}
