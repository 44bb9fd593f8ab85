//! Parses the header keys about approval: the tools that need it, the answers, and earlier grants.

use std::num::NonZeroU32;

use airlock::core::grant::Scope;
use airlock::core::id::ToolId;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// The approval part of a case. A case with any of these keys has its own broker and session.
#[derive(Debug, Clone, Default)]
pub struct ApprovalCase {
    /// Patterns of tools whose calls need approval; every other tool is allowed.
    pub asks: Vec<String>,
    /// The answers, one per question, in turn. Further questions are not answered.
    pub answers: Vec<ApproverReply>,
    /// The expected total number of questions, if the case gives one.
    pub questions: Option<usize>,
    /// Texts that the questions to the approver must contain.
    pub question_contains: Vec<String>,
    /// Grants that exist when the run starts.
    pub given: Vec<PriorGrant>,
    /// A run before this one.
    pub before: Option<EarlierRun>,
    pub between: Vec<ChangeBetween>,
    /// Whether the server `rogue`, which sends requests to its host, is connected too.
    pub with_rogue: bool,
}

/// How the approver reacts to one question.
#[derive(Debug, Clone, PartialEq)]
pub enum ApproverReply {
    Once,
    UpTo {
        uses_max: NonZeroU32,
        scope: Scope,
        about: AnswerScope,
    },
    Refuse,
    /// Reports at once that no approver is available.
    Nobody,
    /// Never answers.
    Silence,
    /// Answers with something invalid.
    Nonsense,
    /// Allows the call once. Before the answer, every policy file is replaced by one that permits
    /// everything.
    OnceAfterChange,
}

/// The further calls that an answer covers.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerScope {
    /// The proposed scope.
    Proposed,
    /// Calls with the same values in these fields as the call in question.
    Keeping(Vec<String>),
    /// Calls with exactly these arguments, which may differ from those of the call in question.
    Args(Value),
}

/// A grant given before the run.
#[derive(Debug, Clone, PartialEq)]
pub struct PriorGrant {
    pub uses_max: NonZeroU32,
    pub tool: ToolId,
    pub scope: Scope,
    /// The exact arguments; `None` for any.
    pub args: Option<Value>,
    pub but: Option<GrantMismatch>,
}

/// The part of a grant that does not match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantMismatch {
    OtherScript,
    OtherRules,
    OtherDescription,
    Expired,
    UsedUp,
    NoLabels,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EarlierRun {
    /// The case's own script.
    Same,
    Other(String),
}

/// The change between the earlier run and the run of the case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeBetween {
    Session,
    Description,
    Rules,
    LineEnds,
    OneSpace,
    /// Another broker continues the same session, as after a restart.
    Process,
    Revoked,
}

impl ApprovalCase {
    /// Returns whether the case needs its own broker.
    #[must_use]
    pub fn is_there(&self) -> bool {
        !self.asks.is_empty()
            || !self.answers.is_empty()
            || !self.given.is_empty()
            || self.before.is_some()
            || self.with_rogue
    }
}

/// Sets one key of the header; returns whether the key belongs to this module.
pub(super) fn set(asking: &mut ApprovalCase, key: &str, value: &str) -> Result<bool> {
    let each = || value.split(" | ");
    match key {
        "asks" => asking.asks = each().map(str::to_owned).collect(),
        "answers" => asking.answers = each().map(parse_reply).collect::<Result<_>>()?,
        "questions" => asking.questions = Some(value.parse()?),
        "question" => asking.question_contains.push(value.into()),
        "given" => asking.given.push(given(value)?),
        "before" if value == "this script" => asking.before = Some(EarlierRun::Same),
        "before" => asking.before = Some(EarlierRun::Other(value.into())),
        "between" => asking.between = each().map(between).collect::<Result<_>>()?,
        "server" if value == "rogue" => asking.with_rogue = true,
        _ => return Ok(false),
    }
    Ok(true)
}

fn parse_reply(text: &str) -> Result<ApproverReply> {
    Ok(match text {
        "once" => ApproverReply::Once,
        "refuse" => ApproverReply::Refuse,
        "nobody" => ApproverReply::Nobody,
        "silence" => ApproverReply::Silence,
        "nonsense" => ApproverReply::Nonsense,
        "once after the rules changed" => ApproverReply::OnceAfterChange,
        _ => {
            let rest = text.strip_prefix("up to ").context("unknown answer")?;
            let (rest, about) = if let Some((rest, fields)) = rest.split_once(" keeping ") {
                let fields = fields.split_whitespace().map(str::to_owned).collect();
                (rest, AnswerScope::Keeping(fields))
            } else if let Some((rest, args)) = rest.split_once(" about ") {
                (rest, AnswerScope::Args(serde_json::from_str(args)?))
            } else {
                (rest, AnswerScope::Proposed)
            };
            let (uses_max, scope) = rest.split_once(" in ").unwrap_or((rest, "run"));
            ApproverReply::UpTo {
                uses_max: uses_max.parse()?,
                scope: scope_of(scope)?,
                about,
            }
        }
    })
}

/// Parses a grant: `up to 3 of box.write in session where {"path":"a"} but expired`.
fn given(text: &str) -> Result<PriorGrant> {
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
        bail!("expected `up to N of SERVER.TOOL in SCOPE`");
    };
    Ok(PriorGrant {
        uses_max: uses_max.parse()?,
        tool: ToolId::parse(tool)?,
        scope: scope_of(scope)?,
        args,
        but,
    })
}

fn scope_of(word: &str) -> Result<Scope> {
    serde_json::from_value(word.into()).with_context(|| format!("unknown scope `{word}`"))
}

fn but(word: &str) -> Result<GrantMismatch> {
    Ok(match word {
        "for another script" => GrantMismatch::OtherScript,
        "under other rules" => GrantMismatch::OtherRules,
        "for another description" => GrantMismatch::OtherDescription,
        "expired" => GrantMismatch::Expired,
        "used up" => GrantMismatch::UsedUp,
        "without labels" => GrantMismatch::NoLabels,
        _ => bail!("unknown mismatch `{word}` after `but`"),
    })
}

fn between(word: &str) -> Result<ChangeBetween> {
    Ok(match word {
        "another session" => ChangeBetween::Session,
        "another description" => ChangeBetween::Description,
        "other rules" => ChangeBetween::Rules,
        "other line ends" => ChangeBetween::LineEnds,
        "one more space" => ChangeBetween::OneSpace,
        "another process" => ChangeBetween::Process,
        "revoked" => ChangeBetween::Revoked,
        _ => bail!("unknown change `{word}`"),
    })
}

/// Refuses combinations of keys with which a case would test nothing.
pub(super) fn check(asking: &ApprovalCase) -> Result<()> {
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
    fn answers_and_grants_parse_and_misspelling_is_an_error() {
        let up_to = parse_reply("up to 3 in session keeping /path /to").unwrap();
        let ApproverReply::UpTo {
            uses_max,
            scope,
            about,
        } = up_to
        else {
            panic!()
        };
        assert_eq!((uses_max.get(), scope), (3, Scope::Session));
        assert_eq!(
            about,
            AnswerScope::Keeping(vec!["/path".into(), "/to".into()])
        );
        let given = given(r#"up to 3 of box.write in run where {"a":1} but expired"#).unwrap();
        assert_eq!(given.tool.to_string(), "box.write");
        assert_eq!(given.but, Some(GrantMismatch::Expired));
        for bad in ["yes", "up to 0", "up to 3 in ever", "up to many"] {
            assert!(parse_reply(bad).is_err(), "{bad}");
        }
        assert!(super::given("3 of box.write").is_err());
    }
}
