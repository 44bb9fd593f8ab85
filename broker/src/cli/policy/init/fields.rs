//! Finds the arguments that may name a destination or a path, from their names, types and formats.

use serde_json::{Map, Value};

/// Maximum nesting that is examined. What lies deeper counts as unclear.
const DEPTH_MAX: usize = 16;

/// Words in the name of an argument that names a destination.
const DESTINATIONS: &[&str] = &[
    "to",
    "cc",
    "bcc",
    "recipient",
    "recipients",
    "receiver",
    "receivers",
    "mail",
    "mailto",
    "email",
    "emails",
    "phone",
    "address",
    "addresses",
    "addr",
    "url",
    "urls",
    "uri",
    "uris",
    "iri",
    "href",
    "hrefs",
    "link",
    "links",
    "site",
    "website",
    "host",
    "hosts",
    "hostname",
    "hostnames",
    "domain",
    "domains",
    "endpoint",
    "endpoints",
    "webhook",
    "webhooks",
    "callback",
    "channel",
    "channels",
    "remote",
];
/// Ends of words that are written without a separator: `imageurl`.
const DESTINATION_ENDS: &[&str] = &[
    "url", "urls", "uri", "uris", "email", "emails", "webhook", "hostname",
];
const DESTINATION_FORMATS: &[&str] = &[
    "uri",
    "uri-reference",
    "uri-template",
    "iri",
    "iri-reference",
    "url",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "ip",
];
/// Formats of texts that cannot name a destination: `to` with the format `date` is a date.
const OTHER_FORMATS: &[&str] = &["date", "date-time", "time", "duration", "uuid"];
const PATHS: &[&str] = &[
    "path",
    "paths",
    "file",
    "files",
    "file_path",
    "filepath",
    "filename",
    "folder",
    "dir",
    "directory",
    "source",
    "destination",
    "repo_path",
    "cwd",
];
/// Keywords of JSON Schema that this module does not follow.
const UNCLEAR: &[&str] = &[
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "patternProperties",
    "dependentSchemas",
    "if",
    "then",
    "else",
];

/// The arguments that may name a destination or a path.
#[derive(Default)]
pub(super) struct Fields {
    /// JSON pointers to texts that may name a destination.
    pub(super) destinations: Vec<String>,
    /// JSON pointers to texts that may be paths.
    pub(super) paths: Vec<String>,
    /// Whether an argument may name a destination, also if no pointer in `destinations` leads to it.
    pub(super) has_destination: bool,
    /// Whether the schema accepts values that it does not describe. They may name a destination.
    pub(super) is_unclear: bool,
}

/// A place in the arguments.
#[derive(Clone)]
struct Place {
    /// `None` if a label cannot name this place.
    pointer: Option<String>,
    is_root: bool,
    is_destination: bool,
    is_path: bool,
    /// Whether a schema around this one gives the type.
    is_typed: bool,
}

impl Fields {
    pub(super) fn new(input_schema: &Value) -> Self {
        let root = Place {
            pointer: Some(String::new()),
            is_root: true,
            is_destination: false,
            is_path: false,
            is_typed: true,
        };
        let mut fields = Self::default();
        fields.visit(input_schema, &root, DEPTH_MAX);
        fields.destinations = outermost(&fields.destinations);
        fields.paths = outermost(&fields.paths);
        fields
    }

