//! Finds rules without effect. For each rule, the result is a call that it decides, a proof that
//! there is none, or neither. Calls are tried first, because most rules have an effect; a solver is
//! asked about the rest.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use airlock_core::policy::{Policies, Rule};
use airlock_policy_analysis::{
    AllowQuery, Idle, IdleReason, LabelAssumption, RuleAblation, RuleQueries, Seed, ToolSubject,
    model_without, tried_without,
};

use super::{ProofGround, ProofVerdict, Prover};

/// Number of calls tried per tool before a solver is asked.
const TRIES: usize = 48;
/// Maximum number of other rules checked one by one for having the same effect.
const OTHERS_MAX: usize = 8;
const APPROVALS: std::ops::RangeInclusive<u8> = 0..=2;

/// The input of a review.
#[derive(Clone, Copy)]
pub(crate) struct Review<'a> {
    pub(crate) policies: &'a Policies,
    pub(crate) subjects: &'a [ToolSubject],
    /// Tools that need no permit. A forbid for such a tool can have an effect although no rule
    /// permits its calls.
    pub(crate) own: &'a [ToolSubject],
    pub(crate) seeds: &'a [Seed],
    /// Rules that are already known to have no effect.
    pub(crate) known: &'a BTreeSet<Arc<str>>,
    pub(crate) until: Instant,
}

/// The result of a review.
#[derive(Debug, Default)]
pub(crate) struct ReviewReport {
    /// Rules that can be removed, whatever the configuration says about the tools.
    pub(crate) idle: Vec<(Idle, ProofGround)>,
    /// Rules that have no effect here but may have one in another configuration.
    pub(crate) waiting: Vec<(Arc<str>, WaitReason, ProofGround)>,
    /// Rules about which nothing is proved, with the reason.
    pub(crate) open: Vec<(Arc<str>, String)>,
}

/// The reason why a rule without effect here may have one elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitReason {
    /// It forbids only calls that no rule permits.
    ForPermits,
    /// No call matches it with the configured tools.
    ToBeMet,
    /// Other rules have the same effect with the configured tools.
    ForLabels,
}

/// The result for one rule.
enum RuleVerdict {
    Counts,
    Idle(Idle),
    Waits(WaitReason),
}

