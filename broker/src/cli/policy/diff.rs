//! `airlock policy diff`: the calls that a change of rules newly allows or no longer allows, tool
//! by tool.

use std::path::PathBuf;

use airlock_core::policy_analysis::{DecisionChange, Example, ToolSubject};
use airlock_core::rules::Rules;
use serde_json::{Value, json};

use super::analysis;
use super::format::{Files, FormatOptions, PolicyFormat};
use super::sources::{LoadError, SourceOptions};
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, print, print_json, runtime};
use crate::config::Environment;
use crate::prover::{DiffOutcome, ProofGround, Prover, RuleChange, RulePair};
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
    /// Also exit with 32 if airlock cannot prove that no call is newly allowed or needs less
    /// approval
    #[arg(long)]
    require_proof: bool,
    #[command(flatten)]
    sources: SourceOptions,
    #[command(flatten)]
    pub(super) format: FormatOptions,
}

struct ToolChange {
    tool: String,
    change: RuleChange,
}

/// The direction of a change, for one tool or for all together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Direction {
    widened: bool,
    narrowed: bool,
    /// No example was found, and not everything is proved.
    open: bool,
}

pub(super) fn run(options: DiffOptions, environment: &Environment, screen: &Screen) -> Outcome {
    let format = options.format.format();
    let folders = [options.old.clone(), options.new.clone()];
    let sources = options.sources;
    let tightening = sources.tightening().to_vec();
    let opened = match sources.open_pair(&options.old, &options.new, environment, screen) {
        Ok(opened) => opened,
        Err(LoadError::Other(problem)) => return Err(problem),
        Err(LoadError::Rules(findings)) => {
            super::show_findings(&findings, format != PolicyFormat::Text)?;
            return Ok(exit::POLICY);
        }
    };
    let wanted = options.tool.as_deref();
    let (before, after) = opened;
    let subjects = analysis::subjects(&before.descriptions, &before.flow, wanted, screen)?;
    let seeds = analysis::seeds(&folders, screen);
    let mut prover = Prover::find(environment);
    let pair = RulePair {
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
        PolicyFormat::Text => print(&escape::block(&text(&told, &prover, pair.new)))?,
        PolicyFormat::Json => print_json(&as_json(&told, &prover, pair.new))?,
        PolicyFormat::Sarif => {
            let files = Files::of_rules(std::iter::once(&options.new).chain(&tightening))?;
            files.print_sarif(&as_sarif(&told, pair.new))?;
        }
    }
    let is_open = |told: &ToolChange| matches!(told.change.widened, DiffOutcome::Nothing { .. });
    let unproved = options.require_proof && told.iter().any(is_open);
    Ok(match overall(&told).widened || unproved {
        true => exit::POLICY,
        false => exit::DONE,
    })
}

async fn of_tool(
    prover: &mut Prover,
    pair: RulePair<'_>,
    subject: &ToolSubject,
    seeds: &[airlock_core::policy_analysis::Seed],
) -> ToolChange {
    ToolChange {
        tool: subject.tool.to_string(),
        change: prover.diff(pair, subject, seeds).await,
    }
}

