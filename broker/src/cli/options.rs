//! Flags that several commands share.

use std::path::{Path, PathBuf};

use airlock_core::problem::Problem;
use clap::Args;

use crate::config::{Config, Environment, Flags};

/// Flags that configure servers.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct ServerOptions {
    /// Add a server: NAME=COMMAND… (a command line) or NAME=https://… (streamable HTTP)
    #[arg(long = "server", value_name = "NAME=TARGET")]
    servers: Vec<String>,
    /// Read servers from a JSON file in the usual {"mcpServers": {…}} form
    #[arg(long = "mcp-config", value_name = "FILE")]
    mcp_configs: Vec<PathBuf>,
    /// Read an airlock.toml: servers, rules, labels, limits
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Read a file of labels. Labels say which kinds of data a server or tool reads, and whether it
    /// writes
    #[arg(long, value_name = "FILE")]
    labels: Vec<PathBuf>,
    /// Add the built-in demo server as `demo`
    #[arg(long)]
    demo: bool,
    /// Read a folder of tool files (SERVER/TOOL.json), which add information to the servers'
    /// descriptions
    #[arg(long, value_name = "FOLDER")]
    pub(super) descriptions: Option<PathBuf>,
    /// Refuse to call tools whose description differs from the one in this lock file
    #[arg(long, value_name = "FILE")]
    pub(super) lock: Option<PathBuf>,
    /// Continue without servers that cannot be reached
    #[arg(long)]
    pub(super) skip_unreachable: bool,
}

/// Flags that allow calls, deny them, or require approval. Their order does not matter.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct RuleOptions {
    /// Allow calls that match, without asking; for example 'fs.read_*'
    #[arg(long, value_name = "PATTERN")]
    allow: Vec<String>,
    /// Ask a person about calls that match, except those that a narrower --allow matches
    #[arg(long, value_name = "PATTERN")]
    ask: Vec<String>,
    /// Deny calls that match
    #[arg(long, value_name = "PATTERN")]
    deny: Vec<String>,
    /// Read a folder of Cedar rules. Calls that no rule permits are denied; --allow then only makes
    /// exceptions to --ask, and --ask and --deny still apply
    #[arg(long = "policy", value_name = "FOLDER")]
    policies: Vec<PathBuf>,
    /// Read a folder with a project's own Cedar rules. It may contain only `forbid` rules, so it can
    /// deny calls but not allow them
    #[arg(long, value_name = "FOLDER")]
    tighten: Vec<PathBuf>,
}

/// Flags for searching tools.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct SearchOptions {
    /// Use the model2vec model in this folder, so that search also finds synonyms
    #[arg(long, value_name = "FOLDER")]
    pub(super) embeddings: Option<PathBuf>,
}

/// Flags for the TypeScript compiler.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct TscOptions {
    /// TypeScript compiler that checks the script [default: `tsc` 7 or newer on PATH]
    #[arg(long, value_name = "PATH", conflicts_with = "no_tsc")]
    tsc: Option<PathBuf>,
    /// Do not run a TypeScript compiler
    #[arg(long)]
    no_tsc: bool,
}

/// Flags that set limits. No limit can be turned off.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct LimitOptions {
    /// Maximum duration of the run, including sleeps [default: 30s]
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// Maximum memory of the sandbox [default: 256MiB]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Maximum number of calls in one run [default: 1000]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_calls: Option<String>,
    /// Maximum number of concurrent calls [default: 16]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_in_flight: Option<String>,
    /// Maximum size of the console output that airlock keeps [default: 256KiB]
    #[arg(long, value_name = "SIZE")]
    max_output: Option<String>,
    /// Maximum duration of one call [default: 1m]
    #[arg(long, value_name = "DURATION")]
    call_timeout: Option<String>,
    /// Set any limit by name, for example cpu=5s; docs/limits.md lists all limits
    #[arg(long = "limit", value_name = "NAME=VALUE")]
    limits: Vec<String>,
}

