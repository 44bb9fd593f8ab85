//! The globals that stand for servers and their tools: which of them a script can mean, and
//! what is said where it means none.

use std::collections::BTreeSet;

use sandbox_protocol::{ServerStubs, ToolStub};

use crate::likeness;

/// Members that the language itself asks any object for. They are not there,
/// and asking is no mistake.
pub const ASKED_BY_THE_LANGUAGE: [&str; 7] = [
    "then",
    "toJSON",
    "toString",
    "valueOf",
    "constructor",
    "inspect",
    "$$typeof",
];

/// Tools that are named one by one where none is like the one that was asked for.
const TOOLS_NAMED_MAX: usize = 12;

/// A tool by the places of its server and of itself in the run's stubs.
pub type ToolAt = (u16, u16);

/// The names of tools that are globals, as far as the script can mean them, since there may be
/// hundreds.
#[derive(Debug)]
pub struct Meant<'a> {
    script: &'a str,
    is_any: bool,
    underscored: BTreeSet<&'a str>,
}

impl<'a> Meant<'a> {
    pub fn by(script: &'a str) -> Self {
        let is_any = script.contains("globalThis");
        Self {
            script,
            is_any,
            underscored: if is_any {
                BTreeSet::new()
            } else {
                underscored_words(script)
            },
        }
    }

    /// The globals of one tool.
    pub fn names<'s>(&self, stub: &'s ToolStub) -> impl Iterator<Item = &'s str> {
        let short = Some(&*stub.short).filter(|name| self.is_any || self.script.contains(name));
        let flat = Some(&*stub.flat).filter(|name| self.is_any || self.underscored.contains(name));
        short
            .into_iter()
            .chain(flat)
            .filter(|name| !name.is_empty())
    }
}

/// Words of the script that have an underscore inside, as every flat name has.
fn underscored_words(script: &str) -> BTreeSet<&str> {
    script
        .split(|c: char| !(c == '_' || c == '$' || c.is_alphanumeric()))
        .filter(|word| word.contains('_'))
        .collect()
}

/// The stub of a tool.
pub fn tool(stubs: &[ServerStubs], (server, tool): ToolAt) -> Option<&ToolStub> {
    let server = stubs.get(usize::from(server))?;
    server.tools.get(usize::from(tool))
}

/// `server.tool`
pub fn tool_name(stubs: &[ServerStubs], at: ToolAt) -> String {
    let Some(server) = stubs.get(usize::from(at.0)) else {
        return String::new();
    };
    let member = tool(stubs, at).map_or("", |tool| &tool.member);
    format!("{}.{member}", server.name)
}

/// Which of a server's tools has this member. No server is promise-like.
pub fn find(stubs: &[ServerStubs], server: u16, member: &str) -> Option<u16> {
    if member == "then" {
        return None;
    }
    let tools = &stubs.get(usize::from(server))?.tools;
    let at = tools.iter().position(|tool| tool.member == member)?;
    u16::try_from(at).ok()
}

/// The members of a server, as a script can list them.
pub fn members(stubs: &[ServerStubs], server: u16) -> impl Iterator<Item = &str> {
    let server = stubs.get(usize::from(server));
    let tools = server.map(|server| &server.tools);
    let members = tools.into_iter().flatten().map(|tool| &*tool.member);
    members.filter(|member| *member != "then")
}

/// What is said of a member that a server does not have; `None` where the language asked.
pub fn unknown_member(stubs: &[ServerStubs], server: u16, name: &str) -> Option<String> {
    if ASKED_BY_THE_LANGUAGE.contains(&name) {
        return None;
    }
    let stubs = stubs.get(usize::from(server))?;
    let name: String = name.chars().take(100).collect();
    let mut sentence = format!("`{}` has no tool `{name}`", stubs.name);
    let members = stubs.tools.iter().map(|tool| tool.member.as_str());
    if let Some(closest) = likeness::closest(members.clone(), &name) {
        sentence.push_str(&format!("; did you mean `{closest}`?"));
    } else if stubs.tools.len() <= TOOLS_NAMED_MAX {
        let names: Vec<_> = members.map(|member| format!("`{member}`")).collect();
        sentence.push_str(&format!("; it has {}", names.join(", ")));
    }
    Some(sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(members: &[&str]) -> Vec<ServerStubs> {
        let stub = |member: &&str| ToolStub {
            member: (*member).to_owned(),
            flat: format!("fs_{member}"),
            short: match *member {
                "read" => "read".to_owned(),
                _ => String::new(),
            },
            order: Vec::new(),
        };
        vec![ServerStubs {
            name: "fs".to_owned(),
            tools: members.iter().map(stub).collect(),
        }]
    }

    #[test]
    fn only_names_that_a_script_can_mean_are_globals() {
        let stubs = server(&["read", "write"]);
        let names = |script: &str| {
            let meant = Meant::by(script);
            let tools = stubs[0].tools.iter();
            let names = tools.flat_map(|tool| meant.names(tool).map(str::to_owned));
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names("return 1"), "");
        assert_eq!(names("return fs_write({}) + my_fs_read"), "read fs_write");
        assert_eq!(names("return read({})"), "read");
        assert_eq!(names("globalThis['fs' + '_']"), "read fs_read fs_write");
    }

    #[test]
    fn tools_are_found_and_named() {
        let stubs = server(&["read", "then"]);
        assert_eq!(find(&stubs, 0, "read"), Some(0));
        assert_eq!(find(&stubs, 0, "then"), None);
        assert_eq!(find(&stubs, 1, "read"), None);
        assert_eq!(members(&stubs, 0).collect::<Vec<_>>(), ["read"]);
        assert_eq!(tool_name(&stubs, (0, 1)), "fs.then");
        assert_eq!(tool_name(&stubs, (0, 2)), "fs.");
        assert_eq!(tool_name(&stubs, (1, 0)), "");
    }

    #[test]
    fn a_member_that_is_not_there_is_answered_with_what_is() {
        let stubs = server(&["read", "write"]);
        let said = |name| unknown_member(&stubs, 0, name);
        assert_eq!(said("toJSON"), None);
        assert_eq!(
            said("raed").as_deref(),
            Some("`fs` has no tool `raed`; did you mean `read`?")
        );
        assert_eq!(
            said("delete").as_deref(),
            Some("`fs` has no tool `delete`; it has `read`, `write`")
        );
    }
}
