//! `airlock runs`: shows the contents of journals. It never changes a journal.

mod verify;

use std::collections::BTreeSet;
use std::path::Path;

use airlock_core::id::{CallId, RunId};
use airlock_core::journal::{Body, JournalLine, Verdict, VerifiedJournal, read};
use airlock_core::problem::Problem;
use airlock_core::report::Status;
use clap::Subcommand;
use serde_json::{Value, json};

use super::options::{StateOptions, StateView, usage};
use super::screen::Screen;
use super::{Outcome, exit, print, print_json};
use crate::config::Environment;
use crate::journal_file::JournalError;
use crate::private_file::{self, StateDir};
use crate::render::{self, counted, escape};
use crate::run_index::IndexError;
use airlock_sandbox::clock::utc;

const LISTS_RUNS: &str = "`airlock runs list` lists the runs";

#[derive(Debug, Subcommand)]
pub(super) enum RunsCommand {
    /// List the latest runs, newest first
    List {
        /// Number of runs to list
        #[arg(long, short = 'n', default_value_t = 20)]
        number: usize,
        #[command(flatten)]
        common: StateView,
    },
    /// Show one run and its calls
    Show {
        /// Run id, or the start of it
        run: String,
        #[command(flatten)]
        common: StateView,
    },
    /// Verify that journals are intact, ended and signed, and list calls without a recorded outcome
    Verify {
        /// Run id, the start of it, or a journal file (.jsonl) [default: all runs]
        run: Option<String>,
        #[command(flatten)]
        trust: verify::TrustOptions,
        #[command(flatten)]
        common: StateView,
    },
    /// Print the public key that the ends of runs are signed with
    Key {
        #[command(flatten)]
        common: StateView,
    },
}

impl RunsCommand {
    pub(super) fn is_json(&self) -> bool {
        let (Self::List { common, .. }
        | Self::Show { common, .. }
        | Self::Verify { common, .. }
        | Self::Key { common }) = self;
        common.json
    }
}

pub(super) fn run(command: RunsCommand, environment: &Environment) -> Outcome {
    let screen = Screen::of_process(environment, false);
    match command {
        RunsCommand::List { number, common } => {
            let state = state(common.state, environment)?;
            list(&state, number, common.json, &screen)
        }
        RunsCommand::Show { run, common } => {
            show(&state(common.state, environment)?, &run, common.json)
        }
        RunsCommand::Verify { run, trust, common } => {
            let state = state(common.state, environment)?;
            match run {
                Some(run) => verify::one(&state, trust, &run, common.json),
                None => verify::all(&state, trust, common.json, &screen),
            }
        }
        RunsCommand::Key { common } => {
            let state = StateDir::open(common.state.load(environment)?.state_dir)?;
            key(&state, common.json)
        }
    }
}

fn state(options: StateOptions, environment: &Environment) -> Result<StateDir, Problem> {
    StateDir::existing(options.load(environment)?.state_dir)
}

fn key(state: &StateDir, is_json: bool) -> Outcome {
    let key = state.public_key().map_err(IndexError::into_problem)?;
    if is_json {
        print_json(&json!({ "key": key }))?;
    } else {
        print(&format!("{key}\n"))?;
    }
    Ok(exit::DONE)
}

fn list(state: &StateDir, number: usize, is_json: bool, screen: &Screen) -> Outcome {
    let runs = listed(state, is_json, screen)?;
    let rows: Vec<Row> = runs
        .iter()
        .take(number)
        .map(|run| Row::read(state, run))
        .collect();
    if is_json {
        print_json(
            &json!({ "runs": rows.iter().map(Row::json).collect::<Vec<_>>(), "total": runs.len() }),
        )?;
    } else {
        print(&rows.iter().map(Row::text).collect::<String>())?;
        if rows.len() < runs.len() {
            let (shown, all) = (rows.len(), runs.len());
            screen.remark(&format!(
                "{shown} of {all} runs; use --number to list more\n"
            ));
        }
    }
    Ok(exit::DONE)
}

/// Returns all runs, newest first. Without JSON output, a note is printed if there are none.
fn listed(state: &StateDir, is_json: bool, screen: &Screen) -> Result<Vec<RunId>, Problem> {
    let runs = state.runs_newest_first().map_err(unreadable)?;
    if runs.is_empty() && !is_json {
        let folder = state.path().display().to_string();
        let folder = escape::line(&folder);
        screen.remark(&format!("there are no journals in {folder}\n"));
    }
    Ok(runs)
}

