//! airlock's own tools, which scripts find under `airlock`. They find tools and read their
//! descriptions without a round trip to the model, and extract values from text. They are listed,
//! checked, decided and journaled like a server's tools. The session's [`ToolDiscovery`] and its
//! extractor answer the calls.

use std::panic::{AssertUnwindSafe, catch_unwind};

use airlock_core::catalog::{OWN_SERVER, ToolOwner, ValueCheck};
use airlock_core::flow::LabelConfig;
use airlock_core::id::{Digest, ToolId};
use airlock_core::labels::{Label, Labelling, Labels, Writes};
use airlock_core::outcome::{LostCause, Reply};
use codegen::description::{Description, Shorthand};
use codegen::validate::Validator;
use serde_json::{Map, Value, json};

use super::server_tools::ServerTools;
use crate::config::ToolTrust;

const SEARCH: &str = "search";
const DESCRIBE: &str = "describe";
const EXTRACT: &str = "extract";

/// Answers a script's questions about tools, for the session of the run. An error explains what is
/// wrong with the question.
pub trait ToolDiscovery: Send + Sync {
    /// Returns the tools that match, best first.
    fn search(&self, args: &Map<String, Value>) -> Result<Value, String>;

    /// Returns the full descriptions of tools by name.
    fn describe(&self, args: &Map<String, Value>) -> Result<DescribedTools, String>;
}

/// Descriptions as the script gets them, and the tools that they disclose. The run may call these
/// tools from now on.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribedTools {
    pub value: Value,
    pub disclosed: Vec<(ToolId, Digest)>,
}

/// Which of airlock's own tools are enabled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OwnTools {
    /// Whether `airlock.search` and `airlock.describe` are enabled.
    pub(crate) discovery: bool,
    /// Whether `airlock.extract` is enabled.
    pub(crate) extraction: bool,
}

/// Returns the enabled tools in the form in which a server lists its tools.
pub(super) fn offered(own: OwnTools) -> ServerTools {
    ServerTools {
        trust: ToolTrust::own(),
        ..ServerTools::new(OWN_SERVER.to_owned(), own.listed())
    }
}

/// Returns the descriptions of the enabled tools, for a check without a broker.
pub(crate) fn descriptions(own: OwnTools) -> Vec<Description> {
    let parsed = |tool: &Value| Description::parse(OWN_SERVER, tool).ok();
    let all = own.listed();
    all.iter().filter_map(parsed).map(shortened).collect()
}

impl OwnTools {
    pub(super) fn is_any(self) -> bool {
        self.discovery || self.extraction
    }

    fn listed(self) -> Vec<Value> {
        let discovery = if self.discovery {
            discovery()
        } else {
            Vec::new()
        };
        let extraction = self.extraction.then(extraction);
        discovery.into_iter().chain(extraction).collect()
    }
}

fn extraction() -> Value {
    json!({
        "name": EXTRACT,
        "description": "Lets a model convert a value, such as text, to JSON that fits a JSON Schema.",
        "inputSchema": {
            "type": "object",
            "properties": {"value": {}, "schema": {"type": "object"}},
            "required": ["value", "schema"],
            "additionalProperties": false,
        },
    })
}

fn discovery() -> Vec<Value> {
    let names = json!({"type": "array", "items": {"type": "string"}});
    let found = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "server": {"type": "string"},
            "description": {"type": "string"},
        },
        "required": ["name", "server", "description"],
    });
    let search = json!({
        "name": SEARCH,
        "description": "Finds tools by what they do, best first.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "mode": {"type": "string", "enum": ["words", "regex"]},
                "servers": names,
                "groups": names,
                "tags": names,
                "category": {"type": "string"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50},
            },
            "additionalProperties": false,
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "tools": {"type": "array", "items": found},
                "total": {"type": "integer"},
            },
            "required": ["tools", "total"],
        },
        "annotations": {"readOnlyHint": true},
    });
    let describe = json!({
        "name": DESCRIBE,
        "description": "Reads full descriptions of tools, which can be called afterwards.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "tools": {"anyOf": [names, {"type": "string"}]},
                "format": {"type": "string", "enum": ["typescript", "json"]},
            },
            "required": ["tools"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": true},
    });
    vec![search, describe]
}

