//! The tools that rules are checked against: from servers, saved lists, or a lock file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use airlock_core::id::ToolId;
use airlock_core::policy::Finding;
use airlock_core::problem::Problem;
use airlock_core::rules::Rules;
use airlock_policy_analysis::{Example, findings_with_checked_fixes};
use clap::Args;
use codegen::description::Description;
use serde_json::Value;

use super::facts::{CallFacts, all_pinned};
use super::table;
use crate::broker::tool_discovery::{self, OwnTools};
use crate::broker::{Broker, BuildError, policy_problems, rules_of};
use crate::cli::options::{ServerOptions, StateOptions, usage};
use crate::cli::run::build_problem;
use crate::cli::runtime;
use crate::cli::screen::Screen;
use crate::cli::types::saved;
use crate::config::{
    ApproverChoice, Config, Environment, Flags, FlowConfig, PolicyConfig, ServerConfig,
    UnmatchedPattern,
};
use crate::shell_words;

/// The mark of `airlock policy init` at what it only guessed.
const GUESS: &str = "# GUESS: ";

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
    /// The patterns of groups and of servers' tables that match no tool.
    pub(super) unmatched: Vec<UnmatchedPattern>,
    /// The names of the configured servers.
    pub(super) servers: BTreeSet<String>,
    /// The facts of calls, as far as the configuration determines them.
    pub(super) facts: CallFacts,
    /// The folders of rules in the configuration that do not count.
    pub(super) ignored: Vec<PathBuf>,
    /// The configured approver.
    pub(super) approver: Option<ApproverChoice>,
}

/// The folders of rules that a command names.
#[derive(Debug, Clone)]
pub(super) enum Folders {
    /// Only these, if there are any. The folders of the configuration do not count.
    Only(Vec<PathBuf>),
    /// These and the folders of the configuration, as in a run.
    Added(Vec<PathBuf>),
}

/// The reason why rules cannot be used.
pub(super) enum LoadError {
    Rules(Vec<Finding>),
    Other(Problem),
}

