//! Tests of chains of runs against a model: scripts call a server that counts effects, runs crash at
//! any point, and later runs resume them.
//!
//! The property: of the calls that are not repeatable, none has more effects than the largest number
//! of times that one script of the chain asks for it. [`Mutation`] lists faults that must break it.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use sandbox_protocol::{Resume, Step};

use super::*;
use crate::id::CallRef;
use crate::journal::{Chain, Predecessor, VerifiedJournal, read};
use crate::resume::chain::{BeganRecord, ChainRecord, RunChain};
use crate::resume::ledger::EntryState;
use crate::resume::plan::{ResumeRequest, plan};
use crate::statement::{StatedOutcome, Statement};

/// A fault in the way in which runs resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mutation {
    /// Calls with an unknown outcome are made again.
    RetryUnknown,
    /// The n-th call of a script is taken for the n-th recorded one.
    MatchByPosition,
    /// A call with another description counts as another call.
    DigestInKey,
    /// Nothing records that a run was resumed.
    NoBegan,
    /// Only the journal of the predecessor is read.
    OnlyPredecessor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Want {
    Read,
    Write(u8),
}

/// A script: groups of calls that it makes together and awaits together.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Script {
    groups: Vec<Vec<Want>>,
    /// Whether the script goes on after a failed call.
    catches: bool,
}

impl Script {
    fn count(&self, write: u8) -> usize {
        let wants = self.groups.iter().flatten();
        wants.filter(|want| **want == Want::Write(write)).count()
    }
}

/// A deterministic guest that runs a [`Script`].
struct Guest {
    script: Script,
    group: usize,
    open: BTreeSet<u32>,
    next_ticket: u32,
}

impl Guest {
    fn new(script: &Script) -> Self {
        Self {
            script: script.clone(),
            group: 0,
            open: BTreeSet::new(),
            next_ticket: 0,
        }
    }

    /// Makes the calls of the next group.
    fn go_on(&mut self) -> Step {
        let wants = self.script.groups.get(self.group).cloned();
        let Some(wants) = wants else {
            return Self::step(
                Vec::new(),
                StepState::Done {
                    value: b"1".to_vec(),
                },
            );
        };
        self.group += 1;
        let mut calls = Vec::new();
        for want in wants {
            let (tool, args) = match want {
                Want::Read => (0, "{}".to_owned()),
                Want::Write(key) => (1, format!(r#"{{"key":{key}}}"#)),
            };
            self.open.insert(self.next_ticket);
            calls.push(open_call(self.next_ticket, tool, &args));
            self.next_ticket += 1;
        }
        Self::step(calls, StepState::Waiting { wake_at_ms: None })
    }

    fn resume(&mut self, resume: &Resume) -> Step {
        for told in &resume.outcomes {
            assert!(self.open.remove(&told.ticket.0), "told twice");
            if let (Outcome::Failure(failure), false) = (&told.outcome, self.script.catches) {
                let error = ScriptError {
                    code: failure.code.clone(),
                    ticket: Some(told.ticket),
                    ..ScriptError::default()
                };
                return Self::step(Vec::new(), StepState::Failed(error));
            }
        }
        match self.open.is_empty() {
            true => self.go_on(),
            false => Self::step(Vec::new(), StepState::Waiting { wake_at_ms: None }),
        }
    }

    fn step(calls: Vec<OpenCall>, state: StepState) -> Step {
        Step {
            console: Vec::new(),
            console_dropped_bytes: 0,
            calls,
            state,
        }
    }
}

/// Small random numbers from a seed.
#[derive(Debug, Clone)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn pick(&mut self, length: usize) -> usize {
        usize::try_from(self.roll(length as u64)).unwrap()
    }
}

/// A server that counts effects, and all runs of a chain.
#[derive(Clone)]
struct World {
    chain: RunChain,
    journals: Vec<VerifiedJournal>,
    scripts: Vec<Script>,
    effects: BTreeMap<u8, usize>,
    /// The calls that had their effect.
    done: HashSet<CallRef>,
    mutation: Option<Mutation>,
    /// The version of the description of the writing tool.
    version: u8,
    now_ms: u64,
    /// Random replies and answers; without it, every call returns.
    dice: Option<Dice>,
    runs: usize,
    reads_max_age_ms: u64,
}

enum Ending {
    Crashed,
    Ended(Box<Report>),
}

