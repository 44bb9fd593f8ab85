//! The state that the runs of a broker share with other runs: the session, the project, and the
//! grants in both.

use airlock_core::catalog::Catalog;
use airlock_core::flow::SessionFlow;
use airlock_core::grant::{Grant, GrantSpec, Scope, Use};
use airlock_core::id::{Digest, GrantId, RunId};
use airlock_core::shared_state::{GrantUnavailable, SharedState, StoredGrant};

use super::BuildError;
use crate::host_record::HostRecord;
use crate::private_file::StateDir;
use crate::shared_file::{SharedError, SharedFile};

#[derive(Debug, Clone, Default)]
pub(crate) struct RunSharing {
    session: Option<SharedFile>,
    /// The record of the host's session, which replaces `session`.
    host: Option<HostRecord>,
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
            host: None,
            project,
            of_each_run: Vec::new(),
        }
    }

    /// Returns the state for runs of a host's session.
    pub(super) fn in_host_session(&self, host: Option<HostRecord>) -> Self {
        let session = host.as_ref().map(|it| it.session().clone());
        Self {
            session: session.or_else(|| self.session.clone()),
            host,
            ..self.clone()
        }
    }

    /// Registers a run, and returns the state from which it starts. Earlier runs whose journals are
    /// not written any more count as gone. Grants become void if the descriptions of their tools
    /// have changed. A run of a host that is not tracked may read anything.
    pub(super) fn begin(
        &self,
        run: &RunId,
        state: &StateDir,
        (catalog, is_tracked): (&Catalog, bool),
        now_ms: u64,
    ) -> Result<LoadedSharedState, SharedError> {
        let is_gone = |run: &RunId| !state.is_running(run);
        let session = match (&self.host, &self.session) {
            (Some(host), _) if is_tracked => Some(host.begin_run(run, now_ms)?),
            (Some(host), _) => Some(host.assume_worst(now_ms)?),
            (None, Some(session)) => Some(session.change(|shared| {
                shared.begin(run.clone(), now_ms, is_gone);
                shared.clone()
            })?),
            (None, None) => None,
        };
        let loaded = LoadedSharedState {
            session,
            project: self.project.as_ref().map(SharedFile::load).transpose()?,
        };
        self.void_changed(&loaded, catalog, now_ms)?;
        Ok(loaded)
    }

    /// Records the end of a run. If that cannot be written, the next run treats this one as gone.
    pub(super) fn finish(
        &self,
        run: &RunId,
        carried: &SessionFlow,
        now_ms: u64,
    ) -> Result<(), SharedError> {
        match (&self.host, &self.session) {
            (Some(host), _) => host.end_run(run, carried, now_ms),
            (None, Some(session)) => session.change(|shared| shared.finish(run, carried)),
            (None, None) => Ok(()),
        }
    }

    /// Returns who starts a run, for its journal: the caller, and the project as a digest.
    pub(super) fn origin(&self, caller: &str) -> String {
        let caller = match &self.host {
            Some(host) => host.id().caller.to_string(),
            None if caller.is_empty() => "local".to_owned(),
            None => caller.to_owned(),
        };
        let project = self.project.as_ref().map_or("", SharedFile::name);
        let project = Digest::sha256(project.as_bytes()).to_string();
        let project: String = project.chars().skip("sha256:".len()).take(24).collect();
        format!("{caller}@{project}")
    }

    /// Returns the name of the session, as `airlock sessions list` shows it.
    pub(super) fn session_name(&self) -> Option<String> {
        let own = || self.session.as_ref().map(|it| it.name().to_owned());
        self.host
            .as_ref()
            .map(|it| it.id().to_string())
            .or_else(own)
    }

    pub(super) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    pub(super) fn is_of_host(&self) -> bool {
        self.host.is_some()
    }

    /// Checks that the files can be read.
    pub(super) fn check(&self) -> Result<(), SharedError> {
        let mut files = [&self.session, &self.project].into_iter().flatten();
        files.try_for_each(|file| file.load().map(drop))
    }

    /// Imports grants from a file into their scopes. Grants that are already stored there stay
    /// unchanged.
    pub(super) fn import(mut self, grants: Vec<Grant>) -> Result<Self, BuildError> {
        for grant in grants {
            if grant.scope == Scope::Run {
                self.of_each_run.push(grant);
                continue;
            }
            let (id, scope) = (grant.id.clone(), grant.scope);
            let Some(store) = self.of(scope) else {
                return Err(BuildError::NoScope { grant: id, scope });
            };
            let kept = store.change(|shared| shared.keep(grant))?;
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
        for (scope, state) in [Scope::Session, Scope::Project].into_iter().zip(states) {
            let (Some(store), Some(state)) = (self.of(scope), state) else {
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
            store.change(|shared| {
                for id in &changed {
                    shared.end(id, why, now_ms);
                }
            })?;
        }
        Ok(())
    }

    pub(super) fn keep(&self, grant: Grant) -> Result<(), String> {
        let store = self
            .of(grant.scope)
            .ok_or("grants of this scope cannot be stored")?;
        let kept = store.change(|shared| shared.keep(grant));
        kept.map_err(|error| error.to_string())?
            .map_err(|no| no.to_string())
    }

    /// Counts one use of a grant. The use is on disk when this returns.
    pub(super) fn claim(&self, grant: &GrantId, now_ms: u64) -> Result<Use, String> {
        let mut last = GrantUnavailable::Unknown;
        let scopes = [Scope::Session, Scope::Project].into_iter();
        for store in scopes.filter_map(|scope| self.of(scope)) {
            let claimed = store.change(|shared| shared.claim(grant, now_ms));
            match claimed.map_err(|error| error.to_string())? {
                Ok(used) => return Ok(used),
                Err(GrantUnavailable::Unknown) => {}
                Err(no) => last = no,
            }
        }
        Err(last.to_string())
    }

    fn of(&self, scope: Scope) -> Option<GrantStore<'_>> {
        match (scope, &self.host) {
            (Scope::Run, _) => None,
            (Scope::Session, Some(host)) => Some(GrantStore::Host(host)),
            (Scope::Session, None) => self.session.as_ref().map(GrantStore::File),
            (Scope::Project, _) => self.project.as_ref().map(GrantStore::File),
        }
    }
}

/// Where the grants of a scope are stored.
enum GrantStore<'a> {
    File(&'a SharedFile),
    Host(&'a HostRecord),
}

impl GrantStore<'_> {
    fn change<T>(&self, change: impl FnOnce(&mut SharedState) -> T) -> Result<T, SharedError> {
        match self {
            Self::File(file) => file.change(change),
            Self::Host(host) => host.change_session(change),
        }
    }
}
