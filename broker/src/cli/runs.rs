//! `airlock runs`: shows the contents of journals, and records what people state about calls. It
//! never changes a journal.

mod answer;
mod list;
mod prune;
mod resolve;
mod verify;
mod waiting;

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use airlock_core::id::{CallId, RunId};
use airlock_core::journal::{Body, DecidedEntry, Verdict, VerifiedJournal, read};
use airlock_core::problem::Problem;
use airlock_core::report::Status;
use airlock_core::resume::chain::StoredAnswerWord;
use clap::Subcommand;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use resolve::how_to_continue;

use super::options::{StateOptions, StateView, usage};
use super::screen::Screen;
use super::{Outcome, exit, print, print_json};
use crate::config::{Environment, choice};
use crate::journal_file::{JournalError, is_locked};
use crate::private_file::{self, StateDir};
use crate::render::{self, escape};
use crate::run_index::IndexError;

const LISTS_RUNS: &str = "`airlock runs list` lists the runs";

#[derive(Debug, Subcommand)]
pub(super) enum RunsCommand {
    /// List the latest runs, newest first
    List(list::ListOptions),
    /// Show one run and its calls
    Show {
        /// Run id, or the start of it
        run: String,
        /// Print only the script
        #[arg(long, conflicts_with = "value")]
        script: bool,
        /// Print only the value that the script returned
        #[arg(long)]
        value: bool,
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
    /// List the calls about which a person has to decide before a run can go on
    Waiting {
        #[command(flatten)]
        common: StateView,
    },
    /// Show an open question of a run that waits without a process, or answer it
    Answer(answer::AnswerOptions),
    /// Record what became of a call whose outcome is unknown
    Resolve(resolve::ResolveOptions),
    /// Delete old journals
    Prune(prune::PruneOptions),
    /// Print the public key that the ends of runs are signed with
    Key {
        #[command(flatten)]
        common: StateView,
    },
}

impl RunsCommand {
    pub(super) fn is_json(&self) -> bool {
        let (Self::List(list::ListOptions { common, .. })
        | Self::Show { common, .. }
        | Self::Verify { common, .. }
        | Self::Waiting { common }
        | Self::Answer(answer::AnswerOptions { common, .. })
        | Self::Resolve(resolve::ResolveOptions { common, .. })
        | Self::Prune(prune::PruneOptions { common, .. })
        | Self::Key { common }) = self;
        common.json
    }
}

pub(super) fn run(command: RunsCommand, environment: &Environment) -> Outcome {
    let screen = Screen::of_process(environment, false);
    match command {
        RunsCommand::List(options) => list::run(options, environment, &screen),
        RunsCommand::Show {
            run,
            script,
            value,
            common,
        } => {
            let state = common.state.open_existing(environment, None)?;
            match (script, value) {
                (true, _) => show_script(&state, &run, common.json),
                (_, true) => show_value(&state, &run, common.json, &screen),
                _ => show(&state, &run, common.json),
            }
        }
        RunsCommand::Verify { run, trust, common } => {
            match run {
                // A copy of a journal can be verified without its state directory.
                Some(run) if run.ends_with(".jsonl") => {
                    let state = StateDir::existing(common.state.load(environment)?.state_dir)?;
                    verify::one(&state, trust, &run, common.json)
                }
                Some(run) => {
                    let state = common.state.open_existing(environment, None)?;
                    verify::one(&state, trust, &run, common.json)
                }
                None => {
                    let shown = (!common.json).then_some(&screen);
                    let state = common.state.open_existing(environment, shown)?;
                    verify::all(&state, trust, common.json, &screen)
                }
            }
        }
        RunsCommand::Waiting { common } => {
            let shown = (!common.json).then_some(&screen);
            let state = common.state.open_existing(environment, shown)?;
            waiting::list(&state, common.json, &screen)
        }
        RunsCommand::Answer(options) => answer::run(options, environment),
        RunsCommand::Resolve(options) => resolve::run(options, environment),
        RunsCommand::Prune(options) => prune::run(options, environment),
        RunsCommand::Key { common } => {
            let state = StateDir::open(common.state.load(environment)?.state_dir)?;
            key(&state, common.json)
        }
    }
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

/// Returns all runs, newest first. Without JSON output, a note is printed if there are none.
fn listed(state: &StateDir, is_json: bool, screen: &Screen) -> Result<Vec<RunId>, Problem> {
    let runs = state.runs_newest_first().map_err(unreadable)?;
    if runs.is_empty() && !is_json && state.path().exists() {
        let folder = state.path().display().to_string();
        let folder = escape::line(&folder);
        screen.remark(&format!("there are no journals in {folder}\n"));
    }
    Ok(runs)
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
            "run {}\n{}{}{}journal: {path}\n",
            run.0,
            render::history(&journal),
            in_chain(state, &run, &journal),
            next(state, &run, &journal).unwrap_or_default(),
        ))?;
    }
    Ok(exit::DONE)
}

