//! Files and folders that belong to one user: the state directory and everything in it. Their modes
//! do not depend on the umask, links are not followed, and a state directory that other users could
//! change is refused. No other module creates files or folders below the state directory.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use airlock_core::problem::Problem;
use rustix::fs::{FlockOperation, OFlags, flock};

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// The mode bits that let other users change a file or the entries of a folder.
const OTHERS_WRITE: u32 = 0o022;
/// The mode bits that give other users any access.
const OTHERS: u32 = 0o077;
/// The first and the longest pause between attempts to take a lock. Most locks are held for some
/// microseconds.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// The folder that contains the state of airlock: journals, keys, sessions and caches.
#[derive(Debug, Clone)]
pub struct StateDir(PathBuf);

/// Why a file or a folder is not private.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum ExposureReason {
    #[error("it is a symbolic link")]
    Link,
    #[error("it belongs to the user id {owner}, and airlock runs with the user id {user}")]
    Foreign { owner: u32, user: u32 },
    #[error("other users can write to it (mode {mode:04o})")]
    Writable { mode: u32 },
}

impl StateDir {
    /// Creates a missing state directory, and refuses one that other users could change. If it
    /// cannot be created, the first file in it reports the error.
    pub fn open(path: PathBuf) -> Result<Self, Problem> {
        let _ = create(&path);
        Self::existing(path)
    }

    /// Refuses a state directory that other users could change, and creates nothing.
    pub fn existing(path: PathBuf) -> Result<Self, Problem> {
        match exposed(&path) {
            Ok(Some(why)) => Err(refused(&path, &why)),
            // A missing or unreadable folder is reported by the first read or write.
            Ok(None) | Err(_) => Ok(Self(path)),
        }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Creates a file in the folder, and removes it.
    pub(crate) fn try_to_write(&self) -> Result<(), Problem> {
        let probe = self.0.join("probe");
        let written = TemporaryFile::create(&probe, b"airlock", true);
        written.map(drop).map_err(|error| {
            Problem::new(
                "state-unsafe",
                format!("cannot write to the state directory {}", self.0.display()),
                error.to_string(),
                "make the folder writable, or choose another one with --state-dir",
            )
        })
    }
}

fn refused(path: &Path, why: &ExposureReason) -> Problem {
    let next = match why {
        ExposureReason::Link => "name the folder that the link points to with --state-dir",
        ExposureReason::Foreign { .. } => "choose a folder of your own with --state-dir",
        ExposureReason::Writable { .. } => {
            "if the folder holds only state of airlock, check its files and run `chmod go-w` on it; \
             otherwise choose another folder with --state-dir"
        }
    };
    Problem::new(
        "state-unsafe",
        format!("the state directory {} is not safe to use", path.display()),
        why.to_string(),
        next,
    )
}

/// Returns why other users could change the folder. Returns `None` for anything that is neither a
/// folder nor a link: the operation that needs a folder reports the error.
fn exposed(folder: &Path) -> io::Result<Option<ExposureReason>> {
    // A slash at the end would give the metadata of the folder that a link points to.
    let meta = std::fs::symlink_metadata(folder.components().as_path())?;
    let (owner, user) = (meta.uid(), rustix::process::geteuid().as_raw());
    let mode = meta.mode() & 0o7777;
    Ok(match meta.file_type() {
        kind if kind.is_symlink() => Some(ExposureReason::Link),
        kind if !kind.is_dir() => None,
        _ if owner != user => Some(ExposureReason::Foreign { owner, user }),
        _ if mode & OTHERS_WRITE != 0 => Some(ExposureReason::Writable { mode }),
        _ => None,
    })
}

/// Creates the folder and its missing parents. No other user may read them. Refuses an existing
/// folder that other users could change.
pub fn make_private(folder: &Path) -> io::Result<()> {
    create(folder)?;
    match exposed(folder)? {
        None => Ok(()),
        Some(why) => Err(io::Error::new(ErrorKind::PermissionDenied, why.to_string())),
    }
}

fn create(folder: &Path) -> io::Result<()> {
    match create_one(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            create(folder.parent().ok_or(error)?)?;
            create_one(folder)
        }
        other => other,
    }
}

