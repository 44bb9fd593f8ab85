//! `airlock policy replay`: how the calls of recorded runs would be decided now.
//! Each call is decided by itself, with the facts that its journal has.

mod shown;
mod told;

use std::path::PathBuf;

use airlock_core::call::{Args, Call};
use airlock_core::code::Code;
use airlock_core::facts::Facts;
use airlock_core::id::{CallId, ToolId};
use airlock_core::journal::{Body, Verified};
use airlock_core::problem::Problem;
use airlock_core::rules::{Consulted, Level};
use codegen::description::Description;
use codegen::validate::Validator;
use serde::Serialize;

use super::format::{Files, Format, FormatOptions};
use super::sources::{Opened, SourceOptions, Wrong};
use crate::broker::own;
use crate::cli::options::{StateOptions, usage};
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, runs};
use crate::config::Environment;
use told::Told;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ReplayOptions {
    /// Run ids, the start of run ids, or journal files
    #[arg(value_name = "JOURNAL", required = true)]
    journals: Vec<String>,
    /// Folders of rules to decide the recorded calls with
    #[arg(long = "policy", value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    #[command(flatten)]
    sources: SourceOptions,
    #[command(flatten)]
    pub(super) format: FormatOptions,
}

/// What is said of one journal.
#[derive(Debug, Serialize)]
struct Replayed {
    journal: String,
    script: String,
    /// It ends in the middle of a line; what stands before was looked at.
    cut: bool,
    calls: Vec<Compared>,
}

/// A call as it was decided, and as it would be.
#[derive(Debug, Serialize)]
struct Compared {
    call: CallId,
    tool: ToolId,
    line: u32,
    column: u32,
    args: Option<Args>,
    change: Change,
    then: Told,
    now: Told,
    facts: FactsFrom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Change {
    Same,
    /// The same comes of it, by other rules.
    OtherRules,
    /// More is let through now: allowed instead of asked, asked instead of denied.
    Widened,
    Narrowed,
}

/// What the rules were told of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum FactsFrom {
    /// As they were when the call was made.
    Journal,
    /// The journal has none: everything is taken to be the worst.
    Worst,
}

#[derive(Debug, Default)]
struct Replay {
    done: Vec<Replayed>,
    /// Journals that could not be read, and why.
    broken: Vec<(String, Problem)>,
}

pub(super) fn run(options: ReplayOptions, environment: &Environment, screen: &Screen) -> Outcome {
    let format = options.format.format();
    let tightening = options.sources.tightening().to_vec();
    let state = options.sources.state.clone();
    let folders = options.folders.clone();
    let opened = match options.sources.open(options.folders, environment, screen) {
        Ok(opened) => opened,
        Err(Wrong::Rules(findings)) => {
            let files = Files::of_rules(folders.iter().chain(&tightening))?;
            return super::check::show_findings(findings, format, &files);
        }
        Err(Wrong::Other(problem)) => return Err(problem),
    };
    if opened.rules.policies().is_none() {
        let why = "neither --policy nor the configuration names a folder of rules";
        return Err(usage(
            "there is nothing to decide by",
            why,
            "name one with --policy",
        ));
    }
    let mut replay = Replay::default();
    for journal in &options.journals {
        match runs::journal(journal, copy(&state), environment) {
            Ok((name, verified)) if verified.lines.is_empty() => {
                replay.broken.push((journal.clone(), empty(&name)));
            }
            Ok((name, verified)) => replay.done.push(again(name, &verified, &opened)),
            Err(problem) => replay.broken.push((journal.clone(), problem)),
        }
    }
    let files = Files::of_rules(folders.iter().chain(&tightening))?;
    match format {
        Format::Text => replay.print_text(screen)?,
        Format::Json => replay.print_json()?,
        Format::Sarif => files.print_sarif(&replay.sarif())?,
    }
    Ok(replay.exit())
}

/// A gate that is given it has looked at nothing.
fn empty(name: &str) -> Problem {
    let what = format!("the journal of {name} holds nothing");
    let why = "it has no entry, and every run begins with one";
    Problem::new("journal-broken", what, why, "name the journal of a run")
}

fn copy(state: &StateOptions) -> StateOptions {
    StateOptions {
        state_dir: state.state_dir.clone(),
    }
}

impl Replay {
    /// Whoever asks about several has to hear first that one was not looked at.
    fn exit(&self) -> u8 {
        let differs = |it: &Compared| matches!(it.change, Change::Widened | Change::Narrowed);
        if !self.broken.is_empty() {
            return exit::JOURNAL;
        }
        match self.calls().any(|(_, call)| differs(call)) {
            true => exit::POLICY,
            false => exit::DONE,
        }
    }

