//! The state that runs share, on disk. There is one file per session and per project in the state
//! directory. One process at a time changes a file under a lock, and replaces the file as a whole.
//! The core defines its content. This module ensures that a use of a grant is on disk before the
//! call is sent.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use airlock_core::grant::Scope;
use airlock_core::id::Digest;
use airlock_core::shared_state::{BYTES_MAX, SessionName, SharedState, SharedStateError};

use crate::private_file::{self, make_private, open_to_read};

/// Maximum wait for the lock. A process holds the lock only while it writes one small file.
const LOCK_WALL: Duration = Duration::from_secs(if cfg!(test) { 120 } else { 10 });
pub(crate) const SUFFIX: &str = ".state";

#[derive(Debug, thiserror::Error)]
pub enum SharedError {
    #[error("{path} cannot be {verb}: {cause}")]
    Io {
        path: String,
        verb: &'static str,
        cause: io::Error,
    },
    #[error("{path} cannot be used: {cause}")]
    Bad {
        path: String,
        cause: SharedStateError,
    },
    #[error("{path} is locked by another process")]
    Locked { path: String },
}

/// A file and its content.
pub type SharedEntry = (SharedFile, Result<SharedState, SharedError>);

/// The shared state of one session or project. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SharedFile {
    scope: Scope,
    name: String,
    path: PathBuf,
    lock: PathBuf,
}

impl SharedFile {
    #[must_use]
    pub fn session(state_dir: &Path, name: &SessionName) -> Self {
        let path = state_dir.join("sessions").join(format!("{name}{SUFFIX}"));
        Self::new(Scope::Session, name.to_string(), path)
    }

    fn new(scope: Scope, name: String, path: PathBuf) -> Self {
        let lock = path.with_extension("lock");
        Self {
            scope,
            name,
            path,
            lock,
        }
    }

    /// Returns the file of a host's session, or of a caller. Files with the same lock are changed
    /// together.
    pub(crate) fn of_host(name: String, path: PathBuf, lock: PathBuf) -> Self {
        Self {
            scope: Scope::Session,
            name,
            path,
            lock,
        }
    }

    /// Returns the file of a project. `folder` identifies the project, and need not exist.
    #[must_use]
    pub fn project(state_dir: &Path, folder: &Path) -> Self {
        let name = folder.to_string_lossy().into_owned();
        let digest = Digest::sha256(name.as_bytes()).to_string();
        let short: String = digest.chars().skip("sha256:".len()).take(32).collect();
        let path = state_dir.join("projects").join(format!("{short}{SUFFIX}"));
        Self::new(Scope::Project, name, path)
    }

    /// Returns the files of all sessions and projects in this state directory, including those that
    /// cannot be read.
    pub fn all(state_dir: &Path) -> Result<Vec<SharedEntry>, SharedError> {
        let mut found = Vec::new();
        for (folder, scope) in [("sessions", Scope::Session), ("projects", Scope::Project)] {
            let new = |name, path| Self::new(scope, name, path);
            found.extend(Self::all_in(&state_dir.join(folder), new)?);
        }
        Ok(found)
    }

