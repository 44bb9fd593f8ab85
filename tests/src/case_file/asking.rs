//! What a header says of questions: what is asked about, what is answered in
//! turn, and what somebody had said yes to before.

use std::num::NonZeroU32;

use airlock::core::grant::Scope;
use airlock::core::id::ToolId;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// A case with any of these has a broker of its own, in a session of its own.
#[derive(Debug, Clone, Default)]
pub struct Asking {
    /// Patterns of tools that are asked about; every other one is allowed.
    pub asks: Vec<String>,
    /// One per question, in turn. Afterwards nobody is there.
    pub answers: Vec<Told>,
    /// How many questions are put in all, when that is said.
    pub questions: Option<usize>,
    /// Parts of one question or another, as an approver gets them.
    pub question_contains: Vec<String>,
    /// Grants that are there when the run starts.
    pub given: Vec<Given>,
    /// A run before this one.
    pub before: Option<Before>,
    pub between: Vec<Between>,
    /// A server that asks back is there too, as `rogue`.
    pub with_rogue: bool,
}

/// What an approver does about one question.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    Once,
    UpTo {
        uses_max: NonZeroU32,
        scope: Scope,
        about: About,
    },
    Refuse,
    /// Nobody is there, and that is said at once.
    Nobody,
    /// Somebody is there and never says anything.
    Silence,
    /// Something that is no answer.
    Nonsense,
    /// Once, and before it every policy file is replaced by one that permits everything.
    OnceAfterChange,
}

/// Which further calls an answer is about.
#[derive(Debug, Clone, PartialEq)]
pub enum About {
    /// What was proposed.
    Proposed,
    /// These fields of the call stay equal.
    Keeping(Vec<String>),
    /// Exactly these arguments, whatever the call has.
    Args(Value),
}

/// A grant that was given before the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    pub uses_max: NonZeroU32,
    pub tool: ToolId,
    pub scope: Scope,
    /// The exact arguments; anything when absent.
    pub args: Option<Value>,
    pub but: Option<But>,
}

/// What does not fit of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum But {
    OtherScript,
    OtherRules,
    OtherDescription,
    Expired,
    UsedUp,
    NoLabels,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Before {
    /// The case's own script.
    Same,
    Other(String),
}

/// What is another when the case's own run starts after the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Between {
    Session,
    Description,
    Rules,
    LineEnds,
    OneSpace,
    /// Nothing but the process: the broker is another one in the same session.
    Process,
    Revoked,
}

impl Asking {
    /// Whether the case needs a broker of its own.
    #[must_use]
    pub fn is_there(&self) -> bool {
        !self.asks.is_empty()
            || !self.answers.is_empty()
            || !self.given.is_empty()
            || self.before.is_some()
            || self.with_rogue
    }
}

/// One of the keys of this file; whether it was one.
pub(super) fn set(asking: &mut Asking, key: &str, value: &str) -> Result<bool> {
    let each = || value.split(" | ");
    match key {
        "asks" => asking.asks = each().map(str::to_owned).collect(),
        "answers" => asking.answers = each().map(told).collect::<Result<_>>()?,
        "questions" => asking.questions = Some(value.parse()?),
        "question" => asking.question_contains.push(value.into()),
        "given" => asking.given.push(given(value)?),
        "before" if value == "this script" => asking.before = Some(Before::Same),
        "before" => asking.before = Some(Before::Other(value.into())),
        "between" => asking.between = each().map(between).collect::<Result<_>>()?,
        "server" if value == "rogue" => asking.with_rogue = true,
        _ => return Ok(false),
    }
    Ok(true)
}

fn told(text: &str) -> Result<Told> {
    Ok(match text {
        "once" => Told::Once,
        "refuse" => Told::Refuse,
        "nobody" => Told::Nobody,
        "silence" => Told::Silence,
        "nonsense" => Told::Nonsense,
        "once after the rules changed" => Told::OnceAfterChange,
        _ => {
            let rest = text.strip_prefix("up to ").context("no answer")?;
            let (rest, about) = if let Some((rest, fields)) = rest.split_once(" keeping ") {
                let fields = fields.split_whitespace().map(str::to_owned).collect();
                (rest, About::Keeping(fields))
            } else if let Some((rest, args)) = rest.split_once(" about ") {
                (rest, About::Args(serde_json::from_str(args)?))
            } else {
                (rest, About::Proposed)
            };
            let (uses_max, scope) = rest.split_once(" in ").unwrap_or((rest, "run"));
            Told::UpTo {
                uses_max: uses_max.parse()?,
                scope: scope_of(scope)?,
                about,
            }
        }
    })
}

/// `up to 3 of box.write in session where {"path":"a"} but expired`
fn given(text: &str) -> Result<Given> {
    let (text, but) = match text.split_once(" but ") {
        Some((text, word)) => (text, Some(but(word)?)),
        None => (text, None),
    };
    let (text, args) = match text.split_once(" where ") {
        Some((text, args)) => (text, Some(serde_json::from_str(args)?)),
        None => (text, None),
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let ["up", "to", uses_max, "of", tool, "in", scope] = words[..] else {
        bail!("takes `up to N of SERVER.TOOL in SCOPE`");
    };
    Ok(Given {
        uses_max: uses_max.parse()?,
        tool: ToolId::parse(tool)?,
        scope: scope_of(scope)?,
        args,
        but,
    })
}

fn scope_of(word: &str) -> Result<Scope> {
    serde_json::from_value(word.into()).with_context(|| format!("`{word}` is no scope"))
}

fn but(word: &str) -> Result<But> {
    Ok(match word {
        "for another script" => But::OtherScript,
        "under other rules" => But::OtherRules,
        "for another description" => But::OtherDescription,
        "expired" => But::Expired,
        "used up" => But::UsedUp,
        "without labels" => But::NoLabels,
        _ => bail!("`{word}` is nothing that a grant can lack"),
    })
}

fn between(word: &str) -> Result<Between> {
    Ok(match word {
        "another session" => Between::Session,
        "another description" => Between::Description,
        "other rules" => Between::Rules,
        "other line ends" => Between::LineEnds,
        "one more space" => Between::OneSpace,
        "another process" => Between::Process,
        "revoked" => Between::Revoked,
        _ => bail!("`{word}` is nothing that can change in between"),
    })
}

/// Words that contradict each other would make a case that shows nothing.
pub(super) fn check(asking: &Asking) -> Result<()> {
    ensure!(
        asking.between.is_empty() || asking.before.is_some(),
        "`between` needs a run `before`"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_grants_are_read_and_what_is_misspelt_is_an_error() {
        let up_to = told("up to 3 in session keeping /path /to").unwrap();
        let Told::UpTo {
            uses_max,
            scope,
            about,
        } = up_to
        else {
            panic!()
        };
        assert_eq!((uses_max.get(), scope), (3, Scope::Session));
        assert_eq!(about, About::Keeping(vec!["/path".into(), "/to".into()]));
        let given = given(r#"up to 3 of box.write in run where {"a":1} but expired"#).unwrap();
        assert_eq!(given.tool.to_string(), "box.write");
        assert_eq!(given.but, Some(But::Expired));
        for bad in ["yes", "up to 0", "up to 3 in ever", "up to many"] {
            assert!(told(bad).is_err(), "{bad}");
        }
        assert!(super::given("3 of box.write").is_err());
    }
}
