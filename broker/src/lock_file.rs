//! Reads and writes the lock file. No other module reads or writes it. [`codegen::lock`] defines
//! the content of the file and the meaning of a change.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use airlock_core::json::{self, Bounds};
use airlock_core::problem::Problem;
use codegen::description::Description;
use codegen::lock::{Lock, LockedServer, diff};
use serde_json::{Map, Value};

use crate::config::choice;
use crate::secrets::Secrets;

const BOUNDS: Bounds = Bounds {
    bytes_max: 64 * 1024 * 1024,
    depth_max: 128,
    nodes_max: 4_000_000,
};
const CODE: &str = "lock-invalid";
/// Maximum number of changes per tool that a warning names. Further changes are only counted.
const NAMED_MAX: usize = 2;

/// The path of a lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockFile(PathBuf);

/// The lock file's entry for a server, if the tools are compared with a lock file.
#[derive(Debug, Clone, Default)]
pub(crate) enum Pin {
    /// The tools are not compared, because no lock file is configured or the tools are in-process.
    #[default]
    Free,
    /// The entry of the server. `None` if the server is missing there or has another target.
    Held(Option<Box<LockedServer>>),
}

impl LockFile {
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads the file. Returns `None` if it does not exist.
    pub fn read(&self) -> Result<Option<Lock>, Problem> {
        let cannot = |why: String, next: &str| {
            Problem::new(
                CODE,
                format!("{} cannot be used", self.0.display()),
                why,
                next,
            )
        };
        let file = match fs::File::open(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => {
                other.map_err(|error| cannot(error.to_string(), &choice::path(&self.0, &error)))?
            }
        };
        let mut bytes = Vec::new();
        file.take(u64::from(BOUNDS.bytes_max) + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| cannot(error.to_string(), &choice::path(&self.0, &error)))?;
        let next = "restore the file from version control; a new file from `airlock lock` accepts every \
                    description as it is now, so compare the two before you use it";
        let value =
            json::parse_strict(&bytes, BOUNDS).map_err(|bad| cannot(bad.to_string(), next))?;
        Lock::read(&value)
            .map(Some)
            .map_err(|bad| cannot(bad.to_string(), next))
    }

    /// Reads a file that must exist because a run is compared with it.
    pub fn read_existing(&self) -> Result<Lock, Problem> {
        self.read()?.ok_or_else(|| {
            let what = format!("the lock file {} does not exist", self.0.display());
            let next =
                "run `airlock lock` with the same server flags, and review the file that it writes";
            Problem::new(CODE, what, "no tool descriptions were accepted yet", next)
        })
    }

    /// Writes the file atomically. Returns whether anything has changed.
    pub fn write(&self, lock: &Lock) -> Result<bool, Problem> {
        let text = lock.text();
        if fs::read_to_string(&self.0).is_ok_and(|before| before == text) {
            return Ok(false);
        }
        let mut beside = self.0.clone().into_os_string();
        beside.push(format!(".{}.new", std::process::id()));
        let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, &self.0));
        written.map(|()| true).map_err(|error| {
            let _ = fs::remove_file(&beside);
            let what = format!("{} cannot be written", self.0.display());
            Problem::new(
                CODE,
                what,
                error.to_string(),
                "check the folder and its owner",
            )
        })
    }
}

impl Pin {
    /// Returns the entry of a server with this target: a command line or a URL.
    pub(crate) fn from_lock(lock: &Lock, server: &str, target: &str) -> Self {
        let known = lock.servers.get(server).filter(|it| it.target == target);
        Self::Held(known.cloned().map(Box::new))
    }

    /// Returns whether a tool is unchanged since it was accepted, or `None` without a lock file.
    pub(crate) fn holds(&self, tool: &Description) -> Option<bool> {
        match self {
            Self::Free => None,
            Self::Held(server) => {
                let locked = server.as_ref().and_then(|it| it.tools.get(&tool.name));
                Some(locked.is_some_and(|it| it.digest == tool.upstream))
            }
        }
    }
}

/// Returns a server's own name and version in one line, without credentials. They are masked before
/// the text is cut, so that no part of a credential remains.
pub(crate) fn says(said: &Map<String, Value>, secrets: &Secrets) -> Option<String> {
    let part = |key: &str| {
        let mut text = said.get(key)?.as_str()?.to_owned();
        secrets.redact_text(&mut text);
        Some(codegen::text::neutralise(&text))
    };
    let parts: Vec<String> = [part("name"), part("version")]
        .into_iter()
        .flatten()
        .collect();
    (!parts.is_empty()).then(|| codegen::text::clip(&parts.join(" "), 200))
}

/// Returns a problem if the server is not in the lock file, or has another target there.
pub(crate) fn stranger(lock: &Lock, server: &str, target: &str) -> Option<Problem> {
    let why = match lock.servers.get(server) {
        Some(known) if known.target == target => return None,
        Some(known) => format!(
            "the server's target is `{target}`, but the lock file was written for `{}`",
            known.target
        ),
        None => "the lock file does not contain the server".to_owned(),
    };
    let what = format!("all calls to the server `{server}` are refused");
    Some(Problem::new("description-changed", what, why, NEXT))
}

const NEXT: &str = "`airlock lock diff` shows the changes, `airlock lock` accepts them";

/// Returns the problem of a tool that differs from what was accepted.
pub(crate) fn changed(
    server: &LockedServer,
    now: &LockedServer,
    name: &str,
    tool: &str,
) -> Problem {
    let alone = |server: &LockedServer| Lock {
        servers: [(
            name.to_owned(),
            LockedServer {
                tools: server
                    .tools
                    .iter()
                    .filter(|(it, _)| *it == tool)
                    .map(|(it, locked)| (it.clone(), locked.clone()))
                    .collect(),
                says: None,
                target: String::new(),
            },
        )]
        .into(),
        ..Lock::default()
    };
    let changes = diff(&alone(server), &alone(now));
    let mut parts: Vec<String> = changes
        .iter()
        .take(NAMED_MAX)
        .map(|change| match &change.path {
            Some(path) => format!("{path} {}", change.text),
            None => change.text.clone(),
        })
        .collect();
    if changes.len() > NAMED_MAX {
        parts.push(format!("{} more", changes.len() - NAMED_MAX));
    }
    let what = format!("calls of `{name}.{tool}` are refused until its changes are accepted");
    Problem::new("description-changed", what, parts.join("; "), NEXT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn server_display_name_is_redacted_of_credentials() {
        let secrets = Secrets::new(["sk-live-0123456789abcdef".to_owned()]);
        // The cut would go through the middle of the credential.
        let name = format!("{} sk-live-0123456789abcdef", "acme ".repeat(38));
        let info = json!({"name": name, "version": "of sk-live-0123456789abcdef"});
        let said = says(info.as_object().unwrap(), &secrets).unwrap();
        assert!(
            said.starts_with("acme acme ") && !said.contains("sk-"),
            "{said}"
        );
        assert_eq!(says(&Map::new(), &secrets), None);
    }
}
