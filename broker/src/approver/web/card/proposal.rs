//! Formats the offer on the approval page to approve several calls at once: the fields that the
//! grant would compare, and the fields that the approved calls may have in addition.

use std::collections::BTreeSet;

use airlock_core::decide::Question;
use airlock_core::grant::{Condition, FieldValue, Proposal};
use codegen::canonical;
use serde_json::{Value, json};

use super::NAME_CHARS_MAX;
use crate::render::escape;

const EXAMPLE_CHARS_MAX: usize = 400;
const VALUE_CHARS_MAX: usize = 60;

pub(super) fn proposal(question: &Question, proposal: &Proposal) -> Value {
    let args = question.args.value();
    let exactly = Condition::exactly(args);
    let own: BTreeSet<&String> = exactly.iter().flat_map(|it| it.same().keys()).collect();
    let stays = proposal.condition.same();
    let leaf = |pointer: &&String| {
        let same = stays.get(*pointer);
        let folder = same.filter(|it| matches!(it, FieldValue::Under(_)));
        json!({
            "pointer": pointer,
            "name": name(pointer),
            "value": value(args, pointer),
            "folder": folder.map(|it| escape::brief(&it.to_string(), NAME_CHARS_MAX)),
            "stays": same.is_some() && folder.is_none(),
        })
    };
    let beside = |pointer: &&String| !own.contains(pointer);
    let other = |pointer: &String| json!({"pointer": pointer, "name": name(pointer)});
    let examples = proposal.examples.iter();
    json!({
        "uses_max": proposal.uses_max,
        "fields": own.iter().map(leaf).collect::<Vec<_>>(),
        "others": proposal.condition.free().iter().filter(beside).map(other).collect::<Vec<_>>(),
        "calls": proposal.calls,
        "examples": examples
            .map(|args| escape::brief(args.text(), EXAMPLE_CHARS_MAX))
            .collect::<Vec<_>>(),
    })
}

/// Formats `/message/to` as `message › to`.
fn name(pointer: &str) -> String {
    let steps = pointer.split('/').skip(1);
    let names = steps.map(|step| match step {
        "" => "(a field without a name)".to_owned(),
        step => step.replace("~1", "/").replace("~0", "~"),
    });
    escape::brief(&names.collect::<Vec<_>>().join(" › "), NAME_CHARS_MAX)
}

fn value(args: &Value, pointer: &str) -> String {
    match args.pointer(pointer) {
        Some(Value::String(text)) => escape::brief(text, VALUE_CHARS_MAX),
        Some(other) => {
            let text = String::from_utf8_lossy(&canonical::canonical(other)).into_owned();
            escape::brief(&text, VALUE_CHARS_MAX)
        }
        None => String::new(),
    }
}
