//! What a tool probably does, from its server's claims and the names of its arguments.

use airlock_core::labels::Field;
use codegen::description::Description;
use codegen::shape::tool_shape;
use serde_json::Value;

use super::example;
use super::fields::Fields;

/// A tool with the guesses about it.
pub(super) struct GuessedTool {
    pub(super) server: String,
    pub(super) name: String,
    /// Whether the server claims that the tool changes nothing, and a call probably sends no data:
    /// no argument names a destination, and either the schema describes each argument, or the server
    /// claims that the tool reaches nothing outside.
    pub(super) only_reads: bool,
    /// Whether the server claims that the tool changes nothing.
    pub(super) claims_read_only: bool,
    /// Whether the server claims that the tool destroys something.
    pub(super) destroys: bool,
    /// Whether the server claims that the tool reaches nothing outside of itself.
    pub(super) is_closed: bool,
    /// Whether an argument may name a destination, also if no pointer in `destinations` leads to it.
    pub(super) has_destination: bool,
    /// JSON pointers to arguments that may name destinations.
    pub(super) destinations: Vec<String>,
    /// JSON pointers to arguments whose names are those of paths.
    pub(super) paths: Vec<String>,
    /// Arguments that the input schema accepts, if they could be made.
    pub(super) example: Option<Value>,
}

impl GuessedTool {
    pub(super) fn new(description: &Description) -> Self {
        let claims = &description.claims;
        let schema: &Value = &description.input_schema;
        let fields = Fields::new(schema);
        let shape = tool_shape(description);
        // A label for an argument that the schema does not have would be a finding of the check.
        let fits = |it: &String| Field::parse(it).is_ok_and(|field| field.fits(&shape));
        let claims_read_only = claims.read_only == Some(true);
        let is_closed = claims.open_world == Some(false);
        let sends_nothing = !fields.has_destination && (is_closed || !fields.is_unclear);
        Self {
            server: description.server.clone(),
            name: description.name.clone(),
            only_reads: claims_read_only && sends_nothing,
            claims_read_only,
            destroys: claims.destructive == Some(true) && !claims_read_only,
            is_closed,
            has_destination: fields.has_destination,
            destinations: fields.destinations.into_iter().filter(fits).collect(),
            paths: fields.paths.into_iter().filter(fits).collect(),
            example: example::arguments(schema),
        }
    }

    pub(super) fn id(&self) -> String {
        format!("{}.{}", self.server, self.name)
    }

    /// Whether a call sends its arguments to others.
    pub(super) fn sends(&self) -> bool {
        !self.only_reads && (self.claims_read_only || !self.is_closed)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn destinations_and_paths_are_guessed_from_names_and_formats() {
        let fetch = json!({"name": "fetch", "annotations": {"readOnlyHint": true}, "inputSchema":
            {"type": "object", "properties": {"url": {"type": "string"}}}});
        let fetch = GuessedTool::new(&Description::parse("web", &fetch).unwrap());
        assert!(fetch.claims_read_only && !fetch.only_reads && fetch.sends());
        let tool = json!({"name": "send", "inputSchema": {"type": "object", "properties": {
            "to": {"type": "array", "items": {"type": "string"}},
            "webhookUrl": {"type": "string"},
            "site": {"type": "string", "format": "uri"},
            "url": {"type": "integer"},
            "file_path": {"type": "string"},
            "body": {"type": "string"},
            "a/b": {"type": "string", "format": "uri"},
        }}});
        let guessed = GuessedTool::new(&Description::parse("mail", &tool).unwrap());
        assert_eq!(guessed.destinations, ["/to/*", "/webhookUrl", "/site"]);
        assert_eq!(guessed.paths, ["/file_path"]);
        assert!(!guessed.only_reads && !guessed.destroys && guessed.sends());
    }

    #[test]
    fn tool_that_may_send_is_not_in_the_reads() {
        let only_reads = |claims: Value, argument: Value| {
            let tool = json!({"name": "read", "annotations": claims, "inputSchema":
                {"type": "object", "properties": argument}});
            GuessedTool::new(&Description::parse("s", &tool).unwrap()).only_reads
        };
        let open = || json!({"readOnlyHint": true});
        let closed = || json!({"readOnlyHint": true, "openWorldHint": false});
        let path = || json!({"path": {"type": "string"}});
        let nullable = || json!({"url": {"type": ["string", "null"]}});
        let free = || json!({"options": {"type": "object"}});
        assert!(only_reads(open(), path()) && only_reads(closed(), path()));
        assert!(!only_reads(open(), nullable()) && !only_reads(closed(), nullable()));
        assert!(!only_reads(open(), free()) && only_reads(closed(), free()));
        assert!(!only_reads(json!({}), path()));
    }
}
