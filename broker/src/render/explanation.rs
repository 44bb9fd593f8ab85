//! Why a call was decided as it was, in the words of its journal.

use airlock_core::call::Args;
use airlock_core::facts::Facts;
use airlock_core::id::ToolId;
use serde::Serialize;
use serde_json::Value;

use super::escape;

/// Of an argument or a fact; the journal has the rest.
const CHARS_SHOWN: usize = 2_000;

/// All that there is to say about one decision.
#[derive(Debug, Serialize)]
pub struct Explanation {
    pub tool: ToolId,
    /// Which call it was, where it was made.
    pub of: String,
    pub args: Option<Args>,
    /// What it came to, and how.
    pub decision: String,
    /// Exactly as the journal has them.
    pub reasons: Vec<String>,
    /// What a human is asked, where the rules say so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<String>,
    /// What the script hears of a denial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
    /// What a decision that was not made rests on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assuming: Option<&'static str>,
}

/// One line for each thing, under a word that says what it is.
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
    if let Some(assuming) = explained.assuming {
        say("assuming:", assuming);
    }
    text
}

fn facts(explained: &Explanation) -> Vec<(String, Value)> {
    let facts = serde_json::to_value(&explained.facts).unwrap_or_default();
    let members = facts.as_object().cloned().unwrap_or_default();
    members.into_iter().collect()
}
