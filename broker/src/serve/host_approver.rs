//! Asks the person at the host about a call, with an MCP elicitation. Builds the message and
//! interprets the answer. The host only transmits both and can only refuse.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use airlock_core::decide::{Answer, Question};
use airlock_core::grant::{Scope, Terms};
use airlock_core::id::CallId;
use airlock_core::level::Level;
use airlock_core::statement::StatedOutcome;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::client_request::{APPROVAL_KEY, ClientRequestQueue, ELICITATION};
use super::rpc;
use super::session::HostSession;
use crate::approver::{AnswerFuture, Approver, QuestionRow, SettledCall, rows, similar};
use crate::client_bridge::ClientReply;
use crate::render::escape;

/// Who answers at the host, as statements and answers are recorded.
pub(super) const USER: &str = "the user of the host";
const CONDITION_CHARS_MAX: usize = 2_000;
/// Maximum length of the arguments shown, in characters. Longer arguments are cut, and the message
/// reports this.
const ARGUMENT_CHARS_MAX: usize = 4_000;
/// Maximum length of a value that a message quotes from the host's answer, in characters.
const SAID_CHARS_MAX: usize = 60;
const ALLOW: &str = "allow";
const ALLOW_TOOL: &str = "allow-tool";
const ALLOW_DECLASSIFIED: &str = "allow-declassified";
const ALLOW_SESSION: &str = "allow-session";
const REFUSE: &str = "refuse";
const HAPPENED: &str = "happened";
const DID_NOT_HAPPEN: &str = "did-not-happen";
/// Number of uses that the answer `allow-tool` grants if it contains no number.
const USES_DEFAULT: u32 = 20;
const USES_MAX: u64 = 1_000;
/// A refusal that arrives sooner was sent by the host, not by a person.
const HUMAN_REACTION_MIN: Duration = Duration::from_secs(1);

/// An approver that asks the person at the host. Some hosts declare that they can show questions, and
/// decline each one themselves. Such a question goes to the broker's approver, unless a person has
/// answered in the session.
pub(super) struct HostApprover {
    pub(super) client_requests: ClientRequestQueue,
    pub(super) session: Arc<HostSession>,
    /// The broker's approver.
    pub(super) other: Option<Arc<dyn Approver>>,
    /// Gets the calls whose questions go to the broker's approver.
    pub(super) passed_on: mpsc::UnboundedSender<CallId>,
    /// Whether the host calls a tool directly, without a script of its own.
    pub(super) is_direct: bool,
}

impl Approver for HostApprover {
    fn ask(&self, question: Question) -> AnswerFuture<'_> {
        Box::pin(async move {
            let key = format!("{APPROVAL_KEY}{}", question.call.0);
            let asked_at = Instant::now();
            let params = params(&question, self.is_direct);
            let reply = self.client_requests.want(key, ELICITATION, params).await;
            let is_late = asked_at.elapsed() >= HUMAN_REACTION_MIN;
            let is_by_person = is_filled_in(&reply) || is_late;
            if reply != ClientReply::Nothing {
                self.session.note_reply(is_by_person);
            }
            if !is_by_person && !self.session.is_attended() {
                let _ = self.passed_on.send(question.call);
                return match &self.other {
                    Some(other) => other.ask(question).await,
                    None => Answer::Unanswered,
                };
            }
            match reply {
                ClientReply::Result(result) => {
                    let words = decision_words(&question, self.is_direct);
                    read(&result, &words).unwrap_or_else(|why| Answer::Invalid { why })
                }
                ClientReply::Error { message, .. } => Answer::Invalid {
                    why: format!("the host answered the question with the error: {message}"),
                },
                ClientReply::Nothing => Answer::Unanswered,
            }
        })
    }

    fn who(&self) -> String {
        let other = self.other.as_ref().filter(|it| it.place().is_some());
        match other {
            Some(other) => format!("the host or {}", other.who()),
            None => "the host".to_owned(),
        }
    }

    fn settled(&self, call: &SettledCall<'_>) {
        if let Some(other) = &self.other {
            other.settled(call);
        }
    }
}

fn choices(question: &Question, is_direct: bool) -> Choices {
    match question.outcome_of {
        Some(_) => outcome_choices(),
        None => call_choices(question, is_direct),
    }
}

