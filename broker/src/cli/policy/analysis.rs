//! Code that the commands with proofs share: the tools in question, the calls that are tried first,
//! and the assumptions of every answer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use airlock_core::catalog::{OWN_SERVER, ToolOwner};
use airlock_core::facts::OUTSIDE;
use airlock_core::id::ToolId;
use airlock_core::policy::{Place, Policies, Rule, Vocabulary};
use airlock_core::problem::Problem;
use airlock_core::rules::Rules;
use airlock_core::tool_pattern::ToolPattern;
use airlock_policy_analysis::{Example, FlowSettings, LabelAssumption, Seed, ToolSubject};
use codegen::description::Description;
use serde_json::{Map, Value, json};

use super::table::{self, KnownTools};
use crate::broker::tool_discovery;
use crate::cli::options::usage;
use crate::cli::screen::Screen;
use crate::config::{ApproverChoice, FlowConfig, rule_folder};
use crate::prover::Prover;
use crate::render::counted;

const CASES: &str = "cases.toml";

/// Returns airlock's own tools that reach no server.
pub(super) fn own_subjects(descriptions: &[Description], flow: &FlowConfig) -> Vec<ToolSubject> {
    let around = around(flow);
    let of = |description: &Description| {
        let owner = tool_discovery::owner(&description.server, &description.name);
        let name = format!("{}.{}", description.server, description.name);
        let tool = ToolId::parse(&name).ok()?;
        let is_within = owner == ToolOwner::OwnLocal;
        let labelling = tool_discovery::labelling(owner, &tool, &flow.label_config);
        let subject = ToolSubject::new(tool, labelling, &description.input_schema, &around);
        subject.filter(|_| is_within)
    };
    descriptions.iter().filter_map(of).collect()
}

fn around(flow: &FlowConfig) -> FlowSettings {
    FlowSettings {
        known: Arc::new(flow.known.clone()),
        roots: Arc::new(flow.roots.keys().cloned().collect()),
        example_paths: Arc::new(example_paths(&flow.roots)),
        label_assumption: label_assumption(flow),
    }
}

/// Returns a path under each root, and one outside of all of them.
fn example_paths(roots: &BTreeMap<String, PathBuf>) -> BTreeMap<String, String> {
    const FILE: &str = "x";
    const ELSEWHERE: &str = "/elsewhere/x";
    if roots.is_empty() {
        return BTreeMap::new();
    }
    let is_under = |path: &PathBuf| Path::new(ELSEWHERE).starts_with(path);
    let outside = (!roots.values().any(is_under)).then(|| (OUTSIDE.into(), ELSEWHERE.into()));
    let inside = roots.iter().filter_map(|(name, path)| {
        let path = path.join(FILE);
        Some((name.clone(), path.to_str()?.to_owned()))
    });
    inside.chain(outside).collect()
}

/// Without a configuration, nothing is known about the labels that runs use.
pub(super) fn label_assumption(flow: &FlowConfig) -> LabelAssumption {
    match flow.is_configured {
        true => LabelAssumption::Configured,
        false => LabelAssumption::Any,
    }
}

