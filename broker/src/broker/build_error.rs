//! The errors of building a broker.

use airlock_core::catalog::OWN_SERVER;
use airlock_core::grant::Scope;
use airlock_core::id::{BadName, GrantId};
use airlock_core::limits::BadLimit;
use airlock_core::policy::{Finding, InvalidPolicies};
use airlock_core::problem::Problem;
use airlock_core::shared_state::GrantUnavailable;

use crate::shared_file::SharedError;
use airlock_sandbox::SandboxError;

#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("the state directory is not set")]
    NoStateDir,
    #[error("{0}")]
    State(Problem),
    #[error(transparent)]
    Name(#[from] BadName),
    #[error(transparent)]
    Limit(#[from] BadLimit),
    #[error("duplicate server name `{0}`")]
    NameTwice(String),
    #[error(
        "invalid server name `{}`: it is reserved for airlock's own tools",
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
    #[error("the grant `{grant}` is for a {scope}, but this broker has no {scope}")]
    NoScope { grant: GrantId, scope: Scope },
    #[error("the grant `{grant}` cannot be stored: {cause}")]
    Unkept {
        grant: GrantId,
        cause: GrantUnavailable,
    },
    #[error("a broker must be built inside a tokio runtime")]
    NoRuntime,
    #[error("building was interrupted")]
    Interrupted,
    #[error("{}", summary(.0.findings()))]
    Policies(InvalidPolicies),
}

impl BuildError {
    /// Converts the error to a problem, for a broker that continues without the faulty part.
    pub(super) fn into_problem(self) -> Problem {
        match self {
            Self::Server(problem)
            | Self::Labels(problem)
            | Self::ToolFiles(problem)
            | Self::Lock(problem) => problem,
            other => Problem::new(
                "policy-invalid",
                "the tools that servers list now cannot be offered",
                other.to_string(),
                "run `airlock policy check` to list all errors in the policies",
            ),
        }
    }
}

/// Returns the first finding, and how many findings there are.
fn summary(findings: &[Finding]) -> String {
    let first = findings
        .first()
        .map(ToString::to_string)
        .unwrap_or_default();
    match findings.len() {
        0 | 1 => first,
        many => format!("{first} (and {} more)", many - 1),
    }
}
