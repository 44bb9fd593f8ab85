//! The text of a tool that search indexes: its names, its description, and its parameters. If a
//! schema is not parsed yet, only the parts that search needs are parsed.

use std::borrow::Cow;
use std::fmt;

use airlock_core::search::Document;
use codegen::description::Description;
use codegen::lazy_json::LazyJson;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

/// Returns the search document of a tool.
pub(in crate::broker) fn document(description: &Description) -> Document {
    let (parameters, about_parameters) = parameters(&description.input_schema);
    Document {
        parameters,
        about_parameters,
        ..without_parameters(description)
    }
}

/// Returns the search document without the parameters, so that no schema is parsed.
pub(in crate::broker) fn without_parameters(description: &Description) -> Document {
    Document {
        name: description.name.clone(),
        server: description.server.clone(),
        text: text(description),
        ..Document::default()
    }
}

/// Returns the title and the description.
fn text(description: &Description) -> String {
    let said = [&description.title, &description.text];
    let said: Vec<&str> = said.into_iter().flatten().map(String::as_str).collect();
    said.join("\n")
}

/// Returns the names of the parameters, and their descriptions.
fn parameters(schema: &LazyJson) -> (String, String) {
    let partial = schema.unread().map(serde_json::from_str::<Schema<'_>>);
    let parameters = match partial {
        Some(Ok(schema)) => return joined(&schema.properties.0),
        _ => schema.get("properties").and_then(Value::as_object),
    };
    let said = |schema: &Value| Some(Cow::from(schema.get("description")?.as_str()?.to_owned()));
    let parameters = parameters.into_iter().flatten();
    let parameters = parameters.map(|(name, schema)| (Cow::from(name.as_str()), said(schema)));
    joined(&parameters.collect::<Vec<_>>())
}

type Parameter<'a> = (Cow<'a, str>, Option<Cow<'a, str>>);

fn joined(parameters: &[Parameter<'_>]) -> (String, String) {
    let names: Vec<&str> = parameters.iter().map(|(name, _)| &**name).collect();
    let said = parameters.iter().filter_map(|(_, said)| said.as_deref());
    (names.join(" "), said.collect::<Vec<_>>().join(" "))
}

/// The only part of a schema that search text needs. Deserializing into this type avoids parsing
/// the rest. A schema that does not match this type is parsed completely.
#[derive(serde::Deserialize)]
struct Schema<'a> {
    #[serde(borrow, default)]
    properties: Properties<'a>,
}

/// The parameters in the order of the text.
#[derive(Default)]
struct Properties<'a>(Vec<Parameter<'a>>);

#[derive(serde::Deserialize)]
struct Property<'a> {
    #[serde(borrow, default)]
    description: Option<Cow<'a, str>>,
}

#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a, 'de: 'a> Deserialize<'de> for Properties<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SchemaSkim)
    }
}

struct SchemaSkim;

impl<'de> Visitor<'de> for SchemaSkim {
    type Value = Properties<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the properties of an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Properties<'de>, A::Error> {
        let mut parameters = Vec::new();
        while let Some(Name(name)) = map.next_key()? {
            let Property { description } = map.next_value()?;
            parameters.push((name, description));
        }
        Ok(Properties(parameters))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codegen::lazy_json::JsonText;
    use serde_json::json;

    fn read(text: &str) -> Value {
        serde_json::from_str(text).unwrap_or_default()
    }

    #[test]
    fn skimmed_schema_yields_same_text_as_parsed_schema() {
        for (schema, expected) in [
            (json!({}), ("", "")),
            (json!({"properties": {}}), ("", "")),
            (
                json!({
                    "description": "no parameter's",
                    "properties": {
                        "path": {"type": "string", "description": "Where \"it\" is", "items": {}},
                        "é\n": {"properties": {"description": {"description": "inner"}}},
                        "a": {"description": null},
                        "b": {"description": "More."},
                    },
                    "type": "object",
                }),
                ("path é\n a b", "Where \"it\" is More."),
            ),
            (
                json!({"properties": {"any": true, "b": {"description": "B"}}}),
                ("any b", "B"),
            ),
            (
                json!({"properties": {"a": {"description": 7}, "b": []}}),
                ("a b", ""),
            ),
            (json!({"properties": null}), ("", "")),
            (json!({"properties": [["a", {}]]}), ("", "")),
        ] {
            let text = LazyJson::from(JsonText::new(schema.to_string().into(), read));
            assert!(text.unread().is_some());
            let expected = (expected.0.to_owned(), expected.1.to_owned());
            assert_eq!(parameters(&text), expected, "{schema}");
            assert_eq!(
                parameters(&LazyJson::from(schema.clone())),
                expected,
                "{schema}"
            );
        }
    }

    #[test]
    fn skimming_leaves_schema_unparsed() {
        let schema = json!({"properties": {"a": {"description": "A"}}});
        let text = LazyJson::from(JsonText::new(schema.to_string().into(), read));
        assert_eq!(parameters(&text).0, "a");
        assert!(text.unread().is_some());
    }
}
