//! Flags that several commands share.

use std::path::{Path, PathBuf};

use airlock_core::problem::Problem;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::screen::Screen;
pub(super) use crate::config::StateSettings as StateOptions;
use crate::config::{Config, Environment, Flags, Settings, ToolSettings, limit_settings};
use crate::private_file::StateDir;
use crate::render::escape;

/// Flags that configure servers.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct ServerOptions {
    /// Add a server: NAME=COMMAND… (a command line) or NAME=https://… (streamable HTTP)
    #[arg(long = "server", value_name = "NAME=TARGET")]
    servers: Vec<String>,
    /// Read servers from a JSON file in the usual {"mcpServers": {…}} form
    #[arg(long = "mcp-config", value_name = "FILE")]
    mcp_configs: Vec<PathBuf>,
    /// Read an airlock.toml: servers, rules, labels, limits. ~/.config/airlock/config.toml is always
    /// read
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Read a file of labels. Labels say which kinds of data a server or tool reads, and whether it
    /// writes
    #[arg(long, value_name = "FILE")]
    labels: Vec<PathBuf>,
    /// Add the built-in demo server as `demo`
    #[arg(long)]
    demo: bool,
    #[command(flatten)]
    pub(super) tools: ToolSettings,
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

/// Flags that set limits. No limit can be turned off.
#[derive(Debug, Clone, Default)]
pub(super) struct LimitOptions {
    /// Limits that were set by their own flags: the name, and the value as it was written.
    own: Vec<(String, String)>,
    /// Values of `--limit`.
    any: Vec<String>,
}

const ANY_LIMIT: &str = "limit";

/// Each limit that has a flag declares it together with its text and default.
impl Args for LimitOptions {
    fn augment_args(command: Command) -> Command {
        let own = limit_settings().filter_map(|limit| limit.argument());
        let any = Arg::new(ANY_LIMIT)
            .long(ANY_LIMIT)
            .value_name("NAME=VALUE")
            .action(ArgAction::Append)
            .help("Set any limit by name, for example cpu=5s; docs/limits.md lists all limits");
        command.args(own).arg(any)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for LimitOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let own = limit_settings().filter(|limit| limit.flag.is_some());
        let own = own.filter_map(|limit| {
            let value = matches.get_one::<String>(limit.name)?;
            Some((limit.name.to_owned(), value.clone()))
        });
        let any = matches.get_many::<String>(ANY_LIMIT);
        Ok(Self {
            own: own.collect(),
            any: any.into_iter().flatten().cloned().collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
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

/// Flags of commands that read something from servers and print it.
#[derive(Debug, Args)]
pub(super) struct ServerView {
    #[command(flatten, next_help_heading = "Servers")]
    pub(super) servers: ServerOptions,
    #[command(flatten)]
    pub(super) state: StateOptions,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

impl ServerView {
    /// Loads the configuration, and shows its warnings.
    pub(super) fn load(
        self,
        environment: &Environment,
        screen: &Screen,
    ) -> Result<Config, Problem> {
        let mut flags = self.servers.into_flags()?;
        flags.settings.state = self.state;
        let config = Config::load(flags, environment)?;
        config.warnings.iter().for_each(|it| screen.warning(it));
        Ok(config)
    }
}

impl ServerOptions {
    /// Returns the same flags with another configuration file.
    pub(super) fn with_config_file(self, path: PathBuf) -> Self {
        Self {
            config: Some(path),
            ..self
        }
    }

    /// Returns the configuration file that the flags name.
    pub(super) fn config_file(&self) -> Option<&Path> {
        self.config.as_deref()
    }

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
        let settings = Settings {
            tools: self.tools,
            ..Settings::default()
        };
        Ok(Flags {
            servers: self.servers,
            mcp_configs: self.mcp_configs,
            config: self.config,
            labels: self.labels,
            demo,
            settings,
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

impl LimitOptions {
    pub(super) fn add_to(self, flags: &mut Flags) -> Result<(), Problem> {
        for limit in self.any {
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
        flags.limits.extend(self.own);
        Ok(())
    }
}

impl StateOptions {
    /// Opens the state directory for a command that only reads it. A folder that `--state-dir` names
    /// must exist. If another one does not exist yet, this is shown on the screen.
    pub(super) fn open_existing(
        self,
        environment: &Environment,
        screen: Option<&Screen>,
    ) -> Result<StateDir, Problem> {
        let is_named = self.state_dir.is_some();
        let state = StateDir::existing(self.load(environment)?.state_dir)?;
        let path = state.path().display().to_string();
        if state.path().try_exists().unwrap_or(true) {
            return Ok(state);
        }
        if is_named {
            let what = "the state directory does not exist";
            let next = "check the path given with --state-dir";
            return Err(usage(what, format!("there is no folder {path}"), next));
        }
        if let Some(screen) = screen {
            let path = escape::line(&path);
            screen.remark(&format!(
                "the state directory {path} does not exist yet; the first run creates it; \
                 to read another one, pass --state-dir FOLDER\n"
            ));
        }
        Ok(state)
    }

    pub(super) fn load(self, environment: &Environment) -> Result<Config, Problem> {
        let mut flags = Flags::default();
        flags.settings.state = self;
        Config::load(flags, environment)
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
