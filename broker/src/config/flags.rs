//! The flags of the command line that belong to the configuration.

use std::path::PathBuf;

use super::Settings;

/// The flags as they were written, before anything is validated.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    pub servers: Vec<String>,
    pub mcp_configs: Vec<PathBuf>,
    pub config: Option<PathBuf>,
    /// Files with the labels of servers and tools.
    pub labels: Vec<PathBuf>,
    /// Folders of rules.
    pub policies: Vec<PathBuf>,
    /// Folders that may contain only `forbid` rules.
    pub tighten: Vec<PathBuf>,
    pub allow: Vec<String>,
    pub ask: Vec<String>,
    pub deny: Vec<String>,
    /// Limits: a name of [`super::limit_settings`], and the value as it was written.
    pub limits: Vec<(String, String)>,
    pub state_dir: Option<PathBuf>,
    /// The settings that are also keys of a file. `state_dir` comes first.
    pub settings: Settings,
    /// The path of this program, if its built-in demo server is added as `demo`.
    pub demo: Option<PathBuf>,
    /// Whether missing configured roots are only warnings, because no call is made.
    pub roots_absent: bool,
    /// Whether only the folders of rules in these flags count, and not those in files.
    pub policies_only: bool,
    /// What servers may send to hosts. It replaces the value in a file.
    pub pass: Option<Vec<String>>,
    /// Servers whose prompts and resources hosts can use, in addition to those in a file.
    pub offer: Vec<String>,
}