    /// Returns all files in a folder.
    pub(crate) fn all_in(
        folder: &Path,
        new: impl Fn(String, PathBuf) -> Self,
    ) -> Result<Vec<SharedEntry>, SharedError> {
        let entries = match std::fs::read_dir(folder) {
            Err(error) if is_nothing(&error) => return Ok(Vec::new()),
            other => other.map_err(failed(folder, "read"))?,
        };
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.to_string_lossy().ends_with(SUFFIX))
            .collect();
        paths.sort();
        let entry = |path: PathBuf| {
            let read = read(&path).and_then(|shared| {
                shared.ok_or_else(|| failed(&path, "read")(ErrorKind::NotFound.into()))
            });
            let name = read.as_ref().map_or_else(
                |_| path.to_string_lossy().into_owned(),
                |shared| shared.name.clone(),
            );
            (new(name, path), read)
        };
        Ok(paths.into_iter().map(entry).collect())
    }

    #[must_use]
    pub fn scope(&self) -> Scope {
        self.scope
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads the current state from disk, or returns a new state if there is no file. Files are
    /// replaced as a whole, so reading needs no lock.
    pub fn load(&self) -> Result<SharedState, SharedError> {
        let shared = match read(&self.path)? {
            Some(shared) => shared,
            None => return Ok(SharedState::new(self.scope, self.name.clone())),
        };
        shared
            .is_of(self.scope, &self.name)
            .map_err(|cause| bad(&self.path, cause))?;
        Ok(shared)
    }

    /// Changes the state under the lock. Returns when the change would survive a crash of the
    /// machine. A file that cannot be read is not changed.
    pub fn change<T>(&self, change: impl FnOnce(&mut SharedState) -> T) -> Result<T, SharedError> {
        let folder = self.folder();
        make_private(folder).map_err(failed(folder, "created"))?;
        let _lock = self.lock()?;
        let before = self.load()?;
        let mut shared = before.clone();
        let result = change(&mut shared);
        if shared != before {
            self.replace(&shared)?;
        }
        Ok(result)
    }

    #[cfg(test)]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// Returns the state, or `None` if the file is missing or damaged.
    pub(crate) fn load_intact(&self) -> Result<Option<SharedState>, SharedError> {
        match read(&self.path) {
            Err(SharedError::Bad {
                cause: SharedStateError::Corrupt(_),
                ..
            }) => Ok(None),
            read => Ok(read?.filter(|shared| shared.is_of(self.scope, &self.name).is_ok())),
        }
    }

    /// Takes the lock, which is held until the file is dropped or this process ends.
    pub(crate) fn lock(&self) -> Result<File, SharedError> {
        let path = &self.lock;
        private_file::lock(path, LOCK_WALL).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => SharedError::Locked {
                path: path.display().to_string(),
            },
            _ => failed(path, "locked")(error),
        })
    }

    /// Replaces the file. The caller holds the lock.
    pub(crate) fn replace(&self, shared: &SharedState) -> Result<(), SharedError> {
        let text = shared.to_text().map_err(|cause| bad(&self.path, cause))?;
        private_file::replace(&self.path, text.as_bytes(), true)
            .map_err(failed(&self.path, "written"))
    }
}

/// Returns whether the error means that there is no file. This includes the case that the state
/// directory is not a directory, which the journal reports.
fn is_nothing(error: &io::Error) -> bool {
    [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind())
}

/// Returns `None` if there is no file.
fn read(path: &Path) -> Result<Option<SharedState>, SharedError> {
    let file = match open_to_read(path) {
        Err(error) if is_nothing(&error) => return Ok(None),
        other => other.map_err(failed(path, "read"))?,
    };
    let mut text = Vec::new();
    file.take(u64::from(BYTES_MAX) + 1)
        .read_to_end(&mut text)
        .map_err(failed(path, "read"))?;
    SharedState::parse(&text)
        .map(Some)
        .map_err(|cause| bad(path, cause))
}

fn bad(path: &Path, cause: SharedStateError) -> SharedError {
    SharedError::Bad {
        path: path.display().to_string(),
        cause,
    }
}

