//! `airlock lock`: pins the servers' tool descriptions, shows what has changed since, and accepts
//! changes.

use airlock_core::problem::Problem;
use clap::{Args, ValueEnum};
use codegen::lock::{Change, ReorderedList, diff, settle_all};
use serde_json::json;

use super::connect::visit;
use super::options::ServerView;
use super::screen::Screen;
use super::servers::no_servers;
use super::{Outcome, exit, print, print_json};
use crate::broker::Broker;
use crate::config::Environment;
use crate::lock_file::LockFile;
use crate::render::{counted, escape};

/// The path of the lock file, unless `--lock` or the configuration sets another.
const FILE: &str = "airlock.lock";

#[derive(Debug, Args)]
pub(super) struct LockOptions {
    /// Print the changes since the lock file was written, and write nothing
    #[arg(value_name = "diff", value_enum)]
    action: Option<Action>,
    /// Write nothing, and exit with 33 if anything has changed
    #[arg(long, conflicts_with = "action")]
    check: bool,
    /// Remove from the lock file the servers that are no longer configured
    #[arg(long)]
    prune: bool,
    #[command(flatten)]
    pub(super) view: ServerView,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Action {
    Diff,
}

pub(super) fn run(options: LockOptions, environment: &Environment) -> Outcome {
    let screen = Screen::of_process(environment, false);
    let (required, is_json) = (!options.view.servers.skip_unreachable, options.view.json);
    let mut config = options.view.load(environment, &screen)?;
    let file = LockFile::new(
        config
            .settings
            .tools
            .lock
            .take()
            .unwrap_or_else(|| FILE.into()),
    );
    if config.servers.is_empty() {
        return Err(no_servers("there is nothing to lock"));
    }
    let before = if options.check {
        file.read_existing()?
    } else {
        file.read()?.unwrap_or_default()
    };
    let builder = Broker::builder().servers_required(required).config(config);
    let mut now = visit(builder, &screen, async |broker: &Broker| broker.lock())?;
    if !options.prune {
        for (name, server) in &before.servers {
            now.servers
                .entry(name.clone())
                .or_insert_with(|| server.clone());
        }
    }
    let moved = settle_all(&mut now, &before);
    let changes = diff(&before, &now);
    let writes = !options.check && options.action.is_none();
    let written = writes && file.write(&now)?;
    if is_json {
        let path = file.path().display().to_string();
        let moved: Vec<String> = moved.iter().map(name_of).collect();
        print_json(
            &json!({ "file": path, "changes": changes, "moved": moved, "written": written }),
        )?;
    } else {
        show(&changes)?;
        for list in &moved {
            let name = name_of(list);
            let name = escape::line(&name);
            screen.remark(&format!("{name} has another order, which is exempt\n"));
        }
        screen.remark(&format!("{}\n", ending(&file, &changes, writes)));
    }
    Ok(if options.check && !changes.is_empty() {
        exit::LOCK
    } else {
        exit::DONE
    })
}

fn name_of(list: &ReorderedList) -> String {
    format!("{}.{}: {}", list.server, list.tool, list.field)
}

fn show(changes: &[Change]) -> Result<(), Problem> {
    let lines: String = changes
        .iter()
        .map(|change| format!("{}\n", escape::line(&change.to_string())))
        .collect();
    print(&lines)
}

fn ending(file: &LockFile, changes: &[Change], writes: bool) -> String {
    let path = file.path().display();
    let count = counted(changes.len(), "change");
    match (changes.is_empty(), writes) {
        (true, _) => format!("{path}: nothing has changed"),
        (false, true) => format!("{path}: {count} accepted"),
        (false, false) => format!("{path}: {count}; `airlock lock` accepts them"),
    }
}