impl Prover {
    /// Reviews all rules. If several rules have the same effect, the latest one is reported, and
    /// the earlier ones are judged without it. Therefore each reported rule can be removed alone,
    /// and all of them together.
    pub(crate) async fn review(&mut self, review: Review<'_>) -> ReviewReport {
        let mut found = ReviewReport::default();
        let mut gone = review.known.clone();
        let all = review.policies.rules().iter().rev();
        for rule in all.filter(|rule| !review.known.contains(&rule.id)) {
            let id = Arc::clone(&rule.id);
            let begun = self.begin();
            match self.of_rule(review, rule, &gone).await {
                Ok(RuleVerdict::Counts) => {}
                Ok(RuleVerdict::Waits(waits)) => {
                    found.waiting.push((id, waits, self.ground(begun)))
                }
                Err(why) => found.open.push((id, why)),
                Ok(RuleVerdict::Idle(idle)) => {
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
    ) -> Result<RuleVerdict, String> {
        let Some(mut asked) = RuleQuery::new(review, rule)? else {
            return Ok(RuleVerdict::Counts);
        };
        if asked.tools.is_empty() {
            return Ok(RuleVerdict::Counts);
        }
        let none = BTreeSet::new();
        let free = asked.theories(&none, LabelAssumption::Any)?;
        let label_assumption = match self.all_idle(&asked, &free).await? {
            true => LabelAssumption::Any,
            false if self.is_idle_here(&asked).await? => LabelAssumption::Configured,
            false => return Ok(RuleVerdict::Counts),
        };
        // Rules that were already reported do not count here: otherwise two rules could make each
        // other redundant.
        let left = asked.theories(gone, label_assumption)?;
        if !gone.is_empty() && !self.all_idle(&asked, &left).await? {
            return Ok(RuleVerdict::Counts);
        }
        if !self.is_covered_within(&asked).await? {
            return Ok(RuleVerdict::Counts);
        }
        asked.gone = gone;
        self.told(&asked, &left, label_assumption).await
    }

    /// Checks the rule with the configured tools. If the solver finds a call, the rules decide that
    /// call.
    async fn is_idle_here(&mut self, asked: &RuleQuery<'_>) -> Result<bool, String> {
        for tool in &asked.tools {
            asked.in_time()?;
            match self.idle(asked.rule, &tool.among).await {
                ProofVerdict::Proved => {}
                ProofVerdict::Open { why } => return Err(why),
                ProofVerdict::Model(model) => {
                    if model_without(&tool.without, tool.subject, &model).differs {
                        return Ok(false);
                    }
                    let why = "the solver reports a call that the rule decides, but airlock could \
                               not build one that the rules confirm";
                    return Err(why.to_owned());
                }
            }
        }
        Ok(true)
    }

    async fn all_idle(
        &mut self,
        asked: &RuleQuery<'_>,
        all: &[RuleQueries],
    ) -> Result<bool, String> {
        for among in all {
            asked.in_time()?;
            match self.idle(asked.rule, among).await {
                ProofVerdict::Proved => {}
                ProofVerdict::Open { why } => return Err(why),
                ProofVerdict::Model(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Asks whether all calls are decided the same without the rule, and whether the same approvals
    /// are asked for.
    async fn idle(&mut self, rule: &Rule, among: &RuleQueries) -> ProofVerdict {
        let mut pairs = Vec::new();
        for approval in APPROVALS {
            let [all, less] =
                [RuleQueries::ALL, RuleQueries::LESS].map(|side| AllowQuery { side, approval });
            // A rule that fails with an error denies, even if it is a permit.
            if !rule.forbids {
                pairs.push((all, Some(less)));
            }
            if rule.forbids || among.errs {
                pairs.push((less, Some(all)));
            }
        }
        if rule.asks {
            for (approval, side) in (1..).zip(RuleQueries::ASKED) {
                let before = AllowQuery {
                    side: RuleQueries::ALL,
                    approval: approval - 1,
                };
                pairs.push(match rule.forbids {
                    true => (AllowQuery { side, approval }, None),
                    false => (
                        AllowQuery {
                            side: RuleQueries::ALONE,
                            approval,
                        },
                        Some(before),
                    ),
                });
            }
        }
        for (what, but) in pairs {
            match self.ask(&among.theory, what, but).await {
                ProofVerdict::Proved => {}
                other => return other,
            }
        }
        ProofVerdict::Proved
    }

    /// Checks the forbids for airlock's own tools. These tools need no permit, so a forbid for them
    /// has no effect only if other rules forbid the same calls.
    async fn is_covered_within(&mut self, asked: &RuleQuery<'_>) -> Result<bool, String> {
        if !asked.rule.forbids {
            return Ok(true);
        }
        for subject in asked.review.own {
            let Some(among) =
                asked.among(subject, &BTreeSet::new(), &[], LabelAssumption::Configured)
            else {
                continue;
            };
            if !self.is_never(asked, &[among?], RuleQueries::ALONE).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a side allows nothing.
    async fn is_never(
        &mut self,
        asked: &RuleQuery<'_>,
        all: &[RuleQueries],
        side: usize,
    ) -> Result<bool, String> {
        self.is_within(asked, all, (side, None)).await
    }

    /// Whether one side allows only what another side allows.
    async fn is_within(
        &mut self,
        asked: &RuleQuery<'_>,
        all: &[RuleQueries],
        (side, other): (usize, Option<usize>),
    ) -> Result<bool, String> {
        for among in all {
            for approval in APPROVALS {
                asked.in_time()?;
                let but = other.map(|side| AllowQuery { side, approval });
                match self
                    .ask(&among.theory, AllowQuery { side, approval }, but)
                    .await
                {
                    ProofVerdict::Proved => {}
                    ProofVerdict::Open { why } => return Err(why),
                    ProofVerdict::Model(_) => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    async fn told(
        &mut self,
        asked: &RuleQuery<'_>,
        all: &[RuleQueries],
        label_assumption: LabelAssumption,
    ) -> Result<RuleVerdict, String> {
        let rule = asked.rule;
        let errs = all.iter().any(|it| it.errs);
        // If a tried call made the rule count without an error, some call matches its condition.
        let is_dead =
            (errs || !asked.counts) && self.is_never(asked, all, RuleQueries::HOLDS).await?;
        if label_assumption == LabelAssumption::Configured {
            return Ok(RuleVerdict::Waits(match is_dead {
                true => WaitReason::ToBeMet,
                false => WaitReason::ForLabels,
            }));
        }
        // A permit with an error permits nothing. A forbid with an error denies the call, perhaps
        // one that no other rule denies.
        let is_alone = match is_dead && (!errs || !rule.forbids) {
            true => false,
            false => !self.is_never(asked, all, RuleQueries::ALONE).await?,
        };
        let how = match (is_dead, rule.forbids, is_alone) {
            (_, true, true) => return Ok(RuleVerdict::Waits(WaitReason::ForPermits)),
            (true, ..) => IdleReason::Dead { errs },
            (_, false, false) => IdleReason::Overruled,
            _ => IdleReason::Shadowed {
                by: self.shadow(asked).await?,
            },
        };
        Ok(RuleVerdict::Idle(Idle {
            rule: Arc::clone(&rule.id),
            how,
            tools: asked.about,
            counts: asked.counts,
        }))
    }

    /// Returns a rule that has the same effect, if one is found quickly.
    async fn shadow(&mut self, asked: &RuleQuery<'_>) -> Result<Option<Arc<str>>, String> {
        let is_other = |it: &&Rule| {
            let covers =
                |tool: &ReviewedTool<'_>| asked.review.policies.is_about(it, &tool.subject.tool);
            it.id != asked.rule.id
                && it.forbids == asked.rule.forbids
                && !asked.gone.contains(&it.id)
                && asked.tools.iter().all(covers)
        };
        let others = asked.review.policies.rules().iter().filter(is_other);
        let others: Vec<&Rule> = others.take(OTHERS_MAX).collect();
        let own = match asked.rule.forbids {
            true => RuleQueries::MET,
            false => RuleQueries::ALONE,
        };
        let all = asked.of_all(asked.gone, &others, LabelAssumption::Any)?;
        for (at, other) in others.iter().enumerate() {
            let sides = (own, Some(RuleQueries::OTHERS + at));
            if self.is_within(asked, &all, sides).await? {
                return Ok(Some(Arc::clone(&other.id)));
            }
        }
        Ok(None)
    }
}

/// A rule for which no tried call shows an effect.
struct RuleQuery<'a> {
    review: Review<'a>,
    rule: &'a Rule,
    /// One tool of each kind. For other tools of the kind, the question would be exactly the same.
    tools: Vec<ReviewedTool<'a>>,
    /// Number of tools that the rule applies to.
    about: usize,
    counts: bool,
    gone: &'a BTreeSet<Arc<str>>,
}

struct ReviewedTool<'a> {
    subject: &'a ToolSubject,
    among: RuleQueries,
    without: RuleAblation<'a>,
}

impl<'a> RuleQuery<'a> {
    /// Returns `None` if the rule decides one of the tried calls.
    fn new(review: Review<'a>, rule: &'a Rule) -> Result<Option<Self>, String> {
        let is_about = |it: &&ToolSubject| review.policies.is_about(rule, &it.tool);
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
            let among = match asked.among(subject, &none, &[], LabelAssumption::Configured) {
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
            let without = RuleAblation::new(review.policies, rule, &subject.tool);
            let without = without.ok_or("Cedar cannot combine the rules")?;
            let tried = tried_without(&without, subject, review.seeds, TRIES);
            if tried.differs {
                return Ok(None);
            }
            asked.counts |= tried.counts;
            asked.tools.extend(among.map(|among| ReviewedTool {
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
        subject: &ToolSubject,
        gone: &BTreeSet<Arc<str>>,
        others: &[&Rule],
        label_assumption: LabelAssumption,
    ) -> Option<Result<RuleQueries, String>> {
        let about = (self.review.policies, subject);
        RuleQueries::new(about, self.rule, gone, (others, label_assumption))
    }

    fn theories(
        &self,
        gone: &BTreeSet<Arc<str>>,
        label_assumption: LabelAssumption,
    ) -> Result<Vec<RuleQueries>, String> {
        self.of_all(gone, &[], label_assumption)
    }

    /// Returns one query set of each kind.
    fn of_all(
        &self,
        gone: &BTreeSet<Arc<str>>,
        others: &[&Rule],
        label_assumption: LabelAssumption,
    ) -> Result<Vec<RuleQueries>, String> {
        let mut keys = BTreeSet::new();
        let of = |tool: &ReviewedTool<'_>| self.among(tool.subject, gone, others, label_assumption);
        let all: Result<Vec<RuleQueries>, String> = self.tools.iter().filter_map(of).collect();
        let mut all = all?;
        all.retain(|among| keys.insert(among.theory.key()));
        Ok(all)
    }

    fn in_time(&self) -> Result<(), String> {
        match Instant::now() < self.review.until {
            true => Ok(()),
            false => Err("the time limit for proofs was reached".into()),
        }
    }
}
