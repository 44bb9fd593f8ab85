//! Formats a question as JSON for the page, which only displays it. This module escapes the texts
//! line by line, and puts the most important ones first.

mod lookalikes;
mod proposal;

use std::collections::BTreeSet;

use airlock_core::decide::{Asker, Question};
use airlock_core::facts::Facts;
use airlock_core::grant::Scope;
use codegen::canonical;
use serde_json::{Value, json};

use crate::approver::question_rows::{QuestionRow, rows};
use crate::render::escape;

/// Maximum length of a line, in characters. The rest continues on marked lines below.
const LINE_CHARS_MAX: usize = 200;
const NAME_CHARS_MAX: usize = 200;

/// Formats an open question. `is_suspended`: its run was suspended, and has no time limit.
pub(super) fn open(
    id: u64,
    question: &Question,
    nonce: &str,
    remaining_ms: Option<u64>,
    is_suspended: bool,
) -> Value {
    let tool = &question.tool;
    json!({
        "id": id,
        "nonce": nonce,
        "state": "open",
        "call": question.call.0,
        "tool": escape::brief(&tool.to_string(), NAME_CHARS_MAX),
        "server": escape::brief(&tool.server.0, NAME_CHARS_MAX),
        "line": question.site.line,
        "asker": question.asker.as_deref().map(asker),
        "remaining_ms": remaining_ms,
        "suspended": is_suspended,
        "labels": question.reads,
        "rows": rows(question).iter().map(row).collect::<Vec<_>>(),
        "fields": fields(question),
        "bytes": question.args.bytes().len(),
        "digest": question.args.digest(),
        "description": question.description_digest,
        "proposal": question.proposal.as_ref().map(|it| proposal::proposal(question, it)),
        "outcome_of": question.outcome_of.as_ref().map(|it| escape::brief(&it.to_string(), NAME_CHARS_MAX)),
        "scopes": question.scopes.iter().copied().map(scope).collect::<Vec<_>>(),
    })
}

fn row(row: &QuestionRow) -> Value {
    json!({"name": row.name, "text": row.text, "warns": row.warns})
}

fn asker(asker: &Asker) -> Value {
    json!({
        "run": escape::brief(&asker.run.0, NAME_CHARS_MAX),
        "script": escape::brief(&asker.script_name, NAME_CHARS_MAX),
        "digest": asker.script,
    })
}

fn scope(scope: Scope) -> Value {
    const HOUR_MS: u64 = 3_600_000;
    let lasts = match scope.lasts_ms() / HOUR_MS {
        1 => "an hour".to_owned(),
        hours if hours > 48 => format!("{} days", hours / 24),
        hours => format!("{hours} hours"),
    };
    json!({"word": scope, "lasts": lasts})
}

/// Formats a finished question, without the arguments.
pub(super) fn over(id: u64, question: &Question, word: &str) -> Value {
    json!({
        "id": id,
        "state": word,
        "call": question.call.0,
        "tool": escape::brief(&question.tool.to_string(), NAME_CHARS_MAX),
    })
}

/// Returns the top-level members of the arguments. Members with warnings come first, then shorter
/// ones.
fn fields(question: &Question) -> Vec<Value> {
    let Some(members) = question.args.value().as_object() else {
        return Vec::new();
    };
    let facts = question.facts.as_deref();
    let mut fields: Vec<(bool, usize, Value)> = members
        .iter()
        .map(|(name, value)| {
            let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
            let mut marks = facts
                .map(|facts| marks(facts, &pointer))
                .unwrap_or_default();
            marks.extend(lookalikes::marks(value));
            let bytes = canonical::canonical(value).len();
            let field = json!({
                "name": escape::brief(name, NAME_CHARS_MAX),
                "pointer": pointer,
                "kind": kind(value),
                "lines": lines(value),
                "bytes": value.as_str().map_or(bytes, str::len),
                "digest": canonical::digest(value),
                "marks": marks,
            });
            (marks.is_empty(), bytes, field)
        })
        .collect();
    fields.sort_by_key(|(plain, bytes, _)| (*plain, *bytes));
    fields.into_iter().map(|(_, _, field)| field).collect()
}

/// Returns what the broker knows about a field and its content.
fn marks(facts: &Facts, field: &str) -> Vec<String> {
    let is_at = |other: &str| {
        other
            .strip_prefix(field)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let any = |fields: &BTreeSet<String>| fields.iter().any(|it| is_at(it));
    let mut marks = Vec::new();
    if any(&facts.dest_unexplained) {
        let mark = "names a destination that is not in your configuration, your script or a \
                    trusted result";
        marks.push(mark.to_owned());
    }
    if any(&facts.lookalikes) {
        let mark = "may be misread: unusual characters, mixed alphabets, or encoding that a \
                    server may change";
        marks.push(mark.to_owned());
    }
    for share in facts.shares.iter().filter(|share| is_at(&share.field)) {
        let (call, pieces) = (share.call.0, share.pieces);
        marks.push(format!(
            "repeats what call {call} returned ({pieces} pieces)"
        ));
    }
    marks
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "yes or no",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

/// Splits a text into lines, and formats other values as JSON. Characters that hide or reorder text
/// are escaped. A piece that continues a wrapped line is in a nested list.
fn lines(value: &Value) -> Vec<Value> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    };
    let mut shown = Vec::new();
    for line in text.split('\n') {
        let chars: Vec<char> = escape::line(line).chars().collect();
        let mut pieces = chars.chunks(LINE_CHARS_MAX).map(String::from_iter);
        shown.push(pieces.next().unwrap_or_default().into());
        shown.extend(pieces.map(|piece| json!([piece])));
    }
    shown
}
