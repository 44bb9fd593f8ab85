//! What is known of all tools. Where a folder of tool files is named, it is
//! looked at before each run and each list, and read anew when it has changed.
//! That changes what is said of a tool, never which tools there are or which
//! arguments they accept.

use std::sync::{Arc, PoisonError, RwLock};

use airlock_core::decide::Standing;
use airlock_core::flow::Sayings;
use airlock_core::problem::Problem;
use codegen::check::Surface;
use codegen::description::Description;
use codegen::stub::StubTable;

use super::tools::{Offered, Tools};
use crate::config::UnknownKeys;
use crate::tool_files::{Loaded, Stamp, ToolFiles};

/// One state of what is known; a run keeps the one that it started with.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) standing: Standing,
    pub(crate) descriptions: Arc<Vec<Description>>,
    pub(crate) stubs: Arc<StubTable>,
    pub(crate) problems: Vec<Problem>,
}

impl Known {
    /// What scripts are checked against.
    pub(crate) fn surface(&self) -> Surface<'_> {
        Surface::new(&self.stubs, &self.descriptions)
    }
}

pub(super) struct Shelf {
    sources: Sources,
    files: Option<ToolFiles>,
    /// Problems that have nothing to do with the files.
    lasting: Vec<Problem>,
    current: RwLock<(Stamp, Arc<Known>)>,
}

/// What the tools are made of besides the files. It stays what it was at the start.
pub(super) struct Sources {
    pub(super) offered: Vec<Offered>,
    pub(super) sayings: Arc<Sayings>,
    pub(super) unknown_keys: UnknownKeys,
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
    pub(super) fn new(
        sources: Sources,
        opened: Opened,
        tools: Tools,
        standing: Standing,
        lasting: Vec<Problem>,
    ) -> Self {
        let known = known(tools, standing, &lasting);
        Self {
            sources,
            files: opened.files,
            lasting,
            current: RwLock::new((opened.stamp, Arc::new(known))),
        }
    }

    pub(super) fn offered(&self) -> &[Offered] {
        &self.sources.offered
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
        let known = Arc::new(self.anew(files, &known));
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = (found, Arc::clone(&known));
        known
    }

    /// What was known when somebody last looked.
    pub(super) fn last(&self) -> (Stamp, Arc<Known>) {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }

    /// A folder in which something is wrong changes nothing until it is put right.
    fn anew(&self, files: &ToolFiles, before: &Known) -> Known {
        let wrong = match files.load() {
            Ok(loaded) if loaded.problems.is_empty() => {
                let from = &self.sources;
                let tools = Tools::of(&from.offered, &loaded, &from.sayings, from.unknown_keys);
                return known(tools, before.standing.clone(), &self.lasting);
            }
            Ok(loaded) => loaded.problems,
            Err(problem) => vec![problem],
        };
        let kept = |problem: &&Problem| !wrong.contains(problem);
        Known {
            standing: before.standing.clone(),
            descriptions: Arc::clone(&before.descriptions),
            stubs: Arc::clone(&before.stubs),
            problems: before
                .problems
                .iter()
                .filter(kept)
                .chain(&wrong)
                .cloned()
                .collect(),
        }
    }
}

fn known(tools: Tools, standing: Standing, lasting: &[Problem]) -> Known {
    let mut problems = lasting.to_vec();
    problems.extend(tools.problems);
    Known {
        standing: Standing {
            catalog: Arc::new(tools.catalog),
            ..standing
        },
        descriptions: Arc::new(tools.descriptions),
        stubs: Arc::new(tools.stubs),
        problems,
    }
}
