//! Analysis of policies beyond deciding calls: advice to the author, fixes that are known to help,
//! and the possible decisions on calls of a tool. No run needs this crate.
//!
//! Sample calls are generated at the boundaries of the rules and decided like any other call, so
//! every example is real. If no example is found, this proves nothing. For a proof, a solver is
//! asked about a [`SolverProblem`], and its answer is converted to a call and decided here.

mod advice;
mod assumptions;
mod fix_check;
mod generator;
mod idle;
mod probe;
mod rng;
mod sampler;
mod schema_sample;
mod smt;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value as Json, json};

use airlock_core::call::{Args, Call, CallHistory, Site};
use airlock_core::facts::Facts;
use airlock_core::id::{CallId, ToolId};
use airlock_core::level::Level;
use airlock_core::policy::Policies;
use airlock_core::policy::mentions::Mentions;
use airlock_core::rules::Rules;
use probe::{Probe, of_args, seen};
use sampler::{SampledCall, draw, relabelled};

pub use advice::{Idle, IdleReason, advice, idle_finding};
pub use assumptions::{FlowSettings, LabelAssumption, ToolSubject};
pub use fix_check::findings_with_checked_fixes;
pub use idle::{IdleEvidence, RuleAblation, model_without, tried_without};
pub use smt::{AllowQuery, RuleQueries, SolverProblem};

/// All levels, from the mildest to the strictest.
pub const LEVELS: [Level; 4] = [Level::Allow, Level::AskRun, Level::AskCall, Level::Deny];

/// A call with its facts and the decision on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    pub tool: ToolId,
    pub args: Args,
    pub facts: Facts,
    pub level: Level,
    pub reasons: Vec<String>,
    /// The questions for a person.
    pub prompts: Vec<String>,
    /// The facts that rules read and that differ from the worst case.
    said: Map<String, Json>,
}

/// A call to try first, such as the call of a test case.
#[derive(Debug, Clone)]
pub struct Seed {
    pub tool: ToolId,
    pub args: Args,
    pub facts: Facts,
}

/// The first example of each level.
#[derive(Debug, Clone, Default)]
pub struct ExamplesByLevel(Vec<Example>);

/// A call that two sets of rules decide differently: the decision of the old rules, then of the new
/// rules.
pub type DecisionChange = (Example, Example);

/// An example call that the new rules allow more than the old rules, and one that they allow less.
#[derive(Debug, Clone, Default)]
pub struct RuleComparison {
    pub widened: Option<DecisionChange>,
    pub narrowed: Option<DecisionChange>,
}

impl Example {
    /// Returns the call in the form that `airlock policy explain` reads.
    #[must_use]
    pub fn call(&self) -> Json {
        let mut call = json!({"tool": self.tool.to_string(), "args": self.args.value()});
        if let Json::Object(members) = &mut call
            && !self.said.is_empty()
        {
            members.insert("facts".into(), Json::Object(self.said.clone()));
        }
        call
    }
}

impl ExamplesByLevel {
    #[must_use]
    pub fn of(&self, level: Level) -> Option<&Example> {
        self.0.iter().find(|it| it.level == level)
    }

    pub fn note(&mut self, example: Example) {
        if self.of(example.level).is_none() {
            self.0.push(example);
        }
    }

    fn has_all(&self, wanted: &[Level]) -> bool {
        wanted.iter().all(|level| self.of(*level).is_some())
    }
}

/// Tries calls of a tool until each wanted level has an example.
#[must_use]
pub fn explore(
    rules: &Rules,
    subject: &ToolSubject,
    wanted: &[Level],
    seeds: &[Seed],
    tries: usize,
) -> ExamplesByLevel {
    let mut found = ExamplesByLevel::default();
    each_call(&[rules], subject, seeds, tries, 0, |judge, drawn| {
        found.note(judge.decided(rules, drawn));
        found.has_all(wanted)
    });
    found
}