/// One run in a list, from the first and last entries of its journal.
struct Row {
    run: RunId,
    started: Option<JournalLine>,
    ended: Option<JournalLine>,
    is_running: bool,
}

impl Row {
    fn read(state: &StateDir, run: &RunId) -> Self {
        let line = |bytes: &[u8]| serde_json::from_slice::<JournalLine>(bytes).ok();
        let ends = state.ends(run).ok();
        let ended = ends.as_ref().and_then(|ends| line(&ends.last));
        Self {
            run: run.clone(),
            started: ends.as_ref().and_then(|ends| line(&ends.first)),
            ended: ended.filter(|line| matches!(line.body, Body::Ended(_))),
            is_running: state.is_running(run),
        }
    }

    /// Returns the status. For a journal without an end, this is `running` if a process still
    /// writes the journal, and `interrupted` otherwise.
    fn status(&self) -> String {
        match self.ended.as_ref().map(|line| &line.body) {
            Some(Body::Ended(ended)) => status_word(ended.status),
            _ if self.is_running => "running".into(),
            _ => "interrupted".into(),
        }
    }

    fn json(&self) -> Value {
        let (code, usage) = match self.ended.as_ref().map(|line| &line.body) {
            Some(Body::Ended(ended)) => (json!(ended.code), json!(ended.usage)),
            _ => (Value::Null, Value::Null),
        };
        json!({
            "run": self.run, "status": self.status(), "code": code, "script": self.script(),
            "started_ms": self.started.as_ref().map(|line| line.at_ms), "usage": usage,
        })
    }

    fn text(&self) -> String {
        let at = self
            .started
            .as_ref()
            .map(|line| utc(line.at_ms))
            .unwrap_or_default();
        let calls = match self.ended.as_ref().map(|line| &line.body) {
            Some(Body::Ended(ended)) => counted(ended.usage.calls, "call"),
            _ => String::new(),
        };
        let script = escape::brief(self.script().unwrap_or("?"), 40);
        format!(
            "{}  {at:20}  {:11}  {calls:>10}  {script}\n",
            self.run.0,
            self.status()
        )
    }

    fn script(&self) -> Option<&str> {
        match &self.started.as_ref()?.body {
            Body::RunStarted(started) => Some(&started.script_name),
            _ => None,
        }
    }
}

fn show(state: &StateDir, id: &str, is_json: bool) -> Outcome {
    let run = state.find(id).map_err(unreadable)?;
    let journal = verified(state, &run)?;
    if is_json {
        print_json(&run_json(&run, &journal))?;
    } else {
        let path = state.journal_path(&run);
        let path = escape::line(&path.to_string_lossy()).into_owned();
        print(&format!(
            "run {}\n{}journal: {path}\n",
            run.0,
            render::history(&journal)
        ))?;
    }
    Ok(exit::DONE)
}

/// Returns the journal of a run or of a file, with its name in messages.
pub(super) fn journal(
    id: &str,
    options: StateOptions,
    environment: &Environment,
) -> Result<(String, VerifiedJournal), Problem> {
    let loaded = load(&state(options, environment)?, id)?;
    let journal = read(&loaded.bytes);
    let journal = journal.map_err(|broken| broken_journal(&loaded.name, &broken.to_string()))?;
    Ok((loaded.name, journal))
}

/// A journal as it is on disk.
struct LoadedJournal {
    /// The run's id or the file's path, as the journal is called in messages.
    name: String,
    /// The run that the file is named after.
    run: RunId,
    bytes: Vec<u8>,
}

fn load(state: &StateDir, id: &str) -> Result<LoadedJournal, Problem> {
    if !id.ends_with(".jsonl") {
        let run = state.find(id).map_err(unreadable)?;
        return Ok(LoadedJournal {
            name: run.0.to_string(),
            bytes: state.read(&run).map_err(unreadable)?,
            run,
        });
    }
    let path = Path::new(id);
    let what = format!("{id} cannot be read");
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok(LoadedJournal {
        name: id.to_owned(),
        bytes: private_file::read(path)
            .map_err(|error| usage(what, error.to_string(), "check the path"))?,
        run: RunId(stem.into()),
    })
}

