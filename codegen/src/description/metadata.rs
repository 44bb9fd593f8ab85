//! What a server says about its tool besides the members of the protocol: groups, tags, category,
//! version, deprecation, rate limit, examples and related tools. Servers write it beside those
//! members (SEP-1300) or into `_meta`. A value of another form is ignored.
//!
//! It has the form of a tool file, and a tool file comes before it. It changes what models read and
//! how often a tool is called, and never what calls are accepted.

use std::collections::BTreeSet;

use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use crate::text::{clip, neutralise};
use crate::tool_file_format::ToolFile;

/// The members that are read, in a tool and in its `_meta`.
pub(super) const KEYS: [&str; 17] = [
    "group",
    "groups",
    "tags",
    "category",
    "version",
    "deprecated",
    "deprecation",
    "deprecation_message",
    "replacement",
    "replaced_by",
    "removal",
    "removal_version",
    "since",
    "rate_limit",
    "rateLimit",
    "examples",
    "related_tools",
];
pub(super) const META: &str = "_meta";
/// Members of `_meta` in which a common framework for servers writes the tags.
const NESTED: [&str; 2] = ["fastmcp", "_fastmcp"];

const WORDS_MAX: usize = 32;
const WORD_BYTES_MAX: usize = 100;
const TEXT_BYTES_MAX: usize = 400;
const EXAMPLES_MAX: usize = 3;
const EXAMPLE_BYTES_MAX: usize = 2_000;

/// Reads what a server says about its tool; `None` if it says nothing.
pub(super) fn of_tool(name: &str, fields: &Map<String, Value>) -> Option<ToolFile> {
    let meta = fields.get(META).and_then(Value::as_object);
    let nested = NESTED.iter().filter_map(|it| meta?.get(*it)?.as_object());
    let members = ToolMembers(std::iter::once(fields).chain(meta).chain(nested).collect());
    let mut file = Map::new();
    let groups = members.words(&["groups", "group"]);
    for (key, words) in [
        ("groups", groups),
        ("tags", members.words(&["tags"])),
        ("related_tools", members.words(&["related_tools"])),
    ] {
        if !words.is_empty() {
            file.insert(key.into(), words.into());
        }
    }
    for key in ["category", "version"] {
        file.extend(members.text(&[key]).map(|it| (key.to_owned(), it.into())));
    }
    file.extend(
        members
            .deprecation()
            .map(|it| ("deprecation".to_owned(), it)),
    );
    file.extend(members.rate_limit().map(|it| ("rate_limit".to_owned(), it)));
    let examples = members.examples();
    if !examples.is_empty() {
        file.insert("examples".into(), examples.into());
    }
    if file.is_empty() {
        return None;
    }
    file.insert("name".into(), name.into());
    ToolFile::deserialize(Value::Object(file)).ok()
}

/// Adds a tool file to what the server says. The file comes first; groups and tags are joined.
pub(crate) fn joined(server: &ToolFile, file: &ToolFile) -> ToolFile {
    let members = |it: &ToolFile| serde_json::to_value(it).unwrap_or_default();
    let (Value::Object(mut both), Value::Object(file_members)) = (members(server), members(file))
    else {
        return file.clone();
    };
    both.extend(file_members);
    let either = |a: &[String], b: &[String]| -> Vec<String> {
        let mut seen = BTreeSet::new();
        let all = a.iter().chain(b).filter(|it| seen.insert((*it).clone()));
        all.cloned().collect()
    };
    for (key, words) in [
        ("groups", either(&file.groups, &server.groups)),
        ("tags", either(&file.tags, &server.tags)),
    ] {
        if !words.is_empty() {
            both.insert(key.into(), words.into());
        }
    }
    ToolFile::deserialize(Value::Object(both)).unwrap_or_else(|_| file.clone())
}

/// The objects in which a server may describe its tool, first to last.
pub(crate) struct ToolMembers<'a>(Vec<&'a Map<String, Value>>);

impl<'a> ToolMembers<'a> {
    /// Reads one object.
    pub(crate) fn of(object: &'a Map<String, Value>) -> Self {
        Self(vec![object])
    }

