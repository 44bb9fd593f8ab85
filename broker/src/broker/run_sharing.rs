//! The state that the runs of a broker share with other runs: the session, the project, and the
//! grants in both.

use airlock_core::catalog::Catalog;
use airlock_core::flow::SessionFlow;
use airlock_core::grant::{Grant, GrantSpec, Scope, Use};
use airlock_core::id::{GrantId, RunId};
use airlock_core::shared_state::{GrantUnavailable, SharedState, StoredGrant};

use super::BuildError;
use crate::private_file::StateDir;
use crate::shared_file::{SharedError, SharedFile};

/// The time in milliseconds after the start of a run in which its journal may not exist yet.
const STARTING_MS: u64 = 10_000;

#[derive(Debug, Clone, Default)]
pub(crate) struct RunSharing {
    session: Option<SharedFile>,
    project: Option<SharedFile>,
    /// Grants from the configuration that each run gets with all their uses.
    of_each_run: Vec<Grant>,
}

/// The shared state as it was when a run started.
#[derive(Debug, Default)]
pub(crate) struct LoadedSharedState {
    pub(crate) session: Option<SharedState>,
    project: Option<SharedState>,
}

impl RunSharing {
    pub(super) fn new(session: Option<SharedFile>, project: Option<SharedFile>) -> Self {
        Self {
            session,
            project,
            of_each_run: Vec::new(),
        }
    }

    /// Registers a run, and returns the state from which it starts. Earlier runs whose journals are
    /// not written any more count as gone. Grants become void if the descriptions of their tools
    /// have changed.
    pub(super) fn begin(
        &self,
        run: &RunId,
        state: &StateDir,
        catalog: &Catalog,
        now_ms: u64,
    ) -> Result<LoadedSharedState, SharedError> {
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

    /// Records the end of a run. If that cannot be written, the next run treats this one as gone.
    pub(super) fn finish(&self, run: &RunId, carried: &SessionFlow) -> Result<(), SharedError> {
        match &self.session {
            Some(session) => session.change(|shared| shared.finish(run, carried)),
            None => Ok(()),
        }
    }

    pub(super) fn load(&self) -> Result<LoadedSharedState, SharedError> {
        let load = |file: &Option<SharedFile>| file.as_ref().map(SharedFile::load).transpose();
        Ok(LoadedSharedState {
            session: load(&self.session)?,
            project: load(&self.project)?,
        })
    }

    /// Imports grants from a file into their scopes, unless they are known there already.
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

    /// Returns the grants with which a run starts. Grants that have ended are excluded.
    pub(super) fn spec(
        &self,
        loaded: &LoadedSharedState,
        approver: String,
        now_ms: u64,
    ) -> GrantSpec {
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

    /// Ends stored grants whose tools' descriptions have changed. They stay void.
    fn void_changed(
        &self,
        loaded: &LoadedSharedState,
        catalog: &Catalog,
        now_ms: u64,
    ) -> Result<(), SharedError> {
        let states = [&loaded.session, &loaded.project];
        for (file, state) in [&self.session, &self.project].into_iter().zip(states) {
            let (Some(file), Some(state)) = (file, state) else {
                continue;
            };
            let is_changed = |kept: &&StoredGrant| {
                let tool = catalog.find(&kept.grant.tool);
                kept.over(now_ms).is_none()
                    && tool.is_some_and(|tool| tool.description_digest != kept.grant.description)
            };
            let changed = state.grants.iter().filter(is_changed);
            let changed: Vec<GrantId> = changed.map(|kept| kept.grant.id.clone()).collect();
            if changed.is_empty() {
                continue;
            }
            let why = "the description of the grant's tool has changed";
            file.change(|shared| {
                for id in &changed {
                    shared.end(id, why, now_ms);
                }
            })?;
        }
        Ok(())
    }

    pub(super) fn keep(&self, grant: Grant) -> Result<(), String> {
        let file = self
            .of(grant.scope)
            .ok_or("grants of this scope cannot be stored")?;
        let kept = file.change(|shared| shared.keep(grant));
        kept.map_err(|error| error.to_string())?
            .map_err(|no| no.to_string())
    }

    /// Counts one use of a grant. The use is on disk when this returns.
    pub(super) fn claim(&self, grant: &GrantId, now_ms: u64) -> Result<Use, String> {
        let mut last = GrantUnavailable::Unknown;
        for file in [&self.session, &self.project].into_iter().flatten() {
            let claimed = file.change(|shared| shared.claim(grant, now_ms));
            match claimed.map_err(|error| error.to_string())? {
                Ok(used) => return Ok(used),
                Err(GrantUnavailable::Unknown) => {}
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