    fn visit(&mut self, schema: &Value, place: &Place, depth: usize) {
        if *schema == Value::Bool(false) {
            return;
        }
        let Some(depth) = depth.checked_sub(1) else {
            self.is_unclear = true;
            return;
        };
        let anything = Map::new();
        let schema = schema.as_object().unwrap_or(&anything);
        let format = schema.get("format").and_then(Value::as_str).unwrap_or("");
        let mut place = place.clone();
        place.is_destination |= DESTINATION_FORMATS.contains(&format);
        let has = |key: &str| schema.contains_key(key);
        let describes = ["enum", "const", "anyOf", "oneOf", "allOf", "$ref"];
        let structures = ["properties", "items", "prefixItems"];
        let types = types(schema);
        let is_anything = types.is_empty()
            && !place.is_typed
            && !describes.iter().chain(&structures).any(|key| has(key));
        let is_text = match types.is_empty() {
            false => types.contains(&"string"),
            true => {
                is_anything
                    || has("$ref")
                    || has_text_choice(schema)
                    || DESTINATION_FORMATS.contains(&format)
            }
        };
        if is_text && !OTHER_FORMATS.contains(&format) {
            self.add(&place);
        }
        self.is_unclear |= is_anything || UNCLEAR.iter().any(|key| has(key));
        place.is_typed |= !types.is_empty() || has("enum") || has("const");
        for key in ["anyOf", "oneOf", "allOf"] {
            for choice in list(schema, key) {
                self.visit(choice, &place, depth);
            }
        }
        self.visit_members(schema, &types, &place, depth);
        self.visit_items(schema, &types, &place, depth);
    }

    fn visit_members(
        &mut self,
        schema: &Map<String, Value>,
        types: &[&str],
        place: &Place,
        depth: usize,
    ) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let is_object = types.contains(&"object") || properties.is_some();
        if !is_object {
            return;
        }
        self.has_destination |= place.is_destination;
        let further = schema.get("additionalProperties");
        self.is_unclear |= match further {
            Some(further) => *further != Value::Bool(false),
            None => properties.is_none() && !place.is_root,
        };
        for (name, member) in properties.into_iter().flatten() {
            self.visit(member, &place.member(name), depth);
        }
    }

    fn visit_items(
        &mut self,
        schema: &Map<String, Value>,
        types: &[&str],
        place: &Place,
        depth: usize,
    ) {
        let items = schema.get("items");
        let tuples = ["items", "prefixItems"].map(|key| list(schema, key));
        if types.contains(&"array") && items.is_none() && !schema.contains_key("prefixItems") {
            self.is_unclear = true;
            self.add(place);
        }
        let inner = place.items();
        for item in tuples.into_iter().flatten() {
            self.visit(item, &inner, depth);
        }
        if let Some(items) = items.filter(|it| !it.is_array()) {
            self.visit(items, &inner, depth);
        }
    }

    /// Adds a place of a text.
    fn add(&mut self, place: &Place) {
        self.has_destination |= place.is_destination;
        let pointer = place.pointer.iter().filter(|it| !it.is_empty()).cloned();
        if place.is_destination {
            self.destinations.extend(pointer);
        } else if place.is_path {
            self.paths.extend(pointer);
        }
    }
}

impl Place {
    fn member(&self, name: &str) -> Self {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let is_named = !name.is_empty() && name.chars().all(is_plain);
        let words = words(name);
        Self {
            pointer: match &self.pointer {
                Some(pointer) if is_named => Some(format!("{pointer}/{name}")),
                _ => None,
            },
            is_root: false,
            is_destination: words.iter().any(|it| is_destination(it)),
            is_path: PATHS.contains(&words.join("_").as_str()),
            is_typed: false,
        }
    }

    fn items(&self) -> Self {
        Self {
            pointer: self.pointer.as_ref().map(|it| format!("{it}/*")),
            is_root: false,
            is_typed: false,
            ..self.clone()
        }
    }
}

/// Returns the types that the schema names, in either form: `"string"` or `["string", "null"]`.
fn types(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name.as_str()],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn has_text_choice(schema: &Map<String, Value>) -> bool {
    list(schema, "enum").iter().any(Value::is_string)
        || schema.get("const").is_some_and(Value::is_string)
}

fn list<'a>(schema: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    let list = schema.get(key).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

/// Returns each pointer once, without those below another one: a label includes everything below.
fn outermost(pointers: &[String]) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for pointer in pointers {
        let is_inner = |outer: &String| {
            let below = pointer.strip_prefix(outer.as_str());
            below.is_some_and(|below| below.starts_with('/'))
        };
        if !kept.contains(pointer) && !pointers.iter().any(is_inner) {
            kept.push(pointer.clone());
        }
    }
    kept
}

fn is_destination(word: &str) -> bool {
    let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
    DESTINATIONS.contains(&word) || DESTINATION_ENDS.iter().any(|end| word.ends_with(end))
}

