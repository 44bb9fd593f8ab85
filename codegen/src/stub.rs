//! The globals that the sandbox defines: one for each server, with a member for each tool, and a
//! flat name for each tool.

use std::collections::BTreeMap;
use std::fmt;

use crate::description::Description;
use crate::names;

/// The stubs of a run. Sorted by server and wire name, so that the order of the descriptions has no
/// effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StubTable {
    pub servers: Vec<ServerStubs>,
    /// Explanations for users who look for a tool under its original name.
    pub notes: Vec<NameNote>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStubs {
    /// The server's name in airlock's configuration.
    pub server: String,
    /// The global for the server; an identifier.
    pub global: String,
    pub tools: Vec<ToolStub>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolStub {
    /// Index into the descriptions that the table was built from.
    pub description: usize,
    pub wire_name: String,
    /// The member in `global.member(...)`; unique within the server.
    pub member: String,
    /// The flat name in `global_member(...)`; `None` if it is taken or ambiguous.
    pub flat: Option<String>,
    /// A global with the name of the member. Only a few of airlock's own tools have one, and only
    /// if no other global has the name.
    pub short: Option<String>,
    /// The order of the arguments, for a script that passes values instead of one object.
    pub order: &'static [&'static str],
    /// Whether results are `{result: X}` and the script gets `X`.
    pub unwrap: bool,
    /// Present if the tool is deprecated; the text may be empty.
    pub deprecated: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameNote {
    Renamed {
        server: String,
        wire_name: String,
        member: String,
    },
    /// Several tools or servers would have this flat name, so none of them gets it.
    FlatCollision { flat: String, tools: Vec<String> },
    /// The server listed the same name twice; the first description is used.
    Repeated { server: String, wire_name: String },
}

impl fmt::Display for NameNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Renamed {
                server,
                wire_name,
                member,
            } => {
                write!(f, "tool `{wire_name}` of {server} is called as `{member}`")
            }
            Self::FlatCollision { flat, tools } => {
                write!(
                    f,
                    "`{flat}` is not defined, because it could mean {}",
                    tools.join(" or ")
                )
            }
            Self::Repeated { server, wire_name } => {
                write!(
                    f,
                    "{server} lists `{wire_name}` more than once; the first is used"
                )
            }
        }
    }
}

impl StubTable {
    #[must_use]
    pub fn build(descriptions: &[Description]) -> Self {
        let mut notes = Vec::new();
        let mut by_server: BTreeMap<&str, BTreeMap<&str, (usize, &Description)>> = BTreeMap::new();
        for (index, description) in descriptions.iter().enumerate() {
            let (server, wire_name) = (&*description.server, &*description.name);
            let tools = by_server.entry(server).or_default();
            if tools.contains_key(wire_name) {
                notes.push(NameNote::Repeated {
                    server: server.into(),
                    wire_name: wire_name.into(),
                });
            } else {
                tools.insert(wire_name, (index, description));
            }
        }
        let server_names: Vec<&str> = by_server.keys().copied().collect();
        let globals = names::globals(&server_names);
        let named = by_server.into_iter().zip(globals);
        let mut servers: Vec<ServerStubs> = named
            .map(|((server, tools), global)| server_stubs(server, global, &tools))
            .collect();
        notes.extend(servers.iter().flat_map(renamed));
        notes.extend(withdraw_ambiguous_flats(&mut servers));
        Self { servers, notes }
    }
}

fn server_stubs(
    server: &str,
    global: String,
    tools: &BTreeMap<&str, (usize, &Description)>,
) -> ServerStubs {
    let wire_names: Vec<&str> = tools.keys().copied().collect();
    let members = names::members(&wire_names);
    let stub =
        |((wire_name, (index, description)), member): ((&&str, &(usize, &Description)), String)| {
            ToolStub {
                description: *index,
                wire_name: (*wire_name).to_owned(),
                flat: Some(format!("{global}_{member}")),
                short: description.shorthand.is_global.then(|| member.clone()),
                order: description.shorthand.order,
                member,
                unwrap: description.unwraps(),
                deprecated: description.claims.deprecated.as_deref().map(shortened),
            }
        };
    let tools = tools.iter().zip(members).map(stub).collect();
    ServerStubs {
        server: server.to_owned(),
        global,
        tools,
    }
}

/// Returns the text about a deprecation, cut to a length that fits a finding.
fn shortened(why: &str) -> String {
    const BYTES_MAX: usize = 300;
    crate::text::clip(&crate::text::neutralise(why), BYTES_MAX)
}

