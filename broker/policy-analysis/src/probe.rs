//! Generates calls on which rules are likely to differ: some rules match and others do not, at the
//! boundaries of the values that the rules contain.

use serde_json::{Map, Value as Json, json};

use cedar_policy::pst::Clause;

use super::assumptions::{ToolSubject, fixed};
use super::generator::{Generator, PartialRequest};
use super::rng::Rng;
use airlock_core::facts::Facts;
use airlock_core::policy::Policies;
use airlock_core::policy::fact::{FACTS, UNMODELLED};
use airlock_core::policy::mentions::{ARGS, ArgRead, Mentions};
use airlock_core::policy::model::{Record, UnmodelledArgs};
use airlock_core::policy::rule::Rule;

pub(super) struct Probe<'a> {
    subject: &'a ToolSubject,
    rules: Vec<&'a Rule>,
    pub(super) mentions: Mentions,
    pub(super) record: &'a Record,
    roots: Vec<String>,
    /// Pointers to the arguments that rules read and that may be unmodelled in a call.
    hidden: Vec<String>,
    chance: Rng,
    turn: usize,
}

impl<'a> Probe<'a> {
    /// Returns `None` if the tool is unknown to the policies.
    pub(super) fn new(all: &[&'a Policies], subject: &'a ToolSubject, seed: u64) -> Option<Self> {
        let mut mentions = Mentions::default();
        let mut rules: Vec<&Rule> = Vec::new();
        for rule in all.iter().flat_map(|it| it.about(&subject.tool)) {
            mentions.join(&rule.mentions);
            if !rules
                .iter()
                .any(|it| it.statement.text() == rule.statement.text())
            {
                rules.push(rule);
            }
        }
        let words = all
            .first()?
            .vocabulary()
            .tools
            .get(&subject.tool.to_string())?;
        let reads = rules.iter().map(|rule| ArgRead::in_clauses(&rule.clauses));
        let hidden = reads
            .flatten()
            .filter_map(|read| words.args.may_hide(&read));
        Some(Self {
            hidden: hidden.flatten().collect(),
            subject,
            rules,
            mentions,
            record: &words.args,
            roots: subject.roots().map(str::to_owned).collect(),
            chance: Rng::new(seed),
            turn: 0,
        })
    }

    pub(super) fn next(&mut self) -> PartialRequest {
        let turn = self.turn;
        self.turn += 1;
        let mut sketch = self.begin(turn.is_multiple_of(2));
        if turn < 2 {
            return sketch;
        }
        let mut rules = self.rules.clone();
        self.chance.shuffle(&mut rules);
        let (forbids, permits): (Vec<&Rule>, Vec<&Rule>) =
            rules.into_iter().partition(|rule| rule.forbids);
        // The index of the forbid that should match, if any should.
        let hit = (turn % 4 == 1).then(|| self.chance.below(forbids.len()));
        let given = self.chance.below(permits.len());
        for round in 0..2 {
            for (at, rule) in forbids.iter().enumerate() {
                if hit == Some(at) {
                    self.want(&mut sketch, rule, true);
                } else if round == 1 || self.chance.percent(80) {
                    self.want(&mut sketch, rule, false);
                }
            }
            for (at, rule) in permits.iter().enumerate() {
                if at == given && (round == 0 || self.chance.percent(60)) {
                    self.want(&mut sketch, rule, turn % 8 != 7);
                } else if round == 0 && self.chance.percent(30) {
                    let truth = self.chance.percent(40);
                    self.want(&mut sketch, rule, truth);
                }
            }
        }
        if turn % 8 == 5
            && let Some(pointer) = self.chance.pick(&self.hidden)
        {
            sketch.insert(UNMODELLED.to_owned(), json!([pointer]));
        }
        sketch
    }

    fn want(&mut self, sketch: &mut PartialRequest, rule: &Rule, truth: bool) {
        let mut goals = Generator {
            sketch,
            chance: &mut self.chance,
            args: self.record,
            schema: &self.subject.input_schema,
            roots: &self.roots,
        };
        let wanted = |clause: &Clause| matches!(clause, Clause::When(_)) == truth;
        if truth {
            for clause in &rule.clauses {
                let (Clause::When(expr) | Clause::Unless(expr)) = clause;
                goals.want(expr, wanted(clause));
            }
        } else if let Some(clause) = goals.chance.pick(&rule.clauses) {
            let (Clause::When(expr) | Clause::Unless(expr)) = clause;
            goals.want(expr, wanted(clause));
        }
    }

    /// Returns a first call. If `trusting`, the facts take the values that rules are most likely to
    /// allow.
    fn begin(&self, trusting: bool) -> PartialRequest {
        let mut facts = fixed(self.subject);
        if trusting {
            facts.labels = airlock_core::labels::Labels::default();
            facts.script_trusted = true;
        }
        let mut sketch = seen(&facts, &self.mentions);
        if self.subject.names_places() && self.mentions.facts.contains("dest_explained") {
            sketch.insert("dest_explained".into(), trusting.into());
        }
        let sample = self.subject.sample.as_ref().and_then(Json::as_object);
        if let Some(sample) = sample {
            let seen = of_args(self.record, sample, &self.mentions);
            sketch.insert(ARGS.to_owned(), seen);
        }
        sketch
    }
}

/// Returns the facts as rules see them.
pub(super) fn seen(facts: &Facts, mentions: &Mentions) -> PartialRequest {
    FACTS
        .iter()
        .filter(|fact| mentions.facts.contains(fact.name))
        .filter_map(|fact| Some((fact.name.to_owned(), fact.value(facts)?.json())))
        .collect()
}

/// Returns the arguments as rules see them.
pub(super) fn of_args(record: &Record, args: &Map<String, Json>, mentions: &Mentions) -> Json {
    let mut lost = UnmodelledArgs::default();
    let values = record.values(args, |name| mentions.args.contains(name), &mut lost);
    let values = values
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.json()));
    let values: Map<String, Json> = values.collect();
    json!(values)
}
