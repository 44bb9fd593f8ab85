//! Which rules do nothing: of each rule a call that it decides, or a proof that
//! there is none, or neither. Found by trying first, since most rules do
//! something; a solver is asked about the rest.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use airlock_core::policy::ever::{
    Among, Lets, Sayings, Seed, Subject, Without, model_without, tried_without,
};
use airlock_core::policy::{How, Idle, Policies, Rule};

use super::{Ground, Prover, Verdict};

/// Calls of each tool that are tried before anybody is asked.
const TRIES: usize = 48;
/// Rules that are looked at one by one for the one that does the same.
const OTHERS_MAX: usize = 8;
const APPROVALS: std::ops::RangeInclusive<u8> = 0..=2;

/// What is looked at.
#[derive(Clone, Copy)]
pub(crate) struct Review<'a> {
    pub(crate) policies: &'a Policies,
    pub(crate) subjects: &'a [Subject],
    /// Tools that need no permit: what forbids can be all that there is.
    pub(crate) own: &'a [Subject],
    pub(crate) seeds: &'a [Seed],
    /// Rules that are found already to do nothing.
    pub(crate) known: &'a BTreeSet<Arc<str>>,
    pub(crate) until: Instant,
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Reviewed {
    /// Rules that can go, whatever the configuration says of the tools.
    pub(crate) idle: Vec<(Idle, Ground)>,
    /// Rules that do nothing here and may do something elsewhere.
    pub(crate) waiting: Vec<(Arc<str>, Waits, Ground)>,
    /// Rules of which nothing is proved, and why.
    pub(crate) open: Vec<(Arc<str>, String)>,
}

/// What a rule that does nothing here waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    /// It forbids only what nothing permits.
    ForPermits,
    /// No call meets it, as the configuration has the tools.
    ToBeMet,
    /// Other rules do what it does, as the configuration has the tools.
    ForSayings,
}

/// What became of one rule.
enum Told {
    Counts,
    Idle(Idle),
    Waits(Waits),
}

impl Prover {
    /// Of rules that do the same, the later one is told, as if it were gone for the earlier one:
    /// so each fix is right by itself, and all of them are together.
    pub(crate) async fn review(&mut self, review: Review<'_>) -> Reviewed {
        let mut found = Reviewed::default();
        let mut gone = review.known.clone();
        let all = review.policies.rules().iter().rev();
        for rule in all.filter(|rule| !review.known.contains(&rule.id)) {
            let id = Arc::clone(&rule.id);
            let begun = self.begin();
            match self.of_rule(review, rule, &gone).await {
                Ok(Told::Counts) => {}
                Ok(Told::Waits(waits)) => found.waiting.push((id, waits, self.ground(begun))),
                Err(why) => found.open.push((id, why)),
                Ok(Told::Idle(idle)) => {
                    gone.insert(id);
                    found.idle.push((idle, self.ground(begun)));
                }
            }
        }
        found.idle.reverse();
        found.waiting.reverse();
        found.open.reverse();
        found
    }

    async fn of_rule(
        &mut self,
        review: Review<'_>,
        rule: &Rule,
        gone: &BTreeSet<Arc<str>>,
    ) -> Result<Told, String> {
        let Some(mut asked) = Asked::of(review, rule)? else {
            return Ok(Told::Counts);
        };
        if asked.tools.is_empty() {
            return Ok(Told::Counts);
        }
        let none = BTreeSet::new();
        let free = asked.theories(&none, Sayings::Any)?;
        let sayings = match self.all_idle(&asked, &free).await? {
            true => Sayings::Any,
            false if self.is_idle_here(&asked).await? => Sayings::Configured,
            false => return Ok(Told::Counts),
        };
        // Beside those that are found to do nothing already: two could each need the other.
        let left = asked.theories(gone, sayings)?;
        if !gone.is_empty() && !self.all_idle(&asked, &left).await? {
            return Ok(Told::Counts);
        }
        if !self.is_covered_within(&asked).await? {
            return Ok(Told::Counts);
        }
        asked.gone = gone;
        self.told(&asked, &left, sayings).await
    }

