//! airlock's own tools, which scripts find under `airlock`: finding tools and
//! reading about them without a round trip to the model. They are listed, checked,
//! decided and journaled like a server's; who answers them is the session's librarian.

use std::panic::{AssertUnwindSafe, catch_unwind};

use airlock_core::catalog::{OWN_SERVER, Whose};
use airlock_core::facts::Writes;
use airlock_core::flow::{Label, Labelling, Labels};
use airlock_core::id::{Digest, ToolId};
use airlock_core::outcome::{LostCause, Reply};
use codegen::description::Description;
use serde_json::{Map, Value, json};

use super::tools::Offered;
use crate::config::Trust;
use crate::lock_file::Pin;

const SEARCH: &str = "search";
const DESCRIBE: &str = "describe";

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

/// As a server would list them.
pub(super) fn offered() -> Offered {
    Offered {
        server: OWN_SERVER.to_owned(),
        trust: Trust::own(),
        target: None,
        says: None,
        pin: Pin::Free,
        tools: listed(),
    }
}

/// The same for a check without a broker.
pub(crate) fn descriptions() -> Vec<Description> {
    let parsed = |tool: &Value| Description::parse(OWN_SERVER, tool).ok();
    listed().iter().filter_map(parsed).collect()
}

fn listed() -> Vec<Value> {
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

/// What has to be known of a tool of this server before it is called.
pub(super) fn whose(server: &str) -> Whose {
    if server == OWN_SERVER {
        Whose::OwnWithin
    } else {
        Whose::Other
    }
}

/// Descriptions are what servers wrote; asking for them reaches nobody.
pub(super) fn labelling() -> Labelling {
    Labelling {
        reads: Labels::from_iter([Label::untrusted()]),
        writes: Writes {
            external: false,
            state: false,
        },
        ..Labelling::default()
    }
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