impl RuleSources {
    /// Checks that a call can have the facts of an example, as `airlock policy test` does.
    pub(super) fn check_example(&self, example: &Example) -> Result<(), String> {
        let tool = &example.tool;
        let is_meant = |it: &&Description| *it.server == *tool.server.0 && *it.name == *tool.tool.0;
        let Some(description) = self.descriptions.iter().find(is_meant) else {
            return Ok(());
        };
        let policies = self.rules.policies();
        let words = policies.and_then(|it| it.vocabulary().configured.as_ref());
        let known = self.flow.is_configured.then_some(&self.facts);
        let said = example.call().get("facts").cloned().unwrap_or_default();
        let schema: &Value = &description.input_schema;
        table::case_facts((known, words), (tool, schema), &example.args, said).map(drop)
    }
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
            .map(|(flag, value)| format!("{flag} {}", shell_words::quote(&value)))
            .collect();
        (!flags.is_empty()).then(|| flags.join(" "))
    }

    pub(super) fn open(
        self,
        folders: Folders,
        environment: &Environment,
        screen: &Screen,
    ) -> Result<RuleSources, LoadError> {
        if self.from.is_empty() && self.servers.tools.lock.is_none() {
            self.connect(folders, environment, screen)
        } else {
            self.read(folders, environment, screen)
        }
    }

    /// Whether a flag names a configuration file.
    pub(super) fn names_configuration(&self) -> bool {
        self.servers.config_file().is_some()
    }

    /// Returns the number of guesses of `airlock policy init` that are left in the configuration
    /// file, and the name of the file.
    pub(super) fn guesses(&self) -> Option<(usize, String)> {
        let path = self.servers.config_file()?;
        let text = std::fs::read_to_string(path).ok()?;
        let left = text.lines().filter(|line| line.contains(GUESS)).count();
        (left > 0).then(|| (left, path.display().to_string()))
    }

    /// Returns the folders and files of rules that the configuration names.
    pub(super) fn configured_paths(
        &self,
        environment: &Environment,
    ) -> Result<Vec<PathBuf>, Problem> {
        let flags = self.clone().into_flags(Folders::Added(Vec::new()))?;
        Ok(Config::load(flags, environment)?.policies.paths)
    }

    /// Opens two folders for the same tools, without the rules of the configuration. The tools are
    /// found once. With `old_config`, the old folder has another configuration file.
    pub(super) fn open_pair(
        self,
        [old, new]: [&Path; 2],
        old_config: Option<&Path>,
        environment: &Environment,
        screen: &Screen,
    ) -> Result<(RuleSources, RuleSources), LoadError> {
        let folders = |folder: &Path| Folders::Only(vec![folder.to_owned()]);
        // The old rules may name groups that only the old configuration has.
        let first = old_config.map_or(old, |_| new);
        let before = self.clone().open(folders(first), environment, screen)?;
        let mut of_old = self.clone();
        if let Some(config) = old_config {
            of_old.servers = of_old.servers.with_config_file(config.to_owned());
        }
        // Both folders are loaded in the same way, whatever the source of the tools was.
        let sides = [(old, of_old), (new, self)];
        let both = sides.map(|(folder, sources)| -> Result<RuleSources, LoadError> {
            let config = Config::load(sources.into_flags(folders(folder))?, environment)?;
            let rules = rules_of(&config, &before.descriptions)?;
            Ok(RuleSources {
                facts: CallFacts::new(&config),
                rules: rules.into(),
                descriptions: Arc::clone(&before.descriptions),
                flow: config.flow,
                unmatched: Vec::new(),
                servers: names(&config.servers),
                ignored: ignored(&config.policies, &[old, new]),
                approver: config.approver,
            })
        });
        let [before, after] = both;
        Ok((before?, after?))
    }

    fn connect(
        self,
        folders: Folders,
        environment: &Environment,
        screen: &Screen,
    ) -> Result<RuleSources, LoadError> {
        let required = !self.servers.skip_unreachable;
        let config = Config::load(self.into_flags(folders)?, environment)?;
        config.warnings.iter().for_each(|it| screen.warning(it));
        let (flow, policies) = (config.flow.clone(), config.policies.clone());
        let servers = config.servers.clone();
        let facts = CallFacts::new(&config);
        let approver = config.approver.clone();
        runtime()?.block_on(async {
            let builder = Broker::builder()
                .config(config)
                .discovery(true)
                .servers_required(required);
            let broker = builder.build().await?;
            let (rules, descriptions) = (broker.rules(), broker.descriptions());
            let problems = broker.problems();
            let catalog = broker.catalog();
            let pinned = catalog
                .tools()
                .filter_map(|it| Some((it.id.clone(), it.pinned?)));
            let facts = facts.with_pinned(pinned);
            broker.close().await;
            let is_shown = |code: &str| matches!(code, "server-unavailable" | "policy-empty");
            let problems = problems.iter().filter(|problem| is_shown(&problem.code));
            problems.for_each(|problem| screen.warning(problem));
            Ok(RuleSources {
                unmatched: unmatched(&policies, &servers, &descriptions),
                servers: names(&servers),
                facts,
                ignored: ignored(&policies, &[]),
                rules,
                descriptions,
                flow,
                approver,
            })
        })
    }

    /// Reads the tools from a saved list or a lock file. The configuration labels their servers.
    fn read(
        self,
        folders: Folders,
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
            Some(lock) => saved::locked(lock, &config, screen)?,
            None => saved::read(&from, folder)?,
        };
        found.problems.iter().for_each(|it| screen.warning(it));
        let rules = rules_of(&config, &found.descriptions)?;
        let nothing = rules.policies().and_then(policy_problems);
        nothing.iter().for_each(|it| screen.warning(it));
        let facts = CallFacts::new(&config);
        let facts = match lock.is_some() {
            true => facts.with_pinned(all_pinned(&found.descriptions)),
            false => facts,
        };
        Ok(RuleSources {
            facts,
            unmatched: unmatched(&config.policies, &config.servers, &found.descriptions),
            servers: names(&config.servers),
            ignored: ignored(&config.policies, &[]),
            rules: Arc::new(rules),
            descriptions: Arc::new(found.descriptions),
            flow: config.flow,
            approver: config.approver,
        })
    }

    fn into_flags(self, folders: Folders) -> Result<Flags, Problem> {
        let mut flags = self.servers.into_flags()?;
        (flags.policies, flags.policies_only) = match folders {
            Folders::Only(folders) => {
                let is_named = !folders.is_empty();
                (folders, is_named)
            }
            Folders::Added(folders) => (folders, false),
        };
        flags.tighten = self.tighten;
        flags.settings.state = self.state;
        flags.roots_absent = true;
        Ok(flags)
    }
}

fn names(servers: &[ServerConfig]) -> BTreeSet<String> {
    servers
        .iter()
        .map(|it| it.spec.name.0.to_string())
        .collect()
}

/// Returns the folders of the configuration that do not count and that the command does not name.
fn ignored(policies: &PolicyConfig, named: &[&Path]) -> Vec<PathBuf> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let named = named.iter().map(|it| real(it));
    let named: Vec<PathBuf> = named
        .chain(policies.paths.iter().map(|it| real(it)))
        .collect();
    let ignored = policies.ignored.iter();
    ignored
        .filter(|it| !named.contains(&real(it)))
        .cloned()
        .collect()
}

/// Returns the patterns of the configuration that match no tool. If no tools are known, there are
/// none.
fn unmatched(
    policies: &PolicyConfig,
    servers: &[ServerConfig],
    descriptions: &[Description],
) -> Vec<UnmatchedPattern> {
    if descriptions.is_empty() {
        return Vec::new();
    }
    let own = OwnTools {
        discovery: true,
        extraction: true,
    };
    let own = tool_discovery::descriptions(own);
    let id = |it: &Description| ToolId::parse(&format!("{}.{}", it.server, it.name)).ok();
    let ids: Vec<ToolId> = descriptions.iter().chain(&own).filter_map(id).collect();
    let mut unmatched = policies.unmatched(&ids.iter().collect::<Vec<_>>());
    for server in servers {
        let name = &*server.spec.name.0;
        let tools = descriptions.iter().filter(|it| it.server == name);
        let tools: Vec<&str> = tools.map(|it| it.name.as_str()).collect();
        if !tools.is_empty() {
            unmatched.extend(server.trust.unmatched(name, &tools));
        }
    }
    unmatched
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
