//! `airlock policy can`: shows the possible decisions about calls, tool by tool. For each decision
//! there is an example, or a proof that no call gets the decision.

use std::path::PathBuf;

use airlock_core::level::Level;
use airlock_core::rules::Rules;
use airlock_policy_analysis::{Seed, ToolSubject};
use serde_json::{Map, Value, json};

use super::analysis::{self, Basis, Coverage};
use super::format::{Files, FormatOptions, PolicyFormat};
use super::sources::{Folders, RuleSources, SourceOptions};
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, print, print_json, runtime};
use crate::config::Environment;
use crate::prover::{LevelAnswer, Prover, Reachability, ReachabilityCase};
use crate::render::{Sarif, SarifLevel, SarifResult, counted, escape};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct CanOptions {
    /// SERVER.TOOL, where * matches any characters [default: all tools]
    #[arg(value_name = "TOOL")]
    tool: Option<String>,
    /// Only report whether a call can be allowed without an approval
    #[arg(long)]
    auto: bool,
    /// Folders of rules
    #[arg(long = "policy", value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    #[command(flatten)]
    sources: SourceOptions,
    #[command(flatten)]
    pub(super) format: FormatOptions,
}

/// Everything that the output shows.
struct Shown<'a> {
    by_tool: &'a [ToolAnswers],
    basis: Basis<'a>,
}

/// The answers for one tool.
struct ToolAnswers {
    tool: String,
    answers: Vec<LevelAnswer>,
}

pub(super) fn run(options: CanOptions, environment: &Environment, screen: &Screen) -> Outcome {
    let format = options.format.format();
    let folders = options.folders.clone();
    let tightening = options.sources.tightening().to_vec();
    let opened = match options
        .sources
        .open(Folders::Added(options.folders), environment, screen)
    {
        Ok(opened) => opened,
        Err(error) => return super::unusable(error, format != PolicyFormat::Text),
    };
    let wanted = options.tool.as_deref();
    let subjects = analysis::subjects(&opened.descriptions, &opened.flow, wanted, screen)?;
    let seeds = analysis::seeds(&folders, &opened.descriptions, screen);
    let levels: &[Level] = match options.auto {
        true => &[Level::Allow],
        false => &[Level::Allow, Level::AskRun, Level::AskCall],
    };
    let mut prover = Prover::find(environment);
    let mut by_tool =
        runtime()?.block_on(all(&mut prover, &opened.rules, &subjects, &seeds, levels));
    let answers = by_tool.iter_mut().flat_map(|it| &mut it.answers);
    answers.for_each(|answer| reject_impossible_example(answer, &opened));
    let shown = Shown {
        by_tool: &by_tool,
        basis: Basis {
            prover: &prover,
            rules: &opened.rules,
            coverage: Coverage::new(&[("", &opened.rules)], &subjects, &opened.flow),
            labels: analysis::label_assumption(&opened.flow),
            approver: opened.approver.as_ref(),
        },
    };
    match format {
        PolicyFormat::Text => print(&escape::block(&shown.text()))?,
        PolicyFormat::Json => print_json(&shown.as_json())?,
        PolicyFormat::Sarif => {
            let files = Files::of_rules(folders.iter().chain(&tightening))?;
            files.print_sarif(&as_sarif(&by_tool, &opened.rules))?;
        }
    }
    let is_open = |it: &LevelAnswer| matches!(it.found, Reachability::Open { .. });
    Ok(
        match by_tool.iter().flat_map(|it| &it.answers).any(is_open) {
            true => exit::OPEN,
            false => exit::DONE,
        },
    )
}

/// Makes an answer open if no call has the facts of its example.
fn reject_impossible_example(answer: &mut LevelAnswer, opened: &RuleSources) {
    let Reachability::Example(example) = &answer.found else {
        return;
    };
    if let Err(why) = opened.check_example(example) {
        let why = format!("the example that was found is impossible: {why}");
        answer.found = Reachability::Open { why };
    }
}

async fn all(
    prover: &mut Prover,
    rules: &Rules,
    subjects: &[ToolSubject],
    seeds: &[Seed],
    levels: &[Level],
) -> Vec<ToolAnswers> {
    let mut all = Vec::new();
    for subject in subjects {
        let case = ReachabilityCase {
            rules,
            subject,
            seeds,
        };
        all.push(ToolAnswers {
            tool: subject.tool.to_string(),
            answers: prover.can(case, levels).await,
        });
    }
    all
}

impl Shown<'_> {
    fn text(&self) -> String {
        let mut text: String = self.by_tool.iter().map(of_tool).collect();
        text.push_str(&summary(self.by_tool));
        text + &self.basis.text()
    }

    fn as_json(&self) -> Value {
        let tools = self.by_tool.iter().map(tool_json).collect();
        self.basis
            .json(Map::from_iter([("tools".to_owned(), tools)]))
    }
}