impl Direction {
    fn from_change(change: &RuleChange) -> Self {
        let is = |parted: &DiffOutcome| matches!(parted, DiffOutcome::Example(_));
        let is_open = |parted: &DiffOutcome| matches!(parted, DiffOutcome::Nothing { .. });
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

fn overall(told: &[ToolChange]) -> Direction {
    let all: Vec<Direction> = told
        .iter()
        .map(|it| Direction::from_change(&it.change))
        .collect();
    Direction {
        widened: all.iter().any(|it| it.widened),
        narrowed: all.iter().any(|it| it.narrowed),
        open: all.iter().any(|it| it.open),
    }
}

/// Returns the basis of all results without a change: `Proof` if any of them needed a solver.
/// Returns `None` if there are no such results.
fn ground(told: &[ToolChange]) -> Option<ProofGround> {
    let both = told
        .iter()
        .flat_map(|it| [&it.change.widened, &it.change.narrowed]);
    let grounds = both.filter_map(|parted| match parted {
        DiffOutcome::Never(ground) => Some(*ground),
        DiffOutcome::Example(_) | DiffOutcome::Nothing { .. } => None,
    });
    grounds.max()
}

/// Lists the tools that change, and those for which this is not known.
fn text(told: &[ToolChange], prover: &Prover, rules: &Rules) -> String {
    let mut text = String::new();
    for ToolChange { tool, change } in told {
        let direction = Direction::from_change(change);
        if direction.as_str() == "equal" && !direction.open {
            continue;
        }
        text.push_str(&format!("{tool}: {}\n", direction.as_str()));
        for (word, parted) in [("widened", &change.widened), ("narrowed", &change.narrowed)] {
            match parted {
                DiffOutcome::Example(apart) => text.push_str(&of_apart(word, apart)),
                DiffOutcome::Never(_) => {}
                DiffOutcome::Nothing { why } => {
                    text.push_str(&format!("  {word}: none found (enumerated: {why})\n"));
                }
            }
        }
    }
    let of = |word: &str| {
        let is = |it: &&ToolChange| Direction::from_change(&it.change).as_str() == word;
        told.iter().filter(is).count()
    };
    let open = told
        .iter()
        .filter(|it| Direction::from_change(&it.change).open)
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
        (open, _) => format!("; {open} not fully proved\n"),
    });
    text.push_str(&format!("{}\n", analysis::prover_line(prover)));
    text.push_str(&analysis::assumed_lines(prover, rules));
    text
}

fn of_apart(word: &str, (old, new): &DecisionChange) -> String {
    let (before, after) = (old.level.as_str(), new.level.as_str());
    let mut text = format!("  {word}: {before}, now {after}\n    {}\n", new.call());
    for (word, example) in [("old", old), ("new", new)] {
        for reason in &example.reasons {
            text.push_str(&format!("    {word}: {reason}\n"));
        }
    }
    text
}

fn as_json(told: &[ToolChange], prover: &Prover, rules: &Rules) -> Value {
    let side =
        |example: &Example| json!({"level": example.level.as_str(), "reasons": example.reasons});
    let parted = |parted: &DiffOutcome| match parted {
        DiffOutcome::Example(apart) => {
            let (old, new) = &**apart;
            json!({"found": true, "how": "example", "call": new.call(),
                "old": side(old), "new": side(new)})
        }
        DiffOutcome::Never(ground) => json!({"found": false, "how": ground.as_str()}),
        DiffOutcome::Nothing { why } => json!({"found": null, "how": "enumerated", "why": why}),
    };
    let tool = |told: &ToolChange| {
        json!({
            "tool": told.tool,
            "change": Direction::from_change(&told.change).as_str(),
            "widened": parted(&told.change.widened),
            "narrowed": parted(&told.change.narrowed),
        })
    };
    let overall = overall(told);
    json!({
        "change": overall.as_str(),
        "open": overall.open,
        "how": ground(told).map(ProofGround::as_str),
        "tools": told.iter().map(tool).collect::<Vec<_>>(),
        "solver": prover.witness().map(|it| it.display().to_string()),
        "trouble": prover.trouble(),
        "assumptions": analysis::assumptions(prover, Some(rules)).collect::<Vec<_>>(),
    })
}

const WIDENED: &str = "widened";
const NARROWED: &str = "narrowed";
const OPEN: &str = "not-proved";

fn as_sarif(told: &[ToolChange], new_rules: &Rules) -> Sarif {
    let mut log = Sarif {
        rules: vec![
            (WIDENED, "A call is newly allowed, or needs less approval"),
            (
                NARROWED,
                "A call is no longer allowed, or only with more approval",
            ),
            (
                OPEN,
                "Unknown whether the change widens or narrows a tool: airlock found no example \
                 call, and no proof that none exists",
            ),
        ],
        results: Vec::new(),
    };
    for ToolChange { tool, change } in told {
        for (rule, parted) in [(WIDENED, &change.widened), (NARROWED, &change.narrowed)] {
            let result = match parted {
                DiffOutcome::Example(apart) => {
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
                        place: analysis::place(new_rules, new),
                        fix: None,
                    }
                }
                DiffOutcome::Never(_) => continue,
                DiffOutcome::Nothing { why } => SarifResult {
                    rule: OPEN,
                    level: SarifLevel::Warning,
                    message: format!("unknown whether `{tool}` is {rule}: {why}"),
                    place: None,
                    fix: None,
                },
            };
            log.results.push(result);
        }
    }
    log
}
