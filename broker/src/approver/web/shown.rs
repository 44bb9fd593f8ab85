//! A question as the page shows it: every text is made safe here, line by line,
//! and what decides comes first. The page itself only puts texts into boxes.

use std::collections::BTreeSet;

use airlock_core::decide::Question;
use airlock_core::facts::Facts;
use codegen::canonical;
use serde_json::{Value, json};

use crate::render::escape;

/// Of one line; a longer one goes on in the next box.
const LINE_CHARS_MAX: usize = 4_000;
const EXAMPLE_CHARS_MAX: usize = 400;

pub(super) fn open(id: u64, question: &Question, nonce: &str) -> Value {
    let proposal = question.proposal.as_ref().map(|proposal| {
        let examples = proposal.examples.iter();
        let same = proposal.condition.same().keys().collect::<Vec<_>>();
        json!({
            "uses_max": proposal.uses_max,
            "same": same,
            "calls": proposal.calls,
            "examples": examples
                .map(|args| escape::brief(args.text(), EXAMPLE_CHARS_MAX))
                .collect::<Vec<_>>(),
        })
    });
    json!({
        "id": id,
        "nonce": nonce,
        "state": "open",
        "call": question.call.0,
        "tool": escape::line(&question.tool.to_string()),
        "line": question.site.line,
        "reasons": lines_of(&question.reasons),
        "prompts": lines_of(&question.prompts),
        "notes": notes(question),
        "labels": question.facts.as_ref().map(|facts| facts.labels.to_texts()),
        "fields": fields(question),
        "digest": question.args.digest(),
        "proposal": proposal,
        "scopes": question.scopes,
    })
}

/// Without its arguments: there is nothing to decide any more.
pub(super) fn over(id: u64, question: &Question, word: &str) -> Value {
    json!({
        "id": id,
        "state": word,
        "call": question.call.0,
        "tool": escape::line(&question.tool.to_string()),
    })
}

fn lines_of(texts: &[String]) -> Vec<String> {
    texts
        .iter()
        .map(|text| escape::line(text).into_owned())
        .collect()
}

fn notes(question: &Question) -> Vec<String> {
    let effects = question.effects;
    let mut notes = Vec::new();
    if effects.read_only == Some(true) {
        notes.push("your configuration says that it only reads".to_owned());
    } else if effects.claims_destructive == Some(true) {
        notes.push("the server says that it is destructive".to_owned());
    } else if effects.claims_read_only == Some(true) {
        notes.push("the server claims that it only reads".to_owned());
    }
    if question.allowed_so_far > 0 {
        let count = question.allowed_so_far;
        notes.push(format!(
            "{count} calls of this tool were allowed in this run"
        ));
    }
    notes
}

/// Top-level members of the arguments, those first that say where something goes.
fn fields(question: &Question) -> Vec<Value> {
    let Some(members) = question.args.value().as_object() else {
        return Vec::new();
    };
    let facts = question.facts.as_deref();
    let mut fields: Vec<(bool, usize, Value)> = members
        .iter()
        .map(|(name, value)| {
            let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
            let marks = facts
                .map(|facts| marks(facts, &pointer))
                .unwrap_or_default();
            let bytes = canonical::canonical(value).len();
            let field = json!({
                "name": escape::line(name),
                "pointer": pointer,
                "lines": lines(value),
                "bytes": bytes,
                "digest": canonical::digest(value),
                "marks": marks,
            });
            (marks.is_empty(), bytes, field)
        })
        .collect();
    fields.sort_by_key(|(plain, bytes, _)| (*plain, *bytes));
    fields.into_iter().map(|(_, _, field)| field).collect()
}

/// What the broker knows of a field and what is in it.
fn marks(facts: &Facts, field: &str) -> Vec<String> {
    let is_at = |other: &str| {
        other
            .strip_prefix(field)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let any = |fields: &BTreeSet<String>| fields.iter().any(|it| is_at(it));
    let mut marks = Vec::new();
    if any(&facts.dest_unexplained) {
        marks.push("says where it goes, and nothing trusted explains it".to_owned());
    }
    if any(&facts.lookalikes) {
        marks.push("may be read as something else than it is".to_owned());
    }
    for share in facts.shares.iter().filter(|share| is_at(&share.field)) {
        let (call, pieces) = (share.call.0, share.pieces);
        marks.push(format!(
            "repeats what call {call} returned ({pieces} pieces)"
        ));
    }
    if facts.unmodelled.as_ref().is_some_and(any) {
        marks.push("no policy looked at it".to_owned());
    }
    marks
}

/// A text as its lines, anything else as JSON; nothing in them can hide or reorder.
fn lines(value: &Value) -> Vec<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    };
    let mut shown = Vec::new();
    for line in text.split('\n') {
        let line = escape::line(line);
        let chars: Vec<char> = line.chars().collect();
        if chars.is_empty() {
            shown.push(String::new());
        }
        let pieces = chars.chunks(LINE_CHARS_MAX);
        shown.extend(pieces.map(|piece| piece.iter().collect::<String>()));
    }
    shown
}