    fn all<'s>(&'s self, keys: &[&str]) -> Vec<&'s Value> {
        let mut found = Vec::new();
        for object in &self.0 {
            found.extend(keys.iter().filter_map(|key| object.get(*key)));
        }
        found
    }

    fn text(&self, keys: &[&str]) -> Option<String> {
        self.all(keys)
            .into_iter()
            .find_map(|it| text(it, TEXT_BYTES_MAX))
    }

    fn words(&self, keys: &[&str]) -> Vec<String> {
        let mut words = Vec::new();
        for value in self.all(keys) {
            let items = match value {
                Value::Array(items) => items.as_slice(),
                one => std::slice::from_ref(one),
            };
            for word in items.iter().filter_map(|it| text(it, WORD_BYTES_MAX)) {
                if words.len() < WORDS_MAX && !words.contains(&word) {
                    words.push(word);
                }
            }
        }
        words
    }

    pub(crate) fn deprecation(&self) -> Option<Value> {
        let objects = self.all(&["deprecation", "deprecated"]);
        let object = objects.into_iter().find_map(Value::as_object);
        let deprecated = self.all(&["deprecated"]);
        let is_deprecated = deprecated.contains(&&Value::Bool(true));
        if !is_deprecated && deprecated.contains(&&Value::Bool(false)) {
            return None;
        }
        let message = self.text(&["deprecation_message"]);
        let message = message.or_else(|| self.text(&["deprecated", "deprecation"]));
        if object.is_none() && !is_deprecated && message.is_none() {
            return None;
        }
        let member = |keys: &[&str]| {
            let inside = object.and_then(|it| keys.iter().find_map(|key| it.get(*key)));
            let inside = inside.and_then(|it| text(it, TEXT_BYTES_MAX));
            inside.or_else(|| self.text(keys))
        };
        let inner_message = object.and_then(|it| text(it.get("message")?, TEXT_BYTES_MAX));
        let mut deprecation = Map::new();
        for (key, value) in [
            ("message", inner_message.or(message)),
            ("replacement", member(&["replacement", "replaced_by"])),
            ("removal", member(&["removal", "removal_version"])),
            ("since", member(&["since"])),
        ] {
            deprecation.extend(value.map(|it| (key.to_owned(), it.into())));
        }
        Some(Value::Object(deprecation))
    }

    pub(crate) fn rate_limit(&self) -> Option<Value> {
        let limits = self.all(&["rate_limit", "rateLimit"]);
        limits.into_iter().find_map(|it| match it {
            Value::String(text) => {
                let (calls, per) = text.split_once('/')?;
                rate(calls.trim().parse().ok()?, per.trim())
            }
            Value::Object(limit) => {
                let calls = limit.get("calls").and_then(Value::as_u64);
                let per = limit.get("per").and_then(Value::as_str);
                let named = ["second", "minute", "hour", "day"]
                    .into_iter()
                    .find_map(|per| {
                        let calls = limit.get(&format!("requests_per_{per}"))?.as_u64()?;
                        rate(calls, per)
                    });
                calls
                    .zip(per)
                    .and_then(|(calls, per)| rate(calls, per))
                    .or(named)
            }
            _ => None,
        })
    }

    fn examples(&self) -> Vec<Value> {
        let all = self.all(&["examples"]);
        let all = all.into_iter().filter_map(Value::as_array).flatten();
        let example = |it: &Value| {
            let object = it.as_object()?;
            let input = object.get("input").filter(|it| it.is_object())?;
            let mut example = json!({ "input": input });
            if let Some(members) = example.as_object_mut() {
                let about = object.get("description");
                let about = about.and_then(|it| text(it, TEXT_BYTES_MAX));
                members.extend(about.map(|it| ("description".to_owned(), it.into())));
                let output = object.get("output").cloned();
                members.extend(output.map(|it| ("output".to_owned(), it)));
            }
            (example.to_string().len() <= EXAMPLE_BYTES_MAX).then_some(example)
        };
        all.filter_map(example).take(EXAMPLES_MAX).collect()
    }
}