/// Returns the words of a name in lower case: `image`, `url` for `imageURL`, `image_url` and
/// `IMAGE-URL`.
fn words(name: &str) -> Vec<String> {
    let chars: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, c) in chars.iter().enumerate() {
        let follows_upper = at
            .checked_sub(1)
            .and_then(|before| chars.get(before))
            .is_some_and(|it| it.is_uppercase());
        let is_lower = |at: usize| chars.get(at).is_some_and(|it| it.is_lowercase());
        // The `s` of `URLs` belongs to the capitals before it.
        let is_plural = chars.get(at + 1) == Some(&'s') && !is_lower(at + 2);
        let begins_word = !follows_upper || (is_lower(at + 1) && !is_plural);
        if !c.is_alphanumeric() || (c.is_uppercase() && begins_word) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|it| !it.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(argument: (&str, Value), expected: &[&str]) {
        let (name, schema) = argument;
        let schema = json!({"type": "object", "properties": {name: schema}});
        let fields = Fields::new(&schema);
        assert_eq!(fields.destinations, expected, "{schema}");
        assert_eq!(fields.has_destination, !expected.is_empty(), "{schema}");
    }

    #[test]
    fn destinations_are_found_in_every_form_of_a_schema() {
        let text = || json!({"type": "string"});
        check(
            ("url", json!({"anyOf": [text(), {"type": "null"}]})),
            &["/url"],
        );
        check(("url", json!({"type": ["string", "null"]})), &["/url"]);
        check(("url", json!({"$ref": "#/$defs/Url"})), &["/url"]);
        check(("url", json!({})), &["/url"]);
        check(("url", json!(true)), &["/url"]);
        check(
            (
                "page",
                json!({"anyOf": [{"type": "string", "format": "uri"}]}),
            ),
            &["/page"],
        );
        check(
            (
                "request",
                json!({"type": "object", "properties": {"link": text()}}),
            ),
            &["/request/link"],
        );
        check(
            (
                "messages",
                json!({"type": "array", "items":
                    {"type": "object", "properties": {"to": text()}}}),
            ),
            &["/messages/*/to"],
        );
        check(
            (
                "to",
                json!({"oneOf": [{"type": "array", "items": text()}, text()]}),
            ),
            &["/to"],
        );
        check(("to", json!({"type": "string", "format": "date"})), &[]);
        check(("url", json!({"type": "integer"})), &[]);
    }

    #[test]
    fn destinations_are_found_by_each_word_of_a_name() {
        for name in [
            "imageUrl",
            "image_url",
            "image-url",
            "imageURL",
            "imageurl",
            "URL",
            "URLs",
            "URLPath",
            "WEBHOOK_URL",
            "url2",
            "link",
            "sendTo",
            "channelId",
        ] {
            let pointer = format!("/{name}");
            check((name, json!({"type": "string"})), &[pointer.as_str()]);
        }
        for name in [
            "path",
            "topic",
            "total",
            "excludePatterns",
            "sortBy",
            "query",
        ] {
            check((name, json!({"type": "string"})), &[]);
        }
    }

    #[test]
    fn undescribed_values_are_unclear() {
        let is_unclear = |argument: Value| {
            let schema = json!({"type": "object", "properties": {"value": argument}});
            Fields::new(&schema).is_unclear
        };
        for argument in [
            json!({}),
            json!(true),
            json!({"$ref": "#/$defs/Value"}),
            json!({"type": "object"}),
            json!({"type": "object", "properties": {}, "additionalProperties": true}),
            json!({"type": "array"}),
            json!({"anyOf": [{"type": "string"}, {}]}),
        ] {
            assert!(is_unclear(argument.clone()), "{argument}");
        }
        for argument in [
            json!({"type": "string", "format": "date"}),
            json!({"enum": ["a", "b"]}),
            json!({"type": "array", "items": {"type": "integer"}}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"type": "string", "anyOf": [{"minLength": 1}, {"pattern": "x"}]}),
        ] {
            assert!(!is_unclear(argument.clone()), "{argument}");
        }
        assert!(!Fields::new(&json!({"type": "object"})).is_unclear);
    }
}
