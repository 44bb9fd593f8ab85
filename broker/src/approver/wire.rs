//! The JSON format of questions and answers, for programs and for the page. A message that does not
//! match the format of answers exactly counts as no answer.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use airlock_core::decide::{Answer, Asker, Question};
use airlock_core::grant::{Condition, FieldValue, Scope, Terms};
use airlock_core::json::{self, Bounds};
use airlock_core::statement::{STATED_RESULT, StatedOutcome};
use serde::Deserialize;
use serde_json::{Value, json};

use super::by_user;

/// Version of both formats.
pub(super) const VERSION: u32 = 1;
pub(super) const ANSWER_BYTES_MAX: u32 = 64 * 1024;

/// Formats everything that matters for the answer, unchanged.
pub(super) fn question(question: &Question, nonce: &str) -> Value {
    let effects = question.effects;
    json!({
        "v": VERSION,
        "nonce": nonce,
        "call": question.call.0,
        "tool": question.tool.to_string(),
        "args": question.args.value(),
        "args_digest": question.args.digest(),
        "description_digest": question.description_digest,
        "shown": question.shown_digest(),
        "level": question.level.as_str(),
        "reasons": question.reasons,
        "prompts": question.prompts,
        "line": question.site.line,
        "read_only": effects.read_only,
        "claims_read_only": effects.claims_read_only,
        "claims_destructive": effects.claims_destructive,
        "allowed_so_far": question.allowed_so_far,
        "facts": question.facts,
        "result_labels": question.reads,
        "proposal": proposal(question),
        "scopes": question.scopes,
        "outcome_of": question.outcome_of.as_ref().map(ToString::to_string),
        "asker": question.asker.as_deref().map(asker),
    })
}

fn asker(asker: &Asker) -> Value {
    json!({
        "run": asker.run,
        "script": asker.script_name,
        "script_digest": asker.script,
        "waits_ms": asker.waits_ms,
    })
}