fn create_one(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(FOLDER_MODE).create(folder) {
        Ok(()) => std::fs::set_permissions(folder, Permissions::from_mode(FOLDER_MODE)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Opens a file for writing, with a mode that gives other users no access. `options` decides
/// whether the file is created.
pub fn open_to_write(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = open(path, options.mode(FILE_MODE))?;
    if file.metadata()?.mode() & 0o777 != FILE_MODE {
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    }
    Ok(file)
}

/// Opens a file for reading. Links and everything else that is not a regular file are refused.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().read(true))
}

/// Reads a whole file. It must be a regular file and not a link.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_to_read(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Opening a pipe must not wait for its other end.
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = options.custom_flags(flags.bits().cast_signed()).open(path);
    let is_link =
        |error: &io::Error| error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
    let file = match opened {
        Err(error) if is_link(&error) => return Err(invalid("it is a symbolic link")),
        other => other?,
    };
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(invalid("it is not a regular file")),
    }
}

/// Replaces a file as a whole. With `sync`, returns when the new content would survive a crash of
/// the machine.
pub fn replace(path: &Path, bytes: &[u8], sync: bool) -> io::Result<()> {
    let unfinished = TemporaryFile::create(path, bytes, sync)?;
    std::fs::rename(&unfinished.0, path)?;
    sync_folder(path, sync)
}

/// Returns the random bytes in a file. A missing file is created with new bytes. A file that other
/// users may read, or that has another length, is refused.
pub fn read_or_create_secret(path: &Path, len: usize) -> io::Result<Vec<u8>> {
    match read_secret(path, len) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        other => return other,
    }
    make_private(path.parent().unwrap_or(Path::new("/")))?;
    let mut secret = vec![0; len];
    getrandom::fill(&mut secret).map_err(io::Error::other)?;
    let unfinished = TemporaryFile::create(path, &secret, true)?;
    // Unlike a rename, a link never replaces the secret that another process has just created.
    match std::fs::hard_link(&unfinished.0, path) {
        Ok(()) => sync_folder(path, true)?,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    read_secret(path, len)
}

fn read_secret(path: &Path, len: usize) -> io::Result<Vec<u8>> {
    let file = open_to_read(path)?;
    let meta = file.metadata()?;
    let (mode, user) = (meta.mode() & 0o7777, rustix::process::geteuid().as_raw());
    if meta.uid() != user {
        return Err(invalid(&format!(
            "it belongs to the user id {}",
            meta.uid()
        )));
    }
    if mode & OTHERS != 0 {
        return Err(invalid(&format!(
            "it holds a secret, and other users have access to it (mode {mode:04o}); expected 0600"
        )));
    }
    let mut secret = Vec::with_capacity(len + 1);
    file.take(len as u64 + 1).read_to_end(&mut secret)?;
    match secret.len() == len {
        true => Ok(secret),
        false => Err(invalid(&format!("it does not hold exactly {len} bytes"))),
    }
}

/// Takes a lock, which is held until the file is dropped or this process ends. After `wall`, gives
/// up with `ErrorKind::WouldBlock`.
pub fn lock(path: &Path, wall: Duration) -> io::Result<File> {
    let file = open_to_write(path, OpenOptions::new().write(true).create(true))?;
    let since = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(errno) if errno != rustix::io::Errno::WOULDBLOCK => return Err(errno.into()),
            Err(errno) if since.elapsed() > wall => return Err(errno.into()),
            Err(_) => std::thread::sleep(pause),
        }
        pause = LONGEST_PAUSE.min(2 * pause);
    }
}

