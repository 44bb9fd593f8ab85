//! What can ever become of calls of one tool, level by level: an example that the
//! rules confirm, or a proof that there is none, or neither.

use airlock_core::policy::Policies;
use airlock_core::policy::ever::{self, Example, LEVELS, Lets, Seed, Seen, Subject, Theory};
use airlock_core::rules::{Level, Rules};

use super::{Ground, Prover, Verdict};

/// Calls that are tried before a solver is asked, and where nobody can be.
const TRIES_FIRST: usize = 24;
pub(crate) const TRIES_ALL: usize = 400;

/// Whether calls of a tool can come out at a level.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) level: Level,
    pub(crate) found: Found,
}

#[derive(Debug, Clone)]
pub(crate) enum Found {
    /// They can: this one does.
    Example(Box<Example>),
    /// They cannot, and that is certain.
    Never(Ground),
    /// None was found, and that is all.
    Nothing { why: String },
}

/// What is asked about, and what is known to begin with.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) subject: &'a Subject,
    pub(crate) seeds: &'a [Seed],
}

impl Prover {
    /// `wanted` are levels below deny: that a call is denied needs no proof.
    pub(crate) async fn can(&mut self, case: Case<'_>, wanted: &[Level]) -> Vec<Answer> {
        let Case {
            rules,
            subject,
            seeds,
        } = case;
        let floor = rules.floor(&subject.tool);
        let open: Vec<Level> = wanted.iter().copied().filter(|it| *it >= floor).collect();
        let mut seen = ever::explore(rules, subject, &open, seeds, TRIES_FIRST);
        let mut answers = Vec::new();
        let theory = rules.policies().map(|it| theory(&[it], subject));
        for level in wanted {
            let found = if let Some(example) = seen.of(*level) {
                Found::Example(example.clone().into())
            } else if *level < floor {
                Found::Never(Ground::Text)
            } else {
                let question = Question {
                    theory: theory.as_ref(),
                    floor,
                    level: *level,
                };
                self.look(case, question, &mut seen).await
            };
            let level = *level;
            answers.push(Answer { level, found });
        }
        answers
    }

    async fn look(&mut self, case: Case<'_>, question: Question<'_>, seen: &mut Seen) -> Found {
        let Case {
            rules,
            subject,
            seeds,
        } = case;
        let level = question.level;
        let begun = self.begin();
        let why = match question.theory {
            // Patterns alone: each call has their level.
            None if level == question.floor => "no call fits the schema".to_owned(),
            None => return Found::Never(Ground::Text),
            Some(Err(why)) => why.clone(),
            Some(Ok(theory)) => match self.between(theory, question.floor, level).await {
                Verdict::Proved => return Found::Never(self.ground(begun)),
                Verdict::Open { why } => why,
                Verdict::Model(model) => {
                    for example in ever::decide_model(rules, subject, &model) {
                        seen.note(example);
                    }
                    "the solver thinks that there is one, and no call could be made that \
                     the rules confirm"
                        .to_owned()
                }
            },
        };
        if seen.of(level).is_none() {
            let more = ever::explore(rules, subject, &[level], seeds, TRIES_ALL);
            more.of(level)
                .into_iter()
                .for_each(|it| seen.note(it.clone()));
        }
        match seen.of(level) {
            Some(example) => Found::Example(example.clone().into()),
            None => Found::Nothing { why },
        }
    }

    /// Whether policies let a call through that comes out at this level and no milder one.
    async fn between(&mut self, theory: &Theory, floor: Level, level: Level) -> Verdict {
        if level > floor {
            let milder = LEVELS.iter().rev().find(|it| **it < level);
            return self
                .ask(theory, lets(level), milder.map(|it| lets(*it)))
                .await;
        }
        // Also what would need less approval comes out here, and an error with more approval is
        // never met by it.
        let mut open = None;
        for milder in LEVELS.into_iter().filter(|it| *it <= floor) {
            match self.ask(theory, lets(milder), None).await {
                Verdict::Proved => {}
                model @ Verdict::Model(_) => return model,
                why @ Verdict::Open { .. } => open = Some(why),
            }
        }
        open.unwrap_or(Verdict::Proved)
    }
}

/// With the approval of this level, and without an error up to there.
fn lets(level: Level) -> Lets {
    let approval = (0..).zip(LEVELS).find(|(_, it)| *it == level);
    let approval = approval.map_or(u8::MAX, |(approval, _)| approval);
    Lets { side: 0, approval }
}

struct Question<'a> {
    theory: Option<&'a Result<Theory, String>>,
    floor: Level,
    level: Level,
}

pub(super) fn theory(all: &[&Policies], subject: &Subject) -> Result<Theory, String> {
    Theory::of(all, subject).unwrap_or_else(|| Err("the policies do not know the tool".into()))
}
