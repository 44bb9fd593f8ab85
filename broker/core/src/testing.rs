//! Short constructors for tools, catalogs, rules and calls in the tests of this crate.

use std::sync::Arc;

use serde_json::Value;

use crate::call::{Args, Call, Site};
use crate::catalog::{Catalog, Effects, Server, Tool, ToolOwner, Validate, ValueCheck};
use crate::decide::DecisionContext;
use crate::grant::{Binding, Grants};
use crate::id::{CallId, Digest, RunId, ServerName, ToolId};
use crate::journal::{Piece, Redact};
use crate::level::Level;
use crate::limits::Limits;
use crate::rules::{PatternRule, Rules};
use crate::tool_pattern::ToolPattern;

/// Returns a redaction that handles all texts alike.
pub(crate) fn redact_texts(
    redact: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
) -> Redact {
    Redact::new(move |piece| match piece {
        Piece::Text(text) | Piece::Member { text, .. } => redact(text),
        Piece::Number(_) => None,
    })
}

/// Returns a tool that accepts every argument except `bad`.
pub(crate) fn tool(id: &str) -> Tool {
    let id = ToolId::parse(id).unwrap();
    Tool {
        member: id.tool.0.to_string(),
        flat: String::new(),
        short: String::new(),
        order: &[],
        description_digest: Digest::sha256(id.to_string().as_bytes()),
        upstream_digest: Digest::sha256(id.to_string().as_bytes()),
        owner: ToolOwner::Other,
        effects: Effects::default(),
        labelling: Arc::default(),
        pinned: None,
        denied: false,
        stale: false,
        unwrap: false,
        args_check: ValueCheck::new(|args| match args.get("bad") {
            Some(_) => vec!["`bad` is not expected".into()],
            None => Vec::new(),
        }),
        likely_mistakes: None,
        result_check: None,
        id,
    }
}

/// Returns an unusable check.
pub(crate) fn unusable() -> ValueCheck {
    struct Unusable;
    impl Validate for Unusable {
        fn findings(&self, _: &Value) -> Vec<String> {
            Vec::new()
        }
        fn unusable(&self) -> Option<String> {
            Some("the schema is invalid".into())
        }
    }
    ValueCheck::from_validator(Unusable)
}

pub(crate) fn catalog(ids: &[&str]) -> Catalog {
    catalog_of(ids.iter().map(|id| tool(id)).collect())
}

/// Returns a catalog with the tools in the given order, and servers in the order of their first
/// tool.
pub(crate) fn catalog_of(tools: Vec<Tool>) -> Catalog {
    let mut servers: Vec<Server> = Vec::new();
    for tool in tools {
        match servers
            .iter_mut()
            .find(|server| server.name == tool.id.server)
        {
            Some(server) => server.tools.push(Arc::new(tool)),
            None => servers.push(Server {
                name: ServerName::parse(&tool.id.server.0).unwrap(),
                global: tool.id.server.0.to_string(),
                target: None,
                tools: vec![Arc::new(tool)],
            }),
        }
    }
    Catalog::new(servers).unwrap()
}

/// Returns rules such as `deny fs.*`; a call that no rule matches is denied.
pub(crate) fn rules(spec: &[&str]) -> Rules {
    let rule = |line: &&str| {
        let (level, pattern) = line.split_once(' ').unwrap();
        let level = match level {
            "allow" => Level::Allow,
            "ask" => Level::AskRun,
            "ask-call" => Level::AskCall,
            _ => Level::Deny,
        };
        PatternRule {
            level,
            pattern: ToolPattern::parse(pattern).unwrap(),
            origin: None,
        }
    };
    Rules::new(spec.iter().map(rule).collect(), false)
}

pub(crate) fn decision_context(spec: &[&str]) -> DecisionContext {
    let catalog = catalog(&["fs.read", "fs.write", "fs.delete", "net.get"]);
    DecisionContext {
        catalog: Arc::new(catalog),
        rules: Arc::new(rules(spec)),
        disclosed: crate::session::DisclosedTools::All,
        no_extractor: None,
    }
}

pub(crate) fn args(text: &str) -> Args {
    Args::parse(text.as_bytes(), &Limits::default()).unwrap()
}

pub(crate) fn call(id: u32, tool: &str, text: &str) -> Call {
    Call {
        id: CallId(id),
        tool: ToolId::parse(tool).unwrap(),
        args: args(text),
        site: Site::default(),
        facts: None,
        history: crate::call::CallHistory::default(),
    }
}

/// Returns an empty set of grants, for a run of the script `s` under the rules `p`.
pub(crate) fn grants() -> Grants {
    let binding = Binding {
        run: RunId("r1".into()),
        script: Digest::sha256(b"s"),
        policy: Digest::sha256(b"p"),
        approver: "test".into(),
        scopes: Vec::new(),
    };
    Grants::new(binding, 0)
}