/// The subjects of the answers: the rules, the tools, and the labels of the tools.
pub(super) struct Coverage {
    /// For each set of rules, its name, the number of its rules, and the number of rules that apply
    /// to a tool.
    rules: Vec<(&'static str, usize, usize)>,
    tools: usize,
    /// The tools without labels; `None` if no configuration was named.
    unlabelled: Option<Vec<String>>,
}

impl Coverage {
    pub(super) fn new(
        all: &[(&'static str, &Rules)],
        subjects: &[ToolSubject],
        flow: &FlowConfig,
    ) -> Self {
        let counts = |(name, rules): &(&'static str, &Rules)| {
            let policies = rules.policies();
            let rules = policies.map(Policies::rules).unwrap_or_default();
            let applies = |rule: &&Rule| {
                let is_about = |it: &ToolSubject| {
                    policies.is_some_and(|policies| policies.is_about(rule, &it.tool))
                };
                subjects.iter().any(is_about)
            };
            (*name, rules.len(), rules.iter().filter(applies).count())
        };
        let none = flow.label_config.unlabelled();
        let unlabelled = subjects.iter().filter(|it| *it.labelling == none);
        let names = || unlabelled.map(|it| it.tool.to_string()).collect();
        Self {
            rules: all.iter().map(counts).collect(),
            tools: subjects.len(),
            unlabelled: flow.is_configured.then(names),
        }
    }

    pub(super) fn text(&self) -> String {
        /// Maximum number of tools that are named.
        const NAMES_MAX: usize = 5;
        let rules = self.rules.iter().map(|(name, all, applying)| {
            let all = counted(*all, &format!("{name}rule"));
            format!("{all} ({applying} apply to these tools)")
        });
        let rules = rules.collect::<Vec<_>>().join(", ");
        let tools = counted(self.tools, "tool");
        let labels = match &self.unlabelled {
            None => "no configuration was named, so the tools may have any labels".to_owned(),
            Some(none) if none.is_empty() => "the configuration labels all of these tools".into(),
            Some(some) => {
                let named: Vec<&str> = some.iter().take(NAMES_MAX).map(String::as_str).collect();
                let more = match some.len().saturating_sub(NAMES_MAX) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let named = named.join(", ");
                format!("the configuration does not label {named}{more}")
            }
        };
        format!("checked: {rules}; {tools}; {labels}\n")
    }

    pub(super) fn json(&self) -> Value {
        let rules = self.rules.iter().map(|(name, all, applying)| {
            json!({"rules": format!("{name}rules"), "count": all, "applying": applying})
        });
        json!({
            "rules": rules.collect::<Vec<_>>(),
            "tools": self.tools,
            "labels_configured": self.unlabelled.is_some(),
            "unlabelled": self.unlabelled,
        })
    }
}

/// Returns the tools that match a pattern, or all tools.
pub(super) fn subjects(
    descriptions: &[Description],
    flow: &FlowConfig,
    wanted: Option<&str>,
    screen: &Screen,
) -> Result<Vec<ToolSubject>, Problem> {
    let pattern = wanted.map(ToolPattern::parse).transpose().map_err(|bad| {
        let next = "write SERVER.TOOL, with * for any characters";
        usage("invalid tool name or pattern", bad.to_string(), next)
    })?;
    let around = around(flow);
    let mut found = Vec::new();
    let mut names = Vec::new();
    for description in descriptions {
        let owner = tool_discovery::owner(&description.server, &description.name);
        // Such a tool needs no rule that allows it, so rules alone do not determine the answer.
        if owner == ToolOwner::OwnLocal {
            continue;
        }
        let name = format!("{}.{}", description.server, description.name);
        let tool = ToolId::parse(&name).ok();
        names.push(name);
        let Some(tool) = tool.filter(|it| pattern.as_ref().is_none_or(|at| at.matches(it))) else {
            continue;
        };
        let labelling = tool_discovery::labelling(owner, &tool, &flow.label_config);
        match ToolSubject::new(tool.clone(), labelling, &description.input_schema, &around) {
            Some(subject) => found.push(subject),
            None => screen.warning(&Problem::new(
                "tool-unusable",
                format!("the tool `{tool}` is skipped"),
                "its input schema is invalid, so airlock never calls the tool",
                "",
            )),
        }
    }
    found.sort_by(|one, other| one.tool.cmp(&other.tool));
    match (found.is_empty(), wanted) {
        (true, Some(wanted)) => Err(nothing_fits(wanted, &names)),
        _ => Ok(found),
    }
}

fn nothing_fits(wanted: &str, names: &[String]) -> Problem {
    let why = match wanted.split_once('.') {
        Some((OWN_SERVER, _)) => {
            "airlock's own tools that reach no server need no rule that permits them and are not \
             analysed; a rule can still forbid them"
        }
        _ => "",
    };
    super::no_tool(wanted, why, names)
}

/// Returns the calls in the case files next to the rules. An invalid file only causes a warning
/// here; `airlock policy test` refuses it.
pub(super) fn seeds(
    folders: &[PathBuf],
    descriptions: &[Description],
    screen: &Screen,
) -> Vec<Seed> {
    let known = KnownTools::new(Vocabulary::new(), descriptions).if_missing();
    let mut seeds = Vec::new();
    for folder in folders {
        match of_folder(folder, &known) {
            Ok(found) => seeds.extend(found),
            Err(problem) => screen.warning(&problem),
        }
    }
    seeds
}

fn of_folder(folder: &Path, known: &KnownTools) -> Result<Vec<Seed>, Problem> {
    let mut seeds = Vec::new();
    for (name, text) in rule_folder::read(folder, CASES)? {
        if name.ends_with(CASES) {
            let cases = table::parse(&name, &text, known)?.cases.into_iter();
            seeds.extend(cases.map(|case| Seed {
                tool: case.tool,
                args: case.args,
                facts: case.facts,
            }));
        }
    }
    Ok(seeds)
}

/// Returns the place of the first rule that an example's reasons name.
pub(super) fn place(rules: &Rules, example: &Example) -> Option<Place> {
    let names = |id: &str| {
        let word = format!("rule `{id}` ");
        example.reasons.iter().any(|it| it.starts_with(&word))
    };
    let all = rules.policies().map(|it| it.rules()).unwrap_or_default();
    let deciding = all.iter().find(|rule| names(&rule.id));
    deciding.map(|rule| rule.place.clone())
}

/// Assumptions of every answer.
const ASSUMED: [&str; 3] = [
    "the call fits the tool's input schema, the tool was shown in the session, and its \
     description is the accepted one",
    "no grant was given for the run or remembered from earlier runs",
    "labels, counts, time, roots, trust in the script and explained destinations can have any \
     value that is possible in a run",
];

/// The assumption about labels, with a configuration.
const LABELLED: &str = "the configured labels are correct: they declare what a tool writes, and \
                        which arguments name destinations and paths; an unlabelled tool writes \
                        everything and names no destination";

/// The assumption about labels, without a configuration.
const ANY_LABELS: &str = "no configuration was named: `never` and `equal` hold for tools with any \
                          labels, and an example is a call of a tool without labels";

/// An additional assumption if any answer relies on a solver.
const BELIEVED: &str = "a proof relies on cvc5, on Cedar's symbolic compiler, and on airlock \
                        evaluating rules as Cedar does";

/// An additional assumption if calls do not need a rule that permits them.
const UNNAMED: &str = "a call that no rule matches is denied; with an approver, it needs an \
                       approval";

/// Returns the assumptions. `rules` are the rules with patterns, if patterns count.
pub(super) fn assumptions(
    prover: &Prover,
    rules: Option<&Rules>,
    labels: LabelAssumption,
) -> impl Iterator<Item = &'static str> {
    let labels = match labels {
        LabelAssumption::Configured => LABELLED,
        LabelAssumption::Any => ANY_LABELS,
    };
    let names_all = |it: &Rules| it.policies().is_some_and(Policies::needs_permit);
    let unnamed = rules.is_some_and(|it| !names_all(it)).then_some(UNNAMED);
    let believed = prover.witness().map(|_| BELIEVED);
    ASSUMED
        .into_iter()
        .chain([labels])
        .chain(unnamed)
        .chain(believed)
}

/// What the answers of a command rely on.
pub(super) struct Basis<'a> {
    pub(super) prover: &'a Prover,
    pub(super) rules: &'a Rules,
    pub(super) coverage: Coverage,
    pub(super) labels: LabelAssumption,
    /// The configured approver. `None` is the default, which asks a person.
    pub(super) approver: Option<&'a ApproverChoice>,
}

impl Basis<'_> {
    pub(super) fn text(&self) -> String {
        let line = |assumed: String| format!("assuming: {assumed}\n");
        let assumed: String = self.assumptions().map(line).collect();
        let (checked, proved) = (self.coverage.text(), prover_line(self.prover));
        format!("{checked}{proved}\n{assumed}")
    }