/// Reads a journal that must be the one of this run. An empty journal is intact.
fn intact(run: &RunId, bytes: &[u8]) -> Result<VerifiedJournal, String> {
    let journal = read(bytes).map_err(|broken| broken.to_string())?;
    match journal.started() {
        Some(started) if started.run != *run => Err(format!(
            "the file is named after the run {}, and holds the journal of {}",
            run.0, started.run.0
        )),
        _ => Ok(journal),
    }
}

fn verified(state: &StateDir, run: &RunId) -> Result<VerifiedJournal, Problem> {
    let bytes = state.read(run).map_err(unreadable)?;
    intact(run, &bytes).map_err(|why| broken_journal(&run.0, &why))
}

fn run_json(run: &RunId, journal: &VerifiedJournal) -> Value {
    let ended = journal.ended();
    let status = ended.map_or_else(
        || "interrupted".to_owned(),
        |ended| status_word(ended.status),
    );
    let started = journal.started();
    json!({
        "run": run,
        "status": status,
        "code": ended.and_then(|ended| ended.code),
        "error": ended.and_then(|ended| ended.error.clone()),
        "script": started.map(|started| started.script_name.clone()),
        "script_digest": started.map(|started| started.script_digest),
        "seed": started.map(|started| started.seed.clone()),
        "engine": started.map(|started| json!({
            "name": started.guest_name, "digest": started.guest_digest,
        })),
        "limits": started.map(|started| started.limits),
        "rules": started.map(|started| started.rules.clone()),
        "findings": started.map(|started| started.findings.clone()),
        "started_ms": journal.lines.first().map(|line| line.at_ms),
        "calls": calls(journal),
        "usage": ended.map(|ended| ended.usage),
        "cut": journal.cut.is_some(),
        "in_doubt": in_doubt(journal),
        "uses_in_doubt": uses_in_doubt(journal),
    })
}

/// Returns each decided call with its outcome, in the format of a report.
fn calls(journal: &VerifiedJournal) -> Vec<Value> {
    let asked = |call| {
        let mut said = journal.of_call(call);
        said.any(|body| matches!(body, Body::Asked(_)))
    };
    let decided = journal.lines.iter().filter_map(|line| match &line.body {
        Body::Decided(decided) => Some(decided),
        _ => None,
    });
    decided
        .map(|decided| {
            let settled = journal.settled(decided.call);
            let decision = match decided.decision {
                _ if asked(decided.call) => "ask",
                Verdict::Deny => "deny",
                _ => "allow",
            };
            json!({
                "id": decided.call, "tool": decided.tool, "decision": decision, "reasons": decided.reasons,
                "args": decided.args,
                "outcome": settled.map(|settled| json!(settled.outcome)),
                "code": settled.map_or(json!(decided.code), |settled| json!(settled.code)),
                "ms": settled.map(|settled| settled.ms),
                "warnings": decided.warnings,
            })
        })
        .collect()
}

fn in_doubt(journal: &VerifiedJournal) -> Vec<Value> {
    let calls: BTreeSet<CallId> = journal.in_doubt.iter().copied().collect();
    let decided = journal.lines.iter().filter_map(|line| match &line.body {
        Body::Decided(decided) if calls.contains(&decided.call) => Some(decided),
        _ => None,
    });
    decided
        .map(|decided| json!({ "id": decided.call, "tool": decided.tool, "args": decided.args }))
        .collect()
}

fn uses_in_doubt(journal: &VerifiedJournal) -> Vec<Value> {
    let uses = journal.uses_in_doubt.iter();
    uses.map(|(call, grant)| json!({ "call": call, "grant": grant }))
        .collect()
}

fn status_word(status: Status) -> String {
    format!("{status:?}").to_lowercase()
}

pub(super) fn unreadable(error: JournalError) -> Problem {
    match error {
        JournalError::Unknown { .. } => {
            usage("there is no such run", error.to_string(), LISTS_RUNS)
        }
        JournalError::Ambiguous { .. } => usage(
            "it is not clear which run is meant",
            error.to_string(),
            LISTS_RUNS,
        ),
        JournalError::Io { .. } => Problem::new(
            "journal-unreadable",
            "cannot read the journal",
            error.to_string(),
            "check the folder that --state-dir names",
        ),
    }
}

fn broken_journal(name: &str, why: &str) -> Problem {
    let what = format!("the journal of {name} does not verify");
    Problem::new(
        "journal-broken",
        what,
        why,
        "do not trust the journal from that line on; the file was changed or is damaged",
    )
}