/// Where a run crashes. Each effect can be the first one that does not happen any more.
enum Crash<'a> {
    Never,
    At(usize),
    /// The run ends, and the states that a crash would leave are kept. Crashes that leave equal
    /// states are kept once.
    Everywhere(&'a mut Vec<CrashState>),
}

/// What a crash leaves: the journal of the run, and the effects at the server.
struct CrashState {
    lines: String,
    effects: BTreeMap<u8, usize>,
    done: HashSet<CallRef>,
    now_ms: u64,
}

impl World {
    fn new(mutation: Option<Mutation>) -> Self {
        Self {
            chain: RunChain::new(RunId("run0".into())),
            journals: Vec::new(),
            scripts: Vec::new(),
            effects: BTreeMap::new(),
            done: HashSet::new(),
            mutation,
            version: 0,
            now_ms: T0,
            dice: None,
            runs: 0,
            reads_max_age_ms: u64::MAX,
        }
    }

    fn spec(&self, run: &RunId, script: &Script) -> RunSpec {
        let mut spec = spec(&["allow *"], Limits::default());
        let mut tools: Vec<_> = TOOLS.iter().map(|id| tool(id)).collect();
        tools[0].effects.read_only = Some(true);
        tools[1].description_digest = Digest::sha256(&[self.version]);
        spec.decision_context.catalog = Arc::new(catalog_of(tools));
        spec.run = run.clone();
        spec.reaches_person = true;
        spec.script = format!("{script:?}");
        spec
    }

    /// Starts the first run of the chain, or resumes its newest run.
    fn run(&mut self, script: &Script, crash: Crash<'_>) -> Ending {
        let spec = self.begin(script);
        let run = spec.run.clone();
        let (lines, ending) = self.drive(spec, script, crash);
        self.keep(&run, &lines);
        ending
    }

    /// Runs a script, and returns one world for each state that a crash can leave, and the world in
    /// which the run has ended.
    fn crash_everywhere(&self, script: &Script) -> (Vec<Self>, Self) {
        let mut begun = self.clone();
        let spec = begun.begin(script);
        let (run, mut ended, mut states) = (spec.run.clone(), begun.clone(), Vec::new());
        let (lines, _) = ended.drive(spec, script, Crash::Everywhere(&mut states));
        ended.keep(&run, &lines);
        let crashed = |state: CrashState| {
            let mut world = begun.clone();
            (world.effects, world.done) = (state.effects, state.done);
            world.now_ms = state.now_ms;
            world.keep(&run, &state.lines);
            world
        };
        (states.into_iter().map(crashed).collect(), ended)
    }

    fn begin(&mut self, script: &Script) -> RunSpec {
        self.scripts.push(script.clone());
        let run = RunId(format!("run{}", self.runs).into());
        self.runs += 1;
        let mut spec = self.spec(&run, script);
        if !self.journals.is_empty() {
            spec.resume = Some(Box::new(self.plan(&run, &spec, script)));
        }
        spec
    }

    /// Keeps the journal of a run.
    fn keep(&mut self, run: &RunId, lines: &str) {
        match lines.is_empty() {
            // A crash before the header leaves no journal.
            true if self.journals.is_empty() => self.runs = 0,
            true => assert!(self.chain.void_newest(run)),
            false => self.journals.push(read(lines.as_bytes()).unwrap()),
        }
    }

    fn request(&self, spec: &RunSpec) -> ResumeRequest {
        ResumeRequest {
            script: Digest::sha256(spec.script.as_bytes()),
            input: Digest::sha256(&spec.input),
            guest: spec.guest.digest,
            reads_max_age_ms: self.reads_max_age_ms,
        }
    }

