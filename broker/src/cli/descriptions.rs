//! `airlock descriptions`: the folder of tool files, kept by hand and by this.

mod check;
mod observe;
mod pull;

use std::path::PathBuf;

use airlock_core::problem::Problem;
use clap::Subcommand;
use codegen::description::Description;

use super::Outcome;
use super::options::{ServerOptions, StateOptions};
use super::screen::Screen;
use super::visit::visit;
use crate::broker::Broker;
use crate::config::{Config, Environment};
use crate::tool_files::ToolFiles;

/// Where tool files are, unless something else is said.
const FOLDER: &str = "tool_descriptions";

#[derive(Debug, Subcommand)]
pub(super) enum DescriptionsCommand {
    /// Write a file for each tool of the servers; updates files that were not edited
    Pull(pull::PullOptions),
    /// Check that the files are valid and still match the servers' descriptions
    Check(check::CheckOptions),
    /// Propose result types from recorded runs, for tools without an output schema
    Observe(observe::ObserveOptions),
}

impl DescriptionsCommand {
    pub(super) fn is_json(&self) -> bool {
        match self {
            Self::Pull(options) => options.json,
            Self::Check(options) => options.json,
            Self::Observe(options) => options.json,
        }
    }
}

pub(super) fn run(command: DescriptionsCommand, environment: &Environment) -> Outcome {
    let screen = Screen::of_process(environment, false);
    match command {
        DescriptionsCommand::Pull(options) => pull::run(options, environment, &screen),
        DescriptionsCommand::Check(options) => check::run(options, environment, &screen),
        DescriptionsCommand::Observe(options) => observe::run(options, environment, &screen),
    }
}

/// What servers say of their tools, without any file.
struct Said {
    /// Every server that answered, with or without tools.
    servers: Vec<String>,
    descriptions: Vec<Description>,
}

impl Said {
    fn of_server<'a>(&'a self, server: &'a str) -> impl Iterator<Item = &'a Description> {
        self.descriptions
            .iter()
            .filter(move |it| it.server == server)
    }

    fn tool(&self, server: &str, tool: &str) -> Option<&Description> {
        let is_it = |it: &&Description| it.server == server && it.name == tool;
        self.descriptions.iter().find(is_it)
    }
}

/// Asks all configured servers; each must answer, unless unreachable ones may be skipped.
fn ask(
    servers: ServerOptions,
    state: StateOptions,
    environment: &Environment,
    screen: &Screen,
) -> Result<(Said, Option<PathBuf>), Problem> {
    let required = !servers.skip_unreachable;
    let mut flags = servers.into_flags()?;
    flags.state_dir = state.state_dir;
    let mut config = Config::load(flags, environment)?;
    let folder = config.descriptions.take();
    config.warnings.iter().for_each(|it| screen.warning(it));
    let builder = Broker::builder().servers_required(required).config(config);
    let said = visit(builder, screen, async |broker: &Broker| {
        let catalog = broker.catalog();
        let servers = catalog.servers().iter();
        Said {
            servers: servers.map(|it| it.name.0.to_string()).collect(),
            descriptions: broker.descriptions().to_vec(),
        }
    })?;
    Ok((said, folder))
}

fn files(named: Option<PathBuf>, configured: Option<PathBuf>) -> ToolFiles {
    let folder = named.or(configured);
    ToolFiles::new(folder.unwrap_or_else(|| FOLDER.into()))
}
