//! What can ever become of calls of a tool. Calls are made up at the edges of
//! the rules and decided like any other; so what is found here is so. That
//! nothing was found proves nothing: for a proof a solver is asked about a
//! [`Theory`], and its answer is made a call again and decided here.

mod chance;
mod draw;
mod goal;
mod idle;
mod probe;
mod sample;
#[cfg(test)]
mod tests;
mod theory;
mod world;

use serde_json::{Map, Value as Json, json};

use super::Policies;
use super::mentions::Mentions;
use crate::call::{Args, Call, Site};
use crate::facts::Facts;
use crate::id::{CallId, ToolId};
use crate::rules::{Level, Rules};
use draw::{Drawn, draw};
use probe::{Probe, of_args, seen};

pub use idle::{Tried, Without, model_without, tried_without};
pub use theory::{Among, Lets, Theory};
pub(super) use theory::{Errors, may_be_lost};
pub use world::{Sayings, Subject, Surroundings};

/// All levels, from the mildest.
pub const LEVELS: [Level; 4] = [Level::Allow, Level::AskRun, Level::AskCall, Level::Deny];

/// A call with what is to be known of it, and what is decided about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    pub tool: ToolId,
    pub args: Args,
    pub facts: Facts,
    pub level: Level,
    pub reasons: Vec<String>,
    /// What a person would be asked.
    pub prompts: Vec<String>,
    /// The facts that rules look at and that are not the worst.
    said: Map<String, Json>,
}

/// A call from elsewhere that is worth trying: out of a table of cases.
#[derive(Debug, Clone)]
pub struct Seed {
    pub tool: ToolId,
    pub args: Args,
    pub facts: Facts,
}

/// The first example of each level.
#[derive(Debug, Clone, Default)]
pub struct Seen(Vec<Example>);

/// A call that two sets of rules decide otherwise: as the old ones do, as the new ones do.
pub type Apart = (Example, Example);

/// Examples of what new rules let through and old ones did not, and the other way round.
#[derive(Debug, Clone, Default)]
pub struct Compared {
    pub widened: Option<Apart>,
    pub narrowed: Option<Apart>,
}

impl Example {
    /// As `airlock policy explain` takes it.
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

impl Seen {
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

/// Calls of a tool, tried one after the other until each wanted level has an example.
#[must_use]
pub fn explore(
    rules: &Rules,
    subject: &Subject,
    wanted: &[Level],
    seeds: &[Seed],
    tries: usize,
) -> Seen {
    let mut found = Seen::default();
    each_call(&[rules], subject, seeds, tries, 0, |judge, drawn| {
        found.note(judge.decided(rules, drawn));
        found.has_all(wanted)
    });
    found
}

/// The same for two sets of rules, held against the same tools.
#[must_use]
pub fn compare(
    old: &Rules,
    new: &Rules,
    subject: &Subject,
    seeds: &[Seed],
    tries: usize,
) -> Compared {
    let mut found = Compared::default();
    each_call(&[old, new], subject, seeds, tries, 0, |judge, drawn| {
        found.note(judge.decided(old, drawn), judge.decided(new, drawn));
        found.widened.is_some() && found.narrowed.is_some()
    });
    found
}

/// So many calls at the edges of the rules, as a test wants them: with its own `seed`.
pub fn sample(rules: &Rules, subject: &Subject, seed: u64, count: usize) -> Vec<Example> {
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

/// What a solver thinks that a call could look like, as calls that are decided here.
#[must_use]
pub fn decide_model(rules: &Rules, subject: &Subject, model: &Map<String, Json>) -> Vec<Example> {
    let Some(judge) = Judge::new(&[rules], subject) else {
        return Vec::new();
    };
    let drawn = judge.drawn(model);
    drawn.iter().map(|it| judge.decided(rules, it)).collect()
}

/// The same for two sets of rules.
#[must_use]
pub fn compare_model(
    old: &Rules,
    new: &Rules,
    subject: &Subject,
    model: &Map<String, Json>,
) -> Compared {
    let mut found = Compared::default();
    if let Some(judge) = Judge::new(&[old, new], subject) {
        for drawn in judge.drawn(model) {
            found.note(judge.decided(old, &drawn), judge.decided(new, &drawn));
        }
    }
    found
}

impl Compared {
    pub fn note(&mut self, old: Example, new: Example) {
        let slot = match new.level.cmp(&old.level) {
            std::cmp::Ordering::Less => &mut self.widened,
            std::cmp::Ordering::Greater => &mut self.narrowed,
            std::cmp::Ordering::Equal => return,
        };
        slot.get_or_insert((old, new));
    }

    /// What is found here stays, what is not is taken from there.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            widened: self.widened.or(other.widened),
            narrowed: self.narrowed.or(other.narrowed),
        }
    }
}

/// `is_done` is asked about each call that fits its schema.
fn each_call(
    all: &[&Rules],
    subject: &Subject,
    seeds: &[Seed],
    tries: usize,
    seed: u64,
    mut is_done: impl FnMut(&Judge<'_>, &Drawn) -> bool,
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

/// Makes calls of one tool out of what rules see of them, and has them decided.
struct Judge<'a> {
    subject: &'a Subject,
    mentions: Mentions,
    record: super::model::Record,
}

impl<'a> Judge<'a> {
    fn new(all: &[&Rules], subject: &'a Subject) -> Option<Self> {
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

    fn drawn(&self, sketch: &Map<String, Json>) -> Vec<Drawn> {
        draw(self.subject, &self.mentions, &self.record, sketch)
    }

    /// A case as a sketch: its arguments count only where it is about this very tool.
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

    fn decided(&self, rules: &Rules, drawn: &Drawn) -> Example {
        let tool = self.subject.tool.clone();
        let consulted = rules.consult(&Call {
            id: CallId(1),
            tool: tool.clone(),
            args: drawn.args.clone(),
            site: Site::default(),
            facts: Some(drawn.facts.clone().into()),
        });
        Example {
            tool,
            args: drawn.args.clone(),
            level: consulted.level,
            reasons: consulted.reasons,
            prompts: consulted.prompts,
            said: self.said(&drawn.facts),
            facts: drawn.facts.clone(),
        }
    }

    fn said(&self, facts: &Facts) -> Map<String, Json> {
        let whole = |facts: &Facts| match serde_json::to_value(facts) {
            Ok(Json::Object(members)) => members,
            _ => Map::new(),
        };
        let worst = whole(&Facts::default());
        let is_said = |name: &str, value: &Json| {
            // Computed from the arguments, by whoever explains the call too.
            name != "large_texts"
                && self.mentions.facts.contains(name)
                && worst.get(name) != Some(value)
        };
        let all = whole(facts).into_iter();
        all.filter(|(name, value)| is_said(name, value)).collect()
    }
}
