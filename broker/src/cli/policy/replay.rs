//! `airlock policy replay`: decides the calls of recorded runs again, with the current rules. Each
//! call is decided by itself, with the facts in its journal.

mod decision;
mod output;

use std::path::PathBuf;

use airlock_core::call::{Args, Call, CallHistory};
use airlock_core::code::Code;
use airlock_core::facts::Facts;
use airlock_core::id::{CallId, ToolId};
use airlock_core::journal::{Body, VerifiedJournal};
use airlock_core::level::Level;
use airlock_core::problem::Problem;
use airlock_core::rules::RuleVerdict;
use codegen::description::Description;
use codegen::validate::Validator;
use serde::Serialize;

use super::format::{Files, FormatOptions, PolicyFormat};
use super::sources::{Folders, LoadError, RuleSources, SourceOptions};
use crate::broker::tool_discovery;
use crate::cli::options::{StateOptions, usage};
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, runs};
use crate::config::Environment;
use decision::DecisionSummary;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ReplayOptions {
    /// Run ids, prefixes of run ids, or journal files
    #[arg(value_name = "JOURNAL", required = true)]
    journals: Vec<String>,
    /// Folders of rules that decide the recorded calls
    #[arg(long = "policy", value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    #[command(flatten)]
    sources: SourceOptions,
    #[command(flatten)]
    pub(super) format: FormatOptions,
}

/// The result for one journal.
#[derive(Debug, Serialize)]
struct ReplayedJournal {
    journal: String,
    script: String,
    /// Whether the journal ends in the middle of a line. The entries before were replayed.
    cut: bool,
    calls: Vec<ReplayedCall>,
}

/// A call with its recorded decision and its new one.
#[derive(Debug, Serialize)]
struct ReplayedCall {
    call: CallId,
    tool: ToolId,
    line: u32,
    column: u32,
    args: Option<Args>,
    change: Change,
    then: DecisionSummary,
    now: DecisionSummary,
    facts: FactsFrom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Change {
    Same,
    /// The decision is the same, by other rules.
    OtherRules,
    /// More is allowed now: allowed instead of asked, or asked instead of denied.
    Widened,
    Narrowed,
}

/// The origin of a call's facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum FactsFrom {
    /// The facts that the journal recorded for the call.
    Journal,
    /// The journal contains no facts for the call, so all facts take their worst value.
    Worst,
}

#[derive(Debug, Default)]
struct Replay {
    done: Vec<ReplayedJournal>,
    /// Journals that could not be read, with the reason.
    broken: Vec<(String, Problem)>,
}

pub(super) fn run(options: ReplayOptions, environment: &Environment, screen: &Screen) -> Outcome {
    let format = options.format.format();
    let tightening = options.sources.tightening().to_vec();
    let state = options.sources.state.clone();
    let folders = options.folders.clone();
    let opened = match options
        .sources
        .open(Folders::Added(options.folders), environment, screen)
    {
        Ok(opened) => opened,
        Err(LoadError::Rules(findings)) => {
            let files = Files::of_rules(folders.iter().chain(&tightening))?;
            return super::check::show_findings(findings, format, &files);
        }
        Err(LoadError::Other(problem)) => return Err(problem),
    };
    if opened.rules.policies().is_none() {
        let why = "neither --policy nor the configuration names a folder of rules";
        return Err(usage(
            "there are no rules to replay with",
            why,
            "name a folder with --policy",
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
        PolicyFormat::Text => replay.print_text(screen)?,
        PolicyFormat::Json => replay.print_json()?,
        PolicyFormat::Sarif => files.print_sarif(&replay.sarif())?,
    }
    Ok(replay.exit())
}

/// Reports an empty journal as an error, so that a check in CI does not pass without any entry.
fn empty(name: &str) -> Problem {
    let what = format!("the journal of {name} is empty");
    let why = "every run writes at least one entry";
    Problem::new("journal-broken", what, why, "name the journal of a run")
}

fn copy(state: &StateOptions) -> StateOptions {
    StateOptions {
        state_dir: state.state_dir.clone(),
    }
}

impl Replay {
    /// Returns the exit code. An unreadable journal takes precedence over changed decisions.
    fn exit(&self) -> u8 {
        let differs = |it: &ReplayedCall| matches!(it.change, Change::Widened | Change::Narrowed);
        if !self.broken.is_empty() {
            return exit::JOURNAL;
        }
        match self.calls().any(|(_, call)| differs(call)) {
            true => exit::POLICY,
            false => exit::DONE,
        }
    }

    fn calls(&self) -> impl Iterator<Item = (&ReplayedJournal, &ReplayedCall)> {
        self.done
            .iter()
            .flat_map(|journal| journal.calls.iter().map(move |call| (journal, call)))
    }
}

fn again(name: String, journal: &VerifiedJournal, opened: &RuleSources) -> ReplayedJournal {
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
    ReplayedJournal {
        script: script.unwrap_or_default(),
        cut: journal.cut.is_some(),
        calls: calls
            .into_iter()
            .filter_map(|call| compared(journal, call, opened))
            .collect(),
        journal: name,
    }
}

fn compared(journal: &VerifiedJournal, call: CallId, opened: &RuleSources) -> Option<ReplayedCall> {
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
    let then = DecisionSummary::of_journal(decided, asked);
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
                history: CallHistory::default(),
            },
            opened,
        ),
        // The call was refused before the rules were evaluated, and would be refused again.
        _ => then.clone(),
    };
    Some(ReplayedCall {
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

/// Whether the rules or the tool's schema decided. Refusals by disclosure, the lock file or a limit
/// stay as recorded.
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

/// Decides a call. Checks that precede the rules in a run precede them here too.
fn decide(call: Call, opened: &RuleSources) -> DecisionSummary {
    let owner = tool_discovery::owner(&call.tool.server.0, &call.tool.tool.0);
    if owner.is_own() {
        return of_rules(opened.rules.consult_for_owner(owner, &call));
    }
    let is_it =
        |it: &&Description| *it.server == *call.tool.server.0 && *it.name == *call.tool.tool.0;
    let Some(description) = opened.descriptions.iter().find(is_it) else {
        let why = "the tool is not among the tools that the rules are checked against";
        return DecisionSummary::denied(Code::NotDisclosed, vec![why.to_owned()]);
    };
    let errors = match Validator::compile(&description.input_schema) {
        Ok(validator) => validator.errors("args", call.args.value()),
        Err(bad) => return DecisionSummary::denied(Code::ToolUnusable, vec![bad.to_string()]),
    };
    if !errors.is_empty() {
        let reasons = errors.iter().map(ToString::to_string).collect();
        return DecisionSummary::denied(Code::InvalidArguments, reasons);
    }
    of_rules(opened.rules.consult_for_owner(owner, &call))
}

fn of_rules(consulted: RuleVerdict) -> DecisionSummary {
    DecisionSummary::of_rules(consulted.level, consulted.reasons)
}

fn change(then: &DecisionSummary, now: &DecisionSummary) -> Change {
    let rank = |summary: &DecisionSummary| match summary.level {
        Level::Allow => 0,
        // A journal does not record which kind of approval was required.
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