fn rate(calls: u64, per: &str) -> Option<Value> {
    let per = match per.trim_end_matches('s') {
        "s" | "" | "sec" | "second" => "second",
        "m" | "min" | "minute" => "minute",
        "h" | "hour" => "hour",
        "d" | "day" => "day",
        _ => return None,
    };
    (calls > 0).then(|| json!({"calls": calls, "per": per}))
}

/// Returns a text that is not empty, without invisible characters and of limited length.
fn text(value: &Value, bytes_max: usize) -> Option<String> {
    let text = match value {
        Value::String(text) => neutralise(text),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let text = text.trim();
    (!text.is_empty()).then(|| clip(text, bytes_max))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tool: Value, expected: Value) {
        let found = of_tool("x", tool.as_object().unwrap());
        let found = found.map(|it| serde_json::to_value(it).unwrap());
        assert_eq!(found.unwrap_or_default(), expected, "{tool}");
    }

    #[test]
    fn metadata_is_read_beside_the_members_and_in_meta() {
        check(json!({"name": "x", "inputSchema": {}}), Value::Null);
        check(
            json!({
                "groups": ["mail"], "tags": ["stable", ""], "version": 2,
                "_meta": {"tags": ["slow"], "category": "mail\u{200b}", "fastmcp": {"tags": ["beta"]}},
            }),
            json!({
                "name": "x", "groups": ["mail"], "tags": ["stable", "slow", "beta"],
                "version": "2", "category": "mail",
            }),
        );
        check(
            json!({"deprecated": true, "deprecation_message": "old", "replacement": "y"}),
            json!({"name": "x", "deprecation": {"message": "old", "replacement": "y"}}),
        );
        check(
            json!({"deprecated": false, "deprecation_message": "not yet"}),
            Value::Null,
        );
        check(
            json!({"_meta": {"deprecated": "use y"}}),
            json!({"name": "x", "deprecation": {"message": "use y"}}),
        );
        check(
            json!({"deprecation": {"replaced_by": "y", "since": "2"}}),
            json!({"name": "x", "deprecation": {"replacement": "y", "since": "2"}}),
        );
        for limit in [
            json!("100/minute"),
            json!("100 / min"),
            json!({"calls": 100, "per": "minute"}),
            json!({"requests_per_minute": 100, "requests_per_hour": 9_000}),
        ] {
            let expected = json!({"calls": 100, "per": "minute"});
            check(
                json!({"rate_limit": limit}),
                json!({"name": "x", "rate_limit": expected}),
            );
        }
        check(
            json!({"examples": [{"description": "One", "input": {"a": 1}}, {"input": 3}, 4]}),
            json!({"name": "x", "examples": [{"description": "One", "input": {"a": 1}}]}),
        );
    }

    #[test]
    fn values_of_other_forms_are_ignored() {
        for tool in [
            json!({"groups": 7.5e300, "tags": {}, "_meta": []}),
            json!({"deprecated": false, "rate_limit": "often", "examples": {}}),
            json!({"rate_limit": "0/minute"}),
            json!({"version": null, "category": ["a"]}),
        ] {
            let found = of_tool("x", tool.as_object().unwrap());
            let is_empty = found.as_ref().is_none_or(|it| it.tags.is_empty());
            assert!(is_empty, "{tool}: {found:?}");
            let has_rest =
                found.is_some_and(|it| it.rate_limit.is_some() || it.deprecation.is_some());
            assert!(!has_rest, "{tool}");
        }
    }

    #[test]
    fn tool_file_comes_before_the_server() {
        let of = |value: Value| ToolFile::deserialize(value).unwrap();
        let server = of(json!({"name": "x", "groups": ["a"], "version": "1", "category": "c"}));
        let file = of(json!({"name": "x", "groups": ["b"], "version": "2"}));
        let both = serde_json::to_value(joined(&server, &file)).unwrap();
        let expected = json!({"name": "x", "groups": ["b", "a"], "version": "2", "category": "c"});
        assert_eq!(both, expected);
    }
}
