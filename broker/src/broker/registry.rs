//! The registry of all known tools. It follows the servers as they connect, disconnect and change
//! their tools, and the folder of tool files. The folder is checked before each run and each list.
//! A tool file changes the description of a tool, but never which tools there are or which
//! arguments they accept.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use airlock_core::catalog::Tool;
use airlock_core::decide::DecisionContext;
use airlock_core::id::ServerName;
use airlock_core::problem::Problem;
use codegen::lock::Lock;
use tokio::sync::watch;

use super::BuildError;
use super::latest_listings::{LatestListings, ListedDigests};
use super::lock_check;
use super::server_registry::{ChangeScope, ServerChange, ServerRegistry};
use super::sources::{self, LoadedRules, ToolSources};
use super::tool_checks::CheckRegistry;
use super::tool_snapshot::ToolSnapshot;
use crate::tool_files::{FolderStamp, LoadedToolFiles, ToolFiles};

pub(super) struct ToolRegistry {
    sources: ToolSources,
    files: Option<ToolFiles>,
    /// Changes that have not been applied yet.
    news: Mutex<Vec<ServerChange>>,
    making: Mutex<SnapshotBuilder>,
    says: LatestListings,
    current: RwLock<(FolderStamp, Arc<ToolSnapshot>)>,
    changes: watch::Sender<u64>,
}

/// The state from which the next snapshot is built.
struct SnapshotBuilder {
    server_registry: ServerRegistry,
    checks: CheckRegistry,
    files: LoadedToolFiles,
    ruling: LoadedRules,
    /// Whether the latest change could not be used, so that `ruling` belongs to an older set of
    /// tools.
    is_behind: bool,
}

/// The tool files as they were read at the start.
pub(super) struct OpenedToolFiles {
    pub(super) files: Option<ToolFiles>,
    pub(super) loaded: LoadedToolFiles,
    stamp: FolderStamp,
}

impl OpenedToolFiles {
    /// Reads the tool files. At the start an unusable file is an error, because the user has just
    /// named the folder.
    pub(super) fn open(files: Option<ToolFiles>) -> Result<Self, Problem> {
        let stamp = files.as_ref().map(ToolFiles::stamp).unwrap_or_default();
        let loaded = match &files {
            Some(files) => files.load()?,
            None => LoadedToolFiles::default(),
        };
        let count = loaded.problems.len();
        match loaded.problems.first() {
            Some(first) if count == 1 => Err(first.clone()),
            Some(first) => {
                let why = format!("{} (and {} more)", first.why, count - 1);
                Err(Problem {
                    why,
                    ..first.clone()
                })
            }
            None => Ok(Self {
                files,
                loaded,
                stamp,
            }),
        }
    }
}

impl ToolRegistry {
    /// Builds the first snapshot. Configuration that does not match the known tools is an error,
    /// because it would not match later either. Nothing is checked against servers that have never
    /// been connected. Tools from an earlier connection are forgotten if they do not match.
    pub(super) fn new(
        sources: ToolSources,
        mut server_registry: ServerRegistry,
        opened: OpenedToolFiles,
        mut checks: CheckRegistry,
    ) -> Result<Self, BuildError> {
        let files = opened.loaded;
        let remembered = server_registry.remembered();
        let mut assemble = |server_registry: &ServerRegistry| {
            sources.assemble(server_registry, &files, &mut checks)
        };
        let assembled = assemble(&server_registry).or_else(|error| {
            let forget = |server_registry: &mut ServerRegistry, it: &ServerName, _| {
                drop(server_registry.hold_back(it))
            };
            fitting(&mut server_registry, &remembered, assemble, forget).ok_or(error)
        });
        let (known, ruling) = assembled?;
        Ok(Self {
            sources,
            files: opened.files,
            says: server_registry.says().clone(),
            news: Mutex::default(),
            making: Mutex::new(SnapshotBuilder {
                server_registry,
                checks,
                files,
                ruling,
                is_behind: false,
            }),
            current: RwLock::new((opened.stamp, Arc::new(known))),
            changes: watch::Sender::new(0),
        })
    }

