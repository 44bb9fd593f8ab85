//! `airlock runs answer`: shows an open question of a suspended run, and records a person's answer.

use airlock_core::decide::Question;
use airlock_core::problem::Problem;
use airlock_core::resume::chain::StoredAnswerWord;
use airlock_sandbox::clock::Clock;
use clap::{Args, ValueEnum};
use serde_json::json;

use super::resolve::{call_ref, how_to_continue, shown, whoami};
use super::waiting::Waiting;
use crate::approver::whole_question;
use crate::cli::options::{StateView, usage};
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, print, print_json};
use crate::config::Environment;
use crate::private_file::StateDir;
use crate::run_chain::{ResumeError, StoredChain};
use crate::suspended_runs::SuspendedQuestion;

#[derive(Debug, Args)]
pub(in crate::cli) struct AnswerOptions {
    /// The call, as RUN:CALL; RUN may be the start of the run's id
    call: String,
    /// The answer. Without it, the question is shown
    #[arg(value_enum)]
    answer: Option<AnswerArg>,
    #[command(flatten)]
    pub(in crate::cli) common: StateView,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AnswerArg {
    /// Make this call
    Allow,
    /// Do not make this call
    Refuse,
}

pub(super) fn run(options: AnswerOptions, environment: &Environment) -> Outcome {
    let state = StateDir::existing(options.common.state.load(environment)?.state_dir)?;
    let about = call_ref(&state, &options.call)?;
    let stored = state.stored_chain(&about.run).map_err(|error| {
        if !error.is_running() {
            return error.into_problem();
        }
        let next = "answer where the run asks: in its host, at its terminal or on its page; or answer \
                    here once the run is suspended";
        Problem::new(
            "cannot-resume",
            "the question cannot be answered here",
            error.to_string(),
            next,
        )
    })?;
    let waiting = Waiting::of(&stored).map_err(ResumeError::into_problem)?;
    let asked = waiting.question(&about).ok_or_else(|| {
        let next = "`airlock runs waiting` lists the open questions";
        usage(
            "there is no such question",
            format!("call {about} waits for no answer"),
            next,
        )
    })?;
    let Some(answer) = options.answer else {
        show(asked, &stored, options.common.json)?;
        let next = format!("answer with `airlock runs answer {about} allow` or `refuse`\n");
        Screen::of_process(environment, options.common.json).remark(&next);
        return Ok(exit::DONE);
    };
    let word = match answer {
        AnswerArg::Allow => StoredAnswerWord::AllowOnce,
        AnswerArg::Refuse => StoredAnswerWord::Refuse,
    };
    let record = asked
        .0
        .answer((&state, &stored), word, whoami(), Clock::start().now_ms());
    let record = record.map_err(ResumeError::into_problem)?;
    if options.common.json {
        print_json(&json!({ "answer": record }))?;
    } else {
        let word = match answer {
            AnswerArg::Allow => "allowed",
            AnswerArg::Refuse => "refused",
        };
        print(&format!("recorded: {about} {word}\n"))?;
        Screen::of_process(environment, false).remark(&how_to_continue(&stored));
    }
    Ok(exit::DONE)
}

/// Prints a question as the terminal shows it, with all its arguments.
fn show(
    (asked, question): &(SuspendedQuestion, Question),
    stored: &StoredChain,
    is_json: bool,
) -> Outcome {
    if is_json {
        let ledger = stored.ledger().map_err(ResumeError::into_problem)?;
        let earlier = asked.asked.near.iter().filter_map(|at| ledger.entry(at));
        let earlier: Vec<_> = earlier.map(shown).collect();
        print_json(&json!({ "question": asked.asked, "earlier": earlier }))?;
        return Ok(exit::DONE);
    }
    print(whole_question(question).trim_start_matches('\n'))?;
    Ok(exit::DONE)
}
