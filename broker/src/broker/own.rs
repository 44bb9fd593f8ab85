//! airlock's own tools, which scripts find under `airlock`: finding tools and
//! reading about them without a round trip to the model, and having a value read.
//! They are listed, checked, decided and journaled like a server's; who answers them
//! is the session's librarian, and whoever reads values for it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use airlock_core::catalog::{Check, OWN_SERVER, Whose};
use airlock_core::facts::Writes;
use airlock_core::flow::{Label, Labelling, Labels, Sayings};
use airlock_core::id::{Digest, ToolId};
use airlock_core::outcome::{LostCause, Reply};
use codegen::description::{Description, Shorthand};
use codegen::validate::Validator;
use serde_json::{Map, Value, json};

use super::offered::Offered;
use crate::config::Trust;

const SEARCH: &str = "search";
const DESCRIBE: &str = "describe";
const EXTRACT: &str = "extract";

/// Answers what a script asks about tools, for the session that its run belongs to. An error
/// says what is wrong with the question.
pub trait Librarian: Send + Sync {
    /// Which tools fit, best first.
    fn search(&self, args: &Map<String, Value>) -> Result<Value, String>;

    /// The full descriptions of tools by name.
    fn describe(&self, args: &Map<String, Value>) -> Result<Described, String>;
}

/// Descriptions as the script gets them, and whose they are: the run may call those from now on.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    pub value: Value,
    pub disclosed: Vec<(ToolId, Digest)>,
}

/// Which of them there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Own {
    /// `search` and `describe`.
    pub(crate) discovery: bool,
    /// `extract`.
    pub(crate) extraction: bool,
}

/// As a server would list them.
pub(super) fn offered(own: Own) -> Offered {
    Offered {
        trust: Trust::own(),
        ..Offered::of(OWN_SERVER.to_owned(), own.listed())
    }
}

/// The same for a check without a broker.
pub(crate) fn descriptions(own: Own) -> Vec<Description> {
    let parsed = |tool: &Value| Description::parse(OWN_SERVER, tool).ok();
    let all = own.listed();
    all.iter().filter_map(parsed).map(shortened).collect()
}

impl Own {
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
        "description": "Has a model read a value, such as text, into JSON that fits a JSON Schema.",
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
        "description": "Reads full descriptions; what was described can be called afterwards.",
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

/// With the ways besides in which scripts may call a tool of this server.
pub(super) fn shortened(description: Description) -> Description {
    let shorthand = match (&*description.server, &*description.name) {
        (OWN_SERVER, SEARCH) => Shorthand {
            is_global: false,
            order: &["query"],
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

/// What has to be known of a tool of this server before it is called.
pub(crate) fn whose(server: &str, tool: &str) -> Whose {
    match (server, tool) {
        (OWN_SERVER, EXTRACT) => Whose::OwnBeyond,
        (OWN_SERVER, _) => Whose::OwnWithin,
        _ => Whose::Other,
    }
}

/// What a tool is labelled with: what is said of it, on top of what is known.
pub(crate) fn labelling(whose: Whose, tool: &ToolId, sayings: &Sayings) -> Labelling {
    match known_of(whose) {
        Some(known) => sayings.labelling_over(tool, known),
        None => sayings.labelling(tool),
    }
}

/// Descriptions are what servers wrote, and asking for them reaches nobody. What reads a value
/// gets to see it, and brings in nothing that the run has not read.
fn known_of(whose: Whose) -> Option<Labelling> {
    let (reads, external) = match whose {
        Whose::Other => return None,
        Whose::OwnWithin => (Labels::from_iter([Label::untrusted()]), false),
        Whose::OwnBeyond => (Labels::default(), true),
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

/// Of a schema that is an argument, it is known beforehand whether it makes sense.
pub(super) fn checked(whose: Whose, input: Check) -> Check {
    if whose != Whose::OwnBeyond {
        return input;
    }
    Check::new(move |args| {
        let findings = input.findings(args);
        let schema = args.get("schema").filter(|_| findings.is_empty());
        match schema.map(Validator::compile) {
            Some(Err(bad)) => vec![format!("args.schema: it cannot be used: {bad}")],
            _ => findings,
        }
    })
}

/// The reply of the librarian, and what it has disclosed.
pub(crate) fn ask(
    librarian: &dyn Librarian,
    tool: &ToolId,
    args: &Value,
) -> (Reply, Vec<(ToolId, Digest)>) {
    let nothing = Map::new();
    let args = args.as_object().unwrap_or(&nothing);
    let asked = || match &*tool.tool.0 {
        DESCRIBE => librarian.describe(args),
        _ => librarian.search(args).map(|value| Described {
            value,
            disclosed: Vec::new(),
        }),
    };
    match catch_unwind(AssertUnwindSafe(asked)) {
        Ok(Ok(Described { value, disclosed })) => {
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
