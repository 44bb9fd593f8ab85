//! Short ways to say a tool, a catalog, rules and a call, for the tests of this crate.

use std::sync::Arc;

use serde_json::Value;

use crate::call::{Args, Call, Site};
use crate::catalog::{Catalog, Check, Effects, Looks, Server, Tool, Whose};
use crate::decide::Standing;
use crate::grant::{Binding, Grants};
use crate::id::{CallId, Digest, RunId, ServerName, ToolId};
use crate::limits::Limits;
use crate::rules::{Level, Pattern, Rule, Rules};

/// A tool that takes every argument but `bad`.
pub(crate) fn tool(id: &str) -> Tool {
    let id = ToolId::parse(id).unwrap();
    Tool {
        member: id.tool.0.to_string(),
        flat: String::new(),
        short: String::new(),
        order: &[],
        description_digest: Digest::of(id.to_string().as_bytes()),
        upstream_digest: Digest::of(id.to_string().as_bytes()),
        whose: Whose::Other,
        effects: Effects::default(),
        labelling: Arc::default(),
        pinned: None,
        stale: false,
        unwrap: false,
        input: Check::new(|args| match args.get("bad") {
            Some(_) => vec!["`bad` is not expected".into()],
            None => Vec::new(),
        }),
        doubts: None,
        output: None,
        id,
    }
}

/// A check that nobody can use.
pub(crate) fn unusable() -> Check {
    struct Unusable;
    impl Looks for Unusable {
        fn findings(&self, _: &Value) -> Vec<String> {
            Vec::new()
        }
        fn unusable(&self) -> Option<String> {
            Some("its schema makes no sense".into())
        }
    }
    Check::of(Unusable)
}

pub(crate) fn catalog(ids: &[&str]) -> Catalog {
    catalog_of(ids.iter().map(|id| tool(id)).collect())
}

/// The tools in the order given, servers in the order of their first tool.
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
                tools: vec![Arc::new(tool)],
            }),
        }
    }
    Catalog::new(servers).unwrap()
}

/// Rules such as `deny fs.*`; what no rule names is denied.
pub(crate) fn rules(spec: &[&str]) -> Rules {
    let rule = |line: &&str| {
        let (level, pattern) = line.split_once(' ').unwrap();
        let level = match level {
            "allow" => Level::Allow,
            "ask" => Level::AskRun,
            "ask-call" => Level::AskCall,
            _ => Level::Deny,
        };
        Rule {
            level,
            pattern: Pattern::parse(pattern).unwrap(),
            origin: None,
        }
    };
    Rules::new(spec.iter().map(rule).collect(), false)
}

pub(crate) fn standing(spec: &[&str]) -> Standing {
    let catalog = catalog(&["fs.read", "fs.write", "fs.delete", "net.get"]);
    Standing {
        catalog: Arc::new(catalog),
        rules: Arc::new(rules(spec)),
        disclosed: crate::session::Disclosed::All,
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
    }
}

/// No grants yet, in a run of the script `s` under the rules `p`.
pub(crate) fn grants() -> Grants {
    let binding = Binding {
        run: RunId("r1".into()),
        script: Digest::of(b"s"),
        policy: Digest::of(b"p"),
        approver: "test".into(),
        scopes: Vec::new(),
    };
    Grants::new(binding, 0)
}
