//! What new rules let through that old ones did not, and the other way round, for
//! one tool: an example that both confirm, or a proof that there is none.

use airlock_core::policy::ever::{self, Apart, Compared, LEVELS, Lets, Seed, Subject, Theory};
use airlock_core::rules::{Level, Rules};

use super::can::{TRIES_ALL, theory};
use super::{Ground, Prover, Verdict};

const TRIES_FIRST: usize = 48;
/// The sides of a theory.
const OLD: usize = 0;
const NEW: usize = 1;

/// Whether there are calls that are decided apart in one direction.
#[derive(Debug, Clone)]
pub(crate) enum Parted {
    /// This one is: as the old rules decide it, as the new ones do.
    Example(Box<Apart>),
    /// There are none, and that is certain.
    Never(Ground),
    /// None was found, and that is all.
    Nothing { why: String },
}

/// What becomes of the calls of one tool.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) widened: Parted,
    pub(crate) narrowed: Parted,
}

/// Two sets of rules that are held against the same tools.
#[derive(Clone, Copy)]
pub(crate) struct Pair<'a> {
    pub(crate) old: &'a Rules,
    pub(crate) new: &'a Rules,
}

impl Prover {
    pub(crate) async fn diff(
        &mut self,
        pair: Pair<'_>,
        subject: &Subject,
        seeds: &[Seed],
    ) -> Change {
        let policies: Vec<_> = [pair.old, pair.new]
            .into_iter()
            .filter_map(Rules::policies)
            .collect();
        let theory = theory(&policies, subject);
        let floors = [pair.old, pair.new].map(|it| it.floor(&subject.tool));
        let is_same = theory.as_ref().is_ok_and(Theory::is_same) && floors[OLD] == floors[NEW];
        if is_same || floors == [Level::Deny; 2] {
            return Change {
                widened: Parted::Never(Ground::Text),
                narrowed: Parted::Never(Ground::Text),
            };
        }
        let mut found = ever::compare(pair.old, pair.new, subject, seeds, TRIES_FIRST);
        let asked = Asked {
            pair,
            subject,
            theory: &theory,
            floors,
        };
        let wider = self.one_way(&asked, NEW, &mut found).await;
        let narrower = self.one_way(&asked, OLD, &mut found).await;
        if is_open(&wider, found.widened.as_ref()) || is_open(&narrower, found.narrowed.as_ref()) {
            let more = ever::compare(pair.old, pair.new, subject, seeds, TRIES_ALL);
            found = found.or(more);
        }
        Change {
            widened: parted(found.widened, wider),
            narrowed: parted(found.narrowed, narrower),
        }
    }

    /// Whether the rules of side `more` let no call through that the others do not; an error
    /// says why that is not known.
    async fn one_way(
        &mut self,
        asked: &Asked<'_>,
        more: usize,
        found: &mut Compared,
    ) -> Result<Ground, String> {
        let begun = self.begin();
        let less = NEW - more;
        let is_found = |found: &Compared| match more {
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
                Verdict::Proved => {}
                Verdict::Open { why } => open = Some(why),
                Verdict::Model(model) => {
                    let Pair { old, new } = asked.pair;
                    let made = ever::compare_model(old, new, asked.subject, &model);
                    *found = std::mem::take(found).or(made);
                    if is_found(found) {
                        return Err(String::new());
                    }
                    let why = "the solver thinks that there is one, and no call could be made \
                               that the rules confirm";
                    open = Some(why.to_owned());
                }
            }
        }
        match (open, theory.may_err(less)) {
            (Some(why), _) => Err(why),
            // What is denied by an error there is allowed as far as a solver knows.
            (None, Some(rule)) => Err(format!(
                "the rule `{rule}` multiplies two values of a call, and denies when that is too \
                 large: no solver is told when"
            )),
            (None, None) => Ok(self.ground(begun)),
        }
    }
}

impl Prover {
    /// Whether one of `enough` lets through whatever `what` does. Where nothing would be enough,
    /// it may let nothing through.
    async fn any(&mut self, theory: &Theory, what: Lets, enough: &[Lets]) -> Verdict {
        let Some((first, others)) = enough.split_first() else {
            return self.ask(theory, what, None).await;
        };
        let verdict = self.ask(theory, what, Some(*first)).await;
        for other in others {
            if verdict == Verdict::Proved {
                break;
            }
            if self.ask(theory, what, Some(*other)).await == Verdict::Proved {
                return Verdict::Proved;
            }
        }
        verdict
    }
}

impl Asked<'_> {
    /// What the rules of side `more` let through with each approval, and what those of the other
    /// side may let it through with so that it comes out no stricter there. Errors with more
    /// approval than a call needs are never met by it, so what needs little is asked about also
    /// where patterns ask for more.
    fn questions(&self, more: usize) -> Vec<(Lets, Vec<Lets>)> {
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
                .map(|(approval, _)| Lets {
                    side: less,
                    approval,
                });
            let what = Lets {
                side: more,
                approval,
            };
            (out < Level::Deny).then(|| (what, enough.collect()))
        };
        levels().filter_map(ask).collect()
    }
}

struct Asked<'a> {
    pair: Pair<'a>,
    subject: &'a Subject,
    theory: &'a Result<Theory, String>,
    /// The mildest level on each side, whatever policies say.
    floors: [Level; 2],
}

fn is_open(proof: &Result<Ground, String>, example: Option<&Apart>) -> bool {
    proof.is_err() && example.is_none()
}

fn parted(example: Option<Apart>, proof: Result<Ground, String>) -> Parted {
    match (example, proof) {
        (Some(apart), _) => Parted::Example(apart.into()),
        (None, Ok(ground)) => Parted::Never(ground),
        (None, Err(why)) => Parted::Nothing { why },
    }
}