    /// Plans a resume, and records that it begins.
    fn plan(&mut self, run: &RunId, spec: &RunSpec, script: &Script) -> ResumeSpec {
        let mut resume = plan(&self.chain, &self.journals, self.request(spec)).unwrap();
        match self.mutation {
            Some(Mutation::RetryUnknown) => {
                resume.ledger.retain(|it| it.state != EntryState::Unknown);
            }
            Some(Mutation::MatchByPosition) => {
                let wants = script.groups.iter().flatten();
                let keys = wants.filter_map(|want| match want {
                    Want::Read => None,
                    Want::Write(key) => {
                        Some(Digest::sha256(format!(r#"{{"key":{key}}}"#).as_bytes()))
                    }
                });
                resume
                    .ledger
                    .retain(|it| it.key.tool.tool.0.as_ref() == "write");
                resume.ledger.replace_args(keys);
            }
            Some(Mutation::DigestInKey) => {
                let now = Some(Digest::sha256(&[self.version]));
                resume.ledger.retain(|it| it.description == now);
            }
            Some(Mutation::OnlyPredecessor) => {
                let newest = self.chain.newest().clone();
                resume.ledger.retain(|it| it.at.run == newest);
            }
            Some(Mutation::NoBegan) | None => {}
        }
        if self.mutation.is_some_and(|it| it != Mutation::NoBegan) {
            // A replay compares with the recording, which the mutated ledger contradicts.
            resume.mode = crate::resume::ResumeMode::Edited;
        }
        self.chain.apply(self.began(run)).unwrap();
        resume
    }

    fn began(&self, run: &RunId) -> ChainRecord {
        ChainRecord::Began(BeganRecord {
            run: run.clone(),
            predecessor: Predecessor {
                run: self.chain.newest().clone(),
                head: self.journals.last().unwrap().head.unwrap(),
            },
        })
    }

    /// Two processes resume the same run. The second one must be refused.
    fn race(&mut self, script: &Script) {
        let (first, second) = (RunId("first".into()), RunId("second".into()));
        let (chain, began) = (self.chain.clone(), self.began(&second));
        let mut other = self.spec(&second, script);
        self.scripts.push(script.clone());
        let mut spec = self.spec(&first, script);
        spec.resume = Some(Box::new(self.plan(&first, &spec, script)));
        let (lines, _) = self.drive(spec, script, Crash::Never);
        if self.mutation == Some(Mutation::NoBegan) {
            let resume = plan(&chain, &self.journals, self.request(&other)).unwrap();
            other.resume = Some(Box::new(resume));
            self.drive(other, script, Crash::Never);
        } else {
            assert!(self.chain.apply(began).is_err());
        }
        self.journals.push(read(lines.as_bytes()).unwrap());
    }

    /// Drives a run until it ends or reaches the point at which it crashes.
    fn drive(&mut self, spec: RunSpec, script: &Script, mut crash: Crash<'_>) -> (String, Ending) {
        let id = spec.run.clone();
        let mut guest = Guest::new(script);
        let mut chain = Chain::new(Redact::nothing());
        let (mut lines, mut points) = (String::new(), 0);
        let mut pending: VecDeque<Event> = VecDeque::new();
        let (mut run, mut effects) = Run::start(spec, self.now_ms);
        loop {
            for effect in effects {
                points += 1;
                if self.is_crash(&mut crash, points, &lines) {
                    return (lines, Ending::Crashed);
                }
                match effect {
                    Effect::Append { entry, .. } => lines += &chain.seal(&entry).unwrap(),
                    Effect::StartGuest(_) => pending.push_front(stepped(guest.go_on())),
                    Effect::Resume(resume) => pending.push_front(stepped(guest.resume(&resume))),
                    Effect::Call(call) => {
                        let reply = self.perform(&id, &call);
                        points += 1;
                        if self.is_crash(&mut crash, points, &lines) {
                            return (lines, Ending::Crashed);
                        }
                        pending.push_back(reply);
                    }
                    Effect::Ask(question) => {
                        let earlier = question.outcome_of;
                        let answer = match (self.roll(3), earlier) {
                            (0, Some(at)) => Answer::Stated {
                                outcome: self.truth_about(&at),
                                by: "ada".into(),
                            },
                            (0, None) => Answer::AllowOnce,
                            _ => Answer::Refuse,
                        };
                        pending.push_back(answers(question.call.0, answer));
                    }
                    Effect::Finish(report) => return (lines, Ending::Ended(report)),
                    _ => {}
                }
            }
            self.now_ms += 1;
            let at = match &mut self.dice {
                Some(dice) if !pending.is_empty() => dice.pick(pending.len()),
                _ => 0,
            };
            let event = pending.remove(at).unwrap_or(Event::Woke);
            effects = run.handle(self.now_ms, event);
        }
    }

    fn is_crash(&self, crash: &mut Crash<'_>, point: usize, lines: &str) -> bool {
        match crash {
            Crash::Never => false,
            Crash::At(at) => *at == point,
            Crash::Everywhere(states) => {
                let latest = states.last().map(|it| (it.lines.len(), it.done.len()));
                if latest != Some((lines.len(), self.done.len())) {
                    states.push(CrashState {
                        lines: lines.to_owned(),
                        effects: self.effects.clone(),
                        done: self.done.clone(),
                        now_ms: self.now_ms,
                    });
                }
                false
            }
        }
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.dice.as_mut().map_or(1, |dice| dice.roll(sides))
    }

    fn perform(&mut self, run: &RunId, call: &crate::decide::AuthorizedCall) -> Event {
        let id = call.id().0;
        let Some(key) = call.canonical_args().value()["key"].as_u64() else {
            return replies(id, "1");
        };
        let luck = self.roll(8);
        if luck == 0 {
            let (call, reply) = (CallId(id), Reply::NotSent { why: "x".into() });
            return Event::Replied { call, reply };
        }
        *self.effects.entry(u8::try_from(key).unwrap()).or_default() += 1;
        let call = CallId(id);
        let run = run.clone();
        self.done.insert(CallRef { run, call });
        match luck {
            2 => lost(id),
            _ => replies(id, "1"),
        }
    }

    fn truth_about(&self, call: &CallRef) -> StatedOutcome {
        match self.done.contains(call) {
            true => StatedOutcome::Happened {
                result: Some("1".into()),
            },
            false => StatedOutcome::DidNotHappen,
        }
    }

    /// States truthfully what became of the calls with unknown outcomes.
    fn state_truth(&mut self) {
        if self.journals.is_empty() {
            return;
        }
        let Ok(ledger) = crate::resume::ledger::Ledger::new(&self.chain, &self.journals) else {
            panic!("the chain holds")
        };
        for entry in ledger.unknown() {
            let outcome = self.truth_about(&entry.at);
            let statement = Statement {
                about: entry.at.clone(),
                args_digest: entry.key.args,
                outcome,
                by: "ada".into(),
                shown: entry.key.args,
            };
            self.chain.apply(ChainRecord::Statement(statement)).unwrap();
        }
    }

    /// Returns whether some call had more effects than one script asks for.
    fn has_repeated(&self) -> bool {
        self.effects.iter().any(|(key, effects)| {
            let asked = self.scripts.iter().map(|script| script.count(*key)).max();
            *effects > asked.unwrap_or_default()
        })
    }
}

fn stepped(step: Step) -> Event {
    Event::Stepped {
        step,
        usage: GuestUsage::default(),
        paths: Vec::new(),
        whereabouts: None,
    }
}

/// Returns all lists of up to `length_max` calls: reads and two different writes, of which the first
/// one has the number 0.
fn call_lists(length_max: usize) -> Vec<Vec<Want>> {
    let mut lists = vec![Vec::new()];
    let mut latest = lists.clone();
    for _ in 0..length_max {
        let mut longer = Vec::new();
        for list in latest {
            let writes: BTreeSet<_> = list.iter().filter(|want| **want != Want::Read).collect();
            let next = u8::try_from(writes.len()).unwrap();
            let wants = (0..=next.min(1)).map(Want::Write).chain([Want::Read]);
            for want in wants {
                let mut list = list.clone();
                list.push(want);
                longer.push(list);
            }
        }
        lists.extend(longer.clone());
        latest = longer;
    }
    lists.retain(|list| !list.is_empty());
    lists
}

fn shapes(list: &[Want]) -> [Script; 2] {
    let sequential = list.iter().map(|want| vec![*want]).collect();
    [sequential, vec![list.to_vec()]].map(|groups| Script {
        groups,
        catches: false,
    })
}

/// Crashes a run at every point, and the run that resumes it at every point, and lets a third run
/// end. Returns the number of chains.
fn crash_everywhere(script: &Script) -> usize {
    let mut chains = 0;
    let (crashed, _) = World::new(None).crash_everywhere(script);
    for (first, world) in crashed.into_iter().enumerate() {
        let (crashed, ended) = world.crash_everywhere(script);
        assert!(!ended.has_repeated(), "{script:?}: {first}");
        chains += crashed.len() + 1;
        for (second, mut world) in crashed.into_iter().enumerate() {
            world.state_truth();
            let Ending::Ended(report) = world.run(script, Crash::Never) else {
                panic!("the last run does not crash")
            };
            assert_eq!(
                report.status,
                crate::report::Status::Done,
                "{script:?} {report:?}"
            );
            for (key, effects) in &world.effects {
                let asked = script.count(*key);
                assert_eq!(
                    *effects, asked,
                    "{script:?}: {first}, {second}, write {key}"
                );
            }
        }
    }
    chains
}

#[test]
fn crash_at_every_effect_of_two_runs_repeats_no_write() {
    let scripts: Vec<_> = call_lists(4).iter().flat_map(|it| shapes(it)).collect();
    let (even, odd): (Vec<_>, Vec<_>) = (0..).zip(scripts).partition(|(at, _)| at % 2 == 0);
    let crash_all = |scripts: Vec<(usize, Script)>| -> usize {
        let scripts = scripts.iter();
        scripts.map(|(_, script)| crash_everywhere(script)).sum()
    };
    let chains = std::thread::scope(|scope| {
        let other = scope.spawn(|| crash_all(odd));
        crash_all(even) + other.join().unwrap()
    });
    assert!(chains > 10_000, "{chains}");
}

fn random_script(dice: &mut Dice) -> Script {
    let wants = (0..1 + dice.roll(4)).map(|_| match dice.roll(4) {
        0 => Want::Read,
        key => Want::Write(u8::try_from(key).unwrap()),
    });
    let wants: Vec<_> = wants.collect();
    let groups = match dice.roll(3) {
        0 => vec![wants],
        1 => wants.into_iter().map(|want| vec![want]).collect(),
        _ => wants.chunks(2).map(<[_]>::to_vec).collect(),
    };
    let catches = dice.roll(2) == 0;
    Script { groups, catches }
}

/// Reorders, inserts, removes or regroups calls of a script.
fn edited(script: &Script, dice: &mut Dice) -> Script {
    let mut wants: Vec<_> = script.groups.iter().flatten().copied().collect();
    match dice.roll(5) {
        0 => wants.reverse(),
        1 => {
            let at = dice.pick(wants.len() + 1);
            wants.insert(at, Want::Write(u8::try_from(1 + dice.roll(3)).unwrap()));
        }
        2 if wants.len() > 1 => {
            let at = dice.pick(wants.len());
            wants.remove(at);
        }
        3 => return script.clone(),
        _ => {}
    }
    let groups = match dice.roll(2) {
        0 => vec![wants],
        _ => wants.into_iter().map(|want| vec![want]).collect(),
    };
    let catches = script.catches;
    Script { groups, catches }
}

/// Plays a random chain, and returns whether a write was repeated.
fn random_chain(seed: u64, mutation: Option<Mutation>) -> bool {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    for _ in 0..8 {
        dice.roll(2);
    }
    let mut world = World::new(mutation);
    world.dice = Some(dice.clone());
    world.reads_max_age_ms = dice.roll(2) * 1_000_000;
    let mut script = random_script(&mut dice);
    for _ in 0..2 + dice.roll(4) {
        let crash = match dice.roll(4) {
            0 => Crash::Never,
            _ => Crash::At(1 + dice.pick(40)),
        };
        world.run(&script, crash);
        if dice.roll(3) == 0 {
            world.version ^= 1;
        }
        if dice.roll(3) == 0 {
            world.state_truth();
        }
        if dice.roll(2) == 0 {
            script = edited(&script, &mut dice);
        }
    }
    if dice.roll(4) == 0 && !world.journals.is_empty() {
        world.race(&script);
    }
    world.has_repeated()
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test that a person runs with more chains"
)]
fn random_chains_repeat_no_write() {
    // Without optimisation, 10,000 chains take minutes. `AIRLOCK_CHAINS` sets their number.
    let chains = std::env::var("AIRLOCK_CHAINS").ok();
    let chains = chains.map(|chains| chains.parse().expect("AIRLOCK_CHAINS is a number"));
    for seed in 0..chains.unwrap_or(1_500) {
        assert!(!random_chain(seed, None), "seed {seed}");
    }
}

#[test]
fn every_mutation_repeats_a_write() {
    for mutation in [
        Mutation::RetryUnknown,
        Mutation::MatchByPosition,
        Mutation::DigestInKey,
        Mutation::NoBegan,
        Mutation::OnlyPredecessor,
    ] {
        let caught = (0..2_000).any(|seed| random_chain(seed, Some(mutation)));
        assert!(caught, "{mutation:?}");
    }
}
