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
use crate::approver::{AnswerFuture, Approver, QuestionRow, SettledCall, rows};
use crate::client_bridge::ClientReply;
use crate::render::escape;

/// Who answers at the host, as statements and answers are recorded.
pub(super) const USER: &str = "the user of the host";
const CONDITION_CHARS_MAX: usize = 2_000;
/// Maximum length of the arguments shown, in characters. Longer arguments are cut, and the message
/// reports this.
const ARGUMENT_CHARS_MAX: usize = 4_000;
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
}

impl Approver for HostApprover {
    fn ask(&self, question: Question) -> AnswerFuture<'_> {
        Box::pin(async move {
            let key = format!("{APPROVAL_KEY}{}", question.call.0);
            let asked_at = Instant::now();
            let params = params(&question);
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
                ClientReply::Result(result) => read(&result),
                ClientReply::Error { .. } | ClientReply::Nothing => Answer::Unanswered,
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

fn params(question: &Question) -> Value {
    let (choices, properties) = match question.outcome_of {
        Some(_) => outcome_choices(),
        None => call_choices(question),
    };
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
fn call_choices(question: &Question) -> Choices {
    // If each call needs its own answer, no answer can cover further calls.
    let each_time = question.level == Level::AskCall;
    let mut choices = vec![(ALLOW, "Allow this call")];
    if !question.reads.is_empty() {
        let words = "Allow this call; its result counts as neither private nor untrusted";
        choices.push((ALLOW_DECLASSIFIED, words));
    }
    if !each_time {
        let further = "Allow further calls of this tool in this run too";
        choices.push((ALLOW_TOOL, further));
    }
    // A direct call is a run of its own, so only a grant for the session can cover a later call.
    if !each_time && question.scopes.contains(&Scope::Session) {
        let further = "Allow further calls of this tool in this session too";
        choices.push((ALLOW_SESSION, further));
    }
    choices.push((REFUSE, "Refuse"));
    let uses = json!({
        "type": "integer",
        "title": "Number of similar calls to allow, including this one",
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
    let tool = question.tool.to_string();
    let call = format!("call {} of `{}`", question.call.0, escape::line(&tool));
    let mut text = match &question.outcome_of {
        Some(earlier) => {
            let at = earlier.to_string();
            format!("What became of call {}, before {call}", escape::line(&at))
        }
        None => format!("Allow {call}"),
    };
    if question.site.line > 0 {
        text.push_str(&format!(", line {} of the script", question.site.line));
    }
    text.push('?');
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
        let condition = proposal.condition.to_string();
        let condition = escape::brief(&condition, CONDITION_CHARS_MAX);
        text.push_str(&format!("\nsimilar calls: those where {condition}"));
    }
    text
}

/// Whether the reply contains a form that was filled in, also with a refusal.
fn is_filled_in(reply: &ClientReply) -> bool {
    matches!(reply, ClientReply::Result(result) if result.get("action").is_some_and(|it| it == "accept"))
}

/// Parses the person's answer. Only an explicit yes allows the call.
fn read(result: &Value) -> Answer {
    let nothing = Map::new();
    let content = result.get("content").and_then(Value::as_object);
    let content = content.unwrap_or(&nothing);
    let decision = content.get("decision").and_then(Value::as_str);
    match (result.get("action").and_then(Value::as_str), decision) {
        (Some("accept"), Some(ALLOW)) => Answer::AllowOnce,
        (Some("accept"), Some(ALLOW_DECLASSIFIED)) => Answer::AllowDeclassified,
        (Some("accept"), Some(ALLOW_TOOL)) => uses(content.get("uses"), Scope::Run),
        (Some("accept"), Some(ALLOW_SESSION)) => uses(content.get("uses"), Scope::Session),
        (Some("accept"), Some(HAPPENED)) => happened(content.get("result")),
        (Some("accept"), Some(DID_NOT_HAPPEN)) => stated(StatedOutcome::DidNotHappen),
        (Some("accept"), Some(REFUSE)) | (Some("decline"), _) => Answer::Refuse,
        _ => Answer::Unanswered,
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
    match read(result) {
        Answer::Unanswered | Answer::Invalid { .. } => None,
        answer => Some((CallId(call), answer)),
    }
}

fn uses(said: Option<&Value>, scope: Scope) -> Answer {
    let uses = match said {
        None | Some(Value::Null) => Some(USES_DEFAULT),
        Some(said) => said
            .as_u64()
            .filter(|uses| *uses <= USES_MAX)
            .and_then(|uses| u32::try_from(uses).ok()),
    };
    let uses = uses.and_then(NonZeroU32::new);
    uses.map_or(Answer::Unanswered, |uses_max| {
        Answer::Allow(Terms {
            scope,
            ..Terms::up_to(uses_max)
        })
    })
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
            assert!(rows.len() >= 3, "{rows:?}");
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
            let params = params(question);
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
        let form = &params(&question)["requestedSchema"]["properties"];
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
            let result = json!({"action": "accept", "content": content});
            assert_eq!(read(&result), expected, "{result}");
        }
    }

    #[test]
    fn only_explicit_yes_allows() {
        let tool = |uses| Answer::up_to(NonZeroU32::new(uses).unwrap());
        let accept = |content: Value| json!({"action": "accept", "content": content});
        for (result, expected) in [
            (accept(json!({"decision": "allow"})), Answer::AllowOnce),
            (accept(json!({"decision": "allow-tool"})), tool(20)),
            (
                accept(json!({"decision": "allow-tool", "uses": 3})),
                tool(3),
            ),
            (
                accept(json!({"decision": "allow-session", "uses": 3})),
                Answer::Allow(Terms {
                    scope: Scope::Session,
                    ..Terms::up_to(NonZeroU32::new(3).unwrap())
                }),
            ),
            (
                accept(json!({"decision": "allow-declassified"})),
                Answer::AllowDeclassified,
            ),
            (accept(json!({"decision": "refuse"})), Answer::Refuse),
            (json!({"action": "decline"}), Answer::Refuse),
            (json!({"action": "cancel"}), Answer::Unanswered),
            (accept(json!({})), Answer::Unanswered),
            (accept(json!({"decision": "Allow"})), Answer::Unanswered),
            (accept(json!({"decision": true})), Answer::Unanswered),
            (
                json!({"action": "decline", "content": {"decision": "allow"}}),
                Answer::Refuse,
            ),
            (
                accept(json!({"decision": "allow-tool", "uses": 0})),
                Answer::Unanswered,
            ),
            (
                accept(json!({"decision": "allow-tool", "uses": 1e9})),
                Answer::Unanswered,
            ),
            (
                accept(json!({"decision": "allow-tool", "uses": "all"})),
                Answer::Unanswered,
            ),
            (
                json!({"content": {"decision": "allow"}}),
                Answer::Unanswered,
            ),
            (json!([]), Answer::Unanswered),
        ] {
            assert_eq!(read(&result), expected, "{result}");
        }
    }
}