/// Formats the tool's name, then its answer for each level.
fn of_tool(tool_answers: &ToolAnswers) -> String {
    let mut text = format!("{}: {}\n", tool_answers.tool, headline(tool_answers));
    for answer in &tool_answers.answers {
        let how = words(answer.level);
        match &answer.found {
            Reachability::Example(example) => {
                text.push_str(&format!("  {how}: yes\n    {}\n", example.call()));
                for reason in &example.reasons {
                    text.push_str(&format!("    why: {reason}\n"));
                }
            }
            Reachability::Never(ground) => {
                text.push_str(&format!("  {how}: never ({})\n", ground.words()));
            }
            Reachability::Open { why } => {
                text.push_str(&format!(
                    "  {how}: open, neither an example nor a proof ({why})\n"
                ));
            }
        }
    }
    text
}

/// Says in a few words how calls of a tool can be decided.
fn headline(tool_answers: &ToolAnswers) -> String {
    let answers = &tool_answers.answers;
    let possible = answers.iter().filter_map(|it| match (&it.found, it.level) {
        (Reachability::Example(_), Level::Allow) => {
            Some("some calls are allowed without an approval")
        }
        (Reachability::Example(_), Level::AskRun) => Some("for some, a grant is enough"),
        (Reachability::Example(_), Level::AskCall) => Some("some need an approval of each call"),
        _ => None,
    });
    let mut parts: Vec<&str> = possible.collect();
    let is_open = |it: &LevelAnswer| matches!(it.found, Reachability::Open { .. });
    if answers.iter().any(is_open) {
        parts.push("some answers are open");
    }
    match (parts.is_empty(), answers.len()) {
        (false, _) => parts.join("; "),
        (true, 1) => "no call is allowed without an approval".to_owned(),
        (true, _) => "every call is denied".to_owned(),
    }
}

fn words(level: Level) -> &'static str {
    match level {
        Level::Allow => "without asking",
        Level::AskRun => "with a grant or an approval",
        Level::AskCall => "only with an approval of this call",
        Level::Deny => "not at all",
    }
}

/// Formats `12 tools: 3 can be called without asking, 8 cannot, 1 open`.
fn summary(by_tool: &[ToolAnswers]) -> String {
    let count = |is: fn(&Reachability) -> bool| {
        let of = |it: &&ToolAnswers| it.answers.first().is_some_and(|answer| is(&answer.found));
        by_tool.iter().filter(of).count()
    };
    let can = count(|it| matches!(it, Reachability::Example(_)));
    let never = count(|it| matches!(it, Reachability::Never(_)));
    let open = count(|it| matches!(it, Reachability::Open { .. }));
    format!(
        "{}: {can} can be called without asking, {never} cannot, {open} open\n",
        counted(by_tool.len(), "tool")
    )
}

fn tool_json(tool_answers: &ToolAnswers) -> Value {
    let answer = |answer: &LevelAnswer| {
        let level = answer.level.as_str();
        match &answer.found {
            Reachability::Example(example) => json!({
                "level": level, "possible": true, "how": "example",
                "call": example.call(), "reasons": example.reasons,
            }),
            Reachability::Never(ground) => {
                json!({"level": level, "possible": false, "how": ground.as_str()})
            }
            Reachability::Open { why } => {
                json!({"level": level, "possible": null, "how": "open", "why": why})
            }
        }
    };
    let answers: Vec<Value> = tool_answers.answers.iter().map(answer).collect();
    json!({"tool": tool_answers.tool, "answers": answers})
}

const UNASKED: &str = "may-run-unasked";
const OPEN: &str = "not-proved";

fn as_sarif(by_tool: &[ToolAnswers], rules: &Rules) -> Sarif {
    let mut log = Sarif {
        rules: vec![
            (UNASKED, "A call can be made without an approval"),
            (
                OPEN,
                "Unknown whether a tool can be called in a certain way: airlock found no example \
                 call, and no proof that none exists",
            ),
        ],
        results: Vec::new(),
    };
    for ToolAnswers { tool, answers } in by_tool {
        for answer in answers {
            let how = words(answer.level);
            let result = match &answer.found {
                Reachability::Example(example) if answer.level == Level::Allow => SarifResult {
                    rule: UNASKED,
                    level: SarifLevel::Note,
                    message: format!("`{tool}` can be called {how}: {}", example.call()),
                    place: analysis::place(rules, example),
                    fix: None,
                },
                Reachability::Open { why } => SarifResult {
                    rule: OPEN,
                    level: SarifLevel::Warning,
                    message: format!("unknown whether `{tool}` can be called {how}: {why}"),
                    place: None,
                    fix: None,
                },
                _ => continue,
            };
            log.results.push(result);
        }
    }
    log
}
