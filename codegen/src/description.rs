//! A tool's full description as its server sent it: parsed leniently, stored whole, with a digest.
//! The claims of a server about its tool are stored separately.

mod metadata;
mod recalled;

pub(crate) use metadata::{ToolMembers, joined};

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::canonical::{self, Digest};
use crate::lazy_json::LazyJson;
use crate::tool_file_format::{Deprecation, ToolFile};
use crate::{schema, unwrap};

/// Maximum length of an accepted tool name in bytes.
pub const NAME_BYTES_MAX: usize = 256;

/// Names of the members that the digest covers. Their values are hashed unchanged.
const PINNED: [&str; 6] = [
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
];

/// One tool of one server.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// The server's name in airlock's configuration.
    pub server: String,
    /// The tool's exact name in the protocol.
    pub name: String,
    pub title: Option<String>,
    /// The server's own text, unchanged. Print it only through [`crate::text`].
    pub text: Option<String>,
    pub input_schema: LazyJson,
    pub output_schema: Option<LazyJson>,
    pub claims: Claims,
    /// Digest of everything that a reader of the full description relies on.
    pub digest: Digest,
    /// Digest of the server's own description, without any tool file.
    pub upstream: Digest,
    /// Whether the output schema was derived from recorded results. Such a schema is shown, and
    /// results are not checked against it.
    pub output_is_observed: bool,
    /// The additions of a tool file; see [`crate::tool_file`].
    pub file: Option<Arc<ToolFile>>,
    /// What the server itself says in this form, and what the tool file adds to it. For people and
    /// models; rules use only the tool file.
    pub metadata: Option<Arc<ToolFile>>,
    /// Shorter ways to call the tool. A server cannot set this.
    pub shorthand: Shorthand,
}

/// Further ways for a script to call one of airlock's own tools. The usual way is a member of the
/// server's global, with one object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shorthand {
    /// Whether the tool is also a global with its own name.
    pub is_global: bool,
    /// The order of the arguments, for a script that passes values instead of one object.
    pub order: &'static [&'static str],
}

/// What the server claims about its tool (`annotations`). The claims are not verified.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
    /// Present if the tool is marked as deprecated; the text may be empty.
    pub deprecated: Option<String>,
}

