//! `airlock policy diff`: shows the calls that a change of rules newly allows or no longer allows,
//! tool by tool.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use airlock_core::policy::{Policies, Rule};
use airlock_core::rules::Rules;
use airlock_policy_analysis::{ConfiguredRules, DecisionChange, Example, ToolSubject};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::analysis::{self, Basis, Coverage};
use super::check;
use super::format::{Files, FormatOptions, PolicyFormat};
use super::sources::{RuleSources, SourceOptions};
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, print, print_json, runtime};
use crate::config::Environment;
use crate::prover::{DiffOutcome, ProofGround, Prover, RuleChange, RulePair, diff_configurations};
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
    /// Exit with 32 instead of 34 if airlock cannot prove that no call is newly allowed or needs
    /// less approval
    #[arg(long)]
    require_proof: bool,
    /// The configuration of the old rules, to also compare labels, roots and groups. --config is
    /// then the configuration of the new rules
    #[arg(long, value_name = "FILE", requires = "config")]
    old_config: Option<PathBuf>,
    #[command(flatten)]
    sources: SourceOptions,
    #[command(flatten)]
    pub(super) format: FormatOptions,
}

struct ToolChange {
    tool: String,
    change: RuleChange,
}

/// Whether calls are decided differently in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Answer {
    No,
    /// Neither an example nor a proof was found.
    Open,
    Yes,
}

/// The direction of a change, for one tool or for all together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Direction {
    widened: Answer,
    narrowed: Answer,
}

/// A text that people see when they are asked about a call, and that differs between the two
/// folders. It changes no decision.
#[derive(Debug, Serialize)]
struct TextChange {
    /// The id of the rule.
    rule: String,
    text: RuleText,
    old: Option<String>,
    new: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum RuleText {
    Prompt,
    Reason,
}

/// Everything that the output shows.
struct Shown<'a> {
    by_tool: &'a [ToolChange],
    texts: &'a [TextChange],
    basis: Basis<'a>,
}

pub(super) fn run(options: DiffOptions, environment: &Environment, screen: &Screen) -> Outcome {
    let format = options.format.format();
    let folders = [options.old.clone(), options.new.clone()];
    let sources = options.sources;
    let tightening = sources.tightening().to_vec();
    let opened = match sources.open_pair(
        [&options.old, &options.new],
        options.old_config.as_deref(),
        environment,
        screen,
    ) {
        Ok(opened) => opened,
        Err(error) => return super::unusable(error, format != PolicyFormat::Text),
    };
    let wanted = options.tool.as_deref();
    let (before, after) = opened;
    check::note_ignored(&before.ignored, "diff", screen);
    let has_same_surroundings = has_same_surroundings(&before, &after);
    if !has_same_surroundings {
        check::note_ignored(&after.ignored, "diff", screen);
    }
    let subjects = analysis::subjects(&after.descriptions, &after.flow, wanted, screen)?;
    let old_subjects = match options.old_config.is_some() {
        true => analysis::subjects(&before.descriptions, &before.flow, wanted, screen)?,
        false => subjects.clone(),
    };
    let seeds = analysis::seeds(&folders, &before.descriptions, screen);
    let mut prover = Prover::find(environment);
    let pair = RulePair {
        old: &before.rules,
        new: &after.rules,
    };
    let by_tool = runtime()?.block_on(async {
        let mut all = Vec::new();
        for (old, subject) in old_subjects.iter().zip(&subjects) {
            let server = &subject.tool.server;
            // The names of roots can be the same although their folders differ.
            let has_same_paths =
                !subject.has_paths() || before.facts.resolves_like(&after.facts, server);
            let is_like = old.is_labelled_like(subject)
                && has_same_surroundings
                && has_same_paths
                && has_same_groups(pair, subject);
            all.push(match is_like {
                true => of_tool(&mut prover, pair, subject, &seeds).await,
                false => across(pair, [old, subject], &seeds),
            });
        }
        all
    });
    let all = [("old ", &*before.rules), ("new ", &*after.rules)];
    let texts = text_changes(pair, &subjects);
    let shown = Shown {
        by_tool: &by_tool,
        texts: &texts,
        basis: Basis {
            prover: &prover,
            rules: pair.new,
            coverage: Coverage::new(&all, &subjects, &after.flow),
            labels: analysis::label_assumption(&after.flow),
            approver: after.approver.as_ref(),
        },
    };
    match format {
        PolicyFormat::Text => print(&escape::block(&shown.text()))?,
        PolicyFormat::Json => print_json(&shown.as_json())?,
        PolicyFormat::Sarif => {
            let files = Files::of_rules(std::iter::once(&options.new).chain(&tightening))?;
            files.print_sarif(&as_sarif(&shown, pair.new))?;
        }
    }
    let overall = overall(&by_tool);
    let unproved = options.require_proof && overall.widened == Answer::Open;
    Ok(match overall.widened == Answer::Yes || unproved {
        true => exit::POLICY,
        false if overall.is_open() => exit::OPEN,
        false => exit::DONE,
    })
}

