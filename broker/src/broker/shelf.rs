//! What is known of all tools: from the servers as they come, go and change, and
//! from the folder of tool files, which is looked at before each run and each
//! list. A tool file changes what is said of a tool, never which tools there are
//! or which arguments they accept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use airlock_core::catalog::Tool;
use airlock_core::decide::Standing;
use airlock_core::id::{ServerName, ToolId};
use airlock_core::problem::Problem;
use airlock_core::search::Document;
use codegen::check::{Absent, EncodedTools, Surface};
use codegen::description::Description;
use codegen::lock::Lock;
use codegen::stub::StubTable;
use tokio::sync::watch;

use super::BuildError;
use super::checks::AllChecks;
use super::locked;
use super::offered::spoken;
use super::roster::{Change, Roster, Touches};
use super::says::{Said, Says};
use super::sources::{self, Ruling, Sources};
use super::status::ServerStatus;
use super::tools::InTexts;
use crate::tool_files::{Loaded, Stamp, ToolFiles};

/// One state of what is known; a run keeps the one that it started with.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) standing: Standing,
    pub(crate) descriptions: Arc<Vec<Description>>,
    /// Of each description what search reads of it, where it has been read already.
    pub(crate) texts: Arc<Vec<Option<InTexts>>>,
    pub(crate) stubs: Arc<StubTable>,
    /// The names in `stubs` for the checker, encoded when a script is first checked.
    pub(super) names: Arc<OnceLock<EncodedTools>>,
    pub(crate) problems: Vec<Problem>,
    /// Those of them that no server is to blame for alone.
    pub(super) besides: Vec<Problem>,
    pub(crate) servers: Vec<ServerStatus>,
    /// Of those whose tools nobody knows, why.
    pub(super) absent: Vec<Absent>,
    /// Places in `descriptions`, by server and by tool.
    pub(super) by_name: Arc<ByName>,
}

pub(super) type ByName = HashMap<String, HashMap<String, usize>>;

impl Known {
    /// What scripts are checked against.
    pub(crate) fn surface(&self) -> Surface<'_> {
        let names = self.names.get_or_init(|| EncodedTools::new(&self.stubs));
        Surface::new(&self.stubs, &self.descriptions)
            .encoded(names)
            .without(&self.absent)
    }

    /// What search reads of a tool.
    pub(crate) fn document(description: &Description) -> Document {
        spoken::document(description)
    }

    /// The same as far as no schema has to be looked into.
    pub(crate) fn without_parameters(description: &Description) -> Document {
        spoken::without_parameters(description)
    }

    pub(crate) fn description(&self, tool: &ToolId) -> Option<&Description> {
        let tools = self.by_name.get(&*tool.server.0)?;
        self.descriptions.get(*tools.get(&*tool.tool.0)?)
    }
}

pub(super) struct Shelf {
    sources: Sources,
    files: Option<ToolFiles>,
    /// What has happened and was not taken in yet.
    news: Mutex<Vec<Change>>,
    making: Mutex<Making>,
    says: Says,
    current: RwLock<(Stamp, Arc<Known>)>,
    changes: watch::Sender<u64>,
}

/// What the next state is made from.
struct Making {
    roster: Roster,
    checks: AllChecks,
    files: Loaded,
    ruling: Ruling,
    /// What there is now could not be taken in: the ruling was made for other tools.
    is_behind: bool,
}

/// What the files said at the start.
pub(super) struct Opened {
    pub(super) files: Option<ToolFiles>,
    pub(super) loaded: Loaded,
    stamp: Stamp,
}

