//! The state directory: one append-only file per run. The only module that
//! writes there. What a line says is the core's; that it is on disk is ours.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use airlock_core::id::RunId;
use rustix::fs::{FlockOperation, OFlags, flock};

/// A header holds a script and an input, and each has its limit.
const FIRST_LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The entry that ends a run is short.
const LAST_LINE_BYTES_MAX: u64 = 256 * 1024;
/// Runs that are listed at most; the newest ones.
const LISTED_MAX: usize = 100_000;
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

/// Where the journals of all runs are.
#[derive(Debug, Clone)]
pub struct StateDir(PathBuf);

impl StateDir {
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    #[must_use]
    pub fn journal_path(&self, run: &RunId) -> PathBuf {
        self.runs().join(format!("{}{SUFFIX}", run.0))
    }

    /// A new journal that only this process may write, and nobody else may read.
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

    /// The runs that have a journal, newest first.
    pub fn runs_newest_first(&self) -> Result<Vec<RunId>, JournalError> {
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
            .take(LISTED_MAX)
            .collect();
        ids.sort_by(|a, b| b.cmp(a));
        Ok(ids)
    }

    /// The one run whose id begins with this text.
    pub fn find(&self, id: &str) -> Result<RunId, JournalError> {
        let matching: Vec<RunId> = self
            .runs_newest_first()?
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

    /// A whole journal, as it is on disk.
    pub fn read(&self, run: &RunId) -> Result<Vec<u8>, JournalError> {
        let path = self.journal_path(run);
        std::fs::read(&path).map_err(failed(&path, "read"))
    }

    /// The first and the last whole line of a journal, for lists; the last one only when it is short.
    pub fn ends(&self, run: &RunId) -> Result<Ends, JournalError> {
        let path = self.journal_path(run);
        let read = || -> io::Result<Ends> {
            let mut file = File::open(&path)?;
            let mut first = Vec::new();
            BufReader::new((&file).take(FIRST_LINE_BYTES_MAX)).read_until(b'\n', &mut first)?;
            let length = file.metadata()?.len();
            file.seek(io::SeekFrom::Start(
                length.saturating_sub(LAST_LINE_BYTES_MAX),
            ))?;
            let mut tail = Vec::new();
            file.take(LAST_LINE_BYTES_MAX).read_to_end(&mut tail)?;
            Ok(Ends {
                first,
                last: last_line(&tail).unwrap_or_default().to_vec(),
            })
        };
        read().map_err(failed(&path, "read"))
    }

    /// Whether a living process still writes this run's journal.
    pub fn is_running(&self, run: &RunId) -> bool {
        File::open(self.journal_path(run))
            .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared).is_err())
    }

    fn runs(&self) -> PathBuf {
        self.0.join("runs")
    }
}

/// The journal of a run that goes on.
#[derive(Debug)]
pub struct JournalFile {
    file: File,
    folder: PathBuf,
    path: PathBuf,
    folder_is_synced: bool,
}

impl JournalFile {
    /// Writes whole lines with one write; with `sync`, returns when they would survive the
    /// machine's death. After an error the caller must not append again.
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
}

fn open_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create_new(true).mode(0o600);
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options.open(path)
}

/// The folder and what is missing above it, for nobody else to read.
pub(crate) fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// What a list shows of a run is in these two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ends {
    pub first: Vec<u8>,
    pub last: Vec<u8>,
}

/// Without its line end; what follows the last line end is a cut, and no line.
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
    use crate::scratch::Scratch;

    fn id(text: &str) -> RunId {
        RunId(text.into())
    }

    #[test]
    fn what_was_appended_is_read_back_and_a_cut_is_no_line() {
        let scratch = Scratch::new();
        let state = StateDir::new(scratch.path().join("state"));
        let mut journal = state.create(&id("a1")).unwrap();
        journal.append(b"one\ntwo\n", true).unwrap();
        journal.append(b"thr", false).unwrap();
        assert_eq!(state.read(&id("a1")).unwrap(), b"one\ntwo\nthr");
        let ends = state.ends(&id("a1")).unwrap();
        assert_eq!((&*ends.first, &*ends.last), (&b"one\n"[..], &b"two"[..]));
    }

    #[test]
    fn a_journal_is_private_and_made_once() {
        let scratch = Scratch::new();
        let state = StateDir::new(scratch.path().join("state"));
        let journal = state.create(&id("a1")).unwrap();
        assert!(state.create(&id("a1")).is_err());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(journal.path()), mode(&state.0)), (0o600, 0o700));
    }

    #[test]
    fn a_run_is_running_as_long_as_its_journal_is_open() {
        let scratch = Scratch::new();
        let state = StateDir::new(scratch.path().join("state"));
        let journal = state.create(&id("a1")).unwrap();
        assert!(state.is_running(&id("a1")));
        drop(journal);
        assert!(!state.is_running(&id("a1")) && !state.is_running(&id("zz")));
    }

    #[test]
    fn a_run_is_found_by_the_beginning_of_its_id_and_the_newest_comes_first() {
        let scratch = Scratch::new();
        let state = StateDir::new(scratch.path().join("state"));
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
    fn a_disk_that_is_full_is_an_error_of_the_append() {
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
