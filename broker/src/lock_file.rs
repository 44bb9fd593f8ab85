//! The lock file on disk. The only module that reads or writes it; what is in it
//! and what a change means is [`codegen::lock`]'s.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use airlock_core::json::{self, Bounds};
use airlock_core::problem::Problem;
use codegen::description::Description;
use codegen::lock::{Lock, Server, diff};
use serde_json::{Map, Value};

use crate::config::Secrets;

const BOUNDS: Bounds = Bounds {
    bytes_max: 64 * 1024 * 1024,
    depth_max: 128,
    nodes_max: 4_000_000,
};
const CODE: &str = "lock-invalid";
/// Changes of one tool that a warning names; the others are counted.
const NAMED_MAX: usize = 2;

/// A lock file by its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockFile(PathBuf);

/// Whether what a server says is held against a lock.
#[derive(Debug, Clone, Default)]
pub(crate) enum Pin {
    /// No lock is named, or the tools are the host's own.
    #[default]
    Free,
    /// What the lock has of the server; nothing when it is new or is another one.
    Held(Option<Box<Server>>),
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

    /// `None`: there is no such file.
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
            other => other.map_err(|error| cannot(error.to_string(), "check the path"))?,
        };
        let mut bytes = Vec::new();
        file.take(u64::from(BOUNDS.bytes_max) + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| cannot(error.to_string(), "check the path"))?;
        let next = "restore it, or remove it and write it again with `airlock lock`";
        let value =
            json::parse_strict(&bytes, BOUNDS).map_err(|bad| cannot(bad.to_string(), next))?;
        Lock::read(&value)
            .map(Some)
            .map_err(|bad| cannot(bad.to_string(), next))
    }

    /// The file that a run is to be held against has to be there.
    pub fn read_existing(&self) -> Result<Lock, Problem> {
        self.read()?.ok_or_else(|| {
            let what = format!("the lock file {} is not there", self.0.display());
            let next = "write it with `airlock lock`, and look at what it says";
            Problem::new(CODE, what, "nothing was pinned yet", next)
        })
    }

    /// Whole or not at all. Answers whether anything was different.
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
    /// What `lock` has of a server that is reached at `target`.
    pub(crate) fn of(lock: &Lock, server: &str, target: &str) -> Self {
        let known = lock.servers.get(server).filter(|it| it.target == target);
        Self::Held(known.cloned().map(Box::new))
    }

    /// Whether a tool is what it was when it was accepted; nothing without a lock.
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

/// What a server says of itself, in one line, without credentials. They are struck out before
/// anything is cut, so that no part of one is left.
pub(crate) fn says(said: &Map<String, Value>, secrets: &Secrets) -> Option<String> {
    let part = |key: &str| {
        let mut text = said.get(key)?.as_str()?.to_owned();
        secrets.strike_text(&mut text);
        Some(codegen::text::neutralise(&text))
    };
    let parts: Vec<String> = [part("name"), part("version")]
        .into_iter()
        .flatten()
        .collect();
    (!parts.is_empty()).then(|| codegen::text::clip(&parts.join(" "), 200))
}

/// A server that is not the one in the lock file, or not in it.
pub(crate) fn stranger(lock: &Lock, server: &str, target: &str) -> Option<Problem> {
    let why = match lock.servers.get(server) {
        Some(known) if known.target == target => return None,
        Some(known) => format!(
            "it is reached at `{target}`, and was accepted at `{}`",
            known.target
        ),
        None => "the lock file does not have it".to_owned(),
    };
    let what = format!("all calls of the server `{server}` are refused");
    Some(Problem::new("description-changed", what, why, NEXT))
}

const NEXT: &str = "`airlock lock diff` shows what has changed, `airlock lock` accepts it";

/// A tool of a known server that is not what was accepted.
pub(crate) fn changed(server: &Server, now: &Server, name: &str, tool: &str) -> Problem {
    let alone = |server: &Server| Lock {
        servers: [(
            name.to_owned(),
            Server {
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
    let what = format!("calls of `{name}.{tool}` are refused until it is accepted");
    Problem::new("description-changed", what, parts.join("; "), NEXT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_server_calls_itself_holds_no_part_of_a_credential() {
        let secrets = Secrets::new(["sk-live-0123456789abcdef".to_owned()]);
        // The cut would go through the middle of it.
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
