//! The flags of `airlock run` that resume a run.

use std::path::Path;
use std::time::Duration;

use airlock_core::id::ServerName;
use airlock_core::problem::Problem;
use airlock_core::report::{Report, Status};
use airlock_core::resume::ledger::{EntryState, Ledger, LedgerEntry};
use airlock_core::statement::StatedOutcome;
use airlock_sandbox::units;
use clap::Args;
use codegen::closest::closest;
use serde_json::{Value, json};

use super::options::usage;
use super::screen::Screen;
use super::{Outcome, exit, print, print_json};
use crate::broker::{Broker, READS_MAX_AGE, ResumeOptions, Script};
use crate::private_file::StateDir;
use crate::render::{counted, escape};
use crate::run_chain::{ResumeError, StoredChain};

const ARGS_CHARS_SHOWN: usize = 100;

#[derive(Debug, Clone, Default, Args)]
pub(super) struct ResumeFlags {
    /// Resume a run: calls that happened are not made again. Without SCRIPT, run the recorded script
    #[arg(long, value_name = "RUN")]
    resume: Option<String>,
    /// Reuse recorded results of reads up to this age; older ones are read again [default: 10m]
    #[arg(long, value_name = "DURATION", requires = "resume")]
    reads_max_age: Option<String>,
    /// Reuse results of this server although its command, address or credentials have changed; can be
    /// given several times
    #[arg(long, value_name = "NAME", requires = "resume")]
    same_server: Vec<String>,
    /// List the recorded calls and what would become of them, and run nothing
    #[arg(long, requires = "resume")]
    dry_run: bool,
}

/// A run that is to be resumed.
pub(super) struct Resumed {
    stored: StoredChain,
    reads_max_age: Duration,
    same_servers: Vec<ServerName>,
}

impl ResumeFlags {
    pub(super) fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Reads the chain of the run that `--resume` names.
    pub(super) fn open(&self, state_dir: &Path) -> Result<Option<Resumed>, Problem> {
        let Some(id) = &self.resume else {
            return Ok(None);
        };
        let reads_max_age = match &self.reads_max_age {
            Some(text) => Duration::from_millis(units::duration_ms(text).map_err(|bad| {
                let what = format!("invalid value `{text}` for `--reads-max-age`");
                usage(
                    what,
                    bad.to_string(),
                    "write a duration, such as `10m` or `0s`",
                )
            })?),
            None => READS_MAX_AGE,
        };
        let state = StateDir::existing(state_dir.to_owned())?;
        let stored = || -> Result<StoredChain, ResumeError> {
            let run = state.find(id)?;
            state.stored_chain(&run)?.of_newest(&run)
        };
        let stored = stored().map_err(ResumeError::into_problem)?;
        let same = self.same_server.iter();
        let same_servers = same.map(|name| recorded_server(&stored, name));
        Ok(Some(Resumed {
            same_servers: same_servers.collect::<Result<_, _>>()?,
            stored,
            reads_max_age,
        }))
    }
}

impl ResumeFlags {
    /// Whether `--same-server` is given.
    pub(super) fn names_servers(&self) -> bool {
        !self.same_server.is_empty()
    }
}

impl Resumed {
    /// Whether the run waits for people without a process.
    pub(super) fn is_suspended(&self) -> bool {
        let journal = self.stored.journals.last();
        journal.is_some_and(|journal| journal.suspended().is_some())
    }

    /// Whether another run would only put the same questions again: no person has answered one since the
    /// run was suspended, and the rules are the same.
    pub(super) fn waits(&self, broker: &Broker) -> bool {
        let stored = &self.stored;
        !broker.has_other_rules(stored)
            && !stored.has_answers()
            && !stored.open_questions().is_empty()
    }

    /// Returns the report of the suspended run, which still waits.
    pub(super) fn paused_report(&self) -> Report {
        Report {
            run: self.stored.chain.newest().0.to_string(),
            ..Report::empty(Status::Paused, None)
        }
    }

    /// Returns the recorded script.
    pub(super) fn script(&self) -> Result<Script, Problem> {
        let script = self.stored.recorded_script();
        script.map_err(ResumeError::into_problem)
    }

