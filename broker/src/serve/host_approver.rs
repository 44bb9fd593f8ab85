//! Asks the person at the host about a call, with an MCP elicitation. Builds the message and
//! interprets the answer. The host only transmits both and decides nothing.

use std::num::NonZeroU32;

use airlock_core::decide::{Answer, Question};
use airlock_core::level::Level;
use serde_json::{Map, Value, json};

use super::client_request::{APPROVAL_KEY, ClientRequestQueue, ELICITATION};
use super::rpc;
use crate::approver::{AnswerFuture, Approver};
use crate::client_bridge::ClientReply;
use crate::render::escape;

const CONDITION_CHARS_MAX: usize = 2_000;
/// Maximum length of the arguments shown, in characters. Longer arguments are cut, and the message
/// reports this.
const ARGUMENT_CHARS_MAX: usize = 4_000;
const ALLOW: &str = "allow";
const ALLOW_TOOL: &str = "allow-tool";
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
    let (words, names) = if each_time {
        (vec![ALLOW, REFUSE], vec!["Allow this call", "Refuse"])
    } else {
        let further = "Allow further calls of this tool in this run too";
        (
            vec![ALLOW, ALLOW_TOOL, REFUSE],
            vec!["Allow this call", further, "Refuse"],
        )
    };
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
    for reason in &question.reasons {
        text.push_str(&format!("\nwhy: {}", escape::line(reason)));
    }
    if let Some(claims) = claims(question) {
        text.push_str(&format!("\nnote: {claims}"));
    }
    if question.allowed_so_far > 0 {
        let so_far = question.allowed_so_far;
        text.push_str(&format!(
            "\nso far: {so_far} calls of this tool were allowed in this run"
        ));
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

fn claims(question: &Question) -> Option<&'static str> {
    let effects = question.effects;
    match (
        effects.read_only,
        effects.claims_destructive,
        effects.claims_read_only,
    ) {
        (Some(true), ..) => Some("the configuration declares this tool read-only"),
        (_, Some(true), _) => Some("the server declares this tool destructive"),
        (.., Some(true)) => Some("the server claims that this tool is read-only"),
        _ => None,
    }
}

/// Parses the person's answer. Only an explicit yes allows the call.
fn read(result: &Value) -> Answer {
    let nothing = Map::new();
    let content = result.get("content").and_then(Value::as_object);
    let content = content.unwrap_or(&nothing);
    let decision = content.get("decision").and_then(Value::as_str);
    match (result.get("action").and_then(Value::as_str), decision) {
        (Some("accept"), Some(ALLOW)) => Answer::AllowOnce,
        (Some("accept"), Some(ALLOW_TOOL)) => uses(content.get("uses")),
        (Some("accept"), Some(REFUSE)) | (Some("decline"), _) => Answer::Refuse,
        _ => Answer::Unanswered,
    }
}

fn uses(said: Option<&Value>) -> Answer {
    let uses = match said {
        None | Some(Value::Null) => Some(USES_DEFAULT),
        Some(said) => said
            .as_u64()
            .filter(|uses| *uses <= USES_MAX)
            .and_then(|uses| u32::try_from(uses).ok()),
    };
    uses.and_then(NonZeroU32::new)
        .map_or(Answer::Unanswered, Answer::up_to)
}

#[cfg(test)]
mod tests {
    use super::*;

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
