//! What `can` and `diff` share: the tools that are asked about, the calls that
//! are tried first, and what every answer rests on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use airlock_core::catalog::{OWN_SERVER, Whose};
use airlock_core::id::ToolId;
use airlock_core::policy::ever::{Example, Seed, Subject, Surroundings};
use airlock_core::policy::{Place, Policies};
use airlock_core::problem::Problem;
use airlock_core::rules::{Pattern, Rules};
use codegen::description::Description;

use super::table;
use crate::broker::own;
use crate::cli::options::usage;
use crate::cli::screen::Screen;
use crate::config::{FlowConfig, rule_folder};
use crate::prover::Prover;

const CASES: &str = "cases.toml";

/// airlock's own tools that reach nobody.
pub(super) fn own_subjects(descriptions: &[Description], flow: &FlowConfig) -> Vec<Subject> {
    let around = around(flow);
    let of = |description: &Description| {
        let whose = own::whose(&description.server, &description.name);
        let name = format!("{}.{}", description.server, description.name);
        let tool = ToolId::parse(&name).ok()?;
        let is_within = whose == Whose::OwnWithin;
        let labelling = own::labelling(whose, &tool, &flow.sayings);
        let subject = Subject::new(tool, labelling, &description.input_schema, &around);
        subject.filter(|_| is_within)
    };
    descriptions.iter().filter_map(of).collect()
}

fn around(flow: &FlowConfig) -> Surroundings {
    Surroundings {
        known: Arc::new(flow.known.clone()),
        roots: Arc::new(flow.roots.keys().cloned().collect()),
    }
}

/// The tools that fit a pattern, or all of them.
pub(super) fn subjects(
    descriptions: &[Description],
    flow: &FlowConfig,
    wanted: Option<&str>,
    screen: &Screen,
) -> Result<Vec<Subject>, Problem> {
    let pattern = wanted.map(Pattern::parse).transpose().map_err(|bad| {
        let next = "write SERVER.TOOL, with * for any characters";
        usage("the tool cannot be read", bad.to_string(), next)
    })?;
    let around = around(flow);
    let mut found = Vec::new();
    let mut names = Vec::new();
    for description in descriptions {
        let whose = own::whose(&description.server, &description.name);
        // No rule has to allow it, so what rules say of it is not the answer.
        if whose == Whose::OwnWithin {
            continue;
        }
        let name = format!("{}.{}", description.server, description.name);
        let tool = ToolId::parse(&name).ok();
        names.push(name);
        let Some(tool) = tool.filter(|it| pattern.as_ref().is_none_or(|at| at.matches(it))) else {
            continue;
        };
        let labelling = own::labelling(whose, &tool, &flow.sayings);
        match Subject::new(tool.clone(), labelling, &description.input_schema, &around) {
            Some(subject) => found.push(subject),
            None => screen.warning(&Problem::new(
                "tool-unusable",
                format!("the tool `{tool}` is left out"),
                "its input schema cannot be used, so no call of it is ever made",
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
            "airlock's own tools that reach no server need no rule and are not analysed"
        }
        _ => "",
    };
    super::no_tool(wanted, why, names)
}

/// The calls in the tables beside the rules. A table that cannot be used is for
/// `airlock policy test` to refuse; here it is only worth a word.
pub(super) fn seeds(folders: &[PathBuf], screen: &Screen) -> Vec<Seed> {
    let mut seeds = Vec::new();
    for folder in folders {
        match of_folder(folder) {
            Ok(found) => seeds.extend(found),
            Err(problem) => screen.warning(&problem),
        }
    }
    seeds
}

fn of_folder(folder: &Path) -> Result<Vec<Seed>, Problem> {
    let mut seeds = Vec::new();
    for (name, text) in rule_folder::read(folder, CASES)? {
        if name.ends_with(CASES) {
            let cases = table::parse(&name, &text)?.cases.into_iter();
            seeds.extend(cases.map(|case| Seed {
                tool: case.tool,
                args: case.args,
                facts: case.facts,
            }));
        }
    }
    Ok(seeds)
}

/// Where the first rule stands that an example's reasons name.
pub(super) fn place(rules: &Rules, example: &Example) -> Option<Place> {
    let names = |id: &str| {
        let word = format!("rule `{id}` ");
        example.reasons.iter().any(|it| it.starts_with(&word))
    };
    let all = rules.policies().map(|it| it.rules()).unwrap_or_default();
    let deciding = all.iter().find(|rule| names(&rule.id));
    deciding.map(|rule| rule.place.clone())
}

/// What holds of every answer.
const ASSUMED: [&str; 4] = [
    "the call fits the tool's input schema, the tool was shown in the session, and its \
     description is the accepted one",
    "no grant was given, and none is remembered",
    "what a tool writes, and which arguments name places and paths, is as the configuration \
     labels it; an unlabelled tool writes everything and names nothing",
    "labels, counts, time, roots, whether the script is trusted and whether a place is \
     explained are free: whatever they can be in some run",
];

/// What holds besides where a solver was believed.
const BELIEVED: &str = "a proof rests on cvc5, on Cedar's symbolic compiler, and on that no rule \
                        is evaluated otherwise than Cedar has it";

/// What holds besides where no policy has to permit a call.
const UNNAMED: &str = "no one can be asked beyond the rules: what none of them names is denied; \
                       where an approver is there, it is asked about";

/// `rules`: those with patterns, where these count.
pub(super) fn assumptions(
    prover: &Prover,
    rules: Option<&Rules>,
) -> impl Iterator<Item = &'static str> {
    let names_all = |it: &Rules| it.policies().is_some_and(Policies::needs_permit);
    let unnamed = rules.is_some_and(|it| !names_all(it)).then_some(UNNAMED);
    let believed = prover.witness().map(|_| BELIEVED);
    ASSUMED.into_iter().chain(unnamed).chain(believed)
}

/// `assuming: …`, line by line.
pub(super) fn assumed_lines(prover: &Prover, rules: &Rules) -> String {
    let line = |assumed: &str| format!("assuming: {assumed}\n");
    assumptions(prover, Some(rules)).map(line).collect()
}

/// Who has proved what is proved; without a solver that is what the text of the rules says.
pub(super) fn prover_line(prover: &Prover) -> String {
    let Some(program) = prover.program() else {
        return "there is no cvc5 (install it, or set CVC5): what is not found is not proved \
                either, only enumerated"
            .to_owned();
    };
    let program = program.display();
    match (prover.witness(), prover.trouble()) {
        (Some(_), None) => format!("proved by {program}"),
        (Some(_), Some(trouble)) => format!(
            "proved by {program}, which failed as well ({trouble}): what it did not answer is \
             not proved, only enumerated"
        ),
        (None, None) => "no question needed a solver".to_owned(),
        (None, Some(trouble)) => format!(
            "`{program}` is no cvc5 that can be used ({trouble}): what is not found is not \
             proved either, only enumerated"
        ),
    }
}
