//! Asks the person at the host about a call, with an MCP elicitation. Builds the message and
//! interprets the answer. The host only transmits both and decides nothing.

use std::num::NonZeroU32;

use airlock_core::decide::{Answer, Question};
use airlock_core::grant::{Scope, Terms};
use airlock_core::level::Level;
use serde_json::{Map, Value, json};

use super::client_request::{APPROVAL_KEY, ClientRequestQueue, ELICITATION};
use super::rpc;
use crate::approver::{AnswerFuture, Approver, QuestionRow, rows};
use crate::client_bridge::ClientReply;
use crate::render::escape;

const CONDITION_CHARS_MAX: usize = 2_000;
/// Maximum length of the arguments shown, in characters. Longer arguments are cut, and the message
/// reports this.
const ARGUMENT_CHARS_MAX: usize = 4_000;
const ALLOW: &str = "allow";
const ALLOW_TOOL: &str = "allow-tool";
const ALLOW_DECLASSIFIED: &str = "allow-declassified";
const ALLOW_SESSION: &str = "allow-session";
const REFUSE: &str = "refuse";
/// Number of uses that the answer `allow-tool` grants if it contains no number.
const USES_DEFAULT: u32 = 20;
const USES_MAX: u64 = 1_000;

/// An approver that asks the person at the host.
#[derive(Debug)]
pub(super) struct HostApprover(pub(super) ClientRequestQueue);

impl Approver for HostApprover {
    fn ask(&self, question: Question) -> AnswerFuture<'_> {
        Box::pin(async move {
            let key = format!("{APPROVAL_KEY}{}", question.call.0);
            match self.0.want(key, ELICITATION, params(&question)).await {
                ClientReply::Result(result) => read(&result),
                ClientReply::Error { .. } | ClientReply::Nothing => Answer::Unanswered,
            }
        })
    }
}

fn params(question: &Question) -> Value {
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
    // A direct call is a run of its own, so only a grant of the session covers another one.
    if !each_time && question.scopes.contains(&Scope::Session) {
        let further = "Allow further calls of this tool in this session too";
        choices.push((ALLOW_SESSION, further));
    }
    choices.push((REFUSE, "Refuse"));
    let (words, names): (Vec<&str>, Vec<&str>) = choices.into_iter().unzip();
    let decision = json!({
        "type": "string",
        "title": "Decision",
        "enum": words,
        "enumNames": names,
    });
    let mut properties = json!({ "decision": decision });
    let uses = json!({
        "type": "integer",
        "title": "Number of similar calls to allow, including this one",
        "minimum": 1,
        "maximum": USES_MAX,
        "default": USES_DEFAULT,
    });
    if !each_time {
        rpc::set_member(&mut properties, "uses", uses);
    }
    json!({
        "mode": "form",
        "message": message(question),
        "requestedSchema": {
            "type": "object",
            "properties": properties,
            "required": ["decision"],
        },
    })
}

/// Builds the message with all facts that matter for the answer. Invisible characters are escaped.
fn message(question: &Question) -> String {
    let tool = question.tool.to_string();
    let mut text = format!(
        "Allow call {} of `{}`",
        question.call.0,
        escape::line(&tool)
    );
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
        (Some("accept"), Some(REFUSE)) | (Some("decline"), _) => Answer::Refuse,
        _ => Answer::Unanswered,
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
        for question in forms::questions() {
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
