//! `airlock policy diff`: what a change of rules lets through that was not let
//! through before, and what it takes away, tool by tool.

use std::path::PathBuf;

use airlock_core::policy::ever::{Apart, Example, Subject};
use airlock_core::rules::Rules;
use serde_json::{Value, json};

use super::ever;
use super::format::{Files, Format, FormatOptions};
use super::sources::{SourceOptions, Wrong};
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, print, print_json, runtime};
use crate::config::Environment;
use crate::prover::{Change, Ground, Pair, Parted, Prover};
use crate::render::{Sarif, SarifLevel, SarifResult, counted, escape};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct DiffOptions {
    /// Folder with the old rules
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// Folder with the new rules
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Compare only these tools: SERVER.TOOL, where * matches any characters
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Count a tool as widened unless a proof shows that it is not
    #[arg(long)]
    require_proof: bool,
    #[command(flatten)]
    sources: SourceOptions,
    #[command(flatten)]
    pub(super) format: FormatOptions,
}

struct Told {
    tool: String,
    change: Change,
}

/// All tools together, or one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Direction {
    widened: bool,
    narrowed: bool,
    /// Nothing is found and not all is proved.
    open: bool,
}

pub(super) fn run(options: DiffOptions, environment: &Environment, screen: &Screen) -> Outcome {
    let format = options.format.format();
    let folders = [options.old.clone(), options.new.clone()];
    let sources = options.sources;
    let tightening = sources.tightening().to_vec();
    let opened = match sources.open_pair(&options.old, &options.new, environment, screen) {
        Ok(opened) => opened,
        Err(Wrong::Other(problem)) => return Err(problem),
        Err(Wrong::Rules(findings)) => {
            super::show_findings(&findings, format != Format::Text)?;
            return Ok(exit::POLICY);
        }
    };
    let wanted = options.tool.as_deref();
    let (before, after) = opened;
    let subjects = ever::subjects(&before.descriptions, &before.flow, wanted, screen)?;
    let seeds = ever::seeds(&folders, screen);
    let mut prover = Prover::find(environment);
    let pair = Pair {
        old: &before.rules,
        new: &after.rules,
    };
    let told = runtime()?.block_on(async {
        let mut all = Vec::new();
        for subject in &subjects {
            all.push(of_tool(&mut prover, pair, subject, &seeds).await);
        }
        all
    });
    match format {
        Format::Text => print(&escape::block(&text(&told, &prover, pair.new)))?,
        Format::Json => print_json(&as_json(&told, &prover, pair.new))?,
        Format::Sarif => {
            let files = Files::of_rules(std::iter::once(&options.new).chain(&tightening))?;
            files.print_sarif(&as_sarif(&told, pair.new))?;
        }
    }
    let is_open = |told: &Told| matches!(told.change.widened, Parted::Nothing { .. });
    let unproved = options.require_proof && told.iter().any(is_open);
    Ok(match overall(&told).widened || unproved {
        true => exit::POLICY,
        false => exit::DONE,
    })
}

async fn of_tool(
    prover: &mut Prover,
    pair: Pair<'_>,
    subject: &Subject,
    seeds: &[airlock_core::policy::ever::Seed],
) -> Told {
    Told {
        tool: subject.tool.to_string(),
        change: prover.diff(pair, subject, seeds).await,
    }
}

impl Direction {
    fn of(change: &Change) -> Self {
        let is = |parted: &Parted| matches!(parted, Parted::Example(_));
        let is_open = |parted: &Parted| matches!(parted, Parted::Nothing { .. });
        Self {
            widened: is(&change.widened),
            narrowed: is(&change.narrowed),
            open: is_open(&change.widened) || is_open(&change.narrowed),
        }
    }

    fn as_str(self) -> &'static str {
        match (self.widened, self.narrowed) {
            (true, true) => "both",
            (true, false) => "widened",
            (false, true) => "narrowed",
            (false, false) => "equal",
        }
    }
}

fn overall(told: &[Told]) -> Direction {
    let all: Vec<Direction> = told.iter().map(|it| Direction::of(&it.change)).collect();
    Direction {
        widened: all.iter().any(|it| it.widened),
        narrowed: all.iter().any(|it| it.narrowed),
        open: all.iter().any(|it| it.open),
    }
}

/// What it rests on that nothing else changes; none where a call was found for everything.
fn ground(told: &[Told]) -> Option<Ground> {
    let both = told
        .iter()
        .flat_map(|it| [&it.change.widened, &it.change.narrowed]);
    let grounds = both.filter_map(|parted| match parted {
        Parted::Never(ground) => Some(*ground),
        Parted::Example(_) | Parted::Nothing { .. } => None,
    });
    grounds.max()
}

