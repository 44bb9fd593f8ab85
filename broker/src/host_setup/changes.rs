//! Writes planned changes, and takes them back. A record in the state directory names each file
//! that was changed or created; a copy beside a changed file has its old bytes.
//!
//! The record is written before the first file, and each file appears with its whole content. So
//! after a crash, `undo` finds every changed file.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use airlock_core::id::Digest;
use airlock_core::problem::Problem;
use serde::{Deserialize, Serialize};

use crate::private_file::{self, StateDir};

const RECORD: &str = "host-setup.json";
const LOCK: &str = "host-setup.lock";
const LOCK_WALL: Duration = Duration::from_secs(5);
const UNFINISHED: &str = "airlock-unfinished";
const COPY: &str = "before-airlock";
const CODE: &str = "setup-failed";
const UNDO: &str = "`airlock init --undo` restores the files that were changed";

/// A change of an existing file.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) path: PathBuf,
    pub(crate) before: Vec<u8>,
    pub(crate) after: Vec<u8>,
}

/// A new file.
#[derive(Debug)]
pub(crate) struct Created {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// Everything that was written and not taken back, oldest first.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    changed: Vec<ChangedFile>,
    created: Vec<CreatedFile>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ChangedFile {
    file: PathBuf,
    copy: PathBuf,
    /// Digest of the file before the change.
    before: String,
    /// Digest of the file after the change.
    digest: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct CreatedFile {
    file: PathBuf,
    digest: String,
}

/// What `undo` did with one file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Undone {
    Restored(PathBuf),
    Removed(PathBuf),
    /// The file was changed after `write`. `copy` has its bytes from before, if it existed.
    Kept {
        file: PathBuf,
        copy: Option<PathBuf>,
    },
    /// The file was created, and the file of a host that was kept may still name it.
    StillNamed(PathBuf),
}

/// Writes new files and changes existing ones. Returns the copies.
pub(crate) fn write(
    state: &StateDir,
    changes: &[Change],
    created: &[Created],
) -> Result<Vec<PathBuf>, Problem> {
    let _lock = lock(state)?;
    let mut record = read_record(state)?;
    let mut copies = Vec::new();
    for change in changes {
        check_unchanged(change)
            .map_err(|error| failed(&change.path, &error.to_string(), "run the command again"))?;
    }
    for created in created {
        if created.path.symlink_metadata().is_ok() {
            let next = "move the file away, or run `airlock init --undo` if airlock created it";
            return Err(failed(&created.path, "the file already exists", next));
        }
        record.created.push(CreatedFile {
            file: created.path.clone(),
            digest: digest(created.text.as_bytes()),
        });
    }
    for change in changes {
        let copy = free_copy(&change.path);
        record.changed.push(ChangedFile {
            file: change.path.clone(),
            copy: copy.clone(),
            before: digest(&change.before),
            digest: digest(&change.after),
        });
        copies.push(copy);
    }
    write_record(state, &record)?;
    for created in created {
        create(created).map_err(|error| failed(&created.path, &error.to_string(), UNDO))?;
    }
    for (change, copy) in changes.iter().zip(&copies) {
        replace(change, copy).map_err(|error| failed(&change.path, &error.to_string(), UNDO))?;
    }
    Ok(copies)
}

/// Restores all files, the latest change first. Files that were changed since then are kept, and
/// then all new files, too. After a failure, the other files are restored nevertheless.
pub(crate) fn undo(state: &StateDir) -> Result<Vec<Undone>, Problem> {
    let _lock = lock(state)?;
    let mut record = read_record(state)?;
    let mut undone = Vec::new();
    let mut kept = Record::default();
    let mut first_failure = None;
    while let Some(changed) = record.changed.pop() {
        let restored = restore(&changed);
        match restored {
            // The change was never made.
            Ok(None) => {}
            Ok(Some(done)) => {
                if matches!(done, Undone::Kept { .. }) {
                    kept.changed.insert(0, changed);
                }
                undone.push(done);
            }
            Err(error) => {
                let failure = failed(&changed.file, &error.to_string(), UNDO);
                first_failure.get_or_insert(failure);
                kept.changed.insert(0, changed);
            }
        }
    }
    let is_named = !kept.changed.is_empty();
    while let Some(created) = record.created.pop() {
        let removed = match is_named {
            true => Ok(Some(Undone::StillNamed(created.file.clone()))),
            false => remove(&created),
        };
        match removed {
            Ok(None) => {}
            Ok(Some(done)) => {
                if !matches!(done, Undone::Removed(_)) {
                    kept.created.insert(0, created);
                }
                undone.push(done);
            }
            Err(error) => {
                let failure = failed(&created.file, &error.to_string(), UNDO);
                first_failure.get_or_insert(failure);
                kept.created.insert(0, created);
            }
        }
    }
    write_record(state, &kept)?;
    match first_failure {
        Some(failure) => Err(failure),
        None => Ok(undone),
    }
}

fn restore(changed: &ChangedFile) -> io::Result<Option<Undone>> {
    remove_if_there(&beside(&changed.file, UNFINISHED))?;
    remove_if_there(&beside(&changed.copy, UNFINISHED))?;
    let now = match fs::read(&changed.file) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        other => Some(other?),
    };
    match now {
        // The change was not made, or was taken back.
        Some(now) if digest(&now) == changed.before => {
            remove_if_there(&changed.copy)?;
            Ok(None)
        }
        Some(now) if digest(&now) != changed.digest => Ok(Some(Undone::Kept {
            file: changed.file.clone(),
            copy: Some(changed.copy.clone()),
        })),
        _ => {
            fs::rename(&changed.copy, &changed.file)?;
            Ok(Some(Undone::Restored(changed.file.clone())))
        }
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn remove(created: &CreatedFile) -> io::Result<Option<Undone>> {
    remove_if_there(&beside(&created.file, UNFINISHED))?;
    let now = match fs::read(&created.file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    if digest(&now) != created.digest {
        return Ok(Some(Undone::Kept {
            file: created.file.clone(),
            copy: None,
        }));
    }
    fs::remove_file(&created.file)?;
    if let Some(folder) = created.file.parent() {
        // Fails while the folder has other files.
        let _ = fs::remove_dir(folder);
    }
    Ok(Some(Undone::Removed(created.file.clone())))
}

fn create(created: &Created) -> io::Result<()> {
    if let Some(folder) = created.path.parent() {
        fs::create_dir_all(folder)?;
    }
    let unfinished = beside(&created.path, UNFINISHED);
    remove_if_there(&unfinished)?;
    let mut file = fs::File::create_new(&unfinished)?;
    file.write_all(created.text.as_bytes())?;
    file.sync_data()?;
    fs::rename(&unfinished, &created.path)
}

fn check_unchanged(change: &Change) -> io::Result<()> {
    match fs::read(&change.path)? == change.before {
        true => Ok(()),
        false => Err(io::Error::other(
            "another program has just changed the file",
        )),
    }
}

/// Makes the copy, then replaces the file as a whole. Both have the mode of the file.
fn replace(change: &Change, copy: &Path) -> io::Result<()> {
    let mode = fs::metadata(&change.path)?.permissions();
    check_unchanged(change)?;
    for (path, bytes) in [(copy, &change.before), (&change.path, &change.after)] {
        let unfinished = beside(path, UNFINISHED);
        remove_if_there(&unfinished)?;
        write_new(&unfinished, bytes, mode.clone())?;
        fs::rename(&unfinished, path)?;
    }
    Ok(())
}

fn write_new(path: &Path, bytes: &[u8], mode: fs::Permissions) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = fs::OpenOptions::new();
    // The file may hold credentials, so nobody else may read it before it has its mode.
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.set_permissions(mode)?;
    file.write_all(bytes)?;
    file.sync_data()
}

/// Returns a path beside the file that does not exist yet.
fn free_copy(path: &Path) -> PathBuf {
    let numbered = (2..).map(|number| beside(path, &format!("{COPY}-{number}")));
    let mut paths = std::iter::once(beside(path, COPY)).chain(numbered);
    let free = paths.find(|it| it.symlink_metadata().is_err());
    free.unwrap_or_else(|| beside(path, COPY))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{ending}"));
    name.into()
}

fn digest(bytes: &[u8]) -> String {
    Digest::sha256(bytes).to_string()
}

/// Keeps other processes from changing the record.
fn lock(state: &StateDir) -> Result<fs::File, Problem> {
    let path = state.path().join(LOCK);
    let locked = private_file::lock(&path, LOCK_WALL);
    locked.map_err(|error| {
        let next = "wait until the other `airlock init` has ended";
        failed(&path, &format!("it cannot be locked: {error}"), next)
    })
}

fn record_path(state: &StateDir) -> PathBuf {
    state.path().join(RECORD)
}

fn read_record(state: &StateDir) -> Result<Record, Problem> {
    let path = record_path(state);
    let unreadable = |why: String| failed(&path, &why, "check the file, or restore the copies");
    match private_file::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Record::default()),
        Err(error) => Err(unreadable(error.to_string())),
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string())),
    }
}

fn write_record(state: &StateDir, record: &Record) -> Result<(), Problem> {
    let path = record_path(state);
    let written = private_file::make_private(state.path())
        .and_then(|()| serde_json::to_vec_pretty(record).map_err(io::Error::other))
        .and_then(|bytes| private_file::replace(&path, &bytes, true));
    written.map_err(|error| failed(&path, &error.to_string(), "choose another --state-dir"))
}

fn failed(path: &Path, why: &str, next: &str) -> Problem {
    Problem::new(CODE, format!("cannot change {}", path.display()), why, next)
}
