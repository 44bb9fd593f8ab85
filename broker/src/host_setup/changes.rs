//! Writes planned changes, and takes them back. A record in the state directory names each file
//! that was changed or created; a copy beside a changed file has its old bytes.
//!
//! The record is written before the first file, and each file appears with its whole content. So
//! after a crash, `undo` finds every changed file.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, fchown};
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
    /// The host's file that names it.
    pub(crate) named_by: PathBuf,
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
    /// The host's file that names it.
    named_by: PathBuf,
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
    /// A person or program other than airlock removed airlock's entry from the host's file. `copy`
    /// is the file as it was before airlock changed it.
    WithoutEntry {
        file: PathBuf,
        copy: PathBuf,
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
    for change in changes {
        // One host is not changed if the file of another cannot be replaced.
        check_replaceable(change).map_err(|error| {
            let next = "correct this, or choose the other hosts with `--host`";
            failed(&change.path, &error.to_string(), next)
        })?;
    }
    for change in changes {
        if !names_created(&change.path, &change.before, &record.created) {
            // Earlier changes of this file are no longer in it, so there is nothing to take back.
            record.changed.retain(|it| it.file != change.path);
        }
    }
    for created in created {
        if created.path.symlink_metadata().is_ok() && !is_left_over(&record, &created.path) {
            let next = "move the file away, or run `airlock init --undo` if airlock created it";
            return Err(failed(&created.path, "the file already exists", next));
        }
    }
    for created in created {
        // No host names a file that is left over. After a crash from here on, it is only missing.
        remove_if_there(&created.path)
            .map_err(|error| failed(&created.path, &error.to_string(), "remove the file"))?;
        record.created.retain(|it| it.file != created.path);
        record.created.push(CreatedFile {
            file: created.path.clone(),
            digest: digest(created.text.as_bytes()),
            named_by: created.named_by.clone(),
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

/// Restores all files, the latest change first. A file that was changed since then is kept, with the
/// new files that it names. After a failure, the other files are restored nevertheless.
pub(crate) fn undo(state: &StateDir) -> Result<Vec<Undone>, Problem> {
    let _lock = lock(state)?;
    let mut record = read_record(state)?;
    let mut undone = Vec::new();
    let mut kept = Record::default();
    let mut first_failure = None;
    while let Some(changed) = record.changed.pop() {
        let restored = restore(&changed, &record.created);
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
    while let Some(created) = record.created.pop() {
        let is_named = kept.changed.iter().any(|it| it.file == created.named_by);
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

fn restore(changed: &ChangedFile, created: &[CreatedFile]) -> io::Result<Option<Undone>> {
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
        Some(now) if digest(&now) != changed.digest => {
            let (file, copy) = (changed.file.clone(), changed.copy.clone());
            Ok(Some(match names_created(&changed.file, &now, created) {
                true => Undone::Kept {
                    file,
                    copy: Some(copy),
                },
                false => Undone::WithoutEntry { file, copy },
            }))
        }
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

/// Creates a file for this user alone. It says which programs are started, and a credential that was
/// not recognised may be in it.
fn create(created: &Created) -> io::Result<()> {
    if let Some(folder) = created.path.parent() {
        let mut missing = fs::DirBuilder::new();
        missing.recursive(true).mode(0o700).create(folder)?;
    }
    let unfinished = beside(&created.path, UNFINISHED);
    remove_if_there(&unfinished)?;
    let mut options = fs::OpenOptions::new();
    let mut file = private_file::open_to_write(&unfinished, options.write(true).create_new(true))?;
    file.write_all(created.text.as_bytes())?;
    file.sync_data()?;
    fs::rename(&unfinished, &created.path)
}

/// Whether an earlier `write` created the file, and the file still has those bytes.
fn is_left_over(record: &Record, path: &Path) -> bool {
    let mut created = record.created.iter();
    let known = created.find(|it| it.file == path);
    known.is_some_and(|it| private_file::read(path).is_ok_and(|now| digest(&now) == it.digest))
}

/// Whether a host's file may name one of the files that were created for it. The entry of a project
/// begins their paths at the project's folder, so only the name and its folder are compared.
fn names_created(host_file: &Path, text: &[u8], created: &[CreatedFile]) -> bool {
    // JSON may escape slashes.
    let text = String::from_utf8_lossy(text).replace('\\', "");
    let mut created = created.iter().filter(|it| it.named_by == host_file);
    created.any(|it| {
        let folder = it.file.parent().and_then(Path::file_name);
        let named = folder.zip(it.file.file_name());
        named.is_none_or(|(folder, name)| {
            let end = Path::new(folder).join(name);
            text.contains(&*end.to_string_lossy())
        })
    })
}

/// Checks whether a new file can take the place of the host's file.
fn check_replaceable(change: &Change) -> io::Result<()> {
    let replaced = fs::metadata(&change.path)?;
    let unfinished = beside(&change.path, UNFINISHED);
    remove_if_there(&unfinished)?;
    let written = write_new(&unfinished, &[], &replaced);
    remove_if_there(&unfinished)?;
    written
}

fn check_unchanged(change: &Change) -> io::Result<()> {
    match fs::read(&change.path)? == change.before {
        true => Ok(()),
        false => Err(io::Error::other(
            "another program has just changed the file",
        )),
    }
}

/// Makes the copy, then replaces the file as a whole. Both have the mode and the owner of the file.
fn replace(change: &Change, copy: &Path) -> io::Result<()> {
    let replaced = fs::metadata(&change.path)?;
    check_unchanged(change)?;
    for (path, bytes) in [(copy, &change.before), (&change.path, &change.after)] {
        let unfinished = beside(path, UNFINISHED);
        remove_if_there(&unfinished)?;
        if let Err(error) = write_new(&unfinished, bytes, &replaced) {
            remove_if_there(&unfinished)?;
            return Err(error);
        }
        fs::rename(&unfinished, path)?;
    }
    Ok(())
}

fn write_new(path: &Path, bytes: &[u8], replaced: &fs::Metadata) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    // The file may hold credentials, so it is private until it gets its own mode.
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let (owner, group) = (replaced.uid(), replaced.gid());
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (owner, group) {
        fchown(&file, Some(owner), Some(group)).map_err(|error| {
            let why = format!(
                "the new file cannot belong to user {owner} and group {group} as the old one does: {error}"
            );
            io::Error::other(why)
        })?;
    }
    // A change of the owner can change the mode.
    file.set_permissions(replaced.permissions())?;
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown};

    use super::*;
    use crate::tempdir::TempDir;

    struct Place {
        _folder: TempDir,
        state: StateDir,
        host: PathBuf,
        config: PathBuf,
    }

    impl Place {
        fn new() -> Self {
            let folder = TempDir::new();
            let at = |name: &str| folder.path().join(name);
            fs::write(at("host.json"), "before").unwrap();
            Self {
                state: StateDir::open(at("state")).unwrap(),
                host: at("host.json"),
                config: at("new/airlock.toml"),
                _folder: folder,
            }
        }

        fn write(&self) -> Result<Vec<PathBuf>, Problem> {
            let change = Change {
                path: self.host.clone(),
                before: fs::read(&self.host).unwrap(),
                after: b"serve --config new/airlock.toml".to_vec(),
            };
            let created = Created {
                path: self.config.clone(),
                text: "servers".to_owned(),
                named_by: self.host.clone(),
            };
            write(&self.state, &[change], &[created])
        }
    }

    #[test]
    fn new_file_and_folder_are_private() {
        let place = Place::new();
        place.write().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&place.config), 0o600);
        assert_eq!(mode(place.config.parent().unwrap()), 0o700);
    }

    #[test]
    fn replaced_file_and_copy_keep_mode_and_owner() {
        let place = Place::new();
        fs::set_permissions(&place.host, fs::Permissions::from_mode(0o640)).unwrap();
        // Only root can give files away.
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            chown(&place.host, Some(65532), Some(65533)).unwrap();
        }
        let of = |path: &Path| {
            let meta = fs::metadata(path).unwrap();
            (meta.mode() & 0o7777, meta.uid(), meta.gid())
        };
        let before = of(&place.host);
        let copies = place.write().unwrap();
        assert_eq!(of(&place.host), before);
        assert_eq!(of(&copies[0]), before);
        undo(&place.state).unwrap();
        assert_eq!(of(&place.host), before);
    }

    #[test]
    fn write_replaces_what_a_kept_file_left_over() {
        let place = Place::new();
        place.write().unwrap();
        fs::write(&place.host, "changed, and starts new/airlock.toml").unwrap();
        let undone = undo(&place.state).unwrap();
        assert!(undone.contains(&Undone::StillNamed(place.config.clone())));
        fs::write(&place.host, "the servers of the host").unwrap();
        place.write().unwrap();
        let undone = undo(&place.state).unwrap();
        assert_eq!(
            undone,
            [
                Undone::Restored(place.host.clone()),
                Undone::Removed(place.config.clone()),
            ]
        );
        assert_eq!(fs::read(&place.host).unwrap(), b"the servers of the host");
    }

    #[test]
    fn write_keeps_a_new_file_that_was_edited() {
        let place = Place::new();
        place.write().unwrap();
        fs::write(&place.host, "the servers of the host").unwrap();
        fs::write(&place.config, "edited").unwrap();
        let problem = place.write().unwrap_err();
        assert_eq!(problem.why, "the file already exists");
        assert_eq!(fs::read(&place.config).unwrap(), b"edited");
        assert_eq!(fs::read(&place.host).unwrap(), b"the servers of the host");
    }

    #[test]
    fn no_file_is_changed_if_one_cannot_be_replaced() {
        let place = Place::new();
        let other = place.host.with_file_name("other.json");
        fs::write(&other, "before").unwrap();
        // Nothing can be written to this path.
        fs::create_dir(beside(&other, UNFINISHED)).unwrap();
        let change = |path: &Path| Change {
            path: path.to_owned(),
            before: b"before".to_vec(),
            after: b"after".to_vec(),
        };
        let changes = [change(&place.host), change(&other)];
        let problem = write(&place.state, &changes, &[]).unwrap_err();
        assert!(problem.next.contains("--host"), "{}", problem.next);
        assert_eq!(fs::read(&place.host).unwrap(), b"before");
        assert_eq!(undo(&place.state).unwrap(), []);
    }

    #[test]
    fn undo_ends_when_the_entry_was_removed_by_hand() {
        let place = Place::new();
        let copies = place.write().unwrap();
        fs::write(&place.host, "allows mcp__airlock__run_script").unwrap();
        assert_eq!(
            undo(&place.state).unwrap(),
            [
                Undone::WithoutEntry {
                    file: place.host.clone(),
                    copy: copies[0].clone(),
                },
                Undone::Removed(place.config.clone()),
            ]
        );
        assert_eq!(undo(&place.state).unwrap(), []);
    }
}
