//! The tools that a run may see: their names for the script and for rules, the
//! digest of their descriptions, and what may be known of them. The shell
//! builds it from the pinned descriptions; nothing here changes during a run.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use sandbox_protocol::{OpenCall, ServerStubs, ToolStub};
use serde_json::Value;

use crate::flow::Labelling;
use crate::id::{Digest, ServerName, ToolId};

/// The server's name of airlock's own tools.
pub const OWN_SERVER: &str = "airlock";

#[derive(Debug, Clone)]
pub struct Tool {
    pub id: ToolId,
    /// Member of the server's object: `server.member(...)`.
    pub member: String,
    /// Name of the flat form, `server_tool(...)`; empty when it would collide.
    pub flat: String,
    /// A global of its own besides; empty for all but a few of our own.
    pub short: String,
    /// The names of its arguments for a script that gives values instead of one object.
    pub order: &'static [&'static str],
    pub description_digest: Digest,
    /// Of what its server itself says of it, without any tool file.
    pub upstream_digest: Digest,
    pub whose: Whose,
    pub effects: Effects,
    /// What it reads and writes, as our configuration says.
    pub labelling: Arc<Labelling>,
    /// The description is the one in the lock file; absent without a lock file.
    pub pinned: Option<bool>,
    /// Its server says something else of it by now, or has it no more, and that could not be
    /// taken in.
    pub stale: bool,
    /// The declared result is just `{result: X}`, and the script gets the X.
    pub unwrap: bool,
    /// Against the pinned input schema, before anything leaves. A tool is not called when it
    /// cannot be used.
    pub input: Check,
    /// What the input schema lets pass and is probably a mistake: the report warns of it, and
    /// the call goes on. None where nobody looks.
    pub doubts: Option<Check>,
    /// Against the output schema, before the script sees the value; none when it has none. One
    /// that cannot be used is as none.
    pub output: Option<Check>,
}

/// Whose a tool is, and so what has to come before a call of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Whose {
    /// A server's or the host application's: it is disclosed, and rules allow it.
    #[default]
    Other,
    /// airlock's own, and it reaches nobody: nothing has to come before, and rules can forbid it.
    OwnWithin,
    /// airlock's own, and what it is given goes to somebody: rules allow it.
    OwnBeyond,
}

impl Whose {
    #[must_use]
    pub fn is_own(self) -> bool {
        self != Self::Other
    }
}

/// What a tool may do outside. What we were told by the owner of this machine
/// and what a server claims of itself are kept apart: a claim decides nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effects {
    /// Our configuration says so, of this tool or of a server that it trusts.
    pub read_only: Option<bool>,
    /// Likewise, that it destroys something.
    pub destructive: Option<bool>,
    /// `annotations.readOnlyHint`, shown to a person as a claim.
    pub claims_read_only: Option<bool>,
    /// `annotations.destructiveHint`, likewise.
    pub claims_destructive: Option<bool>,
}

impl Effects {
    #[must_use]
    pub fn is_known_read_only(self) -> bool {
        self.read_only == Some(true)
    }
}

/// Looks at a value and says what is wrong with it: one short sentence per
/// finding (path, what was expected, closest spelling), none when it fits.
#[derive(Clone)]
pub struct Check(Arc<dyn Looks>);

/// What a [`Check`] does.
pub trait Looks: Send + Sync {
    fn findings(&self, value: &Value) -> Vec<String>;

    /// Why nothing can be held against it, such as a schema that makes no sense. Nobody knows
    /// before it is needed first.
    fn unusable(&self) -> Option<String> {
        None
    }
}

impl<F: Fn(&Value) -> Vec<String> + Send + Sync> Looks for F {
    fn findings(&self, value: &Value) -> Vec<String> {
        self(value)
    }
}

impl Check {
    pub fn new(check: impl Fn(&Value) -> Vec<String> + Send + Sync + 'static) -> Self {
        Self::of(check)
    }

    pub fn of(looks: impl Looks + 'static) -> Self {
        Self(Arc::new(looks))
    }

    /// For a tool whose schema says nothing.
    #[must_use]
    pub fn anything() -> Self {
        Self::new(|_| Vec::new())
    }

    /// Nothing where it cannot be used: whoever relies on it asks for that first.
    #[must_use]
    pub fn findings(&self, value: &Value) -> Vec<String> {
        self.0.findings(value)
    }

    #[must_use]
    pub fn unusable(&self) -> Option<String> {
        self.0.unusable()
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Check")
    }
}

/// One server's tools, in the order in which the script's stubs have them.
#[derive(Debug, Clone)]
pub struct Server {
    pub name: ServerName,
    /// The script's global that carries them; an identifier.
    pub global: String,
    pub tools: Vec<Arc<Tool>>,
}

impl Server {
    /// Whether it carries airlock's own tools.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.tools.iter().any(|tool| tool.whose.is_own())
    }
}

