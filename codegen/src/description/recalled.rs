//! Restores a description from text that was parsed earlier. Names and descriptions are parsed at
//! once, schemas when they are first accessed.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Claims, Description, Shorthand, claims, metadata};
use crate::canonical::Digest;
use crate::lazy_json::JsonText;

#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    title: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    description: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "inputSchema")]
    input_schema: &'a RawValue,
    #[serde(borrow, default, rename = "outputSchema")]
    output_schema: Option<&'a RawValue>,
    #[serde(borrow, default)]
    annotations: Option<&'a RawValue>,
}

impl Description {
    /// Returns the description that [`Description::parse`] returned for the tool with the text
    /// `tool` and the digest `digest`. Repeats no checks. Returns `None` for a text of unusual
    /// form, which must be parsed.
    #[must_use]
    pub fn recalled(server: &str, tool: &JsonText, digest: Digest) -> Option<Self> {
        let members: Members<'_> = serde_json::from_str(tool.as_str()).ok()?;
        let part = |raw: &RawValue| tool.part(raw.get());
        let annotations = members.annotations.and_then(part).map(|it| it.value());
        let annotations = annotations.as_ref().and_then(Value::as_object);
        let besides = annotations.and_then(|it| it.get("title")?.as_str());
        let title = members.title.as_deref().or(besides);
        let output = members.output_schema.map(part);
        let metadata = metadata::of_tool(&members.name, &besides_protocol(tool));
        let mut claims = annotations.map_or_else(Claims::default, claims);
        claims.add(metadata.as_ref());
        Some(Self {
            server: server.to_owned(),
            title: title.map(str::to_owned),
            name: members.name.into_owned(),
            text: members.description.map(Cow::into_owned),
            input_schema: part(members.input_schema)?.into(),
            output_schema: match output {
                Some(output) => Some(output?.into()),
                None => None,
            },
            claims,
            digest,
            upstream: digest,
            output_is_observed: false,
            file: None,
            metadata: metadata.map(Arc::new),
            shorthand: Shorthand::default(),
        })
    }
}

/// Returns the members that the server's metadata is read from. Most tools have none, so they are
/// not parsed.
fn besides_protocol(tool: &JsonText) -> Map<String, Value> {
    let is_wanted = |key: &str| key == metadata::META || metadata::KEYS.contains(&key);
    let may_have = |key: &str| tool.as_str().contains(&format!("\"{key}\""));
    if !may_have(metadata::META) && !metadata::KEYS.iter().any(|key| may_have(key)) {
        return Map::new();
    }
    let members: HashMap<Cow<'_, str>, &RawValue> =
        serde_json::from_str(tool.as_str()).unwrap_or_default();
    let members = members.into_iter().filter(|(key, _)| is_wanted(key));
    let value = |raw: &RawValue| tool.part(raw.get()).map(|it| it.value());
    members
        .filter_map(|(key, raw)| Some((key.into_owned(), value(raw)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Value {
        serde_json::from_str(text).unwrap_or_default()
    }

    fn recalled(tool: &Value) -> Option<Description> {
        let digest = Description::parse("s", tool).unwrap().digest;
        let text = JsonText::new(tool.to_string().into(), read);
        Description::recalled("s", &text, digest)
    }

    #[test]
    fn recalled_description_equals_parsed_one() {
        let schema = json!({"type": "object", "properties": {"a\n\"": {"type": "string"}}});
        for tool in [
            json!({"name": "x", "inputSchema": schema}),
            json!({"name": "x", "title": null, "description": "", "inputSchema": {}}),
            json!({
                "name": "é\"x", "description": "Two\nlines \u{1F600}", "inputSchema": schema,
                "outputSchema": {"type": "object"}, "_meta": {"name": 1}, "icons": [],
                "annotations": {"title": "T", "readOnlyHint": true, "deprecated": "use y"},
            }),
            json!({"name": "x", "inputSchema": {}, "groups": ["g"], "_meta": {"deprecated": "use y"}}),
            json!({"name": "x", "title": "A", "annotations": {"title": "B"}, "inputSchema": {}}),
            json!({"name": "x", "outputSchema": true, "inputSchema": {"type": ["object"]}}),
            json!({"name": "x", "outputSchema": null, "annotations": [], "inputSchema": {}}),
        ] {
            let read = Description::parse("s", &tool).unwrap();
            assert_eq!(recalled(&tool), Some(read), "{tool}");
        }
    }

    #[test]
    fn malformed_decoration_requires_full_parse() {
        let tool = json!({"name": "x", "inputSchema": {}, "description": 5});
        assert_eq!(recalled(&tool), None);
    }
}