    /// Records the servers whose tools are still unknown, so that later starts do not wait for
    /// them.
    pub(super) fn note_missed(&self) {
        lock(&self.making).server_registry.note_missed();
    }

    /// Returns the current tool descriptions of the servers, in the form of a lock.
    pub(super) fn lock(&self) -> Lock {
        lock_check::lock(lock(&self.making).server_registry.offered())
    }

    /// Returns the digests of the latest list of a server, even if the list could not be used.
    pub(super) fn says(&self, server: &ServerName) -> Option<ListedDigests> {
        self.says.of(server)
    }

    /// Returns a counter that increases with each change of a server or a tool file.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Applies a change, together with all changes that arrived meanwhile. Blocks while it
    /// computes.
    pub(super) fn take(&self, change: ServerChange) {
        lock(&self.news).push(change);
        let mut making = lock(&self.making);
        let news = std::mem::take(&mut *lock(&self.news));
        if news.is_empty() {
            return;
        }
        let mut touches = ChangeScope::Standing;
        let mut servers = Vec::new();
        for change in news {
            servers.push(change.server().clone());
            touches = touches.max(making.server_registry.apply(change));
        }
        let (stamp, before) = self.last();
        if touches < ChangeScope::Tools {
            self.put(stamp, before.with_statuses(&making.server_registry));
            drop(making);
            self.changes.send_modify(|count| *count += 1);
            return;
        }
        let known = self.made(&mut making, &before, &servers);
        self.put(stamp, known);
        drop(making);
        self.changes.send_modify(|count| *count += 1);
    }

    /// Returns the current snapshot, after a check for changed tool files.
    pub(super) fn now(&self) -> Arc<ToolSnapshot> {
        let (stamp, known) = self.last();
        let Some(files) = &self.files else {
            return known;
        };
        let found = files.stamp();
        if found == stamp {
            return known;
        }
        let mut making = lock(&self.making);
        let (stamp, known) = self.last();
        if found == stamp {
            return known;
        }
        let known = self.put(found, self.rebuild(files, &known, &mut making));
        drop(making);
        self.changes.send_modify(|count| *count += 1);
        known
    }

    /// Whether there is a folder of tool files.
    pub(super) fn has_files(&self) -> bool {
        self.files.is_some()
    }

    /// Returns the latest snapshot without checking the tool files.
    pub(super) fn last(&self) -> (FolderStamp, Arc<ToolSnapshot>) {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }

    fn put(&self, stamp: FolderStamp, known: ToolSnapshot) -> Arc<ToolSnapshot> {
        let known = Arc::new(known);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = (stamp, Arc::clone(&known));
        known
    }

    /// Builds everything again. A server whose tools cannot be used is excluded, and the others
    /// stay. If that is not enough, the old snapshot stays, but tools that have changed cannot be
    /// called.
    fn made(
        &self,
        making: &mut SnapshotBuilder,
        before: &ToolSnapshot,
        brought_by: &[ServerName],
    ) -> ToolSnapshot {
        let SnapshotBuilder {
            server_registry,
            checks,
            files,
            ruling,
            is_behind,
        } = making;
        let mut assemble = |server_registry: &ServerRegistry| {
            self.sources.assemble(server_registry, files, checks)
        };
        let assembled = assemble(server_registry).or_else(|error| {
            let refuse =
                |server_registry: &mut ServerRegistry, it: &ServerName, error: BuildError| {
                    server_registry.refuse(it, &error.into_problem());
                };
            fitting(server_registry, brought_by, assemble, refuse).ok_or(error)
        });
        *is_behind = assembled.is_err();
        match assembled {
            Ok((known, ruled)) => {
                *ruling = ruled;
                known
            }
            Err(error) => {
                let mut other_problems = self.sources.locked(server_registry);
                other_problems.push(error.into_problem());
                before.with_stale_listing(other_problems, server_registry)
            }
        }
    }