/// The tools that change, and of which it is not known.
fn text(told: &[Told], prover: &Prover, rules: &Rules) -> String {
    let mut text = String::new();
    for Told { tool, change } in told {
        let direction = Direction::of(change);
        if direction.as_str() == "equal" && !direction.open {
            continue;
        }
        text.push_str(&format!("{tool}: {}\n", direction.as_str()));
        for (word, parted) in [("widened", &change.widened), ("narrowed", &change.narrowed)] {
            match parted {
                Parted::Example(apart) => text.push_str(&of_apart(word, apart)),
                Parted::Never(_) => {}
                Parted::Nothing { why } => {
                    text.push_str(&format!("  {word}: none found (enumerated: {why})\n"));
                }
            }
        }
    }
    let of = |word: &str| {
        let is = |it: &&Told| Direction::of(&it.change).as_str() == word;
        told.iter().filter(is).count()
    };
    let open = told
        .iter()
        .filter(|it| Direction::of(&it.change).open)
        .count();
    text.push_str(&format!(
        "{}: {}; {} widened, {} narrowed, {} both, {} equal",
        counted(told.len(), "tool"),
        overall(told).as_str(),
        of("widened"),
        of("narrowed"),
        of("both"),
        of("equal"),
    ));
    text.push_str(&match (open, ground(told)) {
        (0, None) => "\n".to_owned(),
        (0, Some(ground)) => format!(" ({})\n", ground.words()),
        (open, _) => format!("; of {open} not all is proved\n"),
    });
    text.push_str(&format!("{}\n", ever::prover_line(prover)));
    text.push_str(&ever::assumed_lines(prover, rules));
    text
}

fn of_apart(word: &str, (old, new): &Apart) -> String {
    let (before, after) = (old.level.as_str(), new.level.as_str());
    let mut text = format!("  {word}: {before}, now {after}\n    {}\n", new.call());
    for (word, example) in [("old", old), ("new", new)] {
        for reason in &example.reasons {
            text.push_str(&format!("    {word}: {reason}\n"));
        }
    }
    text
}

fn as_json(told: &[Told], prover: &Prover, rules: &Rules) -> Value {
    let side =
        |example: &Example| json!({"level": example.level.as_str(), "reasons": example.reasons});
    let parted = |parted: &Parted| match parted {
        Parted::Example(apart) => {
            let (old, new) = &**apart;
            json!({"found": true, "how": "example", "call": new.call(),
                "old": side(old), "new": side(new)})
        }
        Parted::Never(ground) => json!({"found": false, "how": ground.as_str()}),
        Parted::Nothing { why } => json!({"found": null, "how": "enumerated", "why": why}),
    };
    let tool = |told: &Told| {
        json!({
            "tool": told.tool,
            "change": Direction::of(&told.change).as_str(),
            "widened": parted(&told.change.widened),
            "narrowed": parted(&told.change.narrowed),
        })
    };
    let overall = overall(told);
    json!({
        "change": overall.as_str(),
        "open": overall.open,
        "how": ground(told).map(Ground::as_str),
        "tools": told.iter().map(tool).collect::<Vec<_>>(),
        "solver": prover.witness().map(|it| it.display().to_string()),
        "trouble": prover.trouble(),
        "assumptions": ever::assumptions(prover, Some(rules)).collect::<Vec<_>>(),
    })
}

const WIDENED: &str = "widened";
const NARROWED: &str = "narrowed";
const OPEN: &str = "not-proved";

fn as_sarif(told: &[Told], new_rules: &Rules) -> Sarif {
    let mut log = Sarif {
        rules: vec![
            (
                WIDENED,
                "A call is let through that was not, or with less approval",
            ),
            (
                NARROWED,
                "A call is no longer allowed, or only with more approval",
            ),
            (
                OPEN,
                "No such call was found, and it is not proved that none exists",
            ),
        ],
        results: Vec::new(),
    };
    for Told { tool, change } in told {
        for (rule, parted) in [(WIDENED, &change.widened), (NARROWED, &change.narrowed)] {
            let result = match parted {
                Parted::Example(apart) => {
                    let (old, new) = &**apart;
                    let (before, after) = (old.level.as_str(), new.level.as_str());
                    let call = new.call();
                    SarifResult {
                        rule,
                        level: if rule == WIDENED {
                            SarifLevel::Error
                        } else {
                            SarifLevel::Note
                        },
                        message: format!("`{tool}` is {rule}: {before}, now {after}: {call}"),
                        place: ever::place(new_rules, new),
                        fix: None,
                    }
                }
                Parted::Never(_) => continue,
                Parted::Nothing { why } => SarifResult {
                    rule: OPEN,
                    level: SarifLevel::Warning,
                    message: format!("whether `{tool}` is {rule} is open: {why}"),
                    place: None,
                    fix: None,
                },
            };
            log.results.push(result);
        }
    }
    log
}
