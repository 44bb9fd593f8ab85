//! The tools that a run may see: their names for the script and for rules, the digests of their
//! descriptions, their labels and their checks. The shell builds the catalog from the pinned
//! descriptions. The catalog does not change during a run.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use sandbox_protocol::{OpenCall, ServerStubs, ToolStub};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{Digest, ServerName, ToolId};
use crate::labels::Labelling;

/// The server name of airlock's own tools.
pub const OWN_SERVER: &str = "airlock";

#[derive(Debug, Clone)]
pub struct Tool {
    pub id: ToolId,
    /// Name of the tool as a member of the server's object: `server.member(...)`.
    pub member: String,
    /// Flat name, `server_tool(...)`; empty if it would collide with another name.
    pub flat: String,
    /// An additional global name; empty for all but a few of airlock's own tools.
    pub short: String,
    /// Argument names in order, for scripts that pass positional arguments instead of one object.
    pub order: &'static [&'static str],
    pub description_digest: Digest,
    /// Digest of the upstream description: what the server sends, without any tool file.
    pub upstream_digest: Digest,
    pub owner: ToolOwner,
    pub effects: Effects,
    /// The tool's labels and effects, according to the configuration.
    pub labelling: Arc<Labelling>,
    /// Whether the description is the one in the lock file. Absent without a lock file.
    pub pinned: Option<bool>,
    /// Whether a rule denies every call of the tool. No list of tools shows it.
    pub denied: bool,
    /// Whether the server changed or removed the tool, and airlock could not load the change.
    pub stale: bool,
    /// Whether the declared result has the form `{result: X}`. The script then gets X itself.
    pub unwrap: bool,
    /// Checks the arguments against the pinned input schema before the call is sent. If the check
    /// is unusable, the call is refused.
    pub args_check: ValueCheck,
    /// Finds arguments that fit the schema but are probably a mistake. The report warns about them,
    /// and the call is still sent. `None` if the tool has no such check.
    pub likely_mistakes: Option<ValueCheck>,
    /// Checks the result against the output schema before the script gets it. `None` if the tool
    /// has no output schema. If the check is unusable, the result is not checked.
    pub result_check: Option<ValueCheck>,
}

impl Tool {
    /// Whether the tool only reads: the configuration says so, or the description that was accepted
    /// in the lock file.
    #[must_use]
    pub fn is_read(&self) -> bool {
        let is_claimed = self.effects.claims_read_only == Some(true);
        self.effects.is_known_read_only() || (self.pinned == Some(true) && is_claimed)
    }

    /// Whether a call can be repeated without harm: it only reads, or it is idempotent, according to
    /// the configuration or to the description that was accepted in the lock file. airlock's own
    /// tools change nothing.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        let is_claimed = self.effects.claims_idempotent == Some(true);
        self.owner.is_own()
            || self.is_read()
            || self.effects.idempotent == Some(true)
            || (self.pinned == Some(true) && is_claimed)
    }
}

/// The owner of a tool. It determines whether a call needs disclosure and an allowing rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolOwner {
    /// A tool of a server or of the host application. It must be disclosed, and a rule must allow
    /// the call.
    #[default]
    Other,
    /// airlock's own tool that passes its arguments to no server and no person. Calls need no
    /// allowing rule, but a rule can forbid them.
    OwnLocal,
    /// airlock's own tool that passes its arguments on to a server or a person. A rule must allow
    /// the call.
    OwnForwarding,
}

impl ToolOwner {
    #[must_use]
    pub fn is_own(self) -> bool {
        self != Self::Other
    }
}

/// The effects that a tool may have outside. The fields separate the configuration from a server's
/// claims, because no decision uses a claim.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effects {
    /// Whether the tool is read-only, according to the configuration, or to an annotation of a
    /// server whose annotations the configuration trusts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Whether the tool is destructive, according to the same sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Whether a second call with the same arguments has no further effect, according to the same
    /// sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// The server's `annotations.readOnlyHint`, shown to people as a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims_read_only: Option<bool>,
    /// The server's `annotations.destructiveHint`, shown to people as a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims_destructive: Option<bool>,
    /// The server's `annotations.idempotentHint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims_idempotent: Option<bool>,
}

impl Effects {
    #[must_use]
    pub fn is_known_read_only(self) -> bool {
        self.read_only == Some(true)
    }

