//! `airlock policy can`: what may ever become of calls, tool by tool, with a call
//! that shows it or a proof that there is none.

use std::path::PathBuf;

use airlock_core::policy::ever::{Seed, Subject};
use airlock_core::rules::{Level, Rules};
use serde_json::{Value, json};

use super::ever;
use super::format::{Files, Format, FormatOptions};
use super::sources::{SourceOptions, Wrong};
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, print, print_json, runtime};
use crate::config::Environment;
use crate::prover::{Answer, Case, Found, Prover};
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

/// What is known of one tool.
struct Told {
    tool: String,
    answers: Vec<Answer>,
}

pub(super) fn run(options: CanOptions, environment: &Environment, screen: &Screen) -> Outcome {
    let format = options.format.format();
    let folders = options.folders.clone();
    let tightening = options.sources.tightening().to_vec();
    let opened = match options.sources.open(options.folders, environment, screen) {
        Ok(opened) => opened,
        Err(Wrong::Other(problem)) => return Err(problem),
        Err(Wrong::Rules(findings)) => {
            super::show_findings(&findings, format != Format::Text)?;
            return Ok(exit::POLICY);
        }
    };
    let wanted = options.tool.as_deref();
    let subjects = ever::subjects(&opened.descriptions, &opened.flow, wanted, screen)?;
    let seeds = ever::seeds(&folders, screen);
    let levels: &[Level] = match options.auto {
        true => &[Level::Allow],
        false => &[Level::Allow, Level::AskRun, Level::AskCall],
    };
    let mut prover = Prover::find(environment);
    let told = runtime()?.block_on(all(&mut prover, &opened.rules, &subjects, &seeds, levels));
    match format {
        Format::Text => print(&escape::block(&text(&told, &prover, &opened.rules)))?,
        Format::Json => print_json(&as_json(&told, &prover, &opened.rules))?,
        Format::Sarif => {
            let files = Files::of_rules(folders.iter().chain(&tightening))?;
            files.print_sarif(&as_sarif(&told, &opened.rules))?;
        }
    }
    Ok(exit::DONE)
}

async fn all(
    prover: &mut Prover,
    rules: &Rules,
    subjects: &[Subject],
    seeds: &[Seed],
    levels: &[Level],
) -> Vec<Told> {
    let mut all = Vec::new();
    for subject in subjects {
        let case = Case {
            rules,
            subject,
            seeds,
        };
        all.push(Told {
            tool: subject.tool.to_string(),
            answers: prover.can(case, levels).await,
        });
    }
    all
}

/// `mail.send`, then a line or two for each level.
fn text(told: &[Told], prover: &Prover, rules: &Rules) -> String {
    let mut text = String::new();
    for Told { tool, answers } in told {
        text.push_str(&format!("{tool}\n"));
        for answer in answers {
            let how = words(answer.level);
            match &answer.found {
                Found::Example(example) => {
                    text.push_str(&format!("  {how}: yes\n    {}\n", example.call()));
                    for reason in &example.reasons {
                        text.push_str(&format!("    why: {reason}\n"));
                    }
                }
                Found::Never(ground) => {
                    text.push_str(&format!("  {how}: never ({})\n", ground.words()));
                }
                Found::Nothing { why } => {
                    text.push_str(&format!("  {how}: none found (enumerated: {why})\n"));
                }
            }
        }
    }
    text.push_str(&summary(told));
    text.push_str(&format!("{}\n", ever::prover_line(prover)));
    text.push_str(&ever::assumed_lines(prover, rules));
    text
}

fn words(level: Level) -> &'static str {
    match level {
        Level::Allow => "without asking",
        Level::AskRun => "with a grant or a yes",
        Level::AskCall => "with a yes to the very call",
        Level::Deny => "not at all",
    }
}

/// `12 tools: 3 can be called without asking, 8 never can, of 1 it is not known`
fn summary(told: &[Told]) -> String {
    let count = |is: fn(&Found) -> bool| {
        let of = |it: &&Told| it.answers.first().is_some_and(|answer| is(&answer.found));
        told.iter().filter(of).count()
    };
    let can = count(|it| matches!(it, Found::Example(_)));
    let never = count(|it| matches!(it, Found::Never(_)));
    let open = count(|it| matches!(it, Found::Nothing { .. }));
    format!(
        "{}: {can} can be called without asking, {never} never can, of {open} it is not known\n",
        counted(told.len(), "tool")
    )
}

fn as_json(told: &[Told], prover: &Prover, rules: &Rules) -> Value {
    let answer = |answer: &Answer| {
        let level = answer.level.as_str();
        match &answer.found {
            Found::Example(example) => json!({
                "level": level, "possible": true, "how": "example",
                "call": example.call(), "reasons": example.reasons,
            }),
            Found::Never(ground) => {
                json!({"level": level, "possible": false, "how": ground.as_str()})
            }
            Found::Nothing { why } => {
                json!({"level": level, "possible": null, "how": "enumerated", "why": why})
            }
        }
    };
    let tool = |told: &Told| {
        let answers: Vec<Value> = told.answers.iter().map(answer).collect();
        json!({"tool": told.tool, "answers": answers})
    };
    json!({
        "tools": told.iter().map(tool).collect::<Vec<_>>(),
        "solver": prover.witness().map(|it| it.display().to_string()),
        "trouble": prover.trouble(),
        "assumptions": ever::assumptions(prover, Some(rules)).collect::<Vec<_>>(),
    })
}

const UNASKED: &str = "may-run-unasked";
const OPEN: &str = "not-proved";

fn as_sarif(told: &[Told], rules: &Rules) -> Sarif {
    let mut log = Sarif {
        rules: vec![
            (UNASKED, "A call can be made without anybody being asked"),
            (
                OPEN,
                "No such call was found, and it is not proved that none exists",
            ),
        ],
        results: Vec::new(),
    };
    for Told { tool, answers } in told {
        for answer in answers {
            let how = words(answer.level);
            let result = match &answer.found {
                Found::Example(example) if answer.level == Level::Allow => SarifResult {
                    rule: UNASKED,
                    level: SarifLevel::Note,
                    message: format!("`{tool}` can be called {how}: {}", example.call()),
                    place: ever::place(rules, example),
                    fix: None,
                },
                Found::Nothing { why } => SarifResult {
                    rule: OPEN,
                    level: SarifLevel::Warning,
                    message: format!("whether `{tool}` can be called {how} is open: {why}"),
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
