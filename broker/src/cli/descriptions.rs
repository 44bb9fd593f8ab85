//! `airlock descriptions`: manages the folder of tool files, which people edit too.

mod check;
mod observe;
mod pull;

use std::path::PathBuf;

use airlock_core::problem::Problem;
use clap::Subcommand;
use codegen::description::Description;

use super::Outcome;
use super::connect::visit;
use super::options::ServerView;
use super::screen::Screen;
use crate::broker::Broker;
use crate::config::Environment;
use crate::tool_files::ToolFiles;

/// The default folder of tool files.
const FOLDER: &str = "tool_descriptions";

#[derive(Debug, Subcommand)]
pub(super) enum DescriptionsCommand {
    /// Write a tool file for each tool, and update existing files, except those that were edited
    Pull(pull::PullOptions),
    /// Check that tool files are valid and match the servers' current descriptions
    Check(check::DescriptionsCheckOptions),
    /// Propose result types from recorded runs, for tools without an output schema
    Observe(observe::ObserveOptions),
}

impl DescriptionsCommand {
    pub(super) fn is_json(&self) -> bool {
        match self {
            Self::Pull(options) => options.view.json,
            Self::Check(options) => options.view.json,
            Self::Observe(options) => options.view.json,
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

/// The servers' own tool descriptions, without tool files.
struct ServerDescriptions {
    /// The names of all configured servers.
    configured: Vec<String>,
    /// The names of all servers that answered, with or without tools.
    servers: Vec<String>,
    descriptions: Vec<Description>,
}

impl ServerDescriptions {
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

/// Reads the descriptions of all configured servers. Every server must answer, unless unreachable
/// ones may be skipped.
fn ask(
    view: ServerView,
    environment: &Environment,
    screen: &Screen,
) -> Result<(ServerDescriptions, Option<PathBuf>), Problem> {
    let required = !view.servers.skip_unreachable;
    let mut config = view.load(environment, screen)?;
    let folder = config.settings.tools.descriptions.take();
    let configured = config.servers.iter().map(|it| it.spec.name.0.to_string());
    let configured = configured.collect();
    let builder = Broker::builder().servers_required(required).config(config);
    let said = visit(builder, screen, async |broker: &Broker| {
        let catalog = broker.catalog();
        let servers = catalog.servers().iter();
        ServerDescriptions {
            configured,
            servers: servers.map(|it| it.name.0.to_string()).collect(),
            descriptions: broker.descriptions().to_vec(),
        }
    })?;
    Ok((said, folder))
}

/// Returns the named folder, or else the configured one, with the names of all servers.
fn files(named: Option<PathBuf>, configured: Option<PathBuf>, servers: Vec<String>) -> ToolFiles {
    let folder = named.or(configured);
    ToolFiles::new(folder.unwrap_or_else(|| FOLDER.into())).for_servers(servers)
}
