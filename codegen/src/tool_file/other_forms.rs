//! Accepts the forms in which other documents write tool files, and converts them to the format:
//! `inputSchema` of the progressive-disclosure extension and of SEP-1300, and `parameters`,
//! `deprecated`, `deprecation_message` and texts for `rate_limit` of common metadata guides.
//!
//! A member that cannot be converted stays as it is, so that the check of the format reports it.

use serde_json::{Map, Value};

use super::ROOT;
use crate::description::ToolMembers;
use crate::validate::member_path;

const SCHEMA: &str = "inputSchema";
const PARAMETERS: &str = "parameters";
const ARGUMENTS: &str = "arguments";
const DEPRECATION: [&str; 4] = [
    "deprecated",
    "deprecation_message",
    "replacement",
    "removal_version",
];
const RATE_LIMIT: &str = "rate_limit";

/// Converts a file to the format.
pub(super) fn converted(value: Value) -> Value {
    let Value::Object(mut file) = value else {
        return value;
    };
    file.retain(|_, member| !member.is_null());
    if let Some(arguments) = arguments(&file) {
        file.remove(SCHEMA);
        file.remove(PARAMETERS);
        if !arguments.is_empty() {
            file.insert(ARGUMENTS.into(), arguments.into());
        }
    }
    deprecation(&mut file);
    rate_limit(&mut file);
    Value::Object(file)
}

/// Returns the path of a converted value in the file as it was written.
pub(super) fn written_path(file: &Value, path: &str) -> String {
    let base = member_path(ROOT, ARGUMENTS);
    let Some(rest) = path
        .strip_prefix(&base)
        .filter(|_| file.get(ARGUMENTS).is_none())
    else {
        return path.to_owned();
    };
    match file.get(SCHEMA) {
        Some(_) => format!("{ROOT}.{SCHEMA}.properties{rest}"),
        None => format!("{ROOT}.{PARAMETERS}"),
    }
}

/// Returns the texts for arguments. Types and other rules are left out, because only the server
/// defines which arguments a tool accepts. `None` if the file has no other form of them.
fn arguments(file: &Map<String, Value>) -> Option<Map<String, Value>> {
    let of_schema = file.get(SCHEMA).and_then(Value::as_object);
    let of_list = file.get(PARAMETERS).and_then(Value::as_array);
    let mut named: Vec<(&str, &Value)> = Vec::new();
    match (of_schema, of_list) {
        (None, None) => return None,
        (Some(schema), _) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let properties = properties.into_iter().flatten();
            named.extend(properties.map(|(name, about)| (name.as_str(), about)));
        }
        (None, Some(list)) => {
            for about in list {
                named.push((about.get("name")?.as_str()?, about));
            }
        }
    }
    // A file in which all three forms are mixed is most likely a mistake.
    if file.contains_key(ARGUMENTS) {
        return None;
    }
    let text = |(name, about): (&str, &Value)| {
        let mut argument = Map::new();
        for key in ["description", "examples"] {
            let said = about.get(key).filter(|it| is_text_or_list(it));
            argument.extend(said.map(|it| (key.to_owned(), it.clone())));
        }
        (name.to_owned(), Value::Object(argument))
    };
    Some(named.into_iter().map(text).collect())
}