/// Whether both configurations name the same further folders of rules, and label the input of runs
/// alike.
fn has_same_surroundings(before: &RuleSources, after: &RuleSources) -> bool {
    let real = |sources: &RuleSources| -> BTreeSet<PathBuf> {
        let folders = sources.ignored.iter();
        let real = folders.map(|it| it.canonicalize().unwrap_or_else(|_| it.clone()));
        real.collect()
    };
    real(before) == real(after) && before.flow.input_labels == after.flow.input_labels
}

/// Returns the questions that only one folder asks about the tools, and the questions and reasons
/// that a rule of both folders words differently.
fn text_changes(pair: RulePair<'_>, subjects: &[ToolSubject]) -> Vec<TextChange> {
    let texts = |rules: &Rules| -> BTreeMap<(String, RuleText), String> {
        let Some(policies) = rules.policies() else {
            return BTreeMap::new();
        };
        let is_about = |rule: &&Rule| {
            let mut tools = subjects.iter();
            rule.asks && tools.any(|it| policies.is_about(rule, &it.tool))
        };
        let asking = policies.rules().iter().filter(is_about);
        let texts = asking.flat_map(|rule| {
            let prompt = rule.prompt.clone().map(|text| (RuleText::Prompt, text));
            let reason = Some((RuleText::Reason, rule.reason.clone()));
            let texts = prompt.into_iter().chain(reason);
            texts.map(|(kind, text)| ((rule.id.to_string(), kind), text))
        });
        texts.collect()
    };
    let (old, new) = (texts(pair.old), texts(pair.new));
    let all: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let change = |key: &(String, RuleText)| TextChange {
        rule: key.0.clone(),
        text: key.1,
        old: old.get(key).cloned(),
        new: new.get(key).cloned(),
    };
    let changes = all.into_iter().map(change);
    let is_shown = |it: &TextChange| {
        let is_in_both = it.old.is_some() && it.new.is_some();
        it.old != it.new && (is_in_both || it.text == RuleText::Prompt)
    };
    changes.filter(is_shown).collect()
}

impl TextChange {
    /// Describes the change in one line.
    fn line(&self) -> String {
        let what = match self.text {
            RuleText::Prompt => "question",
            RuleText::Reason => "reason",
        };
        let rule = &self.rule;
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => {
                format!("rule `{rule}` has another {what}: \"{new}\", before \"{old}\"")
            }
            (Some(old), None) => format!("the {what} of rule `{rule}` is gone: \"{old}\""),
            (None, new) => {
                let new = new.as_deref().unwrap_or_default();
                format!("the {what} of rule `{rule}` is new: \"{new}\"")
            }
        }
    }
}

/// Whether both configurations put the tool into the same groups.
fn has_same_groups(pair: RulePair<'_>, subject: &ToolSubject) -> bool {
    let name = subject.tool.to_string();
    let groups = |rules: &Rules| {
        let words = rules.policies()?.vocabulary().tools.get(&name)?;
        Some(words.groups.clone())
    };
    match (groups(pair.old), groups(pair.new)) {
        (Some(old), Some(new)) => old == new,
        // Without policies on one side, its groups do not matter.
        _ => true,
    }
}

/// Compares two configurations that describe a tool differently.
fn across(
    pair: RulePair<'_>,
    [old, new]: [&ToolSubject; 2],
    seeds: &[airlock_policy_analysis::Seed],
) -> ToolChange {
    let side = |rules, subject| ConfiguredRules { rules, subject };
    ToolChange {
        tool: new.tool.to_string(),
        change: diff_configurations(side(pair.old, old), side(pair.new, new), seeds),
    }
}

async fn of_tool(
    prover: &mut Prover,
    pair: RulePair<'_>,
    subject: &ToolSubject,
    seeds: &[airlock_policy_analysis::Seed],
) -> ToolChange {
    ToolChange {
        tool: subject.tool.to_string(),
        change: prover.diff(pair, subject, seeds).await,
    }
}

impl Answer {
    fn from_outcome(outcome: &DiffOutcome) -> Self {
        match outcome {
            DiffOutcome::Example(_) => Self::Yes,
            DiffOutcome::Open { .. } => Self::Open,
            DiffOutcome::Never(_) => Self::No,
        }
    }
}

impl Direction {
    fn from_change(change: &RuleChange) -> Self {
        Self {
            widened: Answer::from_outcome(&change.widened),
            narrowed: Answer::from_outcome(&change.narrowed),
        }
    }

    /// Whether one of the two directions is open.
    fn is_open(self) -> bool {
        [self.widened, self.narrowed].contains(&Answer::Open)
    }

    /// Returns the word for the change. A change that may allow more is called open, even if it
    /// certainly allows less.
    fn as_str(self) -> &'static str {
        match (self.widened, self.narrowed) {
            (Answer::Yes, Answer::Yes) => "both",
            (Answer::Yes, _) => "widened",
            (Answer::Open, _) | (Answer::No, Answer::Open) => "open",
            (Answer::No, Answer::Yes) => "narrowed",
            (Answer::No, Answer::No) => "equal",
        }
    }
}

