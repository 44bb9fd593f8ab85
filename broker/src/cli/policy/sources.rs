//! The tools that rules are checked against: from servers, saved lists, or a lock file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use airlock_core::policy::Finding;
use airlock_core::problem::Problem;
use airlock_core::rules::Rules;
use airlock_policy_analysis::findings_with_checked_fixes;
use clap::Args;
use codegen::description::Description;

use crate::broker::{Broker, BuildError, policy_problems, rules_of};
use crate::cli::options::{ServerOptions, StateOptions, usage};
use crate::cli::run::build_problem;
use crate::cli::runtime;
use crate::cli::screen::Screen;
use crate::cli::types::saved;
use crate::config::{Config, Environment, Flags, FlowConfig};

#[derive(Debug, Clone, Args)]
pub(super) struct SourceOptions {
    /// Folders that may contain only `forbid` rules
    #[arg(long, value_name = "FOLDER")]
    tighten: Vec<PathBuf>,
    #[command(flatten, next_help_heading = "Servers")]
    servers: ServerOptions,
    /// Read tools from a saved tools/list result, without connecting to servers. (--lock reads them
    /// from the lock file, also without connecting)
    #[arg(long, value_name = "[NAME=]FILE", help_heading = "Servers")]
    from: Vec<String>,
    #[command(flatten)]
    pub(super) state: StateOptions,
}

/// The rules, and the tools that they were checked against.
pub(super) struct RuleSources {
    pub(super) rules: Arc<Rules>,
    pub(super) descriptions: Arc<Vec<Description>>,
    /// The configured labels, roots and destinations.
    pub(super) flow: FlowConfig,
}

/// The reason why rules cannot be used.
pub(super) enum LoadError {
    Rules(Vec<Finding>),
    Other(Problem),
}

impl SourceOptions {
    /// Returns the folders that may only forbid.
    pub(super) fn tightening(&self) -> &[PathBuf] {
        &self.tighten
    }

    /// Returns the flags that name the file of the tools, as a shell reads them. There are none if
    /// the tools come from servers.
    pub(super) fn file_flags(&self) -> Option<String> {
        let lock = self.servers.tools.lock.iter();
        let lock = lock.map(|it| ("--lock", it.display().to_string()));
        let from = self.from.iter().map(|it| ("--from", it.clone()));
        let flags = lock.chain(from);
        let flags: Vec<String> = flags
            .map(|(flag, value)| format!("{flag} {}", shell_word(&value)))
            .collect();
        (!flags.is_empty()).then(|| flags.join(" "))
    }

    pub(super) fn open(
        self,
        folders: Vec<PathBuf>,
        environment: &Environment,
        screen: &Screen,
    ) -> Result<RuleSources, LoadError> {
        if self.from.is_empty() && self.servers.tools.lock.is_none() {
            self.connect(folders, environment, screen)
        } else {
            self.read(folders, environment, screen)
        }
    }

    /// Opens two folders for the same tools. The tools are those found for the first folder.
    pub(super) fn open_pair(
        self,
        old: &Path,
        new: &Path,
        environment: &Environment,
        screen: &Screen,
    ) -> Result<(RuleSources, RuleSources), LoadError> {
        let folders = |folder: &Path| vec![folder.to_owned()];
        let before = self.clone().open(folders(old), environment, screen)?;
        // Both folders are loaded in the same way, whatever the source of the tools was.
        let both = [old, new].map(|folder| -> Result<RuleSources, LoadError> {
            let config = Config::load(self.clone().into_flags(folders(folder))?, environment)?;
            let rules = rules_of(&config, &before.descriptions)?;
            Ok(RuleSources {
                rules: rules.into(),
                descriptions: Arc::clone(&before.descriptions),
                flow: config.flow,
            })
        });
        let [before, after] = both;
        Ok((before?, after?))
    }

    fn connect(
        self,
        folders: Vec<PathBuf>,
        environment: &Environment,
        screen: &Screen,
    ) -> Result<RuleSources, LoadError> {
        let required = !self.servers.skip_unreachable;
        let config = Config::load(self.into_flags(folders)?, environment)?;
        config.warnings.iter().for_each(|it| screen.warning(it));
        let flow = config.flow.clone();
        runtime()?.block_on(async {
            let builder = Broker::builder()
                .config(config)
                .discovery(true)
                .servers_required(required);
            let broker = builder.build().await?;
            let (rules, descriptions) = (broker.rules(), broker.descriptions());
            let problems = broker.problems();
            broker.close().await;
            let is_shown = |code: &str| matches!(code, "server-unavailable" | "policy-empty");
            let problems = problems.iter().filter(|problem| is_shown(&problem.code));
            problems.for_each(|problem| screen.warning(problem));
            Ok(RuleSources {
                rules,
                descriptions,
                flow,
            })
        })
    }

    /// Reads the tools from a saved list or a lock file. The configuration labels their servers.
    fn read(
        self,
        folders: Vec<PathBuf>,
        environment: &Environment,
        screen: &Screen,
    ) -> Result<RuleSources, LoadError> {
        let (lock, from) = (self.servers.tools.lock.clone(), self.from.clone());
        if self.servers.connects() || (lock.is_some() && !from.is_empty()) {
            let why = "--from and --lock read the tools from a file and connect to no server";
            let next = "use only one of --from, --lock and the server options";
            return Err(usage("conflicting sources of tools", why, next).into());
        }
        let config = Config::load(self.into_flags(folders)?, environment)?;
        config.warnings.iter().for_each(|it| screen.warning(it));
        let folder = config.settings.tools.descriptions.clone();
        let found = match &lock {
            Some(lock) => saved::locked(lock, folder)?,
            None => saved::read(&from, folder)?,
        };
        found.problems.iter().for_each(|it| screen.warning(it));
        let rules = rules_of(&config, &found.descriptions)?;
        let nothing = rules.policies().and_then(policy_problems);
        nothing.iter().for_each(|it| screen.warning(it));
        Ok(RuleSources {
            rules: Arc::new(rules),
            descriptions: Arc::new(found.descriptions),
            flow: config.flow,
        })
    }

    fn into_flags(self, folders: Vec<PathBuf>) -> Result<Flags, Problem> {
        let mut flags = self.servers.into_flags()?;
        flags.policies = folders;
        flags.tighten = self.tighten;
        flags.state_dir = self.state.state_dir;
        flags.roots_absent = true;
        Ok(flags)
    }
}

/// Quotes a word for a shell if it is not plain.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-=".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

impl From<Problem> for LoadError {
    fn from(problem: Problem) -> Self {
        Self::Other(problem)
    }
}

impl From<BuildError> for LoadError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Policies(invalid) => Self::Rules(findings_with_checked_fixes(invalid)),
            error => Self::Other(build_problem(error)),
        }
    }
}
