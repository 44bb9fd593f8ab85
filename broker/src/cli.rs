//! The command line: one file per command.

mod approvers;
mod check;
mod command_line;
mod connect;
mod demo_server;
mod descriptions;
mod doctor;
mod engines;
pub mod exit;
mod grants;
mod init;
mod input;
mod listen;
mod lock;
mod login;
mod manual;
mod options;
mod policy;
mod progress;
mod resume;
mod run;
mod runs;
mod screen;
mod serve;
mod servers;
mod sessions;
mod signals;
mod terminal_bridge;
mod types;

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use airlock_core::problem::Problem;
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use crate::config::Environment;
use crate::login::finish_before_exit;
use crate::render::escape;
use airlock_sandbox::thread_priority;
use screen::Screen;

/// Run scripts that call MCP tools. Scripts run in a sandbox. Your rules allow or deny each call,
/// or have a person asked. A journal records every call.
#[derive(Debug, Parser)]
#[command(name = "airlock", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Put the servers of the agent hosts on this machine behind airlock
    Init(Box<init::InitOptions>),
    /// Check the agent hosts on this machine that use airlock
    Doctor(Box<doctor::DoctorOptions>),
    /// Run a script
    Run(Box<run::RunOptions>),
    /// Serve all tools to agent hosts as one MCP server, over stdio or HTTP
    Serve(Box<serve::ServeOptions>),
    /// Connect to every configured server, and show its state and number of tools, or why it cannot be used
    Servers(Box<servers::ServersOptions>),
    /// Log in to a server with OAuth
    Login(Box<login::LoginOptions>),
    /// Delete the login to a server, and revoke its tokens where the server offers that
    Logout(Box<login::LogoutOptions>),
    /// Check a script for errors without running it
    Check(Box<check::CheckOptions>),
    /// Print the tools that a script can call, as TypeScript declarations
    Types(Box<types::TypesOptions>),
    /// Manage tool files, which add to the servers' tool descriptions
    #[command(subcommand)]
    Descriptions(descriptions::DescriptionsCommand),
    /// Pin tool descriptions in a lock file; accept, show or check changes
    Lock(Box<lock::LockOptions>),
    /// Check and test policies
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// List, show and verify recorded runs
    #[command(subcommand)]
    Runs(runs::RunsCommand),
    /// List, show and revoke grants, which are approvals that cover several calls
    #[command(subcommand)]
    Grants(grants::GrantsCommand),
    /// List what sessions have read, and declassify it
    #[command(subcommand)]
    Sessions(sessions::SessionsCommand),
    /// Serve the demo tools as an MCP server over stdio
    DemoServer,
    /// List the script engines
    Engines(engines::EnginesOptions),
    /// Print completions for a shell
    Completions(manual::CompletionsOptions),
    /// Print a manual page, for `man -l -`
    Man(manual::ManOptions),
}

/// The result of a command: an exit code, or a problem that determines the exit code.
type Outcome = Result<u8, Problem>;

pub fn main(arguments: impl IntoIterator<Item = OsString>, environment: Environment) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(unparsed(&error, &arguments, &environment)),
    };
    let json = cli.command.is_json();
    let outcome = match cli.command {
        Command::Init(options) => init::run(*options, &environment),
        Command::Doctor(options) => doctor::run(*options, &environment),
        Command::Run(options) => run::run(*options, &environment),
        Command::Serve(options) => serve::run(*options, &environment),
        Command::Servers(options) => servers::run(*options, &environment),
        Command::Login(options) => login::login(*options, &environment),
        Command::Logout(options) => login::logout(*options, &environment),
        Command::Check(options) => check::run(*options, &environment),
        Command::Types(options) => types::run(*options, &environment),
        Command::Descriptions(command) => descriptions::run(command, &environment),
        Command::Lock(options) => lock::run(*options, &environment),
        Command::Policy(command) => policy::run(command, &environment),
        Command::Runs(command) => runs::run(command, &environment),
        Command::Grants(command) => grants::run(command, &environment),
        Command::Sessions(command) => sessions::run(command, &environment),
        Command::DemoServer => demo_server::run(),
        Command::Engines(options) => engines::run(&options),
        Command::Completions(options) => manual::completions(&options),
        Command::Man(options) => manual::man(&options),
    };
    let code = outcome.unwrap_or_else(|problem| {
        if json {
            let _ = print_json(&serde_json::json!({ "problem": problem }));
        }
        Screen::of_process(&environment, false).problem(&problem);
        exit::of_problem(&problem)
    });
    finish_before_exit();
    ExitCode::from(code)
}

impl Command {
    fn is_json(&self) -> bool {
        match self {
            Self::Init(options) => options.json,
            Self::Doctor(options) => options.json,
            Self::Run(options) => options.json,
            Self::Servers(options) => options.view.json,
            Self::Check(options) => options.json,
            Self::Types(options) => options.view.json,
            Self::Descriptions(command) => command.is_json(),
            Self::Lock(options) => options.view.json,
            Self::Policy(command) => command.is_json(),
            Self::Runs(command) => command.is_json(),
            Self::Grants(command) => command.is_json(),
            Self::Sessions(command) => command.is_json(),
            Self::Engines(options) => options.json,
            Self::Serve(_)
            | Self::Login(_)
            | Self::Logout(_)
            | Self::DemoServer
            | Self::Completions(_)
            | Self::Man(_) => false,
        }
    }
}

/// Writes to stdout. All commands write their output with this function. A closed pipe is not an
/// error.
fn print(text: &str) -> Result<(), Problem> {
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            let why = error.to_string();
            Err(Problem::new(
                "internal",
                "cannot write to stdout",
                why,
                "check the file or the program that receives the output",
            ))
        }
        _ => Ok(()),
    }
}

fn print_json(value: &impl serde::Serialize) -> Result<(), Problem> {
    let text = serde_json::to_string(value).map_err(|error| {
        Problem::new(
            "internal",
            "cannot serialize the output as JSON",
            error.to_string(),
            "",
        )
    })?;
    let is_terminal = std::io::stdout().is_terminal();
    let text = if is_terminal {
        escape::json(&text)
    } else {
        text.into()
    };
    print(&format!("{text}\n"))
}

fn unparsed(error: &clap::Error, arguments: &[OsString], environment: &Environment) -> u8 {
    let text = error.render().to_string();
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        return print(&text).map_or(exit::INTERNAL, |()| exit::DONE);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        Screen::of_process(environment, false).show(&text);
        return exit::USAGE;
    }
    let problem = command_line::problem(error, arguments);
    Screen::of_process(environment, false).problem(&problem);
    exit::USAGE
}

/// Creates the tokio runtime of a command.
fn runtime() -> Result<tokio::runtime::Runtime, Problem> {
    thread_priority::run_soon();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Problem::new("internal", "cannot start threads", error.to_string(), ""))
}
