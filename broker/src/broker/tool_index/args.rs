//! Parses the arguments of airlock's own tools, as hosts and scripts send them.

use serde_json::{Map, Value};

/// Returns a member that must be a string if it is present.
pub(crate) fn text_of<'a>(
    args: &'a Map<String, Value>,
    key: &str,
) -> Result<Option<&'a str>, String> {
    match args.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{key}` is not a string")),
    }
}

/// Returns a member that must be a whole number, not below zero, if it is present.
pub(crate) fn count_of(args: &Map<String, Value>, key: &str) -> Result<Option<usize>, String> {
    match args.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let count = value.as_u64().and_then(|it| usize::try_from(it).ok());
            let wrong = || format!("`{key}` is not a whole number from 0 on");
            count.map(Some).ok_or_else(wrong)
        }
    }
}

/// Returns a list of names from an array of strings, or from one string with commas.
pub(crate) fn names(args: &Map<String, Value>, key: &str) -> Result<Vec<String>, String> {
    const NAMES_MAX: usize = 200;
    let names: Vec<String> = match args.get(key) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) => text.split(',').map(|it| it.trim().to_owned()).collect(),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(|| format!("`{key}` is not a list of strings"))?,
        Some(_) => return Err(format!("`{key}` is not a list of strings")),
    };
    if names.len() > NAMES_MAX {
        return Err(format!("`{key}` has more than {NAMES_MAX} names"));
    }
    Ok(names.into_iter().filter(|name| !name.is_empty()).collect())
}

/// Checks that all arguments are known. The error suggests the closest known name.
pub(crate) fn only(args: &Map<String, Value>, known: &[&str]) -> Result<(), String> {
    let Some(other) = args.keys().find(|key| !known.contains(&key.as_str())) else {
        return Ok(());
    };
    let closest = codegen::closest::closest(other, known.iter().copied());
    let hint = closest.map(|it| format!("; did you mean `{it}`?"));
    let hint = hint.unwrap_or_else(|| format!("; there are {}", known.join(", ")));
    Err(format!("there is no argument `{}`{hint}", sanitize(other)))
}

/// Makes text from a request safe to quote in a message.
pub(crate) fn sanitize(text: &str) -> String {
    codegen::text::clip(&codegen::text::neutralise(text), 200)
}