/// Tries calls of a tool to compare two sets of rules for the same tools.
#[must_use]
pub fn compare(
    old: &Rules,
    new: &Rules,
    subject: &ToolSubject,
    seeds: &[Seed],
    tries: usize,
) -> RuleComparison {
    let mut found = RuleComparison::default();
    each_call(&[old, new], subject, seeds, tries, 0, |judge, drawn| {
        found.note(judge.decided(old, drawn), judge.decided(new, drawn));
        found.widened.is_some() && found.narrowed.is_some()
    });
    found
}

/// The rules of one configuration, and a tool as it is labelled there.
#[derive(Debug, Clone, Copy)]
pub struct ConfiguredRules<'a> {
    pub rules: &'a Rules,
    pub subject: &'a ToolSubject,
}

/// Tries calls of a tool to compare two configurations. Each side decides a call with the facts that
/// the call has under its own labels.
#[must_use]
pub fn compare_configurations(
    old: ConfiguredRules<'_>,
    new: ConfiguredRules<'_>,
    seeds: &[Seed],
    tries: usize,
) -> RuleComparison {
    let mut found = RuleComparison::default();
    for side in [new, old] {
        let rules = [old.rules, new.rules];
        each_call(&rules, side.subject, seeds, tries, 0, |judge, drawn| {
            let [before, after] = [old, new].map(|it| {
                let drawn = relabelled(it.subject, drawn);
                judge.decided(it.rules, &drawn)
            });
            found.note(before, after);
            found.widened.is_some() && found.narrowed.is_some()
        });
    }
    found
}

/// Returns up to `count` calls at the boundaries of the rules, for tests with their own `seed`.
pub fn schema_sample(
    rules: &Rules,
    subject: &ToolSubject,
    seed: u64,
    count: usize,
) -> Vec<Example> {
    let mut all = Vec::new();
    let mut tries = 0;
    each_call(
        &[rules],
        subject,
        &[],
        count.saturating_mul(4),
        seed,
        |judge, drawn| {
            all.push(judge.decided(rules, drawn));
            tries += 1;
            all.len() >= count
        },
    );
    all
}

/// Decides the calls that a solver's model describes.
#[must_use]
pub fn decide_model(
    rules: &Rules,
    subject: &ToolSubject,
    model: &Map<String, Json>,
) -> Vec<Example> {
    let Some(judge) = Judge::new(&[rules], subject) else {
        return Vec::new();
    };
    let drawn = judge.drawn(model);
    drawn.iter().map(|it| judge.decided(rules, it)).collect()
}

/// Decides the calls that a solver's model describes, with two sets of rules.
#[must_use]
pub fn compare_model(
    old: &Rules,
    new: &Rules,
    subject: &ToolSubject,
    model: &Map<String, Json>,
) -> RuleComparison {
    let mut found = RuleComparison::default();
    if let Some(judge) = Judge::new(&[old, new], subject) {
        for drawn in judge.drawn(model) {
            found.note(judge.decided(old, &drawn), judge.decided(new, &drawn));
        }
    }
    found
}

impl RuleComparison {
    pub fn note(&mut self, old: Example, new: Example) {
        let slot = match new.level.cmp(&old.level) {
            std::cmp::Ordering::Less => &mut self.widened,
            std::cmp::Ordering::Greater => &mut self.narrowed,
            std::cmp::Ordering::Equal => return,
        };
        slot.get_or_insert((old, new));
    }

    /// Returns the examples of `self`. If one is missing, returns the example of `other` instead.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            widened: self.widened.or(other.widened),
            narrowed: self.narrowed.or(other.narrowed),
        }
    }
}

/// Tries calls until `is_done` returns true for a call that fits the schema.
fn each_call(
    all: &[&Rules],
    subject: &ToolSubject,
    seeds: &[Seed],
    tries: usize,
    seed: u64,
    mut is_done: impl FnMut(&Judge<'_>, &SampledCall) -> bool,
) {
    let Some(judge) = Judge::new(all, subject) else {
        return;
    };
    let mut told = seeds.iter().map(|it| judge.told(it));
    let policies: Vec<&Policies> = all.iter().filter_map(|it| it.policies()).collect();
    let mut probe = Probe::new(&policies, subject, seed);
    for _ in 0..tries.max(1) {
        let sketch = match told.next() {
            Some(sketch) => sketch,
            None => probe.as_mut().map(Probe::next).unwrap_or_default(),
        };
        if judge.drawn(&sketch).iter().any(|it| is_done(&judge, it)) || probe.is_none() {
            return;
        }
    }
}

/// Builds calls of one tool from the values that rules see, and decides them.
struct Judge<'a> {
    subject: &'a ToolSubject,
    mentions: Mentions,
    record: airlock_core::policy::model::Record,
}