/// Adds the short forms in which scripts may call airlock's own tools.
pub(super) fn shortened(description: Description) -> Description {
    let shorthand = match (&*description.server, &*description.name) {
        (OWN_SERVER, SEARCH) => Shorthand {
            is_global: false,
            order: &["query"],
        },
        (OWN_SERVER, DESCRIBE) => Shorthand {
            is_global: false,
            order: &["tools", "format"],
        },
        (OWN_SERVER, EXTRACT) => Shorthand {
            is_global: true,
            order: &["value", "schema"],
        },
        _ => Shorthand::default(),
    };
    Description {
        shorthand,
        ..description
    }
}

/// Returns whether a tool is airlock's own, and if so whether the broker passes its arguments on.
pub(crate) fn owner(server: &str, tool: &str) -> ToolOwner {
    match (server, tool) {
        (OWN_SERVER, EXTRACT) => ToolOwner::OwnForwarding,
        (OWN_SERVER, _) => ToolOwner::OwnLocal,
        _ => ToolOwner::Other,
    }
}

/// Returns the labels of a tool: the configured ones, on top of those that airlock knows for its
/// own tools.
pub(crate) fn labelling(owner: ToolOwner, tool: &ToolId, label_config: &LabelConfig) -> Labelling {
    match known_of(owner) {
        Some(known) => label_config.labelling_over(tool, known),
        None => label_config.labelling(tool),
    }
}

/// Returns the known labels of airlock's own tools. Descriptions come from servers, and reading
/// them sends nothing. An extractor receives the value, and returns nothing that the run has not
/// read.
fn known_of(owner: ToolOwner) -> Option<Labelling> {
    let (reads, external) = match owner {
        ToolOwner::Other => return None,
        ToolOwner::OwnLocal => (Labels::from_iter([Label::untrusted()]), false),
        ToolOwner::OwnForwarding => (Labels::default(), true),
    };
    Some(Labelling {
        reads,
        writes: Writes {
            external,
            state: false,
        },
        ..Labelling::default()
    })
}

/// Adds a check of the schema that a call of `extract` contains as an argument.
pub(super) fn checked(owner: ToolOwner, input: ValueCheck) -> ValueCheck {
    if owner != ToolOwner::OwnForwarding {
        return input;
    }
    ValueCheck::new(move |args| {
        let findings = input.findings(args);
        let schema = args.get("schema").filter(|_| findings.is_empty());
        match schema.map(Validator::compile) {
            Some(Err(bad)) => vec![format!("args.schema: invalid schema: {bad}")],
            _ => findings,
        }
    })
}

/// Asks the session's tool discovery, and returns the reply with the tools that it disclosed.
pub(crate) fn ask(
    discovery: &dyn ToolDiscovery,
    tool: &ToolId,
    args: &Value,
) -> (Reply, Vec<(ToolId, Digest)>) {
    let nothing = Map::new();
    let args = args.as_object().unwrap_or(&nothing);
    let asked = || match &*tool.tool.0 {
        DESCRIBE => discovery.describe(args),
        _ => discovery.search(args).map(|value| DescribedTools {
            value,
            disclosed: Vec::new(),
        }),
    };
    match catch_unwind(AssertUnwindSafe(asked)) {
        Ok(Ok(DescribedTools { value, disclosed })) => {
            let structured_content = Some(value.to_string().into_bytes());
            let reply = Reply::Result {
                is_error: false,
                content: b"[]".to_vec(),
                structured_content,
            };
            (reply, disclosed)
        }
        Ok(Err(why)) => {
            let content = json!([{"type": "text", "text": why}]);
            let reply = Reply::Result {
                is_error: true,
                content: content.to_string().into_bytes(),
                structured_content: None,
            };
            (reply, Vec::new())
        }
        Err(_) => {
            let reply = Reply::Lost {
                why: "the search panicked".into(),
                cause: LostCause::Disconnected,
            };
            (reply, Vec::new())
        }
    }
}