    /// Returns an object with these members, after those of `answers`.
    pub(super) fn json(&self, mut answers: Map<String, Value>) -> Value {
        let solver = self.prover.witness().map(|it| it.display().to_string());
        let members = [
            ("checked", self.coverage.json()),
            ("solver", json!(solver)),
            ("trouble", json!(self.prover.trouble())),
            ("approver", json!(self.approver.map(ApproverChoice::text))),
            ("assumptions", json!(self.assumptions().collect::<Vec<_>>())),
        ];
        answers.extend(members.map(|(name, value)| (name.to_owned(), value)));
        Value::Object(answers)
    }

    fn assumptions(&self) -> impl Iterator<Item = String> {
        let assumed = assumptions(self.prover, Some(self.rules), self.labels);
        assumed
            .map(str::to_owned)
            .chain(approver_note(self.approver))
    }
}

/// Says who gives approvals if it is not a person.
fn approver_note(approver: Option<&ApproverChoice>) -> Option<String> {
    match approver? {
        ApproverChoice::Never => Some(
            "the approver is `never`: a call that needs an approval is denied, unless a grant \
             covers it"
                .to_owned(),
        ),
        other => other.command().map(|command| {
            format!("approvals come from the program `{command}`, and not from a person")
        }),
    }
}

/// Describes the solver behind the proofs. Without a solver, only the text of the rules proves
/// anything.
pub(super) fn prover_line(prover: &Prover) -> String {
    let Some(program) = prover.program() else {
        return "cvc5 was not found (install it, or set CVC5): answers without an example stay \
                open"
            .to_owned();
    };
    let program = program.display();
    match (prover.witness(), prover.trouble()) {
        (Some(_), None) => format!("proved by {program}"),
        (Some(_), Some(trouble)) => format!(
            "proved by {program}, which also failed ({trouble}): the other answers without an \
             example stay open"
        ),
        (None, None) => "no question needed a solver".to_owned(),
        (None, Some(trouble)) => format!(
            "`{program}` is not a usable cvc5 ({trouble}): answers without an example stay open"
        ),
    }
}
