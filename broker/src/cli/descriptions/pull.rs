//! `airlock descriptions pull`: writes one file per tool. It never overwrites a person's edits.

use std::path::PathBuf;

use airlock_core::problem::Problem;
use clap::Args;
use codegen::description::Description;
use codegen::tool_file::pull::{PullOutcome, pull};
use serde_json::{Value, json};

use super::{ServerDescriptions, ask, files};
use crate::cli::options::ServerView;
use crate::cli::screen::Screen;
use crate::cli::servers::{no_servers, unknown_server};
use crate::cli::{Outcome, exit, print, print_json};
use crate::config::Environment;
use crate::render::escape;
use crate::tool_files::{LoadedToolFiles, ToolFiles};

#[derive(Debug, Args)]
pub(in crate::cli) struct PullOptions {
    /// Pull only these servers [default: all configured servers]
    #[arg(value_name = "SERVER")]
    only: Vec<String>,
    /// Folder for the files [default: the configured folder, else tool_descriptions]
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
    /// Mark the edited files as compared with the servers' current descriptions
    #[arg(long)]
    accept: bool,
    #[command(flatten)]
    pub(super) view: ServerView,
}

pub(super) fn run(options: PullOptions, environment: &Environment, screen: &Screen) -> Outcome {
    let is_json = options.view.json;
    let (said, configured) = ask(options.view, environment, screen)?;
    if said.servers.is_empty() {
        return Err(no_servers("there is nothing to pull"));
    }
    check_names(&options.only, &said)?;
    let files = files(options.to, configured, said.configured.clone());
    let loaded = match files.path().exists() {
        true => files.load()?,
        false => LoadedToolFiles::default(),
    };
    if let Some(problem) = loaded.problems.first() {
        // A file that cannot be read may contain a person's work.
        return Err(problem.clone());
    }
    let chosen = |it: &&Description| options.only.is_empty() || options.only.contains(&it.server);
    let mut rows = Vec::new();
    let mut edited = 0_usize;
    for tool in said.descriptions.iter().filter(chosen) {
        let (word, name) = one(&files, &loaded, tool, options.accept)?;
        edited += usize::from(word == "edited");
        if is_json {
            rows.push(json!({"tool": format!("{}.{}", tool.server, tool.name), "file": name, "done": word}));
        } else {
            print(&format!("{word:9} {}\n", escape::line(&name)))?;
        }
    }
    if is_json {
        print_json(&json!({ "files": rows }))?;
    }
    if edited > 0 {
        let these = if edited == 1 {
            "1 file was"
        } else {
            &format!("{edited} files were")
        };
        screen.remark(&format!(
            "{these} edited, and not compared with the servers' current descriptions; compare, \
             then pull with --accept\n"
        ));
    }
    Ok(if edited > 0 {
        exit::CONFIGURATION
    } else {
        exit::DONE
    })
}

fn check_names(only: &[String], said: &ServerDescriptions) -> Result<(), Problem> {
    for name in only {
        if !said.servers.contains(name) {
            let known: Vec<&str> = said.servers.iter().map(String::as_str).collect();
            return Err(unknown_server(name, &known));
        }
    }
    Ok(())
}

/// Writes the file of one tool and returns what was done.
fn one(
    files: &ToolFiles,
    loaded: &LoadedToolFiles,
    tool: &Description,
    accept: bool,
) -> Result<(&'static str, String), Problem> {
    let before = loaded.about(&tool.server, &tool.name);
    let write = |value: &Value| files.write(&tool.server, &tool.name, value);
    let word = match pull(tool, before.map(|it| &it.read.value), accept) {
        PullOutcome::New(value) => write(&value).map(|_| "new"),
        PullOutcome::Renewed(value) => write(&value).map(|_| "renewed"),
        PullOutcome::Accepted(value) => write(&value).map(|_| "accepted"),
        PullOutcome::AsBefore => Ok("unchanged"),
        PullOutcome::Edited => Ok("edited"),
    };
    Ok((word?, files.shown_name(&tool.server, &tool.name)))
}