fn overall(by_tool: &[ToolChange]) -> Direction {
    let all = || by_tool.iter().map(|it| Direction::from_change(&it.change));
    Direction {
        widened: all().map(|it| it.widened).max().unwrap_or(Answer::No),
        narrowed: all().map(|it| it.narrowed).max().unwrap_or(Answer::No),
    }
}

/// Returns the basis of all results without a change: `Proof` if any of them needed a solver.
/// Returns `None` if there are no such results.
fn ground(by_tool: &[ToolChange]) -> Option<ProofGround> {
    let both = by_tool
        .iter()
        .flat_map(|it| [&it.change.widened, &it.change.narrowed]);
    let grounds = both.filter_map(|parted| match parted {
        DiffOutcome::Never(ground) => Some(*ground),
        DiffOutcome::Example(_) | DiffOutcome::Open { .. } => None,
    });
    grounds.max()
}

impl Shown<'_> {
    /// Lists the tools that change, and those for which this is open.
    fn text(&self) -> String {
        let mut text = String::new();
        for ToolChange { tool, change } in self.by_tool {
            let direction = Direction::from_change(change);
            if direction.as_str() == "equal" {
                continue;
            }
            text.push_str(&format!("{tool}: {}\n", direction.as_str()));
            for (word, parted) in [("widened", &change.widened), ("narrowed", &change.narrowed)] {
                match parted {
                    DiffOutcome::Example(apart) => text.push_str(&of_apart(word, apart)),
                    DiffOutcome::Never(_) => {}
                    DiffOutcome::Open { why } => {
                        text.push_str(&format!(
                            "  {word}: open, neither an example nor a proof ({why})\n"
                        ));
                    }
                }
            }
        }
        for change in self.texts {
            text.push_str(&format!("{}\n", change.line()));
        }
        let of = |word: &str| {
            let is = |it: &&ToolChange| Direction::from_change(&it.change).as_str() == word;
            self.by_tool.iter().filter(is).count()
        };
        text.push_str(&format!(
            "{}: {}; {} widened, {} narrowed, {} both, {} equal, {} open",
            counted(self.by_tool.len(), "tool"),
            overall(self.by_tool).as_str(),
            of("widened"),
            of("narrowed"),
            of("both"),
            of("equal"),
            of("open"),
        ));
        text.push_str(
            &match (overall(self.by_tool).is_open(), ground(self.by_tool)) {
                (false, Some(ground)) => format!(" ({})\n", ground.words()),
                _ => "\n".to_owned(),
            },
        );
        text + &self.basis.text()
    }
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

impl Shown<'_> {
    fn as_json(&self) -> Value {
        let overall = overall(self.by_tool);
        let answers = [
            ("change", json!(overall.as_str())),
            ("open", json!(overall.is_open())),
            ("how", json!(ground(self.by_tool).map(ProofGround::as_str))),
            ("tools", self.by_tool.iter().map(tool_json).collect()),
            ("texts", json!(self.texts)),
        ];
        let answers = answers.map(|(name, value)| (name.to_owned(), value));
        self.basis.json(Map::from_iter(answers))
    }
}

fn tool_json(tool_change: &ToolChange) -> Value {
    let side =
        |example: &Example| json!({"level": example.level.as_str(), "reasons": example.reasons});
    let parted = |parted: &DiffOutcome| match parted {
        DiffOutcome::Example(apart) => {
            let (old, new) = &**apart;
            json!({"found": true, "how": "example", "call": new.call(),
                "old": side(old), "new": side(new)})
        }
        DiffOutcome::Never(ground) => json!({"found": false, "how": ground.as_str()}),
        DiffOutcome::Open { why } => json!({"found": null, "how": "open", "why": why}),
    };
    json!({
        "tool": tool_change.tool,
        "change": Direction::from_change(&tool_change.change).as_str(),
        "widened": parted(&tool_change.change.widened),
        "narrowed": parted(&tool_change.change.narrowed),
    })
}

const WIDENED: &str = "widened";
const NARROWED: &str = "narrowed";
const OPEN: &str = "not-proved";
const TEXT: &str = "text-changed";

fn as_sarif(shown: &Shown<'_>, new_rules: &Rules) -> Sarif {
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
            (
                TEXT,
                "People see another question, or another reason for it; no decision changes",
            ),
        ],
        results: Vec::new(),
    };
    for ToolChange { tool, change } in shown.by_tool {
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
                DiffOutcome::Open { why } => SarifResult {
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
    log.results.extend(shown.texts.iter().map(|change| {
        let rules = new_rules.policies().map(Policies::rules);
        let mut rules = rules.unwrap_or_default().iter();
        let rule = rules.find(|it| *it.id == *change.rule);
        SarifResult {
            rule: TEXT,
            level: SarifLevel::Note,
            message: change.line(),
            place: rule.map(|it| it.place.clone()),
            fix: None,
        }
    }));
    log
}
