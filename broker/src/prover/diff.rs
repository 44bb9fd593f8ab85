//! Differences between old and new rules for one tool, in both directions: an example that both
//! sets of rules confirm, or a proof that there is none.

use airlock_core::level::Level;
use airlock_core::rules::Rules;
use airlock_policy_analysis::{
    self, AllowQuery, ConfiguredRules, DecisionChange, LEVELS, RuleComparison, Seed, SolverProblem,
    ToolSubject,
};

use super::can::{TRIES_ALL, theory, unconfirmed};
use super::{ProofGround, ProofVerdict, Prover};

const TRIES_FIRST: usize = 48;
/// The sides of a theory.
const OLD: usize = 0;
const NEW: usize = 1;

/// The answer whether a call is decided differently in one direction.
#[derive(Debug, Clone)]
pub(crate) enum DiffOutcome {
    /// A call that is decided differently, with the decisions of the old and the new rules.
    Example(Box<DecisionChange>),
    /// It is certain that no call is decided differently.
    Never(ProofGround),
    /// Neither a call that is decided differently nor a proof was found.
    Open { why: String },
}

/// The changes for the calls of one tool.
#[derive(Debug, Clone)]
pub(crate) struct RuleChange {
    pub(crate) widened: DiffOutcome,
    pub(crate) narrowed: DiffOutcome,
}

/// Two sets of rules that are compared for the same tools.
#[derive(Clone, Copy)]
pub(crate) struct RulePair<'a> {
    pub(crate) old: &'a Rules,
    pub(crate) new: &'a Rules,
}

/// Compares two configurations that label a tool differently, or put it into different groups. No
/// proof covers both, so the answer is an example or open.
pub(crate) fn diff_configurations(
    old: ConfiguredRules<'_>,
    new: ConfiguredRules<'_>,
    seeds: &[Seed],
) -> RuleChange {
    const WHY: &str = "the configurations label the tool or the input of runs differently, put \
                       the tool into different groups, give its paths other roots or name other \
                       folders of rules, and no call was found that they decide differently";
    let found = airlock_policy_analysis::compare_configurations(old, new, seeds, TRIES_ALL);
    let outcome = |change: Option<DecisionChange>| match change {
        Some(change) => DiffOutcome::Example(change.into()),
        None => DiffOutcome::Open { why: WHY.into() },
    };
    RuleChange {
        widened: outcome(found.widened),
        narrowed: outcome(found.narrowed),
    }
}

impl Prover {
    pub(crate) async fn diff(
        &mut self,
        pair: RulePair<'_>,
        subject: &ToolSubject,
        seeds: &[Seed],
    ) -> RuleChange {
        let policies: Vec<_> = [pair.old, pair.new]
            .into_iter()
            .filter_map(Rules::policies)
            .collect();
        let theory = theory(&policies, subject);
        let floors = [pair.old, pair.new].map(|it| it.floor(&subject.tool));
        let is_same =
            theory.as_ref().is_ok_and(SolverProblem::is_same) && floors[OLD] == floors[NEW];
        if is_same || floors == [Level::Deny; 2] {
            return RuleChange {
                widened: DiffOutcome::Never(ProofGround::Text),
                narrowed: DiffOutcome::Never(ProofGround::Text),
            };
        }
        let mut found =
            airlock_policy_analysis::compare(pair.old, pair.new, subject, seeds, TRIES_FIRST);
        let asked = DiffQuery {
            pair,
            subject,
            theory: &theory,
            floors,
        };
        let wider = self.one_way(&asked, NEW, &mut found).await;
        let narrower = self.one_way(&asked, OLD, &mut found).await;
        if is_open(&wider, found.widened.as_ref()) || is_open(&narrower, found.narrowed.as_ref()) {
            let more =
                airlock_policy_analysis::compare(pair.old, pair.new, subject, seeds, TRIES_ALL);
            found = found.or(more);
        }
        RuleChange {
            widened: parted(found.widened, wider),
            narrowed: parted(found.narrowed, narrower),
        }
    }

