//! `airlock runs waiting`: lists the calls about which a person has to decide before a run can go
//! on.

use airlock_core::decide::Question;
use airlock_core::id::{RunId, ToolId};
use airlock_core::journal::{Body, JournalLine};
use airlock_core::problem::Problem;
use airlock_core::report::Status;
use airlock_core::resume::CallRef;
use airlock_core::resume::ledger::LedgerEntry;
use serde_json::{Value, json};

use super::resolve::{how_to_continue, shown};
use crate::approver::{QuestionRow, rows};
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, print, print_json};
use crate::private_file::StateDir;
use crate::render::escape;
use crate::run_chain::{ChainReader, NewestRuns, ResumeError, StoredChain};
use crate::suspended_runs::SuspendedQuestion;

const ARGS_CHARS_SHOWN: usize = 100;

/// The open questions and the indeterminate calls of one chain.
pub(super) struct Waiting {
    newest: RunId,
    questions: Vec<(SuspendedQuestion, Question)>,
    unknown: Vec<LedgerEntry>,
    /// How the run is continued after the answers.
    next: String,
}

impl Waiting {
    pub(super) fn of(stored: &StoredChain) -> Result<Self, ResumeError> {
        let (ledger, indeterminate) = (stored.ledger()?, stored.indeterminate()?);
        // Those about an outcome are listed with the calls whose outcome is unknown.
        let asked = stored.open_questions().into_iter();
        let asked = asked.filter(|it| it.asked.outcome_of.is_none());
        let with_card = |it: SuspendedQuestion| {
            let question = it.question(stored)?;
            Ok((it, question))
        };
        Ok(Self {
            newest: stored.chain.newest().clone(),
            questions: asked.map(with_card).collect::<Result<_, ResumeError>>()?,
            unknown: ledger
                .unknown()
                .filter(|entry| indeterminate.contains(&entry.at))
                .cloned()
                .collect(),
            next: how_to_continue(stored),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.questions.is_empty() && self.unknown.is_empty()
    }

    /// Returns an open question of the run.
    pub(super) fn question(&self, about: &CallRef) -> Option<&(SuspendedQuestion, Question)> {
        self.questions.iter().find(|(it, _)| it.at == *about)
    }

    fn json(&self) -> Value {
        let question = |(SuspendedQuestion { at, asked }, _): &(SuspendedQuestion, Question)| {
            json!({
                "call": at.to_string(), "tool": asked.tool, "args": asked.args,
                "reasons": asked.reasons, "prompts": asked.prompts,
                "result_labels": asked.reads, "effects": asked.effects,
                "facts": asked.facts, "shown": asked.shown,
            })
        };
        json!({
            "run": self.newest,
            "questions": self.questions.iter().map(question).collect::<Vec<_>>(),
            "indeterminate": self.unknown.iter().map(shown).collect::<Vec<_>>(),
        })
    }

    fn text(&self) -> String {
        let mut text = format!("run {}\n", self.newest.0);
        for (SuspendedQuestion { at, asked }, question) in &self.questions {
            let args = asked.args.value().to_string();
            row(&mut text, at, "asked", (&asked.tool, Some(args)));
            text.push_str(&rows_of(question));
        }
        for entry in &self.unknown {
            let args = entry.args.as_ref().map(|args| args.value().to_string());
            row(
                &mut text,
                &entry.at,
                "outcome unknown",
                (&entry.key.tool, args),
            );
        }
        text.push_str(&format!("  then {}", self.next));
        text
    }
}

fn row(text: &mut String, at: &CallRef, what: &str, (tool, args): (&ToolId, Option<String>)) {
    let args = args.unwrap_or_else(|| "?".into());
    let args = escape::brief(&args, ARGS_CHARS_SHOWN);
    let tool = tool.to_string();
    text.push_str(&format!("  {at}  {what}  {} {args}\n", escape::line(&tool)));
}

/// Returns what every approver shows beside the arguments.
fn rows_of(question: &Question) -> String {
    let rows = rows(question).into_iter();
    let rows = rows.map(|QuestionRow { name, text, .. }| format!("{name:>11} {text}\n"));
    rows.collect()
}

pub(super) fn list(state: &StateDir, is_json: bool, screen: &Screen) -> Outcome {
    let newest = NewestRuns::find(state).map_err(ResumeError::into_problem)?;
    let reader = ChainReader::new(state).map_err(ResumeError::into_problem)?;
    let damaged = newest.damaged.into_iter();
    let mut problems: Vec<Problem> = damaged.map(|(_, error)| error.into_problem()).collect();
    let (mut waiting, mut running) = (Vec::new(), 0);
    let runs = newest.runs.into_iter();
    for run in runs.filter(|run| !is_done(state, run) && !state.is_void(run)) {
        let found = reader.read(&run).and_then(|stored| Waiting::of(&stored));
        match found {
            Ok(found) if found.is_empty() => {}
            Ok(found) => waiting.push(found),
            // A run in progress asks by itself.
            Err(error) if error.is_running() => running += 1,
            Err(error) => problems.push(error.into_problem()),
        }
    }
    let lost = reader.lost().map_err(ResumeError::into_problem)?;
    problems.extend(lost.iter().map(lost_journal));
    let code = match problems.is_empty() {
        true => exit::DONE,
        false => exit::JOURNAL,
    };
    if is_json {
        print_json(&json!({
            "waiting": waiting.iter().map(Waiting::json).collect::<Vec<_>>(),
            "problems": problems,
        }))?;
        return Ok(code);
    }
    print(&waiting.iter().map(Waiting::text).collect::<String>())?;
    problems.iter().for_each(|problem| screen.warning(problem));
    let next = match (waiting.is_empty(), running) {
        (true, _) if !problems.is_empty() => {
            "none of the runs that can be read waits for a person; the runs that are named above may wait\n"
        }
        (true, 0) => "no run waits for a person\n",
        (true, _) => {
            "no suspended run waits for a person; runs in progress ask where they run: in the host, at the \
             terminal or on the page\n"
        }
        (false, _) => {
            "`airlock runs answer RUN:CALL` answers a question; `airlock runs resolve RUN:CALL` records what \
             became of a call whose outcome is unknown\n"
        }
    };
    screen.remark(next);
    Ok(code)
}

/// Returns the problem of a run whose journal is missing.
fn lost_journal(run: &RunId) -> Problem {
    Problem::new(
        "journal-incomplete",
        format!("the journal of run {} is missing", run.0),
        "the state directory has a record of the run, and airlock did not delete the journal",
        "put back a copy of the file; the run may wait for a person",
    )
}

/// Whether the last entry of a run's journal says that the run is done.
fn is_done(state: &StateDir, run: &RunId) -> bool {
    let last = state.ends(run).map(|ends| ends.last).unwrap_or_default();
    let line = serde_json::from_slice::<JournalLine>(&last);
    line.is_ok_and(|line| matches!(line.body, Body::Ended(ended) if ended.status == Status::Done))
}
