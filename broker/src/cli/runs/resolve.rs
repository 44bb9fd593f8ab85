//! `airlock runs resolve`: a person says what became of a call whose outcome is unknown.

use airlock_core::id::Digest;
use airlock_core::journal::StartedTool;
use airlock_core::json;
use airlock_core::problem::Problem;
use airlock_core::resume::CallRef;
use airlock_core::resume::chain::ChainRecord;
use airlock_core::resume::ledger::LedgerEntry;
use airlock_core::statement::{STATED_RESULT, StatedOutcome, Statement};
use airlock_sandbox::clock::Clock;
use clap::{Args, ValueEnum};
use codegen::canonical;
use codegen::description::Description;
use codegen::validate::Validator;
use serde_json::{Value, json};

use super::unreadable;
use crate::cli::options::{StateView, usage};
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, input, print, print_json};
use crate::config::{Config, Environment};
use crate::listing_file::ListingStore;
use crate::private_file::StateDir;
use crate::render::escape;
use crate::run_chain::{ResumeError, StoredChain};

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
    let check = match entry {
        Some(entry) => check_result(&statement.outcome, (entry, &stored), &state)?,
        None => ResultCheck::Fits,
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
    if check == ResultCheck::Unknown {
        screen.remark(
            "the result was not checked: the tool's description at the time of the call is not stored\n",
        );
    }
    screen.remark(&format!(
        "continue with `airlock run --resume {}`\n",
        about.run.0
    ));
    Ok(exit::DONE)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResultCheck {
    Fits,
    /// The description that the tool had in the run is not stored.
    Unknown,
}

/// Refuses a stated result that does not fit the output schema that the tool had when the call was
/// made. The schema comes from the last list of the server.
fn check_result(
    outcome: &StatedOutcome,
    (entry, stored): (&LedgerEntry, &StoredChain),
    state: &StateDir,
) -> Result<ResultCheck, Problem> {
    let StatedOutcome::Happened { result: Some(text) } = outcome else {
        return Ok(ResultCheck::Fits);
    };
    let tool = stored.tool_of(entry);
    let described = tool.and_then(|tool| description(tool, state));
    let (Some(tool), Some(described)) = (tool, described) else {
        return Ok(ResultCheck::Unknown);
    };
    let schema = described.checked_output();
    // A schema that cannot be compiled checks no result of a call either.
    let Some(validator) = schema.and_then(|schema| Validator::compile(schema).ok()) else {
        return Ok(ResultCheck::Fits);
    };
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let value = match tool.unwrap {
        true => json!({ "result": value }),
        false => value,
    };
    let findings = validator.errors("result", &value);
    if findings.is_empty() {
        return Ok(ResultCheck::Fits);
    }
    let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
    let what = format!(
        "the result does not fit the output schema of `{}`",
        escape::line(&tool.tool.to_string())
    );
    let why = escape::line(&findings.join("; ")).into_owned();
    Err(usage(
        what,
        why,
        "correct the result, or leave out --result",
    ))
}

/// Returns the description that a tool had in a run, if it is stored.
fn description(tool: &StartedTool, state: &StateDir) -> Option<Description> {
    let (server, name) = (&*tool.tool.server.0, &*tool.tool.tool.0);
    let listed = ListingStore::new(state.path()).find(name, tool.upstream?)?;
    Description::parse(server, &listed).ok()
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
    let text = result.to_string();
    if let Err(bad) = json::measure(text.as_bytes(), STATED_RESULT) {
        let next = "shorten the result, or leave out --result";
        return Err(usage("the result is too large", bad.to_string(), next));
    }
    if config.secrets.redact(&text).is_some() {
        let why = "it contains a credential, and airlock stores no credential";
        return Err(usage(
            "the result cannot be recorded",
            why,
            "replace the credential",
        ));
    }
    Ok(StatedOutcome::Happened { result: Some(text) })
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
    format!(
        "the command line, user id {}",
        rustix::process::geteuid().as_raw()
    )
}
