//! A tool's full description as its server gave it: read tolerantly, kept
//! whole, with a digest. What a server claims about its tool stays a claim.

mod recalled;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::canonical::{self, Digest};
use crate::later::Later;
use crate::tool_file::ToolFile;
use crate::{schema, unwrap};

/// Longest tool name that is accepted, in bytes.
pub const NAME_BYTES_MAX: usize = 256;

/// The members that the digest covers, in the form in which the server sent them.
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
    /// The server's name in our configuration.
    pub server: String,
    /// The exact name on the wire.
    pub name: String,
    pub title: Option<String>,
    /// The server's own words, unchanged. Show them through [`crate::text`] only.
    pub text: Option<String>,
    pub input_schema: Later,
    pub output_schema: Option<Later>,
    pub claims: Claims,
    /// Of everything that a reader of the full description relies on.
    pub digest: Digest,
    /// Of what the server itself said, without any file.
    pub upstream: Digest,
    /// The output schema was made from recorded results: it is shown, and checks nothing.
    pub output_is_observed: bool,
    /// What somebody here says besides; see [`crate::tool_file`].
    pub file: Option<Arc<ToolFile>>,
    /// Nothing that a server could say.
    pub shorthand: Shorthand,
}

/// How else than by one object under its server a script may call a tool of our own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shorthand {
    /// It is a global of its own name, too.
    pub is_global: bool,
    /// The names of its arguments for a script that gives values instead of one object.
    pub order: &'static [&'static str],
}

/// What the server says about its tool (`annotations`). Nobody has checked it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
    /// Present when the tool is marked deprecated; the text may be empty.
    pub deprecated: Option<String>,
}

/// A tool that cannot be offered, and why. The other tools of its server are not touched by it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the description of {} cannot be used: {reason}", shown_name(.name.as_deref()))]
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
    #[error(
        "its name is longer than {NAME_BYTES_MAX} bytes or holds characters that cannot be seen"
    )]
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
    /// Reads one element of a `tools/list` result.
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
        Ok(Self {
            server: server.to_owned(),
            name: name.to_owned(),
            title: title.map(str::to_owned),
            text: string(fields, "description").map(str::to_owned),
            input_schema: input_schema(fields)?,
            output_schema: output_schema(fields)?,
            claims: annotations.map(claims).unwrap_or_default(),
            digest,
            upstream: digest,
            output_is_observed: false,
            file: None,
            shorthand: Shorthand::default(),
        })
    }

    /// The digest that a description of this tool would have.
    #[must_use]
    pub fn digest_of(tool: &Value) -> Option<Digest> {
        tool.as_object().map(digest)
    }

    /// The same tool with nothing said of what it takes and gives.
    pub(crate) fn bare(&self) -> Self {
        Self {
            title: None,
            text: None,
            input_schema: json!({"type": "object", "additionalProperties": true}).into(),
            output_schema: None,
            claims: Claims::default(),
            file: None,
            ..self.clone()
        }
    }

    /// Whether results are `{result: X}` and the script is given `X`.
    #[must_use]
    pub fn unwraps(&self) -> bool {
        self.checked_output()
            .is_some_and(|schema| unwrap::is_wrapper(schema))
    }
}

fn check_name(name: &str) -> Result<(), BadToolReason> {
    let visible = |c: char| !crate::text::is_invisible(c);
    match name {
        "" => Err(BadToolReason::NoName),
        name if name.len() <= NAME_BYTES_MAX && name.chars().all(visible) => Ok(()),
        _ => Err(BadToolReason::BadName),
    }
}

fn input_schema(fields: &Map<String, Value>) -> Result<Later, BadToolReason> {
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

fn output_schema(fields: &Map<String, Value>) -> Result<Option<Later>, BadToolReason> {
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
    Digest::of(&canonical::object(members_pinned(fields)))
}

/// The members of a tool, as its server listed it, that its digest is of.
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

/// The JSON type of a value, in words.
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
    fn what_only_decorates_may_be_missing_or_wrong() {
        let tool = json!({"name": "x", "inputSchema": {}, "description": 5, "annotations": []});
        let description = parse(&tool).unwrap();
        assert_eq!(
            (description.text, description.claims),
            (None, Claims::default())
        );
    }

    #[test]
    fn claims_are_kept_and_a_title_may_stand_in_the_annotations() {
        let annotations = json!({"title": "T", "readOnlyHint": true, "deprecated": true});
        let tool = json!({"name": "x", "inputSchema": {}, "annotations": annotations});
        let description = parse(&tool).unwrap();
        assert_eq!(description.title.as_deref(), Some("T"));
        assert_eq!(description.claims.read_only, Some(true));
        assert_eq!(description.claims.deprecated.as_deref(), Some(""));
    }

    #[test]
    fn a_tool_that_cannot_be_offered_says_why() {
        let of = |reason: &str| format!("the description of tool `x` cannot be used: {reason}");
        check_bad(
            &json!(3),
            "the description of a tool without a name cannot be used: it is a number, not an object",
        );
        check_bad(
            &json!({}),
            "the description of a tool without a name cannot be used: it has no `name`",
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
    fn a_description_nested_without_end_is_refused_before_anything_walks_it() {
        let mut deep = json!({});
        for _ in 0..500 {
            deep = json!({"items": deep});
        }
        check_bad(
            &json!({"name": "x", "inputSchema": deep}),
            "the description of tool `x` cannot be used: it is nested too deeply or too large",
        );
    }

    #[test]
    fn the_digest_covers_what_a_reader_relies_on_and_nothing_else() {
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