/// Returns how the run is resumed, if it can be.
fn next(state: &StateDir, run: &RunId, journal: &VerifiedJournal) -> Option<String> {
    if journal
        .ended()
        .is_some_and(|ended| ended.status == Status::Done)
    {
        return None;
    }
    let stored = state.stored_chain(run).and_then(|it| it.of_newest(run));
    Some(how_to_continue(&stored.ok()?))
}

/// Describes what the file of the chain says about a run: answers that were given while no process
/// of the run existed, and the run that resumed it.
fn in_chain(state: &StateDir, run: &RunId, journal: &VerifiedJournal) -> String {
    let chain = journal.started().and_then(|started| started.chain.as_ref());
    let root = chain.map_or(run, |position| &position.root);
    let chain = match state.chain(root).load() {
        Ok(chain) => chain,
        Err(error) => {
            let error = error.to_string();
            return format!(
                "the answers of people after this run cannot be shown: {}\n",
                escape::line(&error)
            );
        }
    };
    let mut text = String::new();
    for answer in chain.answers().iter().filter(|it| it.about.run == *run) {
        let word = match answer.answer {
            StoredAnswerWord::AllowOnce => "allowed",
            StoredAnswerWord::AllowDeclassified => "allowed, and its result adds no labels",
            StoredAnswerWord::Refuse => "refused",
        };
        let by = escape::brief(&answer.by, 80);
        text.push_str(&format!(
            "call {} was {word} by {by}\n",
            answer.about.call.0
        ));
    }
    let at = chain.runs().iter().position(|it| it == run);
    if let Some(next) = at.and_then(|at| chain.runs().get(at + 1)) {
        text.push_str(&format!("run {} resumed this run\n", next.0));
    }
    text
}

/// Prints the recorded script of a run.
fn show_script(state: &StateDir, id: &str, is_json: bool) -> Outcome {
    let run = state.find(id).map_err(unreadable)?;
    let journal = verified(state, &run)?;
    let started = journal.started();
    let script = started.and_then(|started| started.script.as_deref());
    let script = script.ok_or_else(|| {
        let why = "it is longer than the limit `script`, or the journal has no header";
        let next = "open the script's original file";
        usage("the script of this run is not recorded", why, next)
    })?;
    if is_json {
        let name = started.map(|started| &started.script_name);
        print_json(&json!({ "run": run, "name": name, "script": script }))?;
    } else {
        print(&format!(
            "{}\n",
            escape::block(script).trim_end_matches('\n')
        ))?;
    }
    Ok(exit::DONE)
}