fn proposal(question: &Question) -> Value {
    let Some(proposal) = &question.proposal else {
        return Value::Null;
    };
    let examples = proposal.examples.iter().map(|args| args.value().clone());
    json!({
        "uses_max": proposal.uses_max,
        "where": proposal.condition,
        "calls": proposal.calls,
        "examples": examples.collect::<Vec<_>>(),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerMessage {
    nonce: String,
    answer: String,
    uses_max: Option<u32>,
    scope: Option<Scope>,
    /// The fields that must stay equal. If absent, the fields of the proposal must stay equal.
    same: Option<BTreeSet<String>>,
    lasts_s: Option<u64>,
    /// JSON text: the result of the call whose outcome is stated.
    result: Option<String>,
}

/// The reason why an input is not an answer to a question.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadAnswer {
    #[error("invalid answer: {0}")]
    Json(String),
    #[error("the answer does not have the question's nonce")]
    Nonce,
    #[error("{0}")]
    Unclear(String),
}

/// Reads an answer. `place` is the name of the approver.
pub(super) fn answer(
    text: &[u8],
    nonce: &str,
    question: &Question,
    place: &str,
) -> Result<Answer, BadAnswer> {
    let bounds = Bounds {
        bytes_max: ANSWER_BYTES_MAX,
        depth_max: 8,
        nodes_max: 4_000,
    };
    let value = json::parse_strict(text, bounds).map_err(|bad| BadAnswer::Json(bad.to_string()))?;
    let said =
        AnswerMessage::deserialize(value).map_err(|error| BadAnswer::Json(error.to_string()))?;
    if said.nonce != nonce {
        return Err(BadAnswer::Nonce);
    }
    let unclear = |why: &str| Err(BadAnswer::Unclear(why.to_owned()));
    let is_plain = said.uses_max.is_none()
        && said.scope.is_none()
        && said.same.is_none()
        && said.lasts_s.is_none();
    if question.outcome_of.is_some() {
        return outcome(said, is_plain, place).map_err(|why| BadAnswer::Unclear(why.to_owned()));
    }
    let is_plain = is_plain && said.result.is_none();
    match said.answer.as_str() {
        "allow-once" if is_plain => Ok(Answer::AllowOnce),
        "allow-declassified" if is_plain => Ok(Answer::AllowDeclassified),
        "refuse" if is_plain => Ok(Answer::Refuse),
        "allow-once" | "allow-declassified" | "refuse" => {
            unclear("only `allow` can be combined with other members")
        }
        "happened" | "did-not-happen" => unclear("this question is not what became of a call"),
        "allow" if said.result.is_some() => unclear("only `happened` can have a `result`"),
        "allow" => terms(said, question).map(Answer::Allow),
        _ => unclear("invalid `answer`; expected allow-once, allow-declassified, allow or refuse"),
    }
}

/// Returns the answer to the question what became of an earlier call.
fn outcome(said: AnswerMessage, is_plain: bool, place: &str) -> Result<Answer, &'static str> {
    if !is_plain {
        return Err("only `allow` has these members, and no answer to this question allows a call");
    }
    let stated = |outcome| {
        let by = by_user(place);
        Ok(Answer::Stated { outcome, by })
    };
    match (said.answer.as_str(), said.result) {
        ("happened", result) => {
            if !result.as_deref().is_none_or(is_json) {
                return Err("`result` is not JSON text");
            }
            stated(StatedOutcome::Happened { result })
        }
        ("did-not-happen", None) => stated(StatedOutcome::DidNotHappen),
        ("refuse", None) => Ok(Answer::Refuse),
        ("did-not-happen" | "refuse", Some(_)) => Err("only `happened` can have a `result`"),
        _ => Err("invalid `answer`; expected happened, did-not-happen or refuse"),
    }
}

/// Whether a text can be a stated result. Whether it fits the tool is checked when it is used.
pub(super) fn is_json(text: &str) -> bool {
    json::parse_strict(text.as_bytes(), STATED_RESULT).is_ok()
}

fn terms(said: AnswerMessage, question: &Question) -> Result<Terms, BadAnswer> {
    let unclear = |why: &str| BadAnswer::Unclear(why.to_owned());
    let proposal = question.proposal.as_ref().ok_or_else(|| {
        unclear("this call must be approved alone, with `allow-once` instead of `allow`")
    })?;
    let uses_max = said.uses_max.and_then(NonZeroU32::new);
    let uses_max = uses_max.ok_or_else(|| unclear("`allow` needs a `uses_max` above 0"))?;
    let scope = said.scope.unwrap_or(Scope::Run);
    if !question.scopes.contains(&scope) {
        return Err(unclear("this run cannot have grants of that `scope`"));
    }
    let condition = match said.same {
        None => proposal.condition.clone(),
        Some(same) => kept_equal(question, &same)?,
    };
    Ok(Terms {
        uses_max,
        scope,
        condition: Some(condition),
        lasts_ms: said.lasts_s.map(|seconds| seconds.saturating_mul(1_000)),
    })
}

/// Returns the condition for a grant: these fields must equal the call's arguments. The others
/// are free, or in the proposed folder.
fn kept_equal(question: &Question, same: &BTreeSet<String>) -> Result<Condition, BadAnswer> {
    let unclear = |why: String| BadAnswer::Unclear(why);
    let exactly = Condition::exactly(question.args.value())
        .ok_or_else(|| unclear("the arguments have too many fields".into()))?;
    let proposed = question.proposal.iter();
    let mut free: BTreeSet<String> = proposed
        .flat_map(|proposal| proposal.condition.free().iter().cloned())
        .collect();
    let mut fixed: BTreeMap<String, FieldValue> = BTreeMap::new();
    let encloses = |outer: &String, inner: &String| inner.starts_with(&format!("{outer}/"));
    let proposed = question.proposal.as_ref();
    let in_folder = |field: &String| {
        let proposed = proposed?.condition.same().get(field)?;
        matches!(proposed, FieldValue::Under(_)).then(|| proposed.clone())
    };
    for (field, value) in exactly.same() {
        if same.iter().any(|it| it == field || encloses(it, field)) {
            fixed.insert(field.clone(), value.clone());
        } else if let Some(folder) = in_folder(field) {
            fixed.insert(field.clone(), folder);
        } else {
            free.insert(field.clone());
        }
    }
    let is_known = |it: &String| fixed.keys().any(|field| it == field || encloses(it, field));
    if let Some(unknown) = same.iter().find(|it| !is_known(it)) {
        let shown: String = unknown.chars().take(80).collect();
        return Err(unclear(format!("the call has no field `{shown}`")));
    }
    free.retain(|field| !fixed.keys().any(|it| it == field || encloses(field, it)));
    let all = free.clone();
    free.retain(|field| !all.iter().any(|it| encloses(it, field)));
    Condition::new(fixed, free).map_err(|bad| unclear(bad.to_string()))
}

#[cfg(test)]
pub(super) mod tests {
    use airlock_core::call::{Args, Site};
    use airlock_core::catalog::Effects;
    use airlock_core::grant::Proposal;
    use std::sync::Arc;

    use airlock_core::id::{CallId, CallRef, Digest, RunId, ToolId};
    use airlock_core::labels::Labels;
    use airlock_core::level::Level;
    use airlock_core::limits::Limits;

    use super::*;

    pub(crate) fn asked(args: &str) -> Question {
        let args = Args::parse(args.as_bytes(), &Limits::default()).unwrap();
        let mut condition = Condition::exactly(args.value()).unwrap();
        condition.keep(|field, _| field == "/project");
        Question {
            call: CallId(1),
            tool: ToolId::parse("tickets.create").unwrap(),
            description_digest: Digest::sha256(b"d"),
            site: Site { line: 3, column: 1 },
            effects: Effects::default(),
            level: Level::AskRun,
            reasons: vec!["rule --ask '*'".into()],
            prompts: Vec::new(),
            allowed_so_far: 0,
            proposal: Some(Proposal {
                condition,
                uses_max: NonZeroU32::new(20).unwrap(),
                examples: vec![args.clone()],
                calls: 1,
            }),
            scopes: vec![Scope::Run],
            earlier: Vec::new(),
            outcome_of: None,
            asker: Some(Arc::new(Asker {
                run: RunId("r1".into()),
                script_name: "triage.js".into(),
                script: Digest::sha256(b"s"),
                waits_ms: 60_000,
            })),
            facts: None,
            reads: Labels::default(),
            args,
        }
    }

    /// Returns an earlier call whose outcome is unknown.
    pub(crate) fn unknown_call() -> CallRef {
        CallRef::parse("r0:3").unwrap()
    }

    fn check(said: &str, expected: Result<&str, &str>) {
        let question = asked(r#"{"project":"OPS","title":"a"}"#);
        let found = match answer(said.as_bytes(), "n0", &question, "web page") {
            Ok(Answer::Allow(terms)) => Ok(format!(
                "{} in {} where {}",
                terms.uses_max,
                terms.scope,
                terms.condition.unwrap()
            )),
            Ok(other) => Ok(format!("{other:?}")),
            Err(no) => Err(no.to_string()),
        };
        match expected {
            Ok(text) => assert_eq!(found.as_deref(), Ok(text), "{said}"),
            Err(why) => assert!(
                found.as_ref().is_err_and(|it| it.contains(why)),
                "{found:?}"
            ),
        }
    }

    #[test]
    fn answer_is_plain_or_carries_terms() {
        check(r#"{"nonce":"n0","answer":"allow-once"}"#, Ok("AllowOnce"));
        check(
            r#"{"nonce":"n0","answer":"allow-declassified"}"#,
            Ok("AllowDeclassified"),
        );
        check(r#"{"nonce":"n0","answer":"refuse"}"#, Ok("Refuse"));
        check(
            r#"{"nonce":"n0","answer":"allow","uses_max":5}"#,
            Ok("5 in run where /project = \"OPS\"; /title may be anything"),
        );
        check(
            r#"{"nonce":"n0","answer":"allow","uses_max":5,"same":["/project","/title"]}"#,
            Ok("5 in run where /project = \"OPS\", /title = \"a\""),
        );
        check(
            r#"{"nonce":"n0","answer":"allow","uses_max":5,"same":[]}"#,
            Ok("5 in run where /project, /title may be anything"),
        );
    }

    #[test]
    fn malformed_answer_is_rejected() {
        check(r#"{"nonce":"n1","answer":"allow-once"}"#, Err("nonce"));
        check(r#"{"answer":"allow-once"}"#, Err("nonce"));
        check(r#"{"nonce":"n0","answer":"yes"}"#, Err("invalid `answer`"));
        check(r#"{"nonce":"n0","answer":"allow"}"#, Err("uses_max"));
        check(
            r#"{"nonce":"n0","answer":"allow","uses_max":0}"#,
            Err("uses_max"),
        );
        check(
            r#"{"nonce":"n0","answer":"allow-once","uses_max":2}"#,
            Err("other members"),
        );
        check(
            r#"{"nonce":"n0","answer":"allow","uses_max":2,"scope":"project"}"#,
            Err("scope"),
        );
        check(
            r#"{"nonce":"n0","answer":"allow","uses_max":2,"same":["/cc"]}"#,
            Err("no field `/cc`"),
        );
        check(
            r#"{"nonce":"n0","answer":"refuse","why":"x"}"#,
            Err("unknown field"),
        );
        check(
            r#"{"nonce":"n0","nonce":"n0","answer":"refuse"}"#,
            Err("duplicate key"),
        );
        check("", Err("not JSON"));
        check("yes", Err("not JSON"));
    }

    #[test]
    fn question_about_outcome_takes_only_statements() {
        let mut question = asked(r#"{"project":"OPS"}"#);
        question.outcome_of = Some(unknown_call());
        let states = |outcome| {
            let by = by_user("web page");
            Ok(Answer::Stated { outcome, by })
        };
        let stated = |result: Option<&str>| {
            let result = result.map(str::to_owned);
            states(StatedOutcome::Happened { result })
        };
        for (said, expected) in [
            (r#"{"answer":"happened","nonce":"n0"}"#, stated(None)),
            (
                r#"{"answer":"happened","nonce":"n0","result":"{\"id\":1}"}"#,
                stated(Some(r#"{"id":1}"#)),
            ),
            (
                r#"{"answer":"did-not-happen","nonce":"n0"}"#,
                states(StatedOutcome::DidNotHappen),
            ),
            (r#"{"answer":"refuse","nonce":"n0"}"#, Ok(Answer::Refuse)),
            (
                r#"{"answer":"happened","nonce":"n0","result":"{id"}"#,
                Err("not JSON text"),
            ),
            (
                r#"{"answer":"did-not-happen","nonce":"n0","result":"1"}"#,
                Err("only `happened`"),
            ),
            (
                r#"{"answer":"allow-once","nonce":"n0"}"#,
                Err("expected happened"),
            ),
            (
                r#"{"answer":"allow","nonce":"n0","uses_max":2}"#,
                Err("only `allow`"),
            ),
        ] {
            let found = answer(said.as_bytes(), "n0", &question, "web page");
            match expected {
                Ok(expected) => assert_eq!(found, Ok(expected), "{said}"),
                Err(why) => assert!(found.unwrap_err().to_string().contains(why), "{said}"),
            }
        }
        check(
            r#"{"nonce":"n0","answer":"happened"}"#,
            Err("not what became of a call"),
        );
        check(
            r#"{"nonce":"n0","answer":"allow-once","result":"1"}"#,
            Err("other members"),
        );
    }

    #[test]
    fn chosen_condition_always_covers_the_call_itself() {
        let args = r#"{"project":"OPS","to":{"name":"a","host":"b"}}"#;
        let proposals: [&[&str]; 4] = [&[], &[""], &["/to"], &["/cc", "/to/host"]];
        for proposed in proposals {
            let mut question = asked(args);
            let free = proposed.iter().map(|it| (*it).to_owned()).collect();
            let condition = Condition::new(BTreeMap::new(), free).unwrap();
            question.proposal.as_mut().unwrap().condition = condition;
            for same in [vec![], vec!["/project"], vec!["/to/name"], vec!["/to"]] {
                let said = json!({"nonce": "n0", "answer": "allow", "uses_max": 2, "same": same});
                let said = answer(said.to_string().as_bytes(), "n0", &question, "web page");
                let Ok(Answer::Allow(Terms { condition, .. })) = said else {
                    panic!("{proposed:?} {same:?}: {said:?}")
                };
                let condition = condition.unwrap();
                let case = format!("{proposed:?} and {same:?}: {condition}");
                assert!(condition.covers(question.args.value()), "{case}");
                let mut other = question.args.value().clone();
                for field in &same {
                    *other.pointer_mut(field).unwrap() = json!("other");
                    assert!(!condition.covers(&other), "{case}");
                }
            }
        }
    }

    #[test]
    fn single_call_approval_takes_no_terms() {
        let mut question = asked(r#"{"project":"OPS"}"#);
        question.proposal = None;
        let said = br#"{"nonce":"n0","answer":"allow","uses_max":5}"#;
        assert!(matches!(
            answer(said, "n0", &question, "web page"),
            Err(BadAnswer::Unclear(_))
        ));
    }
}