    /// Proves that the rules of side `more` allow no call that the other side does not. An error
    /// says why this is not known.
    async fn one_way(
        &mut self,
        asked: &DiffQuery<'_>,
        more: usize,
        found: &mut RuleComparison,
    ) -> Result<ProofGround, String> {
        let begun = self.begin();
        let less = NEW - more;
        let is_found = |found: &RuleComparison| match more {
            NEW => found.widened.is_some(),
            _ => found.narrowed.is_some(),
        };
        if is_found(found) {
            return Err(String::new());
        }
        let theory = asked.theory.as_ref().map_err(Clone::clone)?;
        let mut open = None;
        for (what, enough) in asked.questions(more) {
            match self.any(theory, what, &enough).await {
                ProofVerdict::Proved => {}
                ProofVerdict::Open { why } => open = Some(why),
                ProofVerdict::Model(model) => {
                    let RulePair { old, new } = asked.pair;
                    let made =
                        airlock_policy_analysis::compare_model(old, new, asked.subject, &model);
                    *found = std::mem::take(found).or(made);
                    if is_found(found) {
                        return Err(String::new());
                    }
                    open = Some(unconfirmed(asked.subject));
                }
            }
        }
        match (open, theory.may_err(less)) {
            (Some(why), _) => Err(why),
            // The solver's model does not include errors. The other side may deny a call because of
            // an error, although the solver considers the call allowed.
            (None, Some(rule)) => Err(format!(
                "the rule `{rule}` multiplies two values of a call, and denies if the product \
                 is too large; the solver cannot check this"
            )),
            (None, None) => Ok(self.ground(begun)),
        }
    }
}

impl Prover {
    /// Asks whether one of `enough` allows everything that `what` allows. If `enough` is empty,
    /// `what` must allow nothing.
    async fn any(
        &mut self,
        theory: &SolverProblem,
        what: AllowQuery,
        enough: &[AllowQuery],
    ) -> ProofVerdict {
        let Some((first, others)) = enough.split_first() else {
            return self.ask(theory, what, None).await;
        };
        let verdict = self.ask(theory, what, Some(*first)).await;
        for other in others {
            if verdict == ProofVerdict::Proved {
                break;
            }
            if self.ask(theory, what, Some(*other)).await == ProofVerdict::Proved {
                return ProofVerdict::Proved;
            }
        }
        verdict
    }
}

impl DiffQuery<'_> {
    /// Returns the questions: what the rules of side `more` allow with each approval, and the
    /// queries of the other side that are not stricter. A call is never evaluated with more
    /// approval than it needs, so errors there do not affect it. Queries with little approval are
    /// therefore included even if patterns require more.
    fn questions(&self, more: usize) -> Vec<(AllowQuery, Vec<AllowQuery>)> {
        let less = NEW - more;
        let [floor, other] = [more, less].map(|side| self.floors.get(side).copied());
        let (Some(floor), Some(other)) = (floor, other) else {
            return Vec::new();
        };
        let levels = || (0..).zip(LEVELS).filter(|(_, it)| *it < Level::Deny);
        let ask = |(approval, level): (u8, Level)| {
            let out = level.max(floor);
            let enough = levels()
                .filter(|(it, level)| *it >= approval && *level <= out && out >= other)
                .map(|(approval, _)| AllowQuery {
                    side: less,
                    approval,
                });
            let what = AllowQuery {
                side: more,
                approval,
            };
            (out < Level::Deny).then(|| (what, enough.collect()))
        };
        levels().filter_map(ask).collect()
    }
}

struct DiffQuery<'a> {
    pair: RulePair<'a>,
    subject: &'a ToolSubject,
    theory: &'a Result<SolverProblem, String>,
    /// The mildest possible level on each side, independent of policies.
    floors: [Level; 2],
}

fn is_open(proof: &Result<ProofGround, String>, example: Option<&DecisionChange>) -> bool {
    proof.is_err() && example.is_none()
}

fn parted(example: Option<DecisionChange>, proof: Result<ProofGround, String>) -> DiffOutcome {
    match (example, proof) {
        (Some(apart), _) => DiffOutcome::Example(apart.into()),
        (None, Ok(ground)) => DiffOutcome::Never(ground),
        (None, Err(why)) => DiffOutcome::Open { why },
    }
}