/// Whether a description or a list of examples is not empty.
fn is_text_or_list(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

fn deprecation(file: &mut Map<String, Value>) {
    if !DEPRECATION.iter().any(|key| file.contains_key(*key)) || file.contains_key("deprecation") {
        return;
    }
    let is_known =
        |value: &Value| matches!(value, Value::Bool(_) | Value::String(_) | Value::Object(_));
    if !file.get(DEPRECATION[0]).is_none_or(is_known) {
        return;
    }
    match ToolMembers::of(file).deprecation() {
        Some(deprecation) => {
            file.retain(|key, _| !DEPRECATION.contains(&key.as_str()));
            file.insert("deprecation".into(), deprecation);
        }
        None if file.get(DEPRECATION[0]) == Some(&Value::Bool(false)) => {
            file.remove(DEPRECATION[0]);
        }
        None => {}
    }
}

fn rate_limit(file: &mut Map<String, Value>) {
    let is_other = |limit: &Value| limit.get("per").is_none();
    if !file.get(RATE_LIMIT).is_some_and(is_other) {
        return;
    }
    let Some(Value::Object(mut limit)) = ToolMembers::of(file).rate_limit() else {
        return;
    };
    let others = file.get(RATE_LIMIT).and_then(Value::as_object);
    let used = limit.get("per").and_then(Value::as_str);
    let used = used.map(|per| format!("requests_per_{per}"));
    let others = others.into_iter().flatten();
    let others = others.filter(|(key, _)| Some(*key) != used.as_ref());
    let note: Vec<String> = others
        .map(|(key, value)| format!("{key}: {value}"))
        .collect();
    if !note.is_empty() {
        limit.insert("note".into(), note.join(", ").into());
    }
    file.insert(RATE_LIMIT.into(), limit.into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(file: Value, expected: Value) {
        assert_eq!(converted(file.clone()), expected, "{file}");
    }

    #[test]
    fn file_of_the_format_stays() {
        for file in [
            json!({"name": "t", "arguments": {"q": {"description": "Words."}}}),
            json!({"name": "t", "deprecation": {"message": "old"}, "rate_limit": {"calls": 1, "per": "day"}}),
            json!([]),
            json!("t"),
        ] {
            check(file.clone(), file);
        }
    }

    #[test]
    fn schema_and_parameters_become_texts_of_arguments() {
        let arguments = json!({"q": {"description": "Words.", "examples": ["a b"]}, "n": {}});
        let expected = json!({"name": "t", "arguments": arguments});
        let q = json!({"type": "string", "description": "Words.", "examples": ["a b"]});
        let schema = json!({"type": "object", "properties": {"q": q, "n": {"type": "integer"}}, "required": ["q"]});
        check(
            json!({"name": "t", "inputSchema": schema}),
            expected.clone(),
        );
        let parameters = json!([
            {"name": "q", "type": "string", "description": "Words.", "required": true, "examples": ["a b"]},
            {"name": "n", "type": "integer", "description": "", "default": null, "examples": []},
        ]);
        check(json!({"name": "t", "parameters": parameters}), expected);
        check(
            json!({"name": "t", "inputSchema": {"type": "object"}}),
            json!({"name": "t"}),
        );
    }

    #[test]
    fn deprecation_and_rate_limit_of_other_forms_are_converted() {
        check(
            json!({"name": "t", "deprecated": true, "deprecation_message": "Use u.", "replacement": "u", "removal_version": "3.0.0"}),
            json!({"name": "t", "deprecation": {"message": "Use u.", "replacement": "u", "removal": "3.0.0"}}),
        );
        check(
            json!({"name": "t", "deprecated": false, "deprecation_message": null}),
            json!({"name": "t"}),
        );
        check(
            json!({"name": "t", "rate_limit": "100/minute"}),
            json!({"name": "t", "rate_limit": {"calls": 100, "per": "minute"}}),
        );
        check(
            json!({"name": "t", "rate_limit": {"requests_per_minute": 60, "requests_per_hour": 1000}}),
            json!({"name": "t", "rate_limit": {"calls": 60, "per": "minute", "note": "requests_per_hour: 1000"}}),
        );
    }

    #[test]
    fn members_that_cannot_be_converted_stay() {
        for file in [
            json!({"name": "t", "inputSchema": 7}),
            json!({"name": "t", "inputSchema": {"properties": {}}, "arguments": {}}),
            json!({"name": "t", "parameters": [{"type": "string"}]}),
            json!({"name": "t", "deprecated": 7}),
            json!({"name": "t", "replacement": "u"}),
            json!({"name": "t", "rate_limit": "often"}),
        ] {
            check(file.clone(), file);
        }
    }

    #[test]
    fn faults_are_at_the_written_place() {
        let schema = json!({"inputSchema": {"properties": {"q": {}}}});
        let path = written_path(&schema, "file.arguments.q.examples[0]");
        assert_eq!(path, "file.inputSchema.properties.q.examples[0]");
        assert_eq!(
            written_path(&json!({"parameters": []}), "file.arguments.q"),
            "file.parameters"
        );
        assert_eq!(
            written_path(&json!({"arguments": {}}), "file.arguments.q"),
            "file.arguments.q"
        );
    }
}