/// The flag for the state directory.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct StateOptions {
    /// Folder for journals and other state [default: the XDG state directory]
    #[arg(long, value_name = "FOLDER")]
    pub(super) state_dir: Option<PathBuf>,
}

/// Flags of commands that show the contents of the state directory.
#[derive(Debug, Args)]
pub(super) struct StateView {
    #[command(flatten)]
    pub(super) state: StateOptions,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

impl ServerOptions {
    /// Whether any flag names servers.
    pub(super) fn names_any(&self) -> bool {
        self.demo
            || self.config.is_some()
            || !self.servers.is_empty()
            || !self.mcp_configs.is_empty()
    }

    /// Whether a flag names a server to connect to.
    pub(super) fn connects(&self) -> bool {
        self.demo || !self.servers.is_empty() || !self.mcp_configs.is_empty()
    }

    /// Returns the project that grants belong to: the folder of the configuration file, or the
    /// current folder.
    pub(super) fn project(&self) -> Result<PathBuf, Problem> {
        let file = self.config.as_deref().and_then(Path::parent);
        let folder = file.filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        folder.canonicalize().map_err(|error| {
            let what = "cannot find the project's folder";
            Problem::new(
                "internal",
                what,
                error.to_string(),
                "run airlock in an existing folder",
            )
        })
    }

    pub(super) fn into_flags(self) -> Result<Flags, Problem> {
        let demo = if self.demo {
            Some(this_program()?)
        } else {
            None
        };
        let Self {
            servers,
            mcp_configs,
            config,
            labels,
            descriptions,
            lock,
            ..
        } = self;
        Ok(Flags {
            servers,
            mcp_configs,
            config,
            labels,
            descriptions,
            lock,
            demo,
            ..Flags::default()
        })
    }
}

impl RuleOptions {
    pub(super) fn add_to(self, flags: &mut Flags) {
        (flags.allow, flags.ask, flags.deny) = (self.allow, self.ask, self.deny);
        (flags.policies, flags.tighten) = (self.policies, self.tighten);
    }
}

impl TscOptions {
    pub(super) fn add_to(&self, flags: &mut Flags) {
        flags.tsc.clone_from(&self.tsc);
        flags.no_tsc = self.no_tsc;
    }
}

impl LimitOptions {
    pub(super) fn add_to(self, flags: &mut Flags) -> Result<(), Problem> {
        for limit in self.limits {
            let (name, value) = limit.split_once('=').ok_or_else(|| {
                let what = format!("invalid value `{limit}` for `--limit`");
                usage(
                    what,
                    "the value has no `=`",
                    "write --limit NAME=VALUE, such as --limit cpu=5s",
                )
            })?;
            flags.limits.push((name.to_owned(), value.to_owned()));
        }
        let own = [
            ("timeout", self.timeout),
            ("memory", self.memory),
            ("calls", self.max_calls),
            ("in-flight", self.max_in_flight),
            ("output", self.max_output),
            ("call-timeout", self.call_timeout),
        ];
        let set = |(name, value): (&str, Option<String>)| Some((name.to_owned(), value?));
        flags.limits.extend(own.into_iter().filter_map(set));
        Ok(())
    }
}

impl StateOptions {
    pub(super) fn load(self, environment: &Environment) -> Result<Config, Problem> {
        Config::load(
            Flags {
                state_dir: self.state_dir,
                ..Flags::default()
            },
            environment,
        )
    }
}

pub(super) fn this_program() -> Result<PathBuf, Problem> {
    std::env::current_exe().map_err(|error| {
        Problem::new(
            "internal",
            "cannot find the program of the demo server",
            error.to_string(),
            "",
        )
    })
}

pub(super) fn usage(
    what: impl Into<String>,
    why: impl Into<String>,
    next: impl Into<String>,
) -> Problem {
    Problem::new("usage", what, why, next)
}
