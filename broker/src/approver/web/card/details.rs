//! Formats what airlock knows about a call besides the arguments: the tool, the destination, the
//! data that the run has read, and the reason for asking. Each row has a name and a text. Warnings
//! come first.

use airlock_core::decide::Question;
use airlock_core::facts::Facts;
use serde_json::{Value, json};

use crate::render::escape;

struct Row {
    name: &'static str,
    text: String,
    warns: bool,
}

pub(super) fn rows(question: &Question) -> Vec<Value> {
    let mut rows = Vec::new();
    if let Some(facts) = question.facts.as_deref() {
        of_facts(facts, &mut rows);
    } else {
        say(
            &mut rows,
            "knows",
            "no labels and no policies are configured, so airlock does not know what the run has read or where the data goes",
        );
    }
    of_tool(question, &mut rows);
    let reasons = question.reasons.iter();
    rows.extend(reasons.map(|reason| Row {
        name: "asked because",
        text: escape::line(reason).into_owned(),
        warns: false,
    }));
    rows.sort_by_key(|row| !row.warns);
    let shown = rows.iter();
    shown
        .map(|row| json!({"name": row.name, "text": row.text, "warns": row.warns}))
        .collect()
}

fn of_facts(facts: &Facts, rows: &mut Vec<Row>) {
    let places = [&facts.dest_hosts, &facts.dest_addresses];
    let places = list(places.into_iter().flatten().flatten());
    match (facts.dest_explained, places.is_empty()) {
        (Some(true), false) => say(
            rows,
            "goes to",
            format!("{places}: named by your configuration, your script or a trusted result"),
        ),
        (Some(true), true) => say(rows, "goes to", "always the same place"),
        (_, false) => warn(
            rows,
            "goes to",
            format!("{places}: not named by your configuration, your script or a trusted result"),
        ),
        (Some(false), true) => warn(
            rows,
            "goes to",
            "unclear: the destination may be misread, or depends on how the tool reads it",
        ),
        (None, true) if facts.writes.external || facts.writes.state => warn(
            rows,
            "goes to",
            "unknown: no label says which argument is the destination",
        ),
        (None, true) => {}
    }
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
        say(rows, "run has read", "no labelled data");
    } else {
        let both = facts.labels.is_untrusted() && facts.labels.is_private();
        let text = match both {
            true => format!("{labels}: untrusted and private data together"),
            false => labels,
        };
        let row = if both { warn } else { say };
        row(rows, "run has read", text);
    }
    if !facts.script_trusted {
        let text = "the session had read untrusted data before the script was written";
        warn(rows, "script", text);
    }
    if let Some(roots) = &facts.path_roots {
        let outside = roots.contains(airlock_core::facts::OUTSIDE);
        let row = if outside { warn } else { say };
        row(rows, "paths lie in", list(roots.iter()));
    }
    if facts.pinned == Some(false) {
        let text = "the tool's description differs from the accepted one in the lock file";
        warn(rows, "tool", text);
    }
}

fn of_tool(question: &Question, rows: &mut Vec<Row>) {
    let effects = question.effects;
    if effects.read_only == Some(true) {
        say(rows, "tool", "your configuration marks it as read-only");
    } else if effects.claims_destructive == Some(true) {
        warn(rows, "tool", "the server marks it as destructive");
    } else if effects.claims_read_only == Some(true) {
        say(rows, "tool", "the server claims that it is read-only");
    }
    let text = match question.allowed_so_far {
        0 => "no call of this tool was allowed in this run".to_owned(),
        1 => "1 call of this tool was allowed in this run".to_owned(),
        count => format!("{count} calls of this tool were allowed in this run"),
    };
    say(rows, "so far", text);
}

fn say(rows: &mut Vec<Row>, name: &'static str, text: impl Into<String>) {
    let (text, warns) = (text.into(), false);
    rows.push(Row { name, text, warns });
}

fn warn(rows: &mut Vec<Row>, name: &'static str, text: impl Into<String>) {
    let (text, warns) = (text.into(), true);
    rows.push(Row { name, text, warns });
}

fn list<'a>(words: impl Iterator<Item = &'a String>) -> String {
    let words: Vec<_> = words.map(|word| escape::brief(word, 200)).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use airlock_core::labels::Labels;

    use super::*;
    use crate::approver::wire::tests::asked;

    #[test]
    fn warnings_come_first_and_cannot_be_hidden() {
        let mut question = asked(r#"{"to":"x"}"#);
        question.facts = Some(std::sync::Arc::new(Facts {
            labels: Labels::worst(),
            dest_addresses: Some(["eve\u{202e}@evil.example".to_owned()].into()),
            dest_explained: Some(false),
            ..Facts::default()
        }));
        question.reasons = vec!["rule \u{1b}[2J".into()];
        let rows = rows(&question);
        let warns: Vec<bool> = rows.iter().map(|row| row["warns"] == true).collect();
        assert!(warns[0] && warns.is_sorted_by(|a, b| a >= b), "{warns:?}");
        let text = json!(rows).to_string();
        assert!(
            text.contains("not named by your configuration, your script or a trusted result"),
            "{text}"
        );
        assert!(text.contains("untrusted and private data"), "{text}");
        assert!(!text.contains(['\u{202e}', '\u{1b}']), "{text}");
        question.facts = None;
        let text = json!(super::rows(&question)).to_string();
        assert!(text.contains("does not know what the run has read"));
    }
}
