//! Formats the explanation of a decision about a call, with the reasons of the journal.

use airlock_core::call::Args;
use airlock_core::facts::Facts;
use airlock_core::flow::Declassification;
use airlock_core::id::ToolId;
use airlock_core::labels::Label;
use serde::Serialize;
use serde_json::Value;

use super::escape;
use airlock_sandbox::clock::utc;

/// Maximum length of the arguments or a fact, in characters. The journal has the full text.
const CHARS_SHOWN: usize = 2_000;

/// All information about one decision.
#[derive(Debug, Serialize)]
pub struct Explanation {
    pub tool: ToolId,
    /// Which call it was and in which run, or that the call is hypothetical.
    pub of: String,
    pub args: Option<Args>,
    /// The decision and how it was reached.
    pub decision: String,
    /// The reasons exactly as in the journal.
    pub reasons: Vec<String>,
    /// Questions that the rules want a person to answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<String>,
    /// The message that the script gets about a denial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
    /// The assumptions behind the decision about a hypothetical call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assuming: Option<String>,
    /// What people had declassified in the session before the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub declassified: Vec<Declassification>,
}

/// Formats an explanation: one labelled line per item.
#[must_use]
pub fn explanation(explained: &Explanation) -> String {
    let mut text = format!(
        "{} `{}`\n",
        escape::line(&explained.of),
        escape::line(&explained.tool.to_string())
    );
    let mut say = |word: &str, said: &str| {
        let said = escape::brief(said, CHARS_SHOWN);
        text.push_str(&format!("{word:>9} {said}\n"));
    };
    if let Some(args) = &explained.args {
        say("args:", args.text());
    }
    say("decision:", &explained.decision);
    for reason in &explained.reasons {
        say("why:", reason);
    }
    for prompt in &explained.prompts {
        say("asks:", prompt);
    }
    if let Some(told) = &explained.told {
        say("told:", told);
    }
    for (name, value) in facts(explained) {
        say("fact:", &format!("{name} {value}"));
    }
    for it in &explained.declassified {
        say("session:", &declassification(it));
    }
    if let Some(assuming) = &explained.assuming {
        say("assuming:", assuming);
    }
    text
}

/// Returns who declassified what in a session.
pub(crate) fn declassification(it: &Declassification) -> String {
    let labels: Vec<&str> = it.labels.iter().map(Label::as_str).collect();
    let mut done = Vec::new();
    if !labels.is_empty() {
        done.push(format!("declassified {}", labels.join(", ")));
    }
    if it.counts {
        done.push("reset the counts".to_owned());
    }
    format!("{} {} at {}", it.by, done.join(" and "), utc(it.at_ms))
}

fn facts(explained: &Explanation) -> Vec<(String, Value)> {
    let facts = serde_json::to_value(&explained.facts).unwrap_or_default();
    let members = facts.as_object().cloned().unwrap_or_default();
    members.into_iter().collect()
}