    fn calls(&self) -> impl Iterator<Item = (&Replayed, &Compared)> {
        self.done
            .iter()
            .flat_map(|journal| journal.calls.iter().map(move |call| (journal, call)))
    }
}

fn again(name: String, journal: &Verified, opened: &Opened) -> Replayed {
    let bodies = || journal.lines.iter().map(|line| &line.body);
    let script = bodies().find_map(|body| match body {
        Body::RunStarted(started) => Some(started.script_name.clone()),
        _ => None,
    });
    let mut calls: Vec<CallId> = bodies()
        .filter(|body| matches!(body, Body::Decided(_) | Body::Asked(_)))
        .filter_map(Body::call)
        .collect();
    calls.sort_unstable();
    calls.dedup();
    Replayed {
        script: script.unwrap_or_default(),
        cut: journal.cut.is_some(),
        calls: calls
            .into_iter()
            .filter_map(|call| compared(journal, call, opened))
            .collect(),
        journal: name,
    }
}

fn compared(journal: &Verified, call: CallId, opened: &Opened) -> Option<Compared> {
    let asked = journal.of_call(call).find_map(|body| match body {
        Body::Asked(asked) => Some(&**asked),
        _ => None,
    });
    let decided = journal.decided(call);
    let (tool, args, facts, site) = match (decided, asked) {
        (Some(decided), _) => (
            &decided.tool,
            decided.args.clone(),
            decided.facts.clone(),
            decided.site,
        ),
        (None, Some(asked)) => (
            &asked.tool,
            Some(asked.args.clone()),
            asked.facts.clone(),
            asked.site,
        ),
        (None, None) => return None,
    };
    let then = Told::of_journal(decided, asked);
    let from = match facts {
        Some(_) => FactsFrom::Journal,
        None => FactsFrom::Worst,
    };
    let now = match &args {
        Some(args) if is_for_rules(decided.and_then(|it| it.code)) => decide(
            Call {
                id: call,
                tool: tool.clone(),
                args: args.clone(),
                site,
                facts: Some(facts.unwrap_or_else(|| Facts::default().into())),
            },
            opened,
        ),
        // It was refused before any rule was asked, and would be again.
        _ => then.clone(),
    };
    Some(Compared {
        call,
        tool: tool.clone(),
        line: site.line,
        column: site.column,
        change: change(&then, &now),
        args,
        then,
        now,
        facts: from,
    })
}

/// Whether rules, or what a tool takes, decided. What a session was shown, what was pinned and
/// what a limit left is as it was.
fn is_for_rules(code: Option<Code>) -> bool {
    matches!(
        code,
        None | Some(
            Code::Denied
                | Code::Refused
                | Code::Unanswered
                | Code::InvalidArguments
                | Code::ToolUnusable
        )
    )
}

/// What comes before the rules comes before them here too.
fn decide(call: Call, opened: &Opened) -> Told {
    let whose = own::whose(&call.tool.server.0, &call.tool.tool.0);
    if whose.is_own() {
        return of_rules(opened.rules.consult_about(whose, &call));
    }
    let is_it =
        |it: &&Description| *it.server == *call.tool.server.0 && *it.name == *call.tool.tool.0;
    let Some(description) = opened.descriptions.iter().find(is_it) else {
        let why = "the tool is not among the tools that the rules are checked against";
        return Told::denied(Code::NotDisclosed, vec![why.to_owned()]);
    };
    let errors = match Validator::compile(&description.input_schema) {
        Ok(validator) => validator.errors("args", call.args.value()),
        Err(bad) => return Told::denied(Code::ToolUnusable, vec![bad.to_string()]),
    };
    if !errors.is_empty() {
        let reasons = errors.iter().map(ToString::to_string).collect();
        return Told::denied(Code::InvalidArguments, reasons);
    }
    of_rules(opened.rules.consult_about(whose, &call))
}

fn of_rules(consulted: Consulted) -> Told {
    Told::of_rules(consulted.level, consulted.reasons)
}

fn change(then: &Told, now: &Told) -> Change {
    let rank = |told: &Told| match told.level {
        Level::Allow => 0,
        // A journal does not say which kind of yes was asked for.
        Level::AskRun | Level::AskCall => 1,
        Level::Deny => 2,
    };
    match rank(now).cmp(&rank(then)) {
        std::cmp::Ordering::Less => Change::Widened,
        std::cmp::Ordering::Greater => Change::Narrowed,
        std::cmp::Ordering::Equal if then.rules == now.rules => Change::Same,
        std::cmp::Ordering::Equal => Change::OtherRules,
    }
}