/// A file under a temporary name. Dropping it removes the file, unless the file was renamed.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn create(path: &Path, bytes: &[u8], sync: bool) -> io::Result<Self> {
        let number = getrandom::u64().map_err(io::Error::other)?;
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number:016x}"));
        let unfinished = Self(name.into());
        let mut options = OpenOptions::new();
        let mut file = open_to_write(&unfinished.0, options.write(true).create_new(true))?;
        file.write_all(bytes)?;
        if sync {
            file.sync_data()?;
        }
        Ok(unfinished)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn sync_folder(path: &Path, sync: bool) -> io::Result<()> {
    match path.parent() {
        Some(folder) if sync => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tempdir::TempDir;

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    fn chmod(path: &Path, mode: u32) {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn state_directory_is_created_private() {
        let scratch = TempDir::new();
        let path = scratch.path().join("a/b");
        StateDir::existing(path.clone()).unwrap();
        assert!(!path.exists());
        StateDir::open(path.clone()).unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o700, 0o700));
    }

    #[test]
    fn exposed_state_directory_is_refused_with_reason_and_next_step() {
        let scratch = TempDir::new();
        let path = scratch.path().join("state");
        std::fs::create_dir(&path).unwrap();
        for (bits, refusal) in [
            (0o777, Some("mode 0777")),
            (0o1777, Some("mode 1777")),
            (0o770, Some("mode 0770")),
            (0o755, None),
            (0o700, None),
        ] {
            chmod(&path, bits);
            let opened = StateDir::open(path.clone());
            assert_eq!(opened.is_ok(), refusal.is_none(), "{bits:o}");
            assert_eq!(make_private(&path).is_ok(), refusal.is_none(), "{bits:o}");
            if let (Err(problem), Some(why)) = (opened, refusal) {
                assert!(problem.why.contains(why), "{problem}");
                assert!(problem.next.contains("chmod go-w"), "{problem}");
                assert_eq!(problem.code, "state-unsafe");
            }
        }
        for name in ["link", "link/", "link/."] {
            let link = scratch.path().join(name);
            let _ = std::os::unix::fs::symlink(&path, scratch.path().join("link"));
            let problem = StateDir::open(link).unwrap_err();
            assert!(problem.why.contains("symbolic link"), "{problem}");
        }
    }

    #[test]
    fn folder_of_another_user_is_refused() {
        let user = rustix::process::geteuid().as_raw();
        let scratch = TempDir::new();
        let path = scratch.path().join("state");
        std::fs::create_dir(&path).unwrap();
        // Only root can give a folder away. For all other users, the root folder belongs to another
        // user.
        let path = match std::os::unix::fs::chown(&path, Some(user + 1), None) {
            Ok(()) => path,
            Err(_) => PathBuf::from("/"),
        };
        let problem = StateDir::open(path).unwrap_err();
        assert!(problem.why.contains("belongs to the user id"), "{problem}");
    }

    #[test]
    fn secret_is_created_once_and_kept() {
        let scratch = TempDir::new();
        let path = scratch.path().join("state/key");
        let secrets: Vec<Vec<u8>> = std::thread::scope(|scope| {
            let read = || read_or_create_secret(&path, 32).unwrap();
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(read)).collect();
            threads.into_iter().map(|it| it.join().unwrap()).collect()
        });
        assert!(secrets.iter().all(|secret| *secret == secrets[0]));
        assert_ne!(secrets[0], [0; 32]);
        assert_eq!(mode(&path), 0o600);
        let folder = path.parent().unwrap();
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1, "left over");
    }

    #[test]
    fn exposed_or_damaged_secret_is_refused() {
        let scratch = TempDir::new();
        let path = scratch.path().join("key");
        let check = |path: &Path, why: &str| {
            let error = read_or_create_secret(path, 32).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        };
        std::fs::write(&path, [7; 32]).unwrap();
        chmod(&path, 0o640);
        check(&path, "mode 0640");
        chmod(&path, 0o600);
        assert_eq!(read_or_create_secret(&path, 32).unwrap(), [7; 32]);
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        check(&link, "symbolic link");
        for length in [0, 31, 33] {
            std::fs::write(&path, vec![7; length]).unwrap();
            check(&path, "exactly 32 bytes");
        }
        check(scratch.path(), "not a regular file");
    }

    #[test]
    fn replaced_file_is_private_and_leaves_nothing_behind() {
        let scratch = TempDir::new();
        let path = scratch.path().join("file");
        std::fs::write(&path, "before").unwrap();
        chmod(&path, 0o644);
        for sync in [true, false] {
            replace(&path, b"after", sync).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"after");
            assert_eq!(mode(&path), 0o600);
        }
        assert!(replace(&scratch.path().join("no/file"), b"", false).is_err());
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1);
    }

    #[test]
    fn lock_excludes_other_holders_and_gives_up() {
        let scratch = TempDir::new();
        let path = scratch.path().join("lock");
        let held = lock(&path, Duration::ZERO).unwrap();
        let second = lock(&path, Duration::ZERO).unwrap_err();
        assert_eq!(second.kind(), ErrorKind::WouldBlock);
        drop(held);
        assert!(lock(&path, Duration::ZERO).is_ok());
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn pipe_is_refused_without_waiting() {
        let scratch = TempDir::new();
        let path = scratch.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let error = open_to_read(&path).unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
    }
}