#[derive(Debug, Clone, Default)]
pub struct Catalog {
    servers: Vec<Server>,
    by_id: HashMap<ToolId, Arc<Tool>>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCatalog {
    #[error("duplicate tool `{0}`")]
    ToolTwice(ToolId),
    #[error("two things in the script's world would be called `{0}`")]
    NameTwice(String),
    #[error("`{tool}` is listed under the server `{server}`")]
    WrongServer { tool: ToolId, server: String },
    #[error("more than {} servers, or tools of one server", u16::MAX)]
    TooMany,
}

impl Catalog {
    pub fn new(servers: Vec<Server>) -> Result<Self, BadCatalog> {
        let mut names = HashSet::new();
        let mut by_id = HashMap::new();
        if servers.len() > usize::from(u16::MAX) {
            return Err(BadCatalog::TooMany);
        }
        for server in &servers {
            claim(&mut names, &server.global)?;
            let mut members = HashSet::new();
            if server.tools.len() > usize::from(u16::MAX) {
                return Err(BadCatalog::TooMany);
            }
            for tool in &server.tools {
                claim(&mut members, &tool.member)?;
                for name in [&tool.flat, &tool.short] {
                    if !name.is_empty() {
                        claim(&mut names, name)?;
                    }
                }
                if tool.id.server != server.name {
                    let server = server.name.0.to_string();
                    return Err(BadCatalog::WrongServer {
                        tool: tool.id.clone(),
                        server,
                    });
                }
                if by_id.insert(tool.id.clone(), Arc::clone(tool)).is_some() {
                    return Err(BadCatalog::ToolTwice(tool.id.clone()));
                }
            }
        }
        Ok(Self { servers, by_id })
    }

    #[must_use]
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    pub fn tools(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.servers.iter().flat_map(|server| &server.tools)
    }

    /// Whether there is any tool besides airlock's own.
    #[must_use]
    pub fn has_others(&self) -> bool {
        self.tools().any(|tool| !tool.whose.is_own())
    }

    #[must_use]
    pub fn find(&self, id: &ToolId) -> Option<&Arc<Tool>> {
        self.by_id.get(id)
    }

    /// The tool that a guest means by its two indexes into [`Catalog::stubs`]. Only a run knows
    /// which catalog its guest was started with, so nobody outside of this crate may ask.
    #[must_use]
    pub(crate) fn meant(&self, call: &OpenCall) -> Option<&Arc<Tool>> {
        self.servers
            .get(usize::from(call.server))?
            .tools
            .get(usize::from(call.tool))
    }

    /// The same tools in the same places, those that are stale marked as such.
    #[must_use]
    pub fn with_stale(&self, is_stale: impl Fn(&Tool) -> bool) -> Self {
        let mut marked = self.clone();
        for server in &mut marked.servers {
            for tool in &mut server.tools {
                let stale = is_stale(tool);
                if tool.stale != stale {
                    Arc::make_mut(tool).stale = stale;
                    marked.by_id.insert(tool.id.clone(), Arc::clone(tool));
                }
            }
        }
        marked
    }

    /// What the guest is started with.
    #[must_use]
    pub fn stubs(&self) -> Vec<ServerStubs> {
        let stub = |tool: &Arc<Tool>| ToolStub {
            member: tool.member.clone(),
            flat: tool.flat.clone(),
            short: tool.short.clone(),
            order: tool.order.iter().map(ToString::to_string).collect(),
        };
        self.servers
            .iter()
            .map(|server| ServerStubs {
                name: server.global.clone(),
                tools: server.tools.iter().map(stub).collect(),
            })
            .collect()
    }
}

fn claim<'a>(names: &mut HashSet<&'a str>, name: &'a str) -> Result<(), BadCatalog> {
    if names.insert(name) {
        Ok(())
    } else {
        Err(BadCatalog::NameTwice(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tool;

    fn check(tools: &[(&str, &str)], expected: Result<usize, BadCatalog>) {
        let tools = tools
            .iter()
            .map(|(id, member)| {
                Arc::new(Tool {
                    member: (*member).into(),
                    ..tool(id)
                })
            })
            .collect();
        let server = Server {
            name: ServerName::parse("fs").unwrap(),
            global: "fs".into(),
            tools,
        };
        let found = Catalog::new(vec![server]).map(|catalog| catalog.tools().count());
        assert_eq!(found, expected);
    }

    #[test]
    fn each_tool_and_each_name_stands_once() {
        check(&[("fs.a", "a"), ("fs.b", "b")], Ok(2));
        check(
            &[("fs.a-b", "a_b"), ("fs.a_b", "a_b")],
            Err(BadCatalog::NameTwice("a_b".into())),
        );
        check(
            &[("fs.a", "a"), ("fs.a", "b")],
            Err(BadCatalog::ToolTwice(ToolId::parse("fs.a").unwrap())),
        );
        check(
            &[("git.a", "a")],
            Err(BadCatalog::WrongServer {
                tool: ToolId::parse("git.a").unwrap(),
                server: "fs".into(),
            }),
        );
    }

    #[test]
    fn a_claim_of_the_server_is_not_knowledge() {
        let claimed = Effects {
            claims_read_only: Some(true),
            ..Effects::default()
        };
        assert!(!claimed.is_known_read_only());
        assert!(
            Effects {
                read_only: Some(true),
                ..claimed
            }
            .is_known_read_only()
        );
    }
}