/// Why a tool cannot be offered. The server's other tools are not affected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the description of {} is invalid: {reason}", shown_name(.name.as_deref()))]
pub struct BadTool {
    pub name: Option<String>,
    pub reason: BadToolReason,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadToolReason {
    #[error("it is {got}, not an object")]
    NotAnObject { got: &'static str },
    #[error("it has no `name`")]
    NoName,
    #[error("its name is longer than {NAME_BYTES_MAX} bytes or contains invisible characters")]
    BadName,
    #[error("its `inputSchema` is {got}, not an object")]
    InputSchema { got: &'static str },
    #[error("its `inputSchema` accepts no object: `type` is {got}")]
    InputNotObject { got: String },
    #[error("its `outputSchema` is {got}, not an object")]
    OutputSchema { got: &'static str },
    #[error("it is nested too deeply or too large")]
    TooLarge,
}

impl Description {
    /// Parses one element of a `tools/list` result.
    pub fn parse(server: &str, tool: &Value) -> Result<Self, BadTool> {
        let fields = tool.as_object().ok_or_else(|| BadTool {
            name: None,
            reason: BadToolReason::NotAnObject {
                got: kind_of(Some(tool)),
            },
        })?;
        let name = string(fields, "name").unwrap_or_default();
        Self::from_fields(server, name, fields, tool).map_err(|reason| BadTool {
            name: (!name.is_empty()).then(|| name.to_owned()),
            reason,
        })
    }

    fn from_fields(
        server: &str,
        name: &str,
        fields: &Map<String, Value>,
        tool: &Value,
    ) -> Result<Self, BadToolReason> {
        check_name(name)?;
        if !schema::is_bounded(tool) {
            return Err(BadToolReason::TooLarge);
        }
        let annotations = fields.get("annotations").and_then(Value::as_object);
        let title = string(fields, "title").or_else(|| string(annotations?, "title"));
        let digest = digest(fields);
        let metadata = metadata::of_tool(name, fields);
        let mut claims = annotations.map(claims).unwrap_or_default();
        claims.add(metadata.as_ref());
        Ok(Self {
            server: server.to_owned(),
            name: name.to_owned(),
            title: title.map(str::to_owned),
            text: string(fields, "description").map(str::to_owned),
            input_schema: input_schema(fields)?,
            output_schema: output_schema(fields)?,
            claims,
            digest,
            upstream: digest,
            output_is_observed: false,
            file: None,
            metadata: metadata.map(Arc::new),
            shorthand: Shorthand::default(),
        })
    }

    /// Returns the digest that the description of this tool would have.
    #[must_use]
    pub fn digest_of(tool: &Value) -> Option<Digest> {
        tool.as_object().map(digest)
    }

    /// Returns the same tool without descriptions of its arguments and result.
    pub(crate) fn bare(&self) -> Self {
        Self {
            title: None,
            text: None,
            input_schema: json!({"type": "object", "additionalProperties": true}).into(),
            output_schema: None,
            claims: Claims::default(),
            file: None,
            metadata: None,
            ..self.clone()
        }
    }

    /// Returns the description with a digest that also covers what the server says in metadata.
    #[must_use]
    pub fn with_metadata(mut self) -> Self {
        if let Some(metadata) = &self.metadata {
            self.digest = canonical::digest(&json!({
                "upstream": self.upstream,
                "server": **metadata,
            }));
        }
        self
    }

    /// Whether results are `{result: X}` and the script gets `X`.
    #[must_use]
    pub fn unwraps(&self) -> bool {
        self.checked_output()
            .is_some_and(|schema| unwrap::is_wrapper(schema))
    }
}

impl Claims {
    /// Adds what the server says in its metadata.
    fn add(&mut self, metadata: Option<&ToolFile>) {
        let deprecation = metadata.and_then(|it| it.deprecation.as_ref());
        if let Some(deprecation) = deprecation {
            self.deprecated = Some(deprecation_text(deprecation));
        }
    }
}

/// Returns what is known about a deprecation, as one text.
pub(crate) fn deprecation_text(deprecation: &Deprecation) -> String {
    let parts = [
        deprecation.since.as_ref().map(|it| format!("since {it}")),
        deprecation.message.clone(),
        deprecation
            .replacement
            .as_ref()
            .map(|it| format!("use `{it}` instead")),
        deprecation
            .removal
            .as_ref()
            .map(|it| format!("removed in {it}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn check_name(name: &str) -> Result<(), BadToolReason> {
    let visible = |c: char| !crate::text::is_invisible(c);
    match name {
        "" => Err(BadToolReason::NoName),
        name if name.len() <= NAME_BYTES_MAX && name.chars().all(visible) => Ok(()),
        _ => Err(BadToolReason::BadName),
    }
}

fn input_schema(fields: &Map<String, Value>) -> Result<LazyJson, BadToolReason> {
    let found = fields.get("inputSchema");
    let Some(Value::Object(schema)) = found else {
        return Err(BadToolReason::InputSchema {
            got: kind_of(found),
        });
    };
    let accepts_objects = match schema.get("type") {
        None => true,
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        Some(_) => false,
    };
    if accepts_objects {
        return Ok(Value::Object(schema.clone()).into());
    }
    let got = schema.get("type").map(Value::to_string).unwrap_or_default();
    Err(BadToolReason::InputNotObject {
        got: crate::text::clip(&got, 80),
    })
}

fn output_schema(fields: &Map<String, Value>) -> Result<Option<LazyJson>, BadToolReason> {
    match fields.get("outputSchema") {
        None | Some(Value::Null) => Ok(None),
        Some(found) if schema::is_schema(found) => Ok(Some(found.clone().into())),
        found => Err(BadToolReason::OutputSchema {
            got: kind_of(found),
        }),
    }
}

fn claims(annotations: &Map<String, Value>) -> Claims {
    let hint = |name: &str| annotations.get(name).and_then(Value::as_bool);
    let deprecated = match annotations.get("deprecated") {
        Some(Value::Bool(true)) => Some(String::new()),
        Some(Value::String(text)) => Some(text.clone()),
        _ => None,
    };
    Claims {
        read_only: hint("readOnlyHint"),
        destructive: hint("destructiveHint"),
        idempotent: hint("idempotentHint"),
        open_world: hint("openWorldHint"),
        deprecated,
    }
}

fn digest(fields: &Map<String, Value>) -> Digest {
    Digest::sha256(&canonical::object(members_pinned(fields)))
}

/// Returns the members of a tool that its digest covers, in the server's order.
pub(crate) fn pinned(fields: &Map<String, Value>) -> Map<String, Value> {
    let members = members_pinned(fields);
    members
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect()
}

fn members_pinned(fields: &Map<String, Value>) -> impl Iterator<Item = (&str, &Value)> {
    let present = PINNED
        .iter()
        .filter_map(|key| Some((*key, fields.get(*key)?)));
    present.filter(|(_, value)| !value.is_null())
}

fn string<'a>(fields: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    fields.get(key)?.as_str()
}

/// Returns the JSON type of a value, in words.
pub(crate) fn kind_of(value: Option<&Value>) -> &'static str {
    match value {
        None => "missing",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "a boolean",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a string",
        Some(Value::Array(_)) => "an array",
        Some(Value::Object(_)) => "an object",
    }
}

fn shown_name(name: Option<&str>) -> String {
    match name {
        Some(name) => format!(
            "tool `{}`",
            crate::text::clip(&crate::text::neutralise(name), 80)
        ),
        None => "a tool without a name".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(tool: &Value) -> Result<Description, String> {
        Description::parse("s", tool).map_err(|bad| bad.to_string())
    }

    fn check_bad(tool: &Value, expected: &str) {
        assert_eq!(
            parse(tool).map(|it| it.name),
            Err(expected.to_owned()),
            "{tool}"
        );
    }

    #[test]
    fn decorative_members_may_be_missing_or_wrong() {
        let tool = json!({"name": "x", "inputSchema": {}, "description": 5, "annotations": []});
        let description = parse(&tool).unwrap();
        assert_eq!(
            (description.text, description.claims),
            (None, Claims::default())
        );
    }

    #[test]
    fn claims_are_kept_and_title_may_be_in_annotations() {
        let annotations = json!({"title": "T", "readOnlyHint": true, "deprecated": true});
        let tool = json!({"name": "x", "inputSchema": {}, "annotations": annotations});
        let description = parse(&tool).unwrap();
        assert_eq!(description.title.as_deref(), Some("T"));
        assert_eq!(description.claims.read_only, Some(true));
        assert_eq!(description.claims.deprecated.as_deref(), Some(""));
    }

    #[test]
    fn unusable_tool_reports_reason() {
        let of = |reason: &str| format!("the description of tool `x` is invalid: {reason}");
        check_bad(
            &json!(3),
            "the description of a tool without a name is invalid: it is a number, not an object",
        );
        check_bad(
            &json!({}),
            "the description of a tool without a name is invalid: it has no `name`",
        );
        check_bad(
            &json!({"name": "x"}),
            &of("its `inputSchema` is missing, not an object"),
        );
        check_bad(
            &json!({"name": "x", "inputSchema": []}),
            &of("its `inputSchema` is an array, not an object"),
        );
        check_bad(
            &json!({"name": "x", "inputSchema": {"type": "string"}}),
            &of("its `inputSchema` accepts no object: `type` is \"string\""),
        );
        check_bad(
            &json!({"name": "x", "inputSchema": {}, "outputSchema": 1}),
            &of("its `outputSchema` is a number, not an object"),
        );
        assert!(parse(&json!({"name": "x\u{202e}y", "inputSchema": {}})).is_err());
    }

    #[test]
    fn deeply_nested_description_is_refused() {
        let mut deep = json!({});
        for _ in 0..500 {
            deep = json!({"items": deep});
        }
        check_bad(
            &json!({"name": "x", "inputSchema": deep}),
            "the description of tool `x` is invalid: it is nested too deeply or too large",
        );
    }

    #[test]
    fn digest_covers_relied_on_members_only() {
        let base = json!({"name": "x", "description": "d", "inputSchema": {"type": "object"}});
        let digest_with = |key: &str, value: Value| {
            let mut tool = base.clone();
            tool[key] = value;
            parse(&tool).unwrap().digest
        };
        let digest = parse(&base).unwrap().digest;
        assert_eq!(digest_with("_meta", json!({"a": 1})), digest);
        assert_eq!(digest_with("title", Value::Null), digest);
        assert_ne!(digest_with("description", json!("e")), digest);
        assert_ne!(
            digest_with("annotations", json!({"readOnlyHint": true})),
            digest
        );
        assert_ne!(digest_with("outputSchema", json!(true)), digest);
    }
}