    /// Reads the tool files again. A folder with a faulty file changes nothing until the fault is
    /// fixed.
    fn rebuild(
        &self,
        files: &ToolFiles,
        before: &ToolSnapshot,
        making: &mut SnapshotBuilder,
    ) -> ToolSnapshot {
        let wrong = match files.load() {
            Ok(loaded) if loaded.problems.is_empty() => {
                making.files = loaded;
                if making.is_behind {
                    return self.made(making, before, &[]);
                }
                let SnapshotBuilder {
                    server_registry,
                    checks,
                    files,
                    ruling,
                    ..
                } = making;
                return self
                    .sources
                    .described(server_registry, files, checks, ruling);
            }
            Ok(loaded) => loaded.problems,
            Err(problem) => vec![problem],
        };
        let kept = |problem: &&Problem| !wrong.contains(problem);
        let other_problems = before.other_problems.iter().filter(kept).chain(&wrong);
        let other_problems: Vec<_> = other_problems.cloned().collect();
        ToolSnapshot {
            problems: sources::problems(&making.server_registry, &other_problems),
            other_problems,
            ..before.same()
        }
    }
}

type AssembledTools = Result<(ToolSnapshot, LoadedRules), BuildError>;

/// Builds a snapshot without the tools of some servers, and then adds these servers one by one.
/// Only the servers that cannot be used are excluded. Returns `None` if even the snapshot without
/// all these servers fails.
fn fitting(
    server_registry: &mut ServerRegistry,
    servers: &[ServerName],
    mut assemble: impl FnMut(&ServerRegistry) -> AssembledTools,
    leave_out: fn(&mut ServerRegistry, &ServerName, BuildError),
) -> Option<(ToolSnapshot, LoadedRules)> {
    let mut held = Vec::new();
    for server in servers {
        held.extend(
            server_registry
                .hold_back(server)
                .map(|offered| (server, offered)),
        );
    }
    let mut made = assemble(server_registry);
    let fits = made.is_ok();
    for (server, offered) in held {
        server_registry.put_back(server, offered);
        if fits {
            made = assemble(server_registry).or_else(|error| {
                leave_out(server_registry, server, error);
                assemble(server_registry)
            });
        }
    }
    made.ok()
}

impl ToolSnapshot {
    /// Returns the snapshot to use when the new tools cannot be used. It keeps the old tools, and
    /// marks those whose descriptions have changed as stale.
    fn with_stale_listing(
        &self,
        other_problems: Vec<Problem>,
        server_registry: &ServerRegistry,
    ) -> Self {
        let digests = server_registry.digests();
        let is_stale = |tool: &Tool| {
            let said = digests.get(&*tool.id.server.0);
            said.is_some_and(|said| said.get(&*tool.id.tool.0) != Some(&tool.upstream_digest))
        };
        let catalog = Arc::new(self.decision_context.catalog.with_stale(is_stale));
        Self {
            decision_context: DecisionContext {
                catalog,
                ..self.decision_context.clone()
            },
            problems: sources::problems(server_registry, &other_problems),
            other_problems,
            absent: sources::absent(server_registry),
            servers: server_registry.statuses(),
            ..self.same()
        }
    }

    /// Returns the same tools with the current states of the servers.
    fn with_statuses(&self, server_registry: &ServerRegistry) -> Self {
        Self {
            problems: sources::problems(server_registry, &self.other_problems),
            absent: sources::absent(server_registry),
            servers: server_registry.statuses(),
            ..self.same()
        }
    }

    fn same(&self) -> Self {
        Self {
            decision_context: self.decision_context.clone(),
            descriptions: Arc::clone(&self.descriptions),
            texts: Arc::clone(&self.texts),
            stubs: Arc::clone(&self.stubs),
            names: Arc::clone(&self.names),
            problems: self.problems.clone(),
            other_problems: self.other_problems.clone(),
            servers: self.servers.clone(),
            groups_and_tags: Arc::clone(&self.groups_and_tags),
            absent: self.absent.clone(),
            by_name: Arc::clone(&self.by_name),
        }
    }
}

/// Locks even after a panic. The state is replaced as a whole, so a panic leaves nothing half
/// changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
