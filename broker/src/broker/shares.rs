//! What the runs of a broker share with other runs: the state of a session and
//! of a project, and the grants in them.

use airlock_core::catalog::Catalog;
use airlock_core::flow::Carried;
use airlock_core::grant::{Grant, GrantSpec, Scope, Use};
use airlock_core::id::{GrantId, RunId};
use airlock_core::shared::{Kept, NoUse, Shared};

use super::BuildError;
use crate::journal_file::StateDir;
use crate::shared_file::{SharedError, SharedFile};

/// A run that began so recently may not have its journal yet.
const STARTING_MS: u64 = 10_000;

#[derive(Debug, Clone, Default)]
pub(crate) struct Shares {
    session: Option<SharedFile>,
    project: Option<SharedFile>,
    /// Given beforehand, for each run anew.
    of_each_run: Vec<Grant>,
}

/// The state as it was when a run started.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) session: Option<Shared>,
    project: Option<Shared>,
}

impl Shares {
    pub(super) fn new(session: Option<SharedFile>, project: Option<SharedFile>) -> Self {
        Self {
            session,
            project,
            of_each_run: Vec::new(),
        }
    }

    /// A run begins: what it starts from, with all that is over by now left out. Runs that began
    /// and whose journals nobody writes any more are gone.
    pub(super) fn begin(
        &self,
        run: &RunId,
        state: &StateDir,
        catalog: &Catalog,
        now_ms: u64,
    ) -> Result<Loaded, SharedError> {
        let is_gone = |run: &RunId, since_ms: u64| {
            !state.is_running(run) && since_ms.saturating_add(STARTING_MS) < now_ms
        };
        if let Some(session) = &self.session {
            session.change(|shared| shared.begin(run.clone(), now_ms, is_gone))?;
        }
        let loaded = self.load()?;
        self.void_changed(&loaded, catalog, now_ms)?;
        Ok(loaded)
    }

    /// A run has ended. Where that cannot be written, the next one finds it gone.
    pub(super) fn finish(&self, run: &RunId, carried: &Carried) -> Result<(), SharedError> {
        match &self.session {
            Some(session) => session.change(|shared| shared.finish(run, carried)),
            None => Ok(()),
        }
    }

    pub(super) fn load(&self) -> Result<Loaded, SharedError> {
        let load = |file: &Option<SharedFile>| file.as_ref().map(SharedFile::load).transpose();
        Ok(Loaded {
            session: load(&self.session)?,
            project: load(&self.project)?,
        })
    }

    /// Grants from a file: kept where their scope is, unless they are known there already.
    pub(super) fn import(mut self, grants: Vec<Grant>) -> Result<Self, BuildError> {
        for grant in grants {
            if grant.scope == Scope::Run {
                self.of_each_run.push(grant);
                continue;
            }
            let (id, scope) = (grant.id.clone(), grant.scope);
            let Some(file) = self.of(scope) else {
                return Err(BuildError::NoScope { grant: id, scope });
            };
            let kept = file.change(|shared| shared.keep(grant))?;
            kept.map_err(|cause| BuildError::Unkept { grant: id, cause })?;
        }
        Ok(self)
    }

    /// What a run starts with. A grant that is over stays out.
    pub(super) fn spec(&self, loaded: &Loaded, approver: String, now_ms: u64) -> GrantSpec {
        let kept = loaded.session.iter().chain(&loaded.project);
        let open = kept
            .flat_map(|shared| &shared.grants)
            .filter(|kept| kept.over(now_ms).is_none())
            .map(|kept| kept.grant.clone());
        let scopes = [&self.session, &self.project].into_iter().flatten();
        GrantSpec {
            approver,
            scopes: scopes.map(SharedFile::scope).collect(),
            grants: self.of_each_run.iter().cloned().chain(open).collect(),
        }
    }

    /// A kept grant whose tool is described otherwise now is void for good.
    fn void_changed(
        &self,
        loaded: &Loaded,
        catalog: &Catalog,
        now_ms: u64,
    ) -> Result<(), SharedError> {
        let states = [&loaded.session, &loaded.project];
        for (file, state) in [&self.session, &self.project].into_iter().zip(states) {
            let (Some(file), Some(state)) = (file, state) else {
                continue;
            };
            let is_changed = |kept: &&Kept| {
                let tool = catalog.find(&kept.grant.tool);
                kept.over(now_ms).is_none()
                    && tool.is_some_and(|tool| tool.description_digest != kept.grant.description)
            };
            let changed = state.grants.iter().filter(is_changed);
            let changed: Vec<GrantId> = changed.map(|kept| kept.grant.id.clone()).collect();
            if changed.is_empty() {
                continue;
            }
            let why = "the description of its tool has changed";
            file.change(|shared| {
                for id in &changed {
                    shared.end(id, why, now_ms);
                }
            })?;
        }
        Ok(())
    }

    pub(super) fn keep(&self, grant: Grant) -> Result<(), String> {
        let file = self.of(grant.scope).ok_or("nothing keeps it")?;
        let kept = file.change(|shared| shared.keep(grant));
        kept.map_err(|error| error.to_string())?
            .map_err(|no| no.to_string())
    }

    /// One use, on disk when this returns.
    pub(super) fn claim(&self, grant: &GrantId, now_ms: u64) -> Result<Use, String> {
        let mut last = NoUse::Unknown;
        for file in [&self.session, &self.project].into_iter().flatten() {
            let claimed = file.change(|shared| shared.claim(grant, now_ms));
            match claimed.map_err(|error| error.to_string())? {
                Ok(used) => return Ok(used),
                Err(NoUse::Unknown) => {}
                Err(no) => last = no,
            }
        }
        Err(last.to_string())
    }

    fn of(&self, scope: Scope) -> Option<&SharedFile> {
        match scope {
            Scope::Run => None,
            Scope::Session => self.session.as_ref(),
            Scope::Project => self.project.as_ref(),
        }
    }
}
