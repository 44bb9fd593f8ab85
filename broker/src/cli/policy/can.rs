//! `airlock policy can`: the possible decisions about calls, tool by tool, with an example or a
//! proof that there is none.

use std::path::PathBuf;

use airlock_core::level::Level;
use airlock_core::policy_analysis::{Seed, ToolSubject};
use airlock_core::rules::Rules;
use serde_json::{Value, json};

use super::analysis;
use super::format::{Files, FormatOptions, PolicyFormat};
use super::sources::{LoadError, SourceOptions};
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
    /// Only report whether a call can be allowed without asking a person
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

/// The answers for one tool.
struct ToolAnswers {
    tool: String,
    answers: Vec<LevelAnswer>,
}

pub(super) fn run(options: CanOptions, environment: &Environment, screen: &Screen) -> Outcome {
    let format = options.format.format();
    let folders = options.folders.clone();
    let tightening = options.sources.tightening().to_vec();
    let opened = match options.sources.open(options.folders, environment, screen) {
        Ok(opened) => opened,
        Err(LoadError::Other(problem)) => return Err(problem),
        Err(LoadError::Rules(findings)) => {
            super::show_findings(&findings, format != PolicyFormat::Text)?;
            return Ok(exit::POLICY);
        }
    };
    let wanted = options.tool.as_deref();
    let subjects = analysis::subjects(&opened.descriptions, &opened.flow, wanted, screen)?;
    let seeds = analysis::seeds(&folders, screen);
    let levels: &[Level] = match options.auto {
        true => &[Level::Allow],
        false => &[Level::Allow, Level::AskRun, Level::AskCall],
    };
    let mut prover = Prover::find(environment);
    let told = runtime()?.block_on(all(&mut prover, &opened.rules, &subjects, &seeds, levels));
    match format {
        PolicyFormat::Text => print(&escape::block(&text(&told, &prover, &opened.rules)))?,
        PolicyFormat::Json => print_json(&as_json(&told, &prover, &opened.rules))?,
        PolicyFormat::Sarif => {
            let files = Files::of_rules(folders.iter().chain(&tightening))?;
            files.print_sarif(&as_sarif(&told, &opened.rules))?;
        }
    }
    Ok(exit::DONE)
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

/// Formats the tool's name, then its answer for each level.
fn text(told: &[ToolAnswers], prover: &Prover, rules: &Rules) -> String {
    let mut text = String::new();
    for ToolAnswers { tool, answers } in told {
        text.push_str(&format!("{tool}\n"));
        for answer in answers {
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
                Reachability::Nothing { why } => {
                    text.push_str(&format!("  {how}: none found (enumerated: {why})\n"));
                }
            }
        }
    }
    text.push_str(&summary(told));
    text.push_str(&format!("{}\n", analysis::prover_line(prover)));
    text.push_str(&analysis::assumed_lines(prover, rules));
    text
}

fn words(level: Level) -> &'static str {
    match level {
        Level::Allow => "without asking",
        Level::AskRun => "with a grant or an approval",
        Level::AskCall => "only with an approval of this call",
        Level::Deny => "not at all",
    }
}

/// Formats `12 tools: 3 can be called without asking, 8 cannot, 1 unknown`.
fn summary(told: &[ToolAnswers]) -> String {
    let count = |is: fn(&Reachability) -> bool| {
        let of = |it: &&ToolAnswers| it.answers.first().is_some_and(|answer| is(&answer.found));
        told.iter().filter(of).count()
    };
    let can = count(|it| matches!(it, Reachability::Example(_)));
    let never = count(|it| matches!(it, Reachability::Never(_)));
    let open = count(|it| matches!(it, Reachability::Nothing { .. }));
    format!(
        "{}: {can} can be called without asking, {never} cannot, {open} unknown\n",
        counted(told.len(), "tool")
    )
}

fn as_json(told: &[ToolAnswers], prover: &Prover, rules: &Rules) -> Value {
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
            Reachability::Nothing { why } => {
                json!({"level": level, "possible": null, "how": "enumerated", "why": why})
            }
        }
    };
    let tool = |told: &ToolAnswers| {
        let answers: Vec<Value> = told.answers.iter().map(answer).collect();
        json!({"tool": told.tool, "answers": answers})
    };
    json!({
        "tools": told.iter().map(tool).collect::<Vec<_>>(),
        "solver": prover.witness().map(|it| it.display().to_string()),
        "trouble": prover.trouble(),
        "assumptions": analysis::assumptions(prover, Some(rules)).collect::<Vec<_>>(),
    })
}

const UNASKED: &str = "may-run-unasked";
const OPEN: &str = "not-proved";

fn as_sarif(told: &[ToolAnswers], rules: &Rules) -> Sarif {
    let mut log = Sarif {
        rules: vec![
            (UNASKED, "A call can be made without asking a person"),
            (
                OPEN,
                "Unknown whether a tool can be called in a certain way: airlock found no example \
                 call, and no proof that none exists",
            ),
        ],
        results: Vec::new(),
    };
    for ToolAnswers { tool, answers } in told {
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
                Reachability::Nothing { why } => SarifResult {
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
