//! Possible decisions on the calls of a tool, level by level: an example that the rules confirm, a
//! proof that there is none, or neither.

use airlock_core::level::Level;
use airlock_core::policy::Policies;
use airlock_core::rules::Rules;
use airlock_policy_analysis::{
    self, AllowQuery, Example, ExamplesByLevel, LEVELS, LabelAssumption, Seed, SolverProblem,
    ToolSubject,
};

use super::{ProofGround, ProofVerdict, Prover};

/// Number of calls that are tried before a solver is asked, and number that are tried if no solver
/// answers.
const TRIES_FIRST: usize = 24;
pub(crate) const TRIES_ALL: usize = 400;

/// The answer whether a call of a tool can be decided at a level.
#[derive(Debug, Clone)]
pub(crate) struct LevelAnswer {
    pub(crate) level: Level,
    pub(crate) found: Reachability,
}

#[derive(Debug, Clone)]
pub(crate) enum Reachability {
    /// This call is decided at the level.
    Example(Box<Example>),
    /// It is certain that no call is decided at the level.
    Never(ProofGround),
    /// Neither an example nor a proof was found.
    Open { why: String },
}

/// The rules and the tool in question, and the calls to try first.
#[derive(Clone, Copy)]
pub(crate) struct ReachabilityCase<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) subject: &'a ToolSubject,
    pub(crate) seeds: &'a [Seed],
}

impl Prover {
    /// Finds an answer for each wanted level. `wanted` contains only levels below deny, because
    /// denial needs no proof.
    pub(crate) async fn can(
        &mut self,
        case: ReachabilityCase<'_>,
        wanted: &[Level],
    ) -> Vec<LevelAnswer> {
        let ReachabilityCase {
            rules,
            subject,
            seeds,
        } = case;
        let floor = rules.floor(&subject.tool);
        let open: Vec<Level> = wanted.iter().copied().filter(|it| *it >= floor).collect();
        let mut seen = airlock_policy_analysis::explore(rules, subject, &open, seeds, TRIES_FIRST);
        let mut answers = Vec::new();
        let theory = rules.policies().map(|it| theory(&[it], subject));
        for level in wanted {
            let found = if let Some(example) = seen.of(*level) {
                Reachability::Example(example.clone().into())
            } else if *level < floor {
                Reachability::Never(ProofGround::Text)
            } else {
                let question = Question {
                    theory: theory.as_ref(),
                    floor,
                    level: *level,
                };
                self.look(case, question, &mut seen).await
            };
            let level = *level;
            answers.push(LevelAnswer { level, found });
        }
        answers
    }

    async fn look(
        &mut self,
        case: ReachabilityCase<'_>,
        question: Question<'_>,
        seen: &mut ExamplesByLevel,
    ) -> Reachability {
        let ReachabilityCase {
            rules,
            subject,
            seeds,
        } = case;
        let level = question.level;
        let begun = self.begin();
        let why = match question.theory {
            // Only patterns apply, so every call has their level.
            None if level == question.floor => "no call that fits the schema was found".to_owned(),
            None => return Reachability::Never(ProofGround::Text),
            Some(Err(why)) => why.clone(),
            Some(Ok(theory)) => match self.between(theory, question.floor, level).await {
                ProofVerdict::Proved => return Reachability::Never(self.ground(begun)),
                ProofVerdict::Open { why } => why,
                ProofVerdict::Model(model) => {
                    for example in airlock_policy_analysis::decide_model(rules, subject, &model) {
                        seen.note(example);
                    }
                    unconfirmed(subject)
                }
            },
        };
        if seen.of(level).is_none() {
            let more = airlock_policy_analysis::explore(rules, subject, &[level], seeds, TRIES_ALL);
            more.of(level)
                .into_iter()
                .for_each(|it| seen.note(it.clone()));
        }
        match seen.of(level) {
            Some(example) => Reachability::Example(example.clone().into()),
            None => Reachability::Open { why },
        }
    }

    /// Asks whether policies allow a call that is decided at this level and not already at a milder
    /// one.
    async fn between(
        &mut self,
        theory: &SolverProblem,
        floor: Level,
        level: Level,
    ) -> ProofVerdict {
        if level > floor {
            let milder = LEVELS.iter().rev().find(|it| **it < level);
            return self
                .ask(theory, lets(level), milder.map(|it| lets(*it)))
                .await;
        }
        // Calls that would need less approval are decided at this level too. They are never
        // evaluated with more approval, so errors there do not affect them.
        let mut open = None;
        for milder in LEVELS.into_iter().filter(|it| *it <= floor) {
            match self.ask(theory, lets(milder), None).await {
                ProofVerdict::Proved => {}
                model @ ProofVerdict::Model(_) => return model,
                why @ ProofVerdict::Open { .. } => open = Some(why),
            }
        }
        open.unwrap_or(ProofVerdict::Proved)
    }
}

/// Returns the reason why a solver's model that no call confirms gives no answer.
pub(super) fn unconfirmed(subject: &ToolSubject) -> String {
    let why = match (subject.label_assumption, subject.lacks_sample()) {
        (LabelAssumption::Any, _) => {
            "no configuration labels the tools, and labels decide: name the configuration of the \
             runs with `--config` or `--labels`"
        }
        (_, true) => "airlock could not build arguments that fit the tool's input schema",
        (_, false) => {
            "the solver reports such a call, but airlock could not build one that the rules confirm"
        }
    };
    why.to_owned()
}

/// Returns the query for calls that are allowed with the approval of this level, and that cause no
/// error with this or less approval.
fn lets(level: Level) -> AllowQuery {
    let approval = (0..).zip(LEVELS).find(|(_, it)| *it == level);
    let approval = approval.map_or(u8::MAX, |(approval, _)| approval);
    AllowQuery { side: 0, approval }
}

struct Question<'a> {
    theory: Option<&'a Result<SolverProblem, String>>,
    floor: Level,
    level: Level,
}

pub(super) fn theory(all: &[&Policies], subject: &ToolSubject) -> Result<SolverProblem, String> {
    SolverProblem::new(all, subject)
        .unwrap_or_else(|| Err("the tool is unknown to the policies".into()))
}
