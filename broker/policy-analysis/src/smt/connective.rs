//! Combines conditions in Cedar's JSON form.

use serde_json::{Value as Json, json};

pub(super) fn not(expr: &Json) -> Json {
    json!({"!": {"arg": expr}})
}

pub(super) fn and(left: &Json, right: &Json) -> Json {
    json!({"&&": {"left": left, "right": right}})
}

pub(super) fn either(one: Option<Json>, other: Option<Json>) -> Option<Json> {
    match (one, other) {
        (Some(one), Some(other)) => Some(json!({"||": {"left": one, "right": other}})),
        (one, other) => one.or(other),
    }
}
