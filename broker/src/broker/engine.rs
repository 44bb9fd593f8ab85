//! When the engine is loaded: before a broker is handed out, or, where its tools
//! are looked at first, right after that.

use tokio::task::{JoinHandle, spawn_blocking};

use super::{Broker, BuildError};
use crate::sandbox::{Checker, JsEngine, Sandbox, SandboxError};

pub(super) enum Engine {
    /// On a thread of its own, while servers are waited for.
    Loading(JoinHandle<Result<Sandbox, SandboxError>>),
    Later(JsEngine),
}

impl Engine {
    pub(super) fn of(engine: JsEngine, later: bool) -> Self {
        match later {
            true => Self::Later(engine),
            false => Self::Loading(spawn_blocking(move || {
                Checker::embedded()?.load()?;
                Sandbox::load_embedded(engine)
            })),
        }
    }

    pub(super) async fn sandbox(self) -> Result<Sandbox, BuildError> {
        match self {
            Self::Loading(loading) => Ok(loading.await.map_err(|_| BuildError::Interrupted)??),
            Self::Later(engine) => Ok(Sandbox::embedded(engine)?),
        }
    }
}

impl Broker {
    /// Returns when scripts can run. A run that begins before loads the engine by itself.
    pub(crate) async fn engine_loaded(&self) -> Result<(), BuildError> {
        let sandbox = self.0.sandbox.clone();
        let loading = spawn_blocking(move || {
            Checker::embedded()?.load()?;
            sandbox.loaded()
        });
        Ok(loading.await.map_err(|_| BuildError::Interrupted)??)
    }
}
