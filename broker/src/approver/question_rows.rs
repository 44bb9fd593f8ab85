//! Builds the rows that tell a person about a call in addition to its arguments: what the rules
//! ask, the destination, the data that the run has read, the tool, and the reasons. The terminal,
//! the page and the host show the same rows in the same order. All texts are escaped.

use std::collections::BTreeSet;

use airlock_core::call::EarlierCall;
use airlock_core::decide::Question;
use airlock_core::facts::Facts;
use airlock_core::id::CallRef;

use crate::render::escape;

/// Name of the rows with the questions that rules ask.
pub(crate) const ASKS: &str = "asks";
/// Maximum number of rows about fields that repeat earlier results.
const SHARES_SHOWN: usize = 8;
const WORD_CHARS_MAX: usize = 200;
/// Maximum length of the arguments of an earlier call.
const ARGS_CHARS_MAX: usize = 1_000;

/// One row: a name of at most seven letters, and a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QuestionRow {
    pub(crate) name: &'static str,
    pub(crate) text: String,
    pub(crate) warns: bool,
}

/// Returns the questions of rules, then the warnings, then everything else.
pub(crate) fn rows(question: &Question) -> Vec<QuestionRow> {
    let mut rows = Vec::new();
    for prompt in &question.prompts {
        warn(&mut rows, ASKS, escape::line(prompt));
    }
    if let Some(earlier) = &question.outcome_of {
        warn(&mut rows, "unknown", unknown_outcome(earlier));
    }
    for earlier in &question.earlier {
        warn(&mut rows, "earlier", of_earlier(earlier));
    }
    // Without labels and policies, airlock computes no facts, so there is nothing to say.
    if let Some(facts) = question.facts.as_deref() {
        of_facts(facts, &mut rows);
    }
    if !question.reads.is_empty() {
        let labels = list(question.reads.to_texts().iter());
        say(
            &mut rows,
            "returns",
            format!("data with the labels {labels}"),
        );
    }
    of_tool(question, &mut rows);
    for reason in &question.reasons {
        say(&mut rows, "why", escape::line(reason));
    }
    rows.sort_by_key(|row| !row.warns);
    rows
}

fn unknown_outcome(earlier: &CallRef) -> String {
    let at = earlier.to_string();
    format!(
        "call {} had these arguments, and may have had its effect. Look it up, and state what became \
         of it; until then, the call is not made again",
        escape::brief(&at, WORD_CHARS_MAX)
    )
}

fn of_facts(facts: &Facts, rows: &mut Vec<QuestionRow>) {
    destinations(facts, rows);
    match (facts.writes.external, facts.writes.state) {
        (true, true) => say(rows, "does", "sends data to others, or changes something"),
        (true, false) => say(rows, "does", "sends data to others"),
        (false, true) => say(rows, "does", "changes something"),
        (false, false) => say(
            rows,
            "does",
            "changes nothing, and sends data to nobody else",
        ),
    }
    let labels = list(facts.labels.to_texts().iter());
    if facts.labels.is_empty() {
        say(rows, "read", "the run has read no labelled data");
    } else {
        let both = facts.labels.is_untrusted() && facts.labels.is_private();
        let read = format!("the run has read data with the labels {labels}");
        match both {
            true => warn(rows, "read", read + ": untrusted and private data together"),
            false => say(rows, "read", read),
        }
    }
    if !facts.script_trusted {
        let text = "the session had read untrusted data before the script was written";
        warn(rows, "script", text);
    }
    if let Some(roots) = &facts.path_roots {
        let outside = roots.contains(airlock_core::facts::OUTSIDE);
        let text = format!("lie in {}", list(roots.iter()));
        match outside {
            true => warn(rows, "paths", text),
            false => say(rows, "paths", text),
        }
    }
    for share in facts.shares.iter().take(SHARES_SHOWN) {
        let field = escape::brief(&share.field, WORD_CHARS_MAX);
        let text = format!("{field} repeats what call {} returned", share.call.0);
        warn(rows, "from", text);
    }
    if facts.pinned == Some(false) {
        let text = "the tool's description differs from the accepted one in the lock file";
        warn(rows, "tool", text);
    }
}

fn destinations(facts: &Facts, rows: &mut Vec<QuestionRow>) {
    let places = [&facts.dest_hosts, &facts.dest_addresses];
    let places = list(places.into_iter().flatten().flatten());
    match (facts.dest_explained, places.is_empty()) {
        (Some(true), false) => say(
            rows,
            "to",
            format!("{places}: named by your configuration, your script or a trusted result"),
        ),
        (Some(true), true) => say(
            rows,
            "to",
            "named by your configuration, your script or a trusted result, or always the same",
        ),
        (_, false) => warn(
            rows,
            "to",
            format!("{places}: not named by your configuration, your script or a trusted result"),
        ),
        (Some(false), true) => warn(
            rows,
            "to",
            "unclear: the destination may be misread, or depends on how the tool reads it",
        ),
        (None, true) if facts.writes.external => warn(
            rows,
            "to",
            "unknown: no label says which argument is the destination",
        ),
        (None, true) if facts.writes.state => {
            say(
                rows,
                "to",
                "no other person or system: by the labels, this call shows the data to no one else",
            );
        }
        (None, true) => {}
    }
    let mut fields = |fields: &BTreeSet<String>, what: &str| {
        if !fields.is_empty() {
            warn(rows, "to", format!("{}{what}", list(fields.iter())));
        }
    };
    let unexplained = ": no trusted data contains the value";
    fields(&facts.dest_unexplained, unexplained);
    let lookalikes = " may be misread: unusual characters, mixed alphabets, or encoding that a \
                      server may change";
    fields(&facts.lookalikes, lookalikes);
}

