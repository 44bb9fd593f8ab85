//! What the command line says of the configuration.

use std::path::PathBuf;

/// What the command line says, before anything is looked at.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    pub servers: Vec<String>,
    pub mcp_configs: Vec<PathBuf>,
    pub config: Option<PathBuf>,
    /// What servers and tools read and write.
    pub labels: Vec<PathBuf>,
    /// Folders of rules.
    pub policies: Vec<PathBuf>,
    /// Folders of rules that may only forbid.
    pub tighten: Vec<PathBuf>,
    pub allow: Vec<String>,
    pub ask: Vec<String>,
    pub deny: Vec<String>,
    /// By the names of [`super::SETTINGS`]; the flag as it was written is part of the message.
    pub limits: Vec<(String, String)>,
    pub state_dir: Option<PathBuf>,
    /// The folder of tool files.
    pub descriptions: Option<PathBuf>,
    /// The lock file that servers are held against.
    pub lock: Option<PathBuf>,
    /// The folder of an embedding model, by which search knows words of one meaning.
    pub embeddings: Option<PathBuf>,
    pub fsync: Option<String>,
    /// `warn` or `refuse`.
    pub unknown_keys: Option<String>,
    /// `boa` or `quickjs`.
    pub engine: Option<String>,
    /// The TypeScript compiler that is asked about scripts.
    pub tsc: Option<PathBuf>,
    /// None is asked.
    pub no_tsc: bool,
    /// This program, when its own demo server is wanted under the name `demo`.
    pub demo: Option<PathBuf>,
    /// No call is made, so a configured root need not be there: it is a warning.
    pub roots_absent: bool,
    /// What passes from servers to hosts, instead of what a file says.
    pub pass: Option<Vec<String>>,
    /// Servers whose prompts and resources hosts get, besides those of a file.
    pub offer: Vec<String>,
}
