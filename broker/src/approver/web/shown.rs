//! A question as the page shows it: every text is made safe here, line by line,
//! and what decides comes first. The page itself only puts texts into boxes.

mod looks;
mod proposed;
mod told;

use std::collections::BTreeSet;

use airlock_core::decide::{Asker, Question};
use airlock_core::facts::Facts;
use airlock_core::grant::Scope;
use codegen::canonical;
use serde_json::{Value, json};

use crate::render::escape;

/// Of one line; a longer one goes on below, and is marked.
const LINE_CHARS_MAX: usize = 200;
const NAME_CHARS_MAX: usize = 200;

pub(super) fn open(id: u64, question: &Question, nonce: &str, remaining_ms: Option<u64>) -> Value {
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
        "prompts": lines_of(&question.prompts),
        "rows": told::rows(question),
        "fields": fields(question),
        "bytes": question.args.bytes().len(),
        "digest": question.args.digest(),
        "description": question.description_digest,
        "proposal": question.proposal.as_ref().map(|it| proposed::proposal(question, it)),
        "scopes": question.scopes.iter().copied().map(scope).collect::<Vec<_>>(),
    })
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

/// Without its arguments: there is nothing to decide any more.
pub(super) fn over(id: u64, question: &Question, word: &str) -> Value {
    json!({
        "id": id,
        "state": word,
        "call": question.call.0,
        "tool": escape::brief(&question.tool.to_string(), NAME_CHARS_MAX),
    })
}

fn lines_of(texts: &[String]) -> Vec<String> {
    texts
        .iter()
        .map(|text| escape::line(text).into_owned())
        .collect()
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
            let mut marks = facts
                .map(|facts| marks(facts, &pointer))
                .unwrap_or_default();
            marks.extend(looks::marks(value));
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

/// A text as its lines, anything else as JSON; nothing in them can hide or reorder. What goes
/// on from the line above stands in a list of its own.
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