    /// As the configuration has the tools; a call that shows otherwise is decided by the rules.
    async fn is_idle_here(&mut self, asked: &Asked<'_>) -> Result<bool, String> {
        for tool in &asked.tools {
            asked.in_time()?;
            match self.idle(asked.rule, &tool.among).await {
                Verdict::Proved => {}
                Verdict::Open { why } => return Err(why),
                Verdict::Model(model) => {
                    if model_without(&tool.without, tool.subject, &model).differs {
                        return Ok(false);
                    }
                    let why = "the solver thinks that it decides something, and no call could \
                               be made that the rules confirm";
                    return Err(why.to_owned());
                }
            }
        }
        Ok(true)
    }

    async fn all_idle(&mut self, asked: &Asked<'_>, all: &[Among]) -> Result<bool, String> {
        for among in all {
            asked.in_time()?;
            match self.idle(asked.rule, among).await {
                Verdict::Proved => {}
                Verdict::Open { why } => return Err(why),
                Verdict::Model(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Whether no call comes out otherwise, and nobody is asked otherwise, without a rule.
    async fn idle(&mut self, rule: &Rule, among: &Among) -> Verdict {
        let mut pairs = Vec::new();
        for approval in APPROVALS {
            let [all, less] = [Among::ALL, Among::LESS].map(|side| Lets { side, approval });
            // A rule that errs takes, whatever it is.
            if !rule.forbids {
                pairs.push((all, Some(less)));
            }
            if rule.forbids || among.errs {
                pairs.push((less, Some(all)));
            }
        }
        if rule.asks {
            for (approval, side) in (1..).zip(Among::ASKED) {
                let before = Lets {
                    side: Among::ALL,
                    approval: approval - 1,
                };
                pairs.push(match rule.forbids {
                    true => (Lets { side, approval }, None),
                    false => (
                        Lets {
                            side: Among::ALONE,
                            approval,
                        },
                        Some(before),
                    ),
                });
            }
        }
        for (what, but) in pairs {
            match self.ask(&among.theory, what, but).await {
                Verdict::Proved => {}
                other => return other,
            }
        }
        Verdict::Proved
    }

    /// airlock's own tools need no permit, so there a forbid does nothing only if others forbid
    /// the same.
    async fn is_covered_within(&mut self, asked: &Asked<'_>) -> Result<bool, String> {
        if !asked.rule.forbids {
            return Ok(true);
        }
        for subject in asked.review.own {
            let Some(among) = asked.among(subject, &BTreeSet::new(), &[], Sayings::Configured)
            else {
                continue;
            };
            if !self.is_never(asked, &[among?], Among::ALONE).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a side lets nothing through.
    async fn is_never(
        &mut self,
        asked: &Asked<'_>,
        all: &[Among],
        side: usize,
    ) -> Result<bool, String> {
        self.is_within(asked, all, (side, None)).await
    }

    /// Whether one side lets nothing through that another does not.
    async fn is_within(
        &mut self,
        asked: &Asked<'_>,
        all: &[Among],
        (side, other): (usize, Option<usize>),
    ) -> Result<bool, String> {
        for among in all {
            for approval in APPROVALS {
                asked.in_time()?;
                let but = other.map(|side| Lets { side, approval });
                match self.ask(&among.theory, Lets { side, approval }, but).await {
                    Verdict::Proved => {}
                    Verdict::Open { why } => return Err(why),
                    Verdict::Model(_) => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    async fn told(
        &mut self,
        asked: &Asked<'_>,
        all: &[Among],
        sayings: Sayings,
    ) -> Result<Told, String> {
        let rule = asked.rule;
        let errs = all.iter().any(|it| it.errs);
        // What counts without an error meets the condition.
        let is_dead = (errs || !asked.counts) && self.is_never(asked, all, Among::HOLDS).await?;
        if sayings == Sayings::Configured {
            return Ok(Told::Waits(match is_dead {
                true => Waits::ToBeMet,
                false => Waits::ForSayings,
            }));
        }
        // A permit that errs gives nothing; a forbid that errs takes what nobody else may take.
        let is_alone = match is_dead && (!errs || !rule.forbids) {
            true => false,
            false => !self.is_never(asked, all, Among::ALONE).await?,
        };
        let how = match (is_dead, rule.forbids, is_alone) {
            (_, true, true) => return Ok(Told::Waits(Waits::ForPermits)),
            (true, ..) => How::Dead { errs },
            (_, false, false) => How::Overruled,
            _ => How::Shadowed {
                by: self.shadow(asked).await?,
            },
        };
        Ok(Told::Idle(Idle {
            rule: Arc::clone(&rule.id),
            how,
            tools: asked.about,
            counts: asked.counts,
        }))
    }

    /// The one rule that does the same, where it is soon found.
    async fn shadow(&mut self, asked: &Asked<'_>) -> Result<Option<Arc<str>>, String> {
        let is_other = |it: &&Rule| {
            let covers = |tool: &Tool<'_>| asked.review.policies.is_about(it, &tool.subject.tool);
            it.id != asked.rule.id
                && it.forbids == asked.rule.forbids
                && !asked.gone.contains(&it.id)
                && asked.tools.iter().all(covers)
        };
        let others = asked.review.policies.rules().iter().filter(is_other);
        let others: Vec<&Rule> = others.take(OTHERS_MAX).collect();
        let own = match asked.rule.forbids {
            true => Among::MET,
            false => Among::ALONE,
        };
        let all = asked.of_all(asked.gone, &others, Sayings::Any)?;
        for (at, other) in others.iter().enumerate() {
            let sides = (own, Some(Among::OTHERS + at));
            if self.is_within(asked, &all, sides).await? {
                return Ok(Some(Arc::clone(&other.id)));
            }
        }
        Ok(None)
    }
}

/// A rule that no tried call shows to do anything.
struct Asked<'a> {
    review: Review<'a>,
    rule: &'a Rule,
    /// One of each kind: of the others exactly the same is asked.
    tools: Vec<Tool<'a>>,
    /// How many tools it is about.
    about: usize,
    counts: bool,
    gone: &'a BTreeSet<Arc<str>>,
}

struct Tool<'a> {
    subject: &'a Subject,
    among: Among,
    without: Without<'a>,
}

impl<'a> Asked<'a> {
    /// None for a rule that decides a call which was tried.
    fn of(review: Review<'a>, rule: &'a Rule) -> Result<Option<Self>, String> {
        let is_about = |it: &&Subject| review.policies.is_about(rule, &it.tool);
        let mut asked = Self {
            review,
            rule,
            tools: Vec::new(),
            about: review.subjects.iter().filter(is_about).count(),
            counts: false,
            gone: review.known,
        };
        let mut keys = BTreeSet::new();
        let mut unwritten = None;
        for subject in review.subjects.iter().filter(is_about) {
            asked.in_time()?;
            let none = BTreeSet::new();
            let among = match asked.among(subject, &none, &[], Sayings::Configured) {
                Some(Ok(among)) => Some(among),
                Some(Err(why)) => {
                    unwritten = Some(why);
                    None
                }
                None => continue,
            };
            if among
                .as_ref()
                .is_some_and(|it| !keys.insert(it.theory.key()))
            {
                continue;
            }
            let without = review.policies.without(rule, &subject.tool);
            let without = without.ok_or("the rules cannot be put together")?;
            let tried = tried_without(&without, subject, review.seeds, TRIES);
            if tried.differs {
                return Ok(None);
            }
            asked.counts |= tried.counts;
            asked.tools.extend(among.map(|among| Tool {
                subject,
                among,
                without,
            }));
        }
        match unwritten {
            Some(why) => Err(why),
            None => Ok(Some(asked)),
        }
    }

    fn among(
        &self,
        subject: &Subject,
        gone: &BTreeSet<Arc<str>>,
        others: &[&Rule],
        sayings: Sayings,
    ) -> Option<Result<Among, String>> {
        let about = (self.review.policies, subject);
        Among::of(about, self.rule, gone, (others, sayings))
    }

    fn theories(&self, gone: &BTreeSet<Arc<str>>, sayings: Sayings) -> Result<Vec<Among>, String> {
        self.of_all(gone, &[], sayings)
    }

    /// One of each kind.
    fn of_all(
        &self,
        gone: &BTreeSet<Arc<str>>,
        others: &[&Rule],
        sayings: Sayings,
    ) -> Result<Vec<Among>, String> {
        let mut keys = BTreeSet::new();
        let of = |tool: &Tool<'_>| self.among(tool.subject, gone, others, sayings);
        let all: Result<Vec<Among>, String> = self.tools.iter().filter_map(of).collect();
        let mut all = all?;
        all.retain(|among| keys.insert(among.theory.key()));
        Ok(all)
    }

    fn in_time(&self) -> Result<(), String> {
        match Instant::now() < self.review.until {
            true => Ok(()),
            false => Err("the time for proofs is over".into()),
        }
    }
}
