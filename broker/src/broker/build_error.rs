//! Why a broker did not come to be.

use airlock_core::catalog::OWN_SERVER;
use airlock_core::grant::Scope;
use airlock_core::id::{BadName, GrantId};
use airlock_core::limits::BadLimit;
use airlock_core::policy::Finding;
use airlock_core::problem::Problem;
use airlock_core::shared::NoUse;

use super::policies;
use crate::sandbox::SandboxError;
use crate::shared_file::SharedError;

#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("the state directory is not set")]
    NoStateDir,
    #[error(transparent)]
    Name(#[from] BadName),
    #[error(transparent)]
    Limit(#[from] BadLimit),
    #[error("the server name `{0}` is used twice")]
    NameTwice(String),
    #[error(
        "no server can be called `{}`: scripts find airlock's own tools there",
        OWN_SERVER
    )]
    NameReserved,
    #[error("the sandbox cannot be loaded: {0}")]
    Sandbox(#[from] SandboxError),
    #[error("{0}")]
    Server(Problem),
    #[error("{0}")]
    Labels(Problem),
    #[error("{0}")]
    ToolFiles(Problem),
    #[error("{0}")]
    Lock(Problem),
    #[error("{0}")]
    Embeddings(Problem),
    #[error(transparent)]
    Shared(#[from] SharedError),
    #[error("the grant `{grant}` is for a {scope}, and this broker has none")]
    NoScope { grant: GrantId, scope: Scope },
    #[error("the grant `{grant}` cannot be kept: {cause}")]
    Unkept { grant: GrantId, cause: NoUse },
    #[error("a broker is built inside a tokio runtime")]
    NoRuntime,
    #[error("building was interrupted")]
    Interrupted,
    #[error("{}", policies::summary(.0))]
    Policies(Vec<Finding>),
}

impl BuildError {
    /// For a broker that goes on without what is wrong.
    pub(super) fn into_problem(self) -> Problem {
        match self {
            Self::Server(problem)
            | Self::Labels(problem)
            | Self::ToolFiles(problem)
            | Self::Lock(problem) => problem,
            other => Problem::new(
                "policy-invalid",
                "the tools that servers list now are not offered",
                other.to_string(),
                "`airlock policy check` lists everything that is wrong with the policies",
            ),
        }
    }
}