    /// Whether neither the configuration nor the server says anything.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// Checks a value and returns one short sentence per finding (path, what was expected, closest
/// spelling). A valid value has no findings.
#[derive(Clone)]
pub struct ValueCheck(Arc<dyn Validate>);

/// The implementation behind a [`ValueCheck`].
pub trait Validate: Send + Sync {
    fn findings(&self, value: &Value) -> Vec<String>;

    /// Returns why no value can be checked, for example because the schema is invalid. An
    /// implementation may compile the schema only when this function is called.
    fn unusable(&self) -> Option<String> {
        None
    }
}

impl<F: Fn(&Value) -> Vec<String> + Send + Sync> Validate for F {
    fn findings(&self, value: &Value) -> Vec<String> {
        self(value)
    }
}

impl ValueCheck {
    pub fn new(check: impl Fn(&Value) -> Vec<String> + Send + Sync + 'static) -> Self {
        Self::from_validator(check)
    }

    pub fn from_validator(looks: impl Validate + 'static) -> Self {
        Self(Arc::new(looks))
    }

    /// Returns a check that accepts every value, for a tool whose schema has no constraints.
    #[must_use]
    pub fn anything() -> Self {
        Self::new(|_| Vec::new())
    }

    /// Returns no findings if the check is unusable, so callers must ask [`ValueCheck::unusable`]
    /// first.
    #[must_use]
    pub fn findings(&self, value: &Value) -> Vec<String> {
        self.0.findings(value)
    }

    #[must_use]
    pub fn unusable(&self) -> Option<String> {
        self.0.unusable()
    }
}

impl fmt::Debug for ValueCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ValueCheck")
    }
}

/// The tools of one server, in the order of the script's stubs.
#[derive(Debug, Clone)]
pub struct Server {
    pub name: ServerName,
    /// Name of the script's global object that has the tools as members; a valid identifier.
    pub global: String,
    /// How the server is reached, without secrets. `None` for tools of this process.
    pub target: Option<String>,
    pub tools: Vec<Arc<Tool>>,
}

impl Server {
    /// Whether these are airlock's own tools.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.tools.iter().any(|tool| tool.owner.is_own())
    }

    /// Returns the tools that a script may also call by the server's own name for them, such as
    /// `server["write-note"]`. Their stubs follow those of all tools. No list shows them.
    fn tools_under_own_names(&self) -> impl Iterator<Item = &Arc<Tool>> {
        let room = usize::from(u16::MAX) - self.tools.len();
        let members: HashSet<&str> = self.tools.iter().map(|it| it.member.as_str()).collect();
        let tools = self.tools.iter();
        let named = tools
            .filter(move |it| is_no_identifier(&it.id.tool.0) && !members.contains(&*it.id.tool.0));
        named.take(room)
    }
}