    /// Returns the script in the form that resumes the run.
    pub(super) fn prepare(
        &self,
        broker: &Broker,
        script: Script,
        screen: &Screen,
    ) -> Result<Script, Problem> {
        if broker.has_other_rules(&self.stored) {
            screen.remark(&format!(
                "note: the rules differ from those of run {}; the current rules decide, and a person's \
                 earlier answers do not count\n",
                self.stored.chain.newest().0
            ));
        }
        let options = ResumeOptions {
            script: Some(script),
            reads_max_age: self.reads_max_age,
            same_servers: self.same_servers.clone(),
        };
        let script = broker.resuming(&self.stored, options);
        script.map_err(ResumeError::into_problem)
    }

    /// Prints the recorded calls, and what becomes of a call with the same arguments.
    pub(super) fn show(&self, is_json: bool) -> Outcome {
        let ledger = self.stored.ledger().map_err(ResumeError::into_problem)?;
        let calls: Vec<&LedgerEntry> = current(&ledger).collect();
        if is_json {
            let calls: Vec<Value> = calls.iter().map(|entry| entry_json(entry)).collect();
            print_json(&json!({
                "resume": self.stored.chain.newest(),
                "chain": self.stored.chain.root(),
                "calls": calls,
            }))?;
            return Ok(exit::DONE);
        }
        let width = calls.iter().map(|entry| entry.at.to_string().len()).max();
        let row = |entry: &&LedgerEntry| {
            let args = entry.args.as_ref().map(|args| args.value().to_string());
            let args = args.as_deref().unwrap_or("?");
            format!(
                "{:width$}  {:15}  {} {}\n",
                entry.at.to_string(),
                preview(entry).word(),
                entry.key.tool,
                escape::brief(args, ARGS_CHARS_SHOWN),
                width = width.unwrap_or_default(),
            )
        };
        print(&calls.iter().map(row).collect::<String>())?;
        let (recorded, root) = (
            counted(calls.len(), "recorded call"),
            &self.stored.chain.root().0,
        );
        print(&format!("{recorded} in the chain {root}\n"))?;
        Ok(exit::DONE)
    }
}

/// Returns the server of the recorded run with this name.
fn recorded_server(stored: &StoredChain, name: &str) -> Result<ServerName, Problem> {
    let servers = stored.newest_started().map_or(&[][..], |it| &it.servers);
    // Tools of this process have no target.
    let reached = servers.iter().filter(|server| server.target.is_some());
    let names: Vec<&str> = reached.map(|server| &*server.name.0).collect();
    match names.contains(&name) {
        true => Ok(ServerName(name.into())),
        false => {
            let next = match closest(name, names.iter().copied()) {
                Some(meant) => format!("did you mean `{}`?", escape::line(meant)),
                None => "name one of these servers".to_owned(),
            };
            Err(usage(
                format!("the run has no server `{}`", escape::line(name)),
                format!("its servers are: {}", escape::line(&names.join(", "))),
                next,
            ))
        }
    }
}

/// Returns the calls that no later call of the chain repeated.
fn current(ledger: &Ledger) -> impl Iterator<Item = &LedgerEntry> {
    ledger.entries().iter().filter(|entry| !entry.is_superseded)
}

/// What becomes of a call that equals a recorded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallPreview {
    /// The recorded result is reused, unless the tool or its server changed.
    Reused,
    /// The script gets what a person stated, unless the server changed.
    Stated,
    /// The call is decided again and may leave.
    DecidedAgain,
    /// The call is not made if it is not repeatable.
    Indeterminate,
}

impl CallPreview {
    fn word(self) -> &'static str {
        match self {
            Self::Reused => "reused",
            Self::Stated => "stated",
            Self::DecidedAgain => "decided-again",
            Self::Indeterminate => "indeterminate",
        }
    }
}

fn preview(entry: &LedgerEntry) -> CallPreview {
    match (&entry.stated, entry.state) {
        (Some(StatedOutcome::DidNotHappen), _) | (None, EntryState::NotDone) => {
            CallPreview::DecidedAgain
        }
        (Some(StatedOutcome::Happened { .. }), _) => CallPreview::Stated,
        (None, EntryState::Unknown) => CallPreview::Indeterminate,
        (None, EntryState::Returned | EntryState::ResultInvalid) if entry.recorded.is_some() => {
            CallPreview::Reused
        }
        (None, EntryState::Returned | EntryState::ResultInvalid) => CallPreview::Indeterminate,
    }
}

fn entry_json(entry: &LedgerEntry) -> Value {
    json!({
        "at": entry.at.to_string(),
        "tool": entry.key.tool,
        "args": entry.args,
        "outcome": entry.outcome,
        "would": preview(entry).word(),
    })
}