pub(crate) fn failed(
    path: &Path,
    verb: &'static str,
) -> impl FnOnce(io::Error) -> SharedError + use<> {
    let path = path.display().to_string();
    move |cause| SharedError::Io { path, verb, cause }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::os::unix::fs::PermissionsExt as _;

    use airlock_core::grant::{Condition, Grant};
    use airlock_core::id::{GrantId, ToolId};
    use airlock_core::labels::Labels;
    use airlock_core::shared_state::GrantUnavailable;

    use super::*;
    use crate::tempdir::TempDir;

    fn grant(uses_max: u32) -> Grant {
        Grant {
            id: GrantId("r.1".into()),
            scope: Scope::Session,
            tool: ToolId::parse("fs.write").unwrap(),
            description: Digest::sha256(b"d"),
            script: None,
            policy: Digest::sha256(b"p"),
            condition: Condition::anything(),
            uses_max: NonZeroU32::new(uses_max).unwrap(),
            uses: 0,
            given_at_ms: 1,
            expires_at_ms: 100,
            labels: Labels::worst(),
            shown: Digest::sha256(b"shown"),
            by: "test".into(),
        }
    }

    fn session(scratch: &TempDir) -> SharedFile {
        SharedFile::session(scratch.path(), &SessionName::parse("work").unwrap())
    }

    #[test]
    fn fifty_concurrent_claims_of_grant_for_twenty_yield_twenty() {
        let scratch = TempDir::new();
        let file = session(&scratch);
        file.change(|shared| shared.keep(grant(20)))
            .unwrap()
            .unwrap();
        let claim = || {
            // Each thread works like a separate process: they have only the file in common.
            let file = session(&scratch);
            let id = GrantId("r.1".into());
            file.change(|shared| shared.claim(&id, 1)).unwrap()
        };
        let claimed: Vec<Result<_, GrantUnavailable>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..50).map(|_| scope.spawn(claim)).collect();
            let joined = threads.into_iter().map(|thread| thread.join().unwrap());
            joined.collect()
        });
        let mut numbers: Vec<u32> = claimed.iter().flatten().map(|used| used.number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
        assert_eq!(file.load().unwrap().grants[0].grant.uses, 20);
    }

    #[test]
    fn tampered_or_torn_state_is_reported_and_unchanged() {
        let scratch = TempDir::new();
        let file = session(&scratch);
        file.change(|shared| shared.keep(grant(2)))
            .unwrap()
            .unwrap();
        let whole = std::fs::read_to_string(&file.path).unwrap();
        let more = whole.replace("\"uses_max\":2", "\"uses_max\":9");
        for text in [&*more, &whole[..whole.len() / 2], "", "{}\n", "\0"] {
            std::fs::write(&file.path, text).unwrap();
            assert!(
                matches!(file.load(), Err(SharedError::Bad { .. })),
                "{text}"
            );
            let claim = file.change(|shared| shared.claim(&GrantId("r.1".into()), 1).is_ok());
            assert!(matches!(claim, Err(SharedError::Bad { .. })), "{text}");
            assert_eq!(std::fs::read_to_string(&file.path).unwrap(), text);
        }
    }

    #[test]
    fn state_is_per_session_and_links_are_not_followed() {
        let scratch = TempDir::new();
        let file = session(&scratch);
        file.change(|shared| shared.keep(grant(2)))
            .unwrap()
            .unwrap();
        let other = SharedFile::session(scratch.path(), &SessionName::parse("other").unwrap());
        std::fs::copy(&file.path, &other.path).unwrap();
        assert!(matches!(other.load(), Err(SharedError::Bad { .. })));
        std::fs::remove_file(&other.path).unwrap();
        std::os::unix::fs::symlink(&file.path, &other.path).unwrap();
        assert!(matches!(other.load(), Err(SharedError::Io { .. })));
    }

    #[test]
    fn state_files_are_private_and_listed() {
        let scratch = TempDir::new();
        let file = session(&scratch);
        file.change(|shared| shared.keep(grant(2)))
            .unwrap()
            .unwrap();
        let mode = std::fs::metadata(&file.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let project = SharedFile::project(scratch.path(), Path::new("/src/a"));
        project.change(|shared| shared.carried.bytes = 7).unwrap();
        std::fs::write(scratch.path().join("sessions/bad.state"), "x").unwrap();
        let all = SharedFile::all(scratch.path()).unwrap();
        let names: Vec<_> = all
            .iter()
            .map(|(file, read)| (file.scope(), file.name().ends_with("a"), read.is_ok()))
            .collect();
        let expected = [
            (Scope::Session, false, false),
            (Scope::Session, false, true),
            (Scope::Project, true, true),
        ];
        assert_eq!(names, expected);
    }
}