/// Prints the recorded value of a run, as `airlock run` prints it.
fn show_value(state: &StateDir, id: &str, is_json: bool, screen: &Screen) -> Outcome {
    let run = state.find(id).map_err(unreadable)?;
    let journal = verified(state, &run)?;
    let ended = journal.ended();
    let value = ended.and_then(|ended| RawValue::from_string(ended.value.clone()?).ok());
    let value = value.ok_or_else(|| {
        let (why, next) = match ended.map(|ended| ended.value_digest) {
            None => ("the run has not returned", "`airlock runs list` shows its status"),
            Some(None) => ("the run returned no value", "`airlock runs show RUN` shows how it ended"),
            Some(Some(_)) => (
                "it is longer than 32 KiB or than the limit `journal-payload`, or an earlier version \
                 wrote the journal",
                "resume or repeat the run to get the value",
            ),
        };
        usage("there is no recorded value", why, next)
    })?;
    let masked = ended.is_some_and(|ended| ended.masked);
    if is_json {
        print_json(&json!({ "run": run, "value": value, "masked": masked }))?;
    } else {
        print(&render::value(&value, std::io::stdout().is_terminal()))?;
        if masked {
            screen.remark("credentials in the value are masked, as they are in the journal\n");
        }
    }
    Ok(exit::DONE)
}

/// Returns the journal of a run or of a file, with its name in messages.
pub(super) fn journal(
    id: &str,
    options: StateOptions,
    environment: &Environment,
) -> Result<(String, VerifiedJournal), Problem> {
    let state = match id.ends_with(".jsonl") {
        true => StateDir::existing(options.load(environment)?.state_dir)?,
        false => options.open_existing(environment, None)?,
    };
    let loaded = load(&state, id)?;
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
    path: PathBuf,
    bytes: Vec<u8>,
    /// Whether a process held the lock of the file before it was read.
    was_locked: bool,
    /// Whether the journal is in the state directory, beside the files of run chains.
    is_of_state: bool,
}

fn load(state: &StateDir, id: &str) -> Result<LoadedJournal, Problem> {
    if !id.ends_with(".jsonl") {
        let run = state.find(id).map_err(unreadable)?;
        let path = state.journal_path(&run);
        return Ok(LoadedJournal {
            name: run.0.to_string(),
            was_locked: is_locked(&path),
            bytes: state.read(&run).map_err(unreadable)?,
            run,
            path,
            is_of_state: true,
        });
    }
    let path = PathBuf::from(id);
    let what = format!("{id} cannot be read");
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok(LoadedJournal {
        name: id.to_owned(),
        run: RunId(stem.into()),
        was_locked: is_locked(&path),
        bytes: private_file::read(&path)
            .map_err(|error| usage(what, error.to_string(), choice::path(&path, &error)))?,
        path,
        is_of_state: false,
    })
}

/// Reads the journal of this run, and refuses the journal of another run. An empty journal is
/// intact.
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
    let status = match ended {
        Some(ended) => status_word(ended.status),
        None if journal.suspended().is_some() => status_word(Status::Paused),
        None => "interrupted".to_owned(),
    };
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

/// Returns each decided or reused call with its outcome, in the format of a report.
fn calls(journal: &VerifiedJournal) -> Vec<Value> {
    let calls = journal.lines.iter().filter_map(|line| match &line.body {
        Body::Decided(decided) => Some(decided_call(journal, decided)),
        Body::Reused(reused) => Some(json!({
            "id": reused.call, "tool": reused.tool, "decision": "allow", "reasons": [reused.why()],
            "outcome": reused.outcome, "code": reused.code, "reused_from": reused.from.to_string(),
        })),
        _ => None,
    });
    calls.collect()
}

fn decided_call(journal: &VerifiedJournal, decided: &DecidedEntry) -> Value {
    let mut said = journal.of_call(decided.call);
    let was_asked = said.any(|body| matches!(body, Body::Asked(_)));
    let settled = journal.settled(decided.call);
    let decision = match decided.decision {
        _ if was_asked => "ask",
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
        "the file was changed or is damaged after airlock wrote it, so its entries prove nothing; \
         use a copy of the journal if you have one",
    )
}