/// Whether a script can write this name only in brackets. The language gives no such name a meaning.
fn is_no_identifier(name: &str) -> bool {
    let is_letter = |it: char| it.is_alphanumeric() || matches!(it, '_' | '$');
    name.starts_with(|it: char| it.is_ascii_digit()) || !name.chars().all(is_letter)
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
    #[error("the name `{0}` would have two meanings in the script")]
    NameTwice(String),
    #[error("the tool `{tool}` is listed under another server, `{server}`")]
    WrongServer { tool: ToolId, server: String },
    #[error(
        "more than {} servers, or more than that many tools of one server",
        u16::MAX
    )]
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

    /// Whether there is any tool that is not airlock's own.
    #[must_use]
    pub fn has_others(&self) -> bool {
        self.tools().any(|tool| !tool.owner.is_own())
    }

    #[must_use]
    pub fn find(&self, id: &ToolId) -> Option<&Arc<Tool>> {
        self.by_id.get(id)
    }

    /// Returns how a server is reached.
    #[must_use]
    pub fn target_of(&self, server: &ServerName) -> Option<&str> {
        let server = self.servers.iter().find(|it| it.name == *server)?;
        server.target.as_deref()
    }

    /// Returns the tool of a guest's call, which contains two indexes into [`Catalog::stubs`]. Only
    /// a run knows which catalog its guest was started with, so this is private to the crate.
    #[must_use]
    pub(crate) fn tool_of_call(&self, call: &OpenCall) -> Option<&Arc<Tool>> {
        let server = self.servers.get(usize::from(call.server))?;
        let place = usize::from(call.tool);
        match place.checked_sub(server.tools.len()) {
            None => server.tools.get(place),
            Some(place) => server.tools_under_own_names().nth(place),
        }
    }

    /// Returns a catalog with the same tools in the same order, and updates their `stale` flags.
    #[must_use]
    pub fn with_stale(&self, is_stale: impl Fn(&Tool) -> bool) -> Self {
        self.changed(|tool| {
            let stale = is_stale(tool);
            (tool.stale != stale).then(|| Tool {
                stale,
                ..tool.clone()
            })
        })
    }

    /// Returns a catalog with the same tools in the same order, and updates their `denied` flags.
    #[must_use]
    pub fn with_denied(&self, is_denied: impl Fn(&Tool) -> bool) -> Self {
        self.changed(|tool| {
            let denied = is_denied(tool);
            (tool.denied != denied).then(|| Tool {
                denied,
                ..tool.clone()
            })
        })
    }

    fn changed(&self, change: impl Fn(&Tool) -> Option<Tool>) -> Self {
        let mut changed = self.clone();
        for tool in changed.servers.iter_mut().flat_map(|it| &mut it.tools) {
            if let Some(other) = change(tool) {
                *tool = Arc::new(other);
                changed.by_id.insert(tool.id.clone(), Arc::clone(tool));
            }
        }
        changed
    }

    /// Returns the tool stubs with which the guest is started.
    #[must_use]
    pub fn stubs(&self) -> Vec<ServerStubs> {
        let stub = |tool: &Arc<Tool>| ToolStub {
            member: tool.member.clone(),
            flat: tool.flat.clone(),
            short: tool.short.clone(),
            order: tool.order.iter().map(ToString::to_string).collect(),
            hidden: tool.denied,
        };
        let under_own_name = |tool: &Arc<Tool>| ToolStub {
            member: tool.id.tool.0.to_string(),
            flat: String::new(),
            short: String::new(),
            hidden: true,
            ..stub(tool)
        };
        let stubs = |server: &Server| {
            let also = server.tools_under_own_names().map(under_own_name);
            server.tools.iter().map(stub).chain(also).collect()
        };
        self.servers
            .iter()
            .map(|server| ServerStubs {
                name: server.global.clone(),
                tools: stubs(server),
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

    #[test]
    fn tool_can_be_called_by_its_own_name_too() {
        let named = |name: &str, member: &str| {
            let mut named = tool(&format!("s.{name}"));
            named.member = member.to_owned();
            Arc::new(named)
        };
        let tools = vec![
            named("write-note", "write_note"),
            named("read", "read"),
            named("2fa", "_2fa"),
            // The language gives this name a meaning.
            named("then", "then_"),
        ];
        let catalog = Catalog::new(vec![Server {
            name: ServerName("s".into()),
            global: "s".into(),
            target: None,
            tools,
        }]);
        let catalog = catalog.unwrap();
        let stubs = catalog.stubs().remove(0).tools;
        let names: Vec<_> = stubs.iter().map(|it| (&*it.member, it.hidden)).collect();
        assert_eq!(
            names,
            [
                ("write_note", false),
                ("read", false),
                ("_2fa", false),
                ("then_", false),
                ("write-note", true),
                ("2fa", true),
            ]
        );
        let called = |place| {
            let call = OpenCall {
                ticket: sandbox_protocol::CallTicket(0),
                server: 0,
                tool: place,
                args: Vec::new(),
                line: 0,
                column: 0,
            };
            catalog
                .tool_of_call(&call)
                .map(|it| it.id.tool.0.to_string())
        };
        assert_eq!(called(0).as_deref(), Some("write-note"));
        assert_eq!(called(4).as_deref(), Some("write-note"));
        assert_eq!(called(5).as_deref(), Some("2fa"));
        assert_eq!(called(6), None);
    }

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
            target: None,
            tools,
        };
        let found = Catalog::new(vec![server]).map(|catalog| catalog.tools().count());
        assert_eq!(found, expected);
    }

    #[test]
    fn duplicate_tool_or_name_is_refused() {
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
    fn repeatable_tool_is_configured_or_accepted() {
        let claims = Effects {
            claims_idempotent: Some(true),
            claims_read_only: Some(true),
            ..Effects::default()
        };
        let idempotent = Effects {
            idempotent: Some(true),
            ..Effects::default()
        };
        for (effects, pinned, expected) in [
            (Effects::default(), None, false),
            (idempotent, None, true),
            (claims, None, false),
            (claims, Some(false), false),
            (claims, Some(true), true),
        ] {
            let tool = Tool {
                effects,
                pinned,
                ..tool("fs.put")
            };
            assert_eq!(tool.is_repeatable(), expected, "{effects:?} {pinned:?}");
        }
    }

    #[test]
    fn server_claim_is_not_trusted() {
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
