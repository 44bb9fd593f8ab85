//! `airlock descriptions observe`: proposes types for the results in journals. It takes the
//! structure of results, and never a value.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use airlock_core::id::{RunId, ToolId};
use airlock_core::journal::{Body, VerifiedJournal, read};
use airlock_core::json::{self, Bounds};
use airlock_core::report::ReportedOutcome;
use clap::Args;
use codegen::observe::Observation;
use serde_json::{Map, Value, json};

use super::{ask, files};
use crate::cli::options::{ServerView, usage};
use crate::cli::runs::unreadable;
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, print, print_json};
use crate::config::Environment;
use crate::private_file::StateDir;
use crate::render::escape;
use crate::tool_files::{LoadedToolFiles, ToolFiles, WriteOutcome};

#[derive(Debug, Args)]
pub(in crate::cli) struct ObserveOptions {
    /// Run ids, or the start of run ids
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// Use all runs that have a journal
    #[arg(long, conflicts_with = "runs")]
    all: bool,
    /// Write the proposals into tool files in this folder, for tools without a result type
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
    #[command(flatten)]
    pub(super) view: ServerView,
}

/// The results that the journals of some runs contain.
#[derive(Default)]
struct Observations {
    tools: BTreeMap<ToolId, Tool>,
    /// Number of results that were too long for a journal.
    without_text: u64,
}

#[derive(Default)]
struct Tool {
    seen: Observation,
    runs: BTreeSet<RunId>,
}

/// Bounds of a recorded result. airlock writes journals within limits; these bounds guard against
/// other files.
const BOUNDS: Bounds = Bounds {
    bytes_max: u32::MAX,
    depth_max: 600,
    nodes_max: 64_000_000,
};

pub(super) fn run(options: ObserveOptions, environment: &Environment, screen: &Screen) -> Outcome {
    if options.runs.is_empty() && !options.all {
        let next = "name runs, or write --all; `airlock runs list` lists them";
        return Err(usage(
            "no run is selected",
            "neither a run nor --all was given",
            next,
        ));
    }
    let state = StateDir::existing(options.view.state.clone().load(environment)?.state_dir)?;
    let runs = if options.all {
        state.runs_newest_first().map_err(unreadable)?
    } else {
        let found = options.runs.iter().map(|id| state.find(id));
        found.collect::<Result<_, _>>().map_err(unreadable)?
    };
    let mut observed = Observations::default();
    for run in &runs {
        let bytes = state.read(run).map_err(unreadable)?;
        match read(&bytes) {
            Ok(journal) => observed.take(run, &journal),
            Err(broken) => screen.remark(&format!(
                "run {} was skipped, because its journal does not verify: {}\n",
                run.0,
                escape::line(&broken.to_string())
            )),
        }
    }
    let mut servers = Vec::new();
    let is_json = options.view.json;
    if options.view.servers.names_any() {
        let (said, _) = ask(options.view, environment, screen)?;
        let declares = |id: &ToolId| {
            said.tool(&id.server.0, &id.tool.0)
                .is_some_and(|it| it.output_schema.is_some())
        };
        observed.tools.retain(|id, _| !declares(id));
        servers = said.configured;
    }
    if observed.without_text > 0 {
        let count = observed.without_text;
        screen.remark(&format!(
            "{count} results were skipped, because their journals hold only digests of them\n"
        ));
    }
    match options.to {
        Some(folder) => write(&observed, &files(Some(folder), None, servers), is_json),
        None => show(&observed),
    }
}

impl Observations {
    fn take(&mut self, run: &RunId, journal: &VerifiedJournal) {
        for line in &journal.lines {
            let Body::Settled(settled) = &line.body else {
                continue;
            };
            let Some(decided) = journal.decided(settled.call) else {
                continue;
            };
            if settled.outcome != ReportedOutcome::Returned {
                continue;
            }
            let value = settled.payload.as_ref();
            let value = value.and_then(|it| json::read(it.as_bytes(), BOUNDS).ok());
            let Some(value) = value else {
                self.without_text += 1;
                continue;
            };
            let tool = self.tools.entry(decided.tool.clone()).or_default();
            tool.seen.add(&value);
            tool.runs.insert(run.clone());
        }
    }
}

impl Tool {
    fn add_to(&self, file: &mut Map<String, Value>) {
        file.insert("outputSchema".into(), self.seen.schema());
        file.insert(
            "observed".into(),
            json!({"results": self.seen.count(), "runs": self.runs.len()}),
        );
    }
}

fn show(observed: &Observations) -> Outcome {
    let mut proposals = Map::new();
    for (id, tool) in &observed.tools {
        let mut members = Map::new();
        tool.add_to(&mut members);
        proposals.insert(id.to_string(), members.into());
    }
    print_json(&proposals)?;
    Ok(exit::DONE)
}

/// Writes tool files. A type that a person wrote stays; a type that was observed earlier is
/// replaced.
fn write(observed: &Observations, files: &ToolFiles, is_json: bool) -> Outcome {
    let loaded = match files.path().exists() {
        true => files.load()?,
        false => LoadedToolFiles::default(),
    };
    if let Some(problem) = loaded.problems.first() {
        return Err(problem.clone());
    }
    let mut rows = Vec::new();
    for (id, tool) in &observed.tools {
        let (server, name) = (&*id.server.0, &*id.tool.0);
        let before = loaded.about(server, name);
        let is_written = |file: &codegen::tool_file::ToolFile| {
            !file.output_schema.is_empty() && file.observed.is_none()
        };
        let done = if before.is_some_and(|it| is_written(&it.read.file)) {
            "kept"
        } else {
            let before = before.and_then(|it| it.read.value.as_object().cloned());
            let mut file = before.unwrap_or_else(|| blank(name));
            tool.add_to(&mut file);
            word(files.write(server, name, &Value::Object(file))?)
        };
        let file = files.shown_name(server, name);
        if is_json {
            rows.push(json!({"tool": id.to_string(), "file": file, "done": done}));
        } else {
            print(&format!("{done:9} {}\n", escape::line(&file)))?;
        }
    }
    if is_json {
        print_json(&json!({ "files": rows }))?;
    }
    Ok(exit::DONE)
}

fn word(written: WriteOutcome) -> &'static str {
    match written {
        WriteOutcome::Created => "new",
        WriteOutcome::Changed => "changed",
        WriteOutcome::Unchanged => "unchanged",
    }
}

fn blank(name: &str) -> Map<String, Value> {
    let mut file = Map::new();
    file.insert("$schema".into(), "../format.schema.json".into());
    file.insert("name".into(), name.into());
    file
}