fn renamed(server: &ServerStubs) -> Vec<NameNote> {
    let changed = server
        .tools
        .iter()
        .filter(|tool| tool.member != tool.wire_name);
    changed
        .map(|tool| NameNote::Renamed {
            server: server.server.clone(),
            wire_name: tool.wire_name.clone(),
            member: tool.member.clone(),
        })
        .collect()
}

/// Removes every tool global that two tools share, or that already has a meaning.
fn withdraw_ambiguous_flats(servers: &mut [ServerStubs]) -> Vec<NameNote> {
    let mut claims: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for server in servers.iter() {
        claims
            .entry(server.global.clone())
            .or_default()
            .push(format!("server {}", server.server));
        for tool in &server.tools {
            for name in tool.flat.iter().chain(&tool.short) {
                claims
                    .entry(name.clone())
                    .or_default()
                    .push(format!("{}.{}", server.server, tool.wire_name));
            }
        }
    }
    claims.retain(|flat, tools| tools.len() > 1 || names::is_known_global(flat));
    for tool in servers.iter_mut().flat_map(|server| &mut server.tools) {
        tool.flat.take_if(|flat| claims.contains_key(flat));
        tool.short.take_if(|short| claims.contains_key(short));
    }
    let told_apart = claims.into_iter().filter(|(_, tools)| tools.len() > 1);
    told_apart
        .map(|(flat, tools)| NameNote::FlatCollision { flat, tools })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn describe(server: &str, name: &str) -> Description {
        Description::parse(server, &json!({"name": name, "inputSchema": {}})).unwrap()
    }

    fn rows(descriptions: &[Description]) -> Vec<String> {
        let table = StubTable::build(descriptions);
        let row = |server: &ServerStubs, tool: &ToolStub| {
            format!(
                "{}.{} {}",
                server.global,
                tool.member,
                tool.flat.as_deref().unwrap_or("-")
            )
        };
        let of_server = |server: &ServerStubs| -> Vec<String> {
            server.tools.iter().map(|tool| row(server, tool)).collect()
        };
        table.servers.iter().flat_map(of_server).collect()
    }

    #[test]
    fn every_tool_has_member_and_flat_name() {
        let found = rows(&[describe("git-hub", "get-user"), describe("fs", "read")]);
        assert_eq!(
            found,
            ["fs.read fs_read", "git_hub.get_user git_hub_get_user"]
        );
    }

    #[test]
    fn ambiguous_flat_name_is_dropped() {
        let tools = [
            describe("a", "b_c"),
            describe("a_b", "c"),
            describe("a", "b"),
        ];
        assert_eq!(rows(&tools), ["a.b -", "a.b_c -", "a_b.c -"]);
        let notes: Vec<String> = StubTable::build(&tools)
            .notes
            .iter()
            .map(NameNote::to_string)
            .collect();
        assert_eq!(
            notes,
            [
                "`a_b` is not defined, because it could mean a.b or server a_b",
                "`a_b_c` is not defined, because it could mean a.b_c or a_b.c",
            ]
        );
    }

    #[test]
    fn short_name_yields_to_others() {
        let mut read = describe("own", "read");
        read.shorthand.is_global = true;
        let short = |others: &[Description]| {
            let tools: Vec<_> = others.iter().chain([&read]).cloned().collect();
            let table = StubTable::build(&tools);
            let mut tools = table.servers.into_iter().flat_map(|it| it.tools);
            tools.find_map(|tool| tool.short)
        };
        assert_eq!(short(&[describe("fs", "read")]).as_deref(), Some("read"));
        assert_eq!(short(&[describe("read", "file")]), None);
    }

    #[test]
    fn list_order_changes_neither_names_nor_order() {
        let names = ["get-user", "get_user", "get.user", "then", "class"];
        let tools: Vec<Description> = names.iter().map(|name| describe("s", name)).collect();
        let reversed: Vec<Description> = tools.iter().rev().cloned().collect();
        assert_eq!(rows(&tools), rows(&reversed));
    }

    #[test]
    fn duplicate_tool_is_used_once_and_reported() {
        let table = StubTable::build(&[describe("s", "x"), describe("s", "x")]);
        assert_eq!(table.servers[0].tools.len(), 1);
        assert_eq!(
            table.notes[0].to_string(),
            "s lists `x` more than once; the first is used"
        );
    }
}