impl Opened {
    /// At the start a file that cannot be used is an error: somebody named the folder just now.
    pub(super) fn open(files: Option<ToolFiles>) -> Result<Self, Problem> {
        let stamp = files.as_ref().map(ToolFiles::stamp).unwrap_or_default();
        let loaded = match &files {
            Some(files) => files.load()?,
            None => Loaded::default(),
        };
        let count = loaded.problems.len();
        match loaded.problems.first() {
            Some(first) if count == 1 => Err(first.clone()),
            Some(first) => {
                let why = format!("{} (and {} more like it)", first.why, count - 1);
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

impl Shelf {
    /// What does not fit together now will not do so later: of servers that nobody has seen yet
    /// nothing is held against anything. What they listed long ago is forgotten when it does
    /// not fit.
    pub(super) fn new(
        sources: Sources,
        mut roster: Roster,
        opened: Opened,
        mut checks: AllChecks,
    ) -> Result<Self, BuildError> {
        let files = opened.loaded;
        let remembered = roster.remembered();
        let mut assemble = |roster: &Roster| sources.assemble(roster, &files, &mut checks);
        let assembled = assemble(&roster).or_else(|error| {
            let forget = |roster: &mut Roster, it: &ServerName, _| drop(roster.hold_back(it));
            fitting(&mut roster, &remembered, assemble, forget).ok_or(error)
        });
        let (known, ruling) = assembled?;
        Ok(Self {
            sources,
            files: opened.files,
            says: roster.says().clone(),
            news: Mutex::default(),
            making: Mutex::new(Making {
                roster,
                checks,
                files,
                ruling,
                is_behind: false,
            }),
            current: RwLock::new((opened.stamp, Arc::new(known))),
            changes: watch::Sender::new(0),
        })
    }

    /// The servers whose tools nobody knows by now are not waited for at later starts.
    pub(super) fn note_missed(&self) {
        lock(&self.making).roster.note_missed();
    }

    /// What the servers say now, in the form of a lock.
    pub(super) fn lock(&self) -> Lock {
        locked::lock(lock(&self.making).roster.offered())
    }

    /// What a server says of its tools, be it taken in or not.
    pub(super) fn says(&self, server: &ServerName) -> Option<Said> {
        self.says.of(server)
    }

    /// Counts how often something has changed because of a server or a tool file.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Takes in what has happened; what happens meanwhile is taken in together. It computes.
    pub(super) fn take(&self, change: Change) {
        lock(&self.news).push(change);
        let mut making = lock(&self.making);
        let news = std::mem::take(&mut *lock(&self.news));
        if news.is_empty() {
            return;
        }
        let mut touches = Touches::Standing;
        let mut servers = Vec::new();
        for change in news {
            servers.push(change.server().clone());
            touches = touches.max(making.roster.apply(change));
        }
        let (stamp, before) = self.last();
        if touches < Touches::Tools {
            self.put(stamp, before.standing_otherwise(&making.roster));
            drop(making);
            self.changes.send_modify(|count| *count += 1);
            return;
        }
        let known = self.made(&mut making, &before, &servers);
        self.put(stamp, known);
        drop(making);
        self.changes.send_modify(|count| *count += 1);
    }

    /// What is known now.
    pub(super) fn now(&self) -> Arc<Known> {
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
        let known = self.put(found, self.anew(files, &known, &mut making));
        drop(making);
        self.changes.send_modify(|count| *count += 1);
        known
    }

    /// What was known when somebody last looked.
    pub(super) fn last(&self) -> (Stamp, Arc<Known>) {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }

    fn put(&self, stamp: Stamp, known: Known) -> Arc<Known> {
        let known = Arc::new(known);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = (stamp, Arc::clone(&known));
        known
    }

    /// Everything anew. Whoever brought what does not fit is left out, and the others stay; when
    /// that is not enough, nothing changes, except that tools which are others by now cannot be
    /// called.
    fn made(&self, making: &mut Making, before: &Known, brought_by: &[ServerName]) -> Known {
        let Making {
            roster,
            checks,
            files,
            ruling,
            is_behind,
        } = making;
        let mut assemble = |roster: &Roster| self.sources.assemble(roster, files, checks);
        let assembled = assemble(roster).or_else(|error| {
            let refuse = |roster: &mut Roster, it: &ServerName, error: BuildError| {
                roster.refuse(it, &error.into_problem());
            };
            fitting(roster, brought_by, assemble, refuse).ok_or(error)
        });
        *is_behind = assembled.is_err();
        match assembled {
            Ok((known, ruled)) => {
                *ruling = ruled;
                known
            }
            Err(error) => {
                let mut besides = self.sources.locked(roster);
                besides.push(error.into_problem());
                before.in_spite_of(besides, roster)
            }
        }
    }

    /// A folder in which something is wrong changes nothing until it is put right.
    fn anew(&self, files: &ToolFiles, before: &Known, making: &mut Making) -> Known {
        let wrong = match files.load() {
            Ok(loaded) if loaded.problems.is_empty() => {
                making.files = loaded;
                if making.is_behind {
                    return self.made(making, before, &[]);
                }
                let Making {
                    roster,
                    checks,
                    files,
                    ruling,
                    ..
                } = making;
                return self.sources.described(roster, files, checks, ruling);
            }
            Ok(loaded) => loaded.problems,
            Err(problem) => vec![problem],
        };
        let kept = |problem: &&Problem| !wrong.contains(problem);
        let besides = before.besides.iter().filter(kept).chain(&wrong);
        let besides: Vec<_> = besides.cloned().collect();
        Known {
            problems: sources::problems(&making.roster, &besides),
            besides,
            ..before.same()
        }
    }
}

type Assembled = Result<(Known, Ruling), BuildError>;

/// Without what some servers offer, and then with it, one after the other: whatever does not fit
/// is left out for itself. None when it does not even fit without all of them.
fn fitting(
    roster: &mut Roster,
    servers: &[ServerName],
    mut assemble: impl FnMut(&Roster) -> Assembled,
    leave_out: fn(&mut Roster, &ServerName, BuildError),
) -> Option<(Known, Ruling)> {
    let mut held = Vec::new();
    for server in servers {
        held.extend(roster.hold_back(server).map(|offered| (server, offered)));
    }
    let mut made = assemble(roster);
    let fits = made.is_ok();
    for (server, offered) in held {
        roster.put_back(server, offered);
        if fits {
            made = assemble(roster).or_else(|error| {
                leave_out(roster, server, error);
                assemble(roster)
            });
        }
    }
    made.ok()
}

impl Known {
    /// What is new cannot be used: the tools are those that there were, without those of which
    /// their servers say something else.
    fn in_spite_of(&self, besides: Vec<Problem>, roster: &Roster) -> Self {
        let digests = roster.digests();
        let is_stale = |tool: &Tool| {
            let said = digests.get(&*tool.id.server.0);
            said.is_some_and(|said| said.get(&*tool.id.tool.0) != Some(&tool.upstream_digest))
        };
        let catalog = Arc::new(self.standing.catalog.with_stale(is_stale));
        Self {
            standing: Standing {
                catalog,
                ..self.standing.clone()
            },
            problems: sources::problems(roster, &besides),
            besides,
            absent: sources::absent(roster),
            servers: roster.statuses(),
            ..self.same()
        }
    }

    /// The servers have come or gone, and the tools are the same.
    fn standing_otherwise(&self, roster: &Roster) -> Self {
        Self {
            problems: sources::problems(roster, &self.besides),
            absent: sources::absent(roster),
            servers: roster.statuses(),
            ..self.same()
        }
    }

    fn same(&self) -> Self {
        Self {
            standing: self.standing.clone(),
            descriptions: Arc::clone(&self.descriptions),
            texts: Arc::clone(&self.texts),
            stubs: Arc::clone(&self.stubs),
            names: Arc::clone(&self.names),
            problems: self.problems.clone(),
            besides: self.besides.clone(),
            servers: self.servers.clone(),
            absent: self.absent.clone(),
            by_name: Arc::clone(&self.by_name),
        }
    }
}

/// What is being made is replaced whole, so that a panic leaves nothing half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
