//! Loads the engine. By default, the builder waits for it. A caller that needs the list of tools
//! sooner gets the broker before the engine is loaded.

use tokio::task::{JoinHandle, spawn_blocking};

use super::{Broker, BuildError};
use airlock_sandbox::{Checker, JsEngine, Sandbox, SandboxError};

pub(super) enum EngineLoad {
    /// Loads on its own thread, while the builder waits for servers.
    Loading(JoinHandle<Result<Sandbox, SandboxError>>),
    Deferred(JsEngine),
}

impl EngineLoad {
    pub(super) fn new(engine: JsEngine, later: bool) -> Self {
        match later {
            true => Self::Deferred(engine),
            false => Self::Loading(spawn_blocking(move || {
                Checker::embedded()?.load()?;
                Sandbox::load_embedded(engine)
            })),
        }
    }

    pub(super) async fn sandbox(self) -> Result<Sandbox, BuildError> {
        match self {
            Self::Loading(loading) => Ok(loading.await.map_err(|_| BuildError::Interrupted)??),
            Self::Deferred(engine) => Ok(Sandbox::embedded(engine)?),
        }
    }
}

impl Broker {
    /// Returns when scripts can run. A run that begins earlier loads the engine by itself.
    pub(crate) async fn engine_loaded(&self) -> Result<(), BuildError> {
        let sandbox = self.0.sandbox.clone();
        let loading = spawn_blocking(move || {
            Checker::embedded()?.load()?;
            sandbox.loaded()
        });
        Ok(loading.await.map_err(|_| BuildError::Interrupted)??)
    }
}
