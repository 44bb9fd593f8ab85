//! The globals for servers and their tools: which of them a script may use, and the message about
//! an unknown member.

use std::collections::BTreeSet;

use sandbox_protocol::{ServerStubs, ToolStub};

use crate::closest_name;

/// Members that the language looks up on any object. Servers do not have them, and looking them up
/// is not a mistake.
pub const ASKED_BY_THE_LANGUAGE: [&str; 7] = [
    "then",
    "toJSON",
    "toString",
    "valueOf",
    "constructor",
    "inspect",
    "$$typeof",
];

/// Maximum number of tools that are listed if none is similar to the requested one.
const TOOLS_NAMED_MAX: usize = 12;

/// A tool, by the index of its server in the run's stubs and by its own index there.
pub type ToolAt = (u16, u16);

/// The flat names of tools that the script may use. Other flat names are omitted, because there may
/// be hundreds.
#[derive(Debug)]
pub struct MentionedTools<'a> {
    script: &'a str,
    is_any: bool,
    underscored: BTreeSet<&'a str>,
}

impl<'a> MentionedTools<'a> {
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

    /// Returns the globals of one tool. A hidden tool has only those that the script names.
    pub fn names<'s>(&self, stub: &'s ToolStub) -> impl Iterator<Item = &'s str> {
        let is_written = |name: &&str| self.script.contains(name);
        let is_any = self.is_any && !stub.hidden;
        let short = Some(&*stub.short).filter(|name| is_any || is_written(name));
        let flat = Some(&*stub.flat).filter(|name| match self.is_any {
            true => is_any || is_written(name),
            false => self.underscored.contains(name),
        });
        short
            .into_iter()
            .chain(flat)
            .filter(|name| !name.is_empty())
    }
}

/// Returns the words of the script that contain an inner underscore, as every flat name does.
fn underscored_words(script: &str) -> BTreeSet<&str> {
    script
        .split(|c: char| !(c == '_' || c == '$' || c.is_alphanumeric()))
        .filter(|word| word.contains('_'))
        .collect()
}

/// Returns the stub of a tool.
pub fn tool(stubs: &[ServerStubs], (server, tool): ToolAt) -> Option<&ToolStub> {
    let server = stubs.get(usize::from(server))?;
    server.tools.get(usize::from(tool))
}

/// Returns `server.tool`.
pub fn tool_name(stubs: &[ServerStubs], at: ToolAt) -> String {
    let Some(server) = stubs.get(usize::from(at.0)) else {
        return String::new();
    };
    let member = tool(stubs, at).map_or("", |tool| &tool.member);
    format!("{}.{member}", server.name)
}

/// Returns the server's tool with this member name. `then` is never a member.
pub fn find(stubs: &[ServerStubs], server: u16, member: &str) -> Option<u16> {
    if member == "then" {
        return None;
    }
    let tools = &stubs.get(usize::from(server))?.tools;
    let at = tools.iter().position(|tool| tool.member == member)?;
    u16::try_from(at).ok()
}

/// Returns the members of a server, as a script would list them.
pub fn members(stubs: &[ServerStubs], server: u16) -> impl Iterator<Item = &str> {
    let server = stubs.get(usize::from(server));
    let tools = server.map(|server| &server.tools);
    let shown = tools.into_iter().flatten().filter(|tool| !tool.hidden);
    let members = shown.map(|tool| &*tool.member);
    members.filter(|member| *member != "then")
}

/// Returns the message about an unknown member of a server; `None` if the language itself looked
/// the member up.
pub fn unknown_member(stubs: &[ServerStubs], server: u16, name: &str) -> Option<String> {
    if ASKED_BY_THE_LANGUAGE.contains(&name) {
        return None;
    }
    let stubs = stubs.get(usize::from(server))?;
    let name: String = name.chars().take(100).collect();
    let mut sentence = format!("`{}` has no tool `{name}`", stubs.name);
    let shown = stubs.tools.iter().filter(|tool| !tool.hidden);
    let members = shown.map(|tool| tool.member.as_str());
    if let Some(closest) = closest_name::closest(members.clone(), &name) {
        sentence.push_str(&format!("; did you mean `{closest}`?"));
    } else if members.clone().count() <= TOOLS_NAMED_MAX {
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
            hidden: false,
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
            let meant = MentionedTools::by(script);
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
    fn hidden_tool_is_found_by_its_name_and_in_no_list() {
        let mut stubs = server(&["read", "write", "delete"]);
        stubs[0].tools[2].hidden = true;
        assert_eq!(find(&stubs, 0, "delete"), Some(2));
        assert_eq!(members(&stubs, 0).collect::<Vec<_>>(), ["read", "write"]);
        assert_eq!(
            unknown_member(&stubs, 0, "delte").as_deref(),
            Some("`fs` has no tool `delte`; it has `read`, `write`")
        );
        let names = |script: &str| {
            let meant = MentionedTools::by(script);
            meant.names(&stubs[0].tools[2]).count()
        };
        assert_eq!(names("Object.keys(globalThis)"), 0);
        assert_eq!(names("fs_delete({})"), 1);
        assert_eq!(names("globalThis.fs_delete({})"), 1);
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