impl<'a> Judge<'a> {
    fn new(all: &[&Rules], subject: &'a ToolSubject) -> Option<Self> {
        let policies: Vec<&Policies> = all.iter().filter_map(|it| it.policies()).collect();
        let probe = Probe::new(&policies, subject, 0);
        if probe.is_none() && !policies.is_empty() {
            return None;
        }
        let known = probe.map(|probe| (probe.mentions, probe.record.clone()));
        let (mentions, record) = known.unwrap_or_default();
        Some(Self {
            subject,
            mentions,
            record,
        })
    }

    fn drawn(&self, sketch: &Map<String, Json>) -> Vec<SampledCall> {
        draw(self.subject, &self.mentions, &self.record, sketch)
    }

    /// Converts a seed to a sketch. The arguments are used only if the seed is a call of this tool.
    fn told(&self, seed: &Seed) -> Map<String, Json> {
        let mut sketch = seen(&seed.facts, &self.mentions);
        let own = Some(seed.args.value()).filter(|_| seed.tool == self.subject.tool);
        let args = own
            .or(self.subject.sample.as_ref())
            .and_then(Json::as_object);
        if let Some(args) = args {
            sketch.insert("args".into(), of_args(&self.record, args, &self.mentions));
        }
        sketch
    }

    fn decided(&self, rules: &Rules, drawn: &SampledCall) -> Example {
        let tool = self.subject.tool.clone();
        let consulted = rules.consult(&Call {
            id: CallId(1),
            tool: tool.clone(),
            args: drawn.args.clone(),
            site: Site::default(),
            facts: Some(drawn.facts.clone().into()),
            history: CallHistory::default(),
        });
        Example {
            tool,
            args: drawn.args.clone(),
            level: consulted.level,
            reasons: consulted.reasons,
            prompts: consulted.prompts,
            said: self.said(&drawn.args, &drawn.facts),
            facts: drawn.facts.clone(),
        }
    }

    fn said(&self, args: &Args, facts: &Facts) -> Map<String, Json> {
        let whole = |facts: &Facts| match serde_json::to_value(facts) {
            Ok(Json::Object(members)) => members,
            _ => Map::new(),
        };
        let worst = whole(&Facts::default());
        let is_said = |name: &str, value: &Json| {
            // `airlock policy explain` computes this fact from the arguments.
            name != "large_texts"
                && self.mentions.facts.contains(name)
                && worst.get(name) != Some(value)
        };
        let all = whole(facts).into_iter();
        let mut said: Map<String, Json> =
            all.filter(|(name, value)| is_said(name, value)).collect();
        self.say_absent(args, facts, &mut said);
        said
    }

    /// Adds the facts that `airlock policy explain` would compute, and that this call does not have.
    fn say_absent(&self, args: &Args, facts: &Facts, said: &mut Map<String, Json>) {
        let mut add = |name: &str, value: Json| {
            if self.mentions.facts.contains(name) {
                said.insert(name.to_owned(), value);
            }
        };
        let mut computed = Facts::default();
        let roots = self.subject.roots().map(str::to_owned).collect();
        self.subject.add_facts(args, false, roots, &mut computed);
        if facts.path_roots.is_none() && computed.path_roots.is_some() {
            add("path_roots", Json::Null);
        }
        if facts.dest_unexplained.is_empty() && !computed.dest_unexplained.is_empty() {
            add("dest_unexplained", json!([]));
        }
        if facts.pinned.is_none() && self.subject.label_assumption == LabelAssumption::Configured {
            add("pinned", Json::Null);
        }
    }
}