/// Returns the decisions that the form offers, for a text.
fn decision_words(question: &Question, is_direct: bool) -> String {
    let (choices, _) = choices(question, is_direct);
    let words: Vec<_> = choices
        .iter()
        .map(|(word, _)| format!("`{word}`"))
        .collect();
    match words.split_last() {
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

fn params(question: &Question, is_direct: bool) -> Value {
    let (choices, properties) = choices(question, is_direct);
    let (words, names): (Vec<&str>, Vec<&str>) = choices.into_iter().unzip();
    let decision = json!({
        "type": "string",
        "title": "Decision",
        "enum": words,
        "enumNames": names,
    });
    let mut all = json!({ "decision": decision });
    for (name, property) in properties {
        rpc::set_member(&mut all, name, property);
    }
    json!({
        "mode": "form",
        "message": message(question),
        "requestedSchema": {
            "type": "object",
            "properties": all,
            "required": ["decision"],
        },
    })
}

/// The words of the answers with their texts, and further fields of the form.
type Choices = (
    Vec<(&'static str, &'static str)>,
    Vec<(&'static str, Value)>,
);

/// Returns the answers to the question what became of an earlier call.
fn outcome_choices() -> Choices {
    let choices = vec![
        (HAPPENED, "It happened; do not make the call again"),
        (DID_NOT_HAPPEN, "It did not happen; the call may be made"),
        (REFUSE, "Not known; do not make the call"),
    ];
    let result = json!({
        "type": "string",
        "title": "The result of the call that happened, as JSON; empty if not known",
    });
    (choices, vec![("result", result)])
}

/// Returns the answers to the question whether a call is allowed.
fn call_choices(question: &Question, is_direct: bool) -> Choices {
    // If each call needs its own answer, no answer can cover further calls.
    let each_time = question.level == Level::AskCall;
    let mut choices = vec![(ALLOW, "Allow this call")];
    if !question.reads.is_empty() {
        let words = "Allow this call; its result counts as neither private nor untrusted";
        choices.push((ALLOW_DECLASSIFIED, words));
    }
    if !each_time {
        let further = "Allow similar calls of this tool in this run too";
        choices.push((ALLOW_TOOL, further));
    }
    // A direct call is a run of its own, so only a grant for the session can cover a later call.
    if !each_time && question.scopes.contains(&Scope::Session) {
        let further = match is_direct {
            true => "Allow similar calls of this tool in this session too",
            false => {
                "Allow similar calls of this tool in this session too, only from this exact script"
            }
        };
        choices.push((ALLOW_SESSION, further));
    }
    choices.push((REFUSE, "Refuse"));
    let uses = json!({
        "type": "integer",
        "title": "Only for the answers that allow similar calls: how many calls in all, with this one",
        "minimum": 1,
        "maximum": USES_MAX,
        "default": USES_DEFAULT,
    });
    let uses = (!each_time).then_some(("uses", uses));
    (choices, uses.into_iter().collect())
}

/// Builds the message, with all facts that are needed for a decision. Invisible characters are
/// escaped.
fn message(question: &Question) -> String {
    let (tool, call) = (question.tool.to_string(), question.call.0);
    let tool = escape::line(&tool);
    let line = match question.site.line {
        0 => String::new(),
        line => format!(", line {line} of the script"),
    };
    let mut text = match &question.outcome_of {
        Some(earlier) => {
            let at = earlier.to_string();
            let at = escape::line(&at);
            format!("What became of call {at}, before call {call} of `{tool}`{line}?")
        }
        None => format!("Allow `{tool}`? (call {call} of this run{line})"),
    };
    for QuestionRow {
        name, text: said, ..
    } in rows(question)
    {
        text.push_str(&format!("\n{name}: {said}"));
    }
    let pretty = serde_json::to_string_pretty(question.args.value()).unwrap_or_default();
    let shown = escape::block(&pretty);
    let chars = shown.chars().count();
    let cut: String = shown.chars().take(ARGUMENT_CHARS_MAX).collect();
    text.push_str(&format!("\nwith: {cut}"));
    if chars > ARGUMENT_CHARS_MAX {
        let more = chars - ARGUMENT_CHARS_MAX;
        text.push_str(&format!(
            "\n… AND {more} MORE CHARACTERS THAT ARE NOT SHOWN"
        ));
    }
    if let Some(proposal) = &question.proposal {
        let similar = similar(proposal, CONDITION_CHARS_MAX);
        text.push_str(&format!("\nsimilar: {similar}"));
    }
    text
}

/// Whether the reply contains a form that was filled in, also with a refusal.
fn is_filled_in(reply: &ClientReply) -> bool {
    matches!(reply, ClientReply::Result(result) if result.get("action").is_some_and(|it| it == "accept"))
}

/// Parses the person's answer. Only an explicit yes allows the call. `words` are the decisions that
/// the form offers. The error says why the answer cannot be used.
fn read(result: &Value, words: &str) -> Result<Answer, String> {
    let nothing = Map::new();
    let content = result.get("content").and_then(Value::as_object);
    let content = content.unwrap_or(&nothing);
    match result.get("action").and_then(Value::as_str) {
        Some("accept") => {}
        Some("decline") => return Ok(Answer::Refuse),
        Some("cancel") => return Err("the user closed the question without an answer".to_owned()),
        _ => {
            let action = said(result.get("action"));
            return Err(format!(
                "the host's answer has {action} as `action`; expected `accept`, `decline` or `cancel`"
            ));
        }
    }
    let decision = content.get("decision");
    Ok(match decision.and_then(Value::as_str) {
        Some(ALLOW) => Answer::AllowOnce,
        Some(ALLOW_DECLASSIFIED) => Answer::AllowDeclassified,
        Some(ALLOW_TOOL) => uses(content.get("uses"), Scope::Run)?,
        Some(ALLOW_SESSION) => uses(content.get("uses"), Scope::Session)?,
        Some(HAPPENED) => happened(content.get("result")),
        Some(DID_NOT_HAPPEN) => stated(StatedOutcome::DidNotHappen),
        Some(REFUSE) => Answer::Refuse,
        _ => {
            let decision = said(decision);
            return Err(format!(
                "the host's answer has {decision} as `decision`; expected {words}"
            ));
        }
    })
}

/// Quotes what a member of the host's answer says.
fn said(value: Option<&Value>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(value) => escape::brief(&value.to_string(), SAID_CHARS_MAX),
    }
}

/// Parses the statement that a call happened. The run asks again, with the reason, if the result is
/// not JSON or does not fit the tool.
fn happened(result: Option<&Value>) -> Answer {
    let text = match result {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.trim().to_owned(),
        // A host that converts the text of the form.
        Some(value) => value.to_string(),
    };
    let result = (!text.is_empty()).then_some(text);
    stated(StatedOutcome::Happened { result })
}

fn stated(outcome: StatedOutcome) -> Answer {
    let by = USER.to_owned();
    Answer::Stated { outcome, by }
}

/// Returns the answer to airlock's own question with this key, for a run that is suspended.
pub(super) fn stored_answer(key: &str, result: &Value) -> Option<(CallId, Answer)> {
    let call = key.strip_prefix(APPROVAL_KEY)?.parse().ok()?;
    let answer = read(result, "").ok()?;
    Some((CallId(call), answer))
}

fn uses(number: Option<&Value>, scope: Scope) -> Result<Answer, String> {
    let uses = match number {
        None | Some(Value::Null) => Some(USES_DEFAULT),
        Some(number) => number
            .as_u64()
            .filter(|uses| *uses <= USES_MAX)
            .and_then(|uses| u32::try_from(uses).ok()),
    };
    let uses_max = uses.and_then(NonZeroU32::new).ok_or_else(|| {
        let number = said(number);
        format!(
            "the host's answer has {number} as `uses`; expected a whole number from 1 to {USES_MAX}"
        )
    })?;
    Ok(Answer::Allow(Terms {
        scope,
        ..Terms::up_to(uses_max)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approver::forms;

    #[test]
    fn terminal_page_and_host_show_same_rows() {
        for question in forms::questions()
            .into_iter()
            .chain([forms::about_outcome()])
        {
            let rows = rows(&question);
            assert!(rows.len() >= 2, "{rows:?}");
            let page = json!(
                rows.iter()
                    .map(|row| json!({
                        "name": row.name, "text": row.text, "warns": row.warns,
                    }))
                    .collect::<Vec<_>>()
            );
            assert_eq!(forms::page(&question)["rows"], page);
            let lines = |form: fn(&QuestionRow) -> String| {
                rows.iter().map(form).collect::<Vec<_>>().join("\n")
            };
            let shown = forms::terminal(&question);
            let expected = lines(|row| format!("{:>7} {}", row.name, row.text));
            assert!(shown.contains(&expected), "{shown}\n---\n{expected}");
            let shown = message(&question);
            let expected = lines(|row| format!("{}: {}", row.name, row.text));
            assert!(shown.contains(&expected), "{shown}\n---\n{expected}");
        }
    }

    #[test]
    fn session_is_offered_only_if_its_grants_are_stored() {
        let [_, mut question] = forms::questions();
        let words = |question: &Question| {
            let params = params(question, false);
            params["requestedSchema"]["properties"]["decision"]["enum"].clone()
        };
        assert_eq!(words(&question), json!(["allow", "allow-tool", "refuse"]));
        question.scopes = vec![Scope::Run, Scope::Session];
        let all = json!(["allow", "allow-tool", "allow-session", "refuse"]);
        assert_eq!(words(&question), all);
        question.level = Level::AskCall;
        assert_eq!(words(&question), json!(["allow", "refuse"]));
        question.reads = airlock_core::labels::Labels::worst();
        let all = json!(["allow", "allow-declassified", "refuse"]);
        assert_eq!(words(&question), all);
    }

    #[test]
    fn host_states_what_became_of_a_call() {
        let question = forms::about_outcome();
        let form = &params(&question, false)["requestedSchema"]["properties"];
        let words = json!(["happened", "did-not-happen", "refuse"]);
        assert_eq!(form["decision"]["enum"], words);
        assert_eq!(form["result"]["type"], "string");
        assert!(message(&question).starts_with("What became of call r0:3, before call 1"));
        let happened = |result: Option<&str>| {
            let result = result.map(str::to_owned);
            stated(StatedOutcome::Happened { result })
        };
        for (content, expected) in [
            (json!({"decision": "happened"}), happened(None)),
            (
                json!({"decision": "happened", "result": " "}),
                happened(None),
            ),
            (
                json!({"decision": "happened", "result": "[1]"}),
                happened(Some("[1]")),
            ),
            // The run refuses this result, and asks again.
            (
                json!({"decision": "happened", "result": "[1"}),
                happened(Some("[1")),
            ),
            (
                json!({"decision": "happened", "result": [1]}),
                happened(Some("[1]")),
            ),
            (
                json!({"decision": "did-not-happen"}),
                stated(StatedOutcome::DidNotHappen),
            ),
        ] {
            check(
                &json!({"action": "accept", "content": content}),
                Ok(expected),
            );
        }
    }

    #[track_caller]
    fn check(result: &Value, expected: Result<Answer, &str>) {
        match (read(result, "`allow` or `refuse`"), expected) {
            (Ok(answer), Ok(expected)) => assert_eq!(answer, expected, "{result}"),
            (Err(why), Err(part)) => assert!(why.contains(part), "{result}: {why}"),
            (found, _) => panic!("{result}: {found:?}"),
        }
    }

    #[test]
    fn only_explicit_yes_allows_and_error_says_why() {
        let tool = |uses| Ok(Answer::up_to(NonZeroU32::new(uses).unwrap()));
        let accept = |content: Value| json!({"action": "accept", "content": content});
        let expected = "expected `allow` or `refuse`";
        for (result, expected) in [
            (accept(json!({"decision": "allow"})), Ok(Answer::AllowOnce)),
            (accept(json!({"decision": "allow-tool"})), tool(20)),
            (
                accept(json!({"decision": "allow-tool", "uses": 3})),
                tool(3),
            ),
            (
                accept(json!({"decision": "allow-session", "uses": 3})),
                Ok(Answer::Allow(Terms {
                    scope: Scope::Session,
                    ..Terms::up_to(NonZeroU32::new(3).unwrap())
                })),
            ),
            (
                accept(json!({"decision": "allow-declassified"})),
                Ok(Answer::AllowDeclassified),
            ),
            (accept(json!({"decision": "refuse"})), Ok(Answer::Refuse)),
            (json!({"action": "decline"}), Ok(Answer::Refuse)),
            (
                json!({"action": "decline", "content": {"decision": "allow"}}),
                Ok(Answer::Refuse),
            ),
            (json!({"action": "cancel"}), Err("the user closed")),
            (accept(json!({})), Err("has nothing as `decision`")),
            (accept(json!({})), Err(expected)),
            (
                accept(json!({"decision": "Allow"})),
                Err("has \"Allow\" as"),
            ),
            (accept(json!({"decision": "Allow"})), Err(expected)),
            (accept(json!({"decision": true})), Err("has true as")),
            (
                accept(json!({"decision": "allow-tool", "uses": 0})),
                Err("has 0 as `uses`; expected a whole number from 1 to 1000"),
            ),
            (
                accept(json!({"decision": "allow-tool", "uses": 1e9})),
                Err("as `uses`"),
            ),
            (
                accept(json!({"decision": "allow-tool", "uses": "all"})),
                Err("has \"all\" as `uses`"),
            ),
            (
                json!({"content": {"decision": "allow"}}),
                Err("has nothing as `action`"),
            ),
            (json!([]), Err("has nothing as `action`")),
        ] {
            check(&result, expected);
        }
    }

    #[test]
    fn form_says_what_each_answer_covers() {
        let [mut question, _] = forms::questions();
        question.scopes = vec![Scope::Run, Scope::Session];
        question.level = Level::AskRun;
        let form = |is_direct| params(&question, is_direct).to_string();
        let of_script = form(false);
        for part in [
            "Allow `",
            "(call 1 of this run",
            "in this session too, only from this exact script",
            "Only for the answers that allow similar calls",
        ] {
            assert!(of_script.contains(part), "{part}: {of_script}");
        }
        assert!(!form(true).contains("exact script"), "{}", form(true));
    }
}
