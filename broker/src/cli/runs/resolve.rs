//! `airlock runs resolve`: a person says what became of a call whose outcome is unknown.

use airlock_core::id::Digest;
use airlock_core::problem::Problem;
use airlock_core::resume::CallRef;
use airlock_core::resume::chain::ChainRecord;
use airlock_core::resume::ledger::LedgerEntry;
use airlock_core::statement::{StatedOutcome, Statement};
use airlock_sandbox::clock::Clock;
use clap::{Args, ValueEnum};
use codegen::canonical;
use serde_json::{Value, json};

use super::unreadable;
use crate::approver::by_user;
use crate::cli::options::{StateView, usage};
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, input, print, print_json};
use crate::config::{Config, Environment};
use crate::private_file::StateDir;
use crate::render::{self, escape};
use crate::run_chain::{ResumeError, StoredChain};
use crate::stated_result::{self, SchemaCheck};

#[derive(Debug, Args)]
pub(in crate::cli) struct ResolveOptions {
    /// The call, as RUN:CALL; RUN may be the start of the run's id
    call: String,
    /// What became of the call
    #[arg(value_enum)]
    outcome: OutcomeWord,
    /// The result that the script gets: JSON, @FILE, or @- for stdin. Without it, a script that
    /// needs the result fails
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    result: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) common: StateView,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutcomeWord {
    /// The call had its effect. It is not made again
    Happened,
    /// The call had no effect. It may be made again
    DidNotHappen,
}

pub(super) fn run(options: ResolveOptions, environment: &Environment) -> Outcome {
    let config = options.common.state.clone().load(environment)?;
    let outcome = outcome(&options, &config)?;
    let state = StateDir::existing(config.state_dir.clone())?;
    let about = call_ref(&state, &options.call)?;
    let stored = state.stored_chain(&about.run);
    let stored = stored.map_err(ResumeError::into_problem)?;
    let ledger = stored.ledger().map_err(ResumeError::into_problem)?;
    let entry = ledger.entry(&about);
    let statement = Statement {
        args_digest: entry.map_or(Digest::sha256(b""), |it| it.key.args),
        outcome,
        by: whoami(),
        shown: Digest::sha256(&canonical::canonical(&entry.map(shown).unwrap_or_default())),
        about,
    };
    let checked = ledger.check_statement(&statement);
    checked.map_err(|error| ResumeError::from(error).into_problem())?;
    let check = match (entry, statement.outcome.result()) {
        (Some(entry), Some(result)) => {
            let checked = stated_result::check(result, (entry, &stored), (&state, &config.secrets));
            checked.map_err(|bad| ResumeError::from(bad).into_problem())?
        }
        _ => SchemaCheck::Fits,
    };
    let record = ChainRecord::Statement(statement.clone());
    let recorded = stored.record(&state, record, Clock::start().now_ms());
    recorded.map_err(ResumeError::into_problem)?;
    let replaced = entry.and_then(|entry| entry.stated.as_ref());
    if options.common.json {
        print_json(&json!({ "statement": statement, "replaces": replaced }))?;
        return Ok(exit::DONE);
    }
    let (about, word) = (&statement.about, statement.outcome.in_words());
    print(&format!("recorded: {about} {word}\n"))?;
    let screen = Screen::of_process(environment, false);
    if let Some(replaced) = replaced {
        let before = replaced.in_words();
        screen.remark(&format!("this replaces the earlier statement: {before}\n"));
    }
    if check == SchemaCheck::Unknown {
        screen.remark(
            "the result was not checked: the tool's description at the time of the call is not stored\n",
        );
    }
    screen.remark(&how_to_continue(&stored));
    Ok(exit::DONE)
}

/// Says how a person continues the newest run of a chain.
pub(super) fn how_to_continue(stored: &StoredChain) -> String {
    let run = &stored.chain.newest().0;
    let started = stored.newest_started();
    let command = started.and_then(|it| it.command.as_ref());
    match (started.and_then(|it| it.host.as_deref()), command) {
        (Some(host), _) => format!(
            "continue in the host {} with the tool `resume_run` and the run {run}\n",
            escape::brief(host, 80)
        ),
        (None, Some(command)) => format!(
            "continue with: {}\n",
            render::resume_command(run, Some(command))
        ),
        (None, None) => format!(
            "continue with `airlock run --resume {run}` and the same servers and rules as before\n"
        ),
    }
}

/// Parses `RUN:CALL`, in which the run's id may be shortened.
pub(super) fn call_ref(state: &StateDir, text: &str) -> Result<CallRef, Problem> {
    let parsed = CallRef::parse(text).ok_or_else(|| {
        let what = format!("`{}` does not name a call", escape::line(text));
        let next = "write RUN:CALL, as `airlock runs waiting` prints it";
        usage(
            what,
            "expected a run's id, a colon and a call's number",
            next,
        )
    })?;
    Ok(CallRef {
        run: state.find(&parsed.run.0).map_err(unreadable)?,
        ..parsed
    })
}

fn outcome(options: &ResolveOptions, config: &Config) -> Result<StatedOutcome, Problem> {
    let result = match (options.outcome, &options.result) {
        (OutcomeWord::DidNotHappen, None) => return Ok(StatedOutcome::DidNotHappen),
        (OutcomeWord::DidNotHappen, Some(_)) => {
            let why = "a call that did not happen has no result";
            return Err(usage("`--result` does not fit", why, "remove --result"));
        }
        (OutcomeWord::Happened, None) => return Ok(StatedOutcome::Happened { result: None }),
        (OutcomeWord::Happened, Some(argument)) => {
            input::input("--result", argument, &config.limits)?
        }
    };
    let result = Some(result.to_string());
    Ok(StatedOutcome::Happened { result })
}

/// Returns what a person sees of a call before a statement about it.
pub(super) fn shown(entry: &LedgerEntry) -> Value {
    json!({
        "call": entry.at.to_string(),
        "tool": entry.key.tool,
        "args": entry.args,
        "outcome": entry.outcome,
        "code": entry.code,
    })
}

/// Returns the user of this process, as the record of a statement names it.
pub(super) fn whoami() -> String {
    by_user("the command line")
}