/// Describes a call of an earlier run that a doubtful call may repeat.
fn of_earlier(earlier: &EarlierCall) -> String {
    let outcome = match earlier.is_unknown {
        true => "may have happened",
        false => "happened",
    };
    let args = earlier.args.as_ref();
    let args = args.map_or_else(String::new, |args| {
        escape::brief(args.text(), ARGS_CHARS_MAX)
    });
    let at = escape::brief(&earlier.at.to_string(), WORD_CHARS_MAX);
    format!("call {at} {outcome}, with {args}")
}

fn of_tool(question: &Question, rows: &mut Vec<QuestionRow>) {
    let effects = question.effects;
    if effects.read_only == Some(true) {
        say(rows, "tool", "your configuration marks it as read-only");
    } else if effects.claims_destructive == Some(true) {
        warn(rows, "tool", "the server marks it as destructive");
    } else if effects.claims_read_only == Some(true) {
        say(rows, "tool", "the server claims that it is read-only");
    }
    let text = match question.allowed_so_far {
        0 => "this would be the first call of this tool in this run".to_owned(),
        1 => "1 call of this tool was allowed in this run".to_owned(),
        count => format!("{count} calls of this tool were allowed in this run"),
    };
    say(rows, "so far", text);
}

fn say(rows: &mut Vec<QuestionRow>, name: &'static str, text: impl Into<String>) {
    let (text, warns) = (text.into(), false);
    rows.push(QuestionRow { name, text, warns });
}

fn warn(rows: &mut Vec<QuestionRow>, name: &'static str, text: impl Into<String>) {
    let (text, warns) = (text.into(), true);
    rows.push(QuestionRow { name, text, warns });
}

fn list<'a>(words: impl Iterator<Item = &'a String>) -> String {
    let words: Vec<_> = words
        .map(|word| escape::brief(word, WORD_CHARS_MAX))
        .collect();
    words.join(", ")
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use airlock_core::facts::RepeatedText;
    use airlock_core::id::CallId;
    use airlock_core::labels::Labels;

    use super::*;
    use crate::approver::wire::tests::asked;

    /// Returns a question with a row of almost every kind. Its texts contain invisible characters.
    pub(crate) fn hostile() -> Question {
        let mut question = asked(r#"{"to":"x","body":"y"}"#);
        question.facts = Some(Arc::new(Facts {
            labels: Labels::worst(),
            dest_addresses: Some(["eve\u{202e}@evil.example".to_owned()].into()),
            dest_explained: Some(false),
            dest_unexplained: ["/to".to_owned()].into(),
            lookalikes: ["/to".to_owned()].into(),
            path_roots: Some(["outside".to_owned()].into()),
            shares: vec![RepeatedText {
                field: "/body".into(),
                call: CallId(2),
                pieces: 9,
            }],
            ..Facts::default()
        }));
        question.reasons = vec!["rule \u{1b}[2J".into(), "rule `other`".into()];
        question.prompts = vec!["May this\u{202e} leave?".into()];
        question.effects.claims_destructive = Some(true);
        question.reads = Labels::worst();
        question
    }

    #[test]
    fn questions_and_warnings_come_first_and_are_escaped() {
        let question = hostile();
        let found = rows(&question);
        assert_eq!(found[0].name, ASKS);
        assert!(found.is_sorted_by(|a, b| a.warns >= b.warns), "{found:?}");
        let all: Vec<String> = found
            .iter()
            .map(|row| format!("{} {}", row.name, row.text))
            .collect();
        let all = all.join("\n");
        for part in [
            "not named by your configuration, your script or a trusted result",
            "read the run has read data with the labels private, untrusted: untrusted and private",
            "to /to: no trusted data contains the value",
            "to /to may be misread: unusual characters, mixed alphabets, or encoding that a \
             server may change",
            "from /body repeats what call 2 returned",
            "paths lie in outside",
            "returns data with the labels private, untrusted",
            "tool the server marks it as destructive",
            "why rule `other`",
        ] {
            assert!(all.contains(part), "{part}: {all}");
        }
        assert!(!all.contains(['\u{202e}', '\u{1b}']), "{all}");
    }

    #[test]
    fn question_without_facts_says_nothing_about_data() {
        let question = asked("{}");
        assert_eq!(question.facts, None);
        let names: Vec<_> = rows(&question).iter().map(|row| row.name).collect();
        assert_eq!(names, ["so far", "why"]);
    }
}
