//! What a script may call: the stubs with the descriptions that they stand for.

use crate::closest::Patience;
use crate::declare::{Level, declare};
use crate::description::Description;
use crate::stub::{ServerStubs, StubTable, ToolStub};

/// The tools that a script is checked against.
#[derive(Debug, Clone, Copy)]
pub struct Surface<'a> {
    table: &'a StubTable,
    descriptions: &'a [Description],
    told: &'a [bool],
    lacking: &'a [&'a str],
    absent: &'a [Absent],
}

/// A server of which a script may speak, and whose tools are not there now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    /// The global that would carry it.
    pub global: String,
    /// The rest of a sentence about it.
    pub why: String,
    /// What can be done about it.
    pub next: String,
}

/// One tool as a script can mean it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tool<'a> {
    pub(super) server: &'a ServerStubs,
    pub(super) stub: &'a ToolStub,
    pub(super) description: &'a Description,
    /// Whether findings may say what it takes and gives.
    pub(super) is_told: bool,
}

impl<'a> Surface<'a> {
    /// `descriptions` are those that the table was built from.
    #[must_use]
    pub fn new(table: &'a StubTable, descriptions: &'a [Description]) -> Self {
        Self {
            table,
            descriptions,
            told: &[],
            lacking: &[],
            absent: &[],
        }
    }

    /// Findings say only of some tools what they take, one flag for each description.
    /// Without flags they say it of all.
    #[must_use]
    pub fn telling(self, told: &'a [bool]) -> Self {
        Self { told, ..self }
    }

    /// Globals of the language that the engine which runs the script does not have, and
    /// members of globals, as `Intl.Segmenter`.
    #[must_use]
    pub fn lacking(self, lacking: &'a [&'a str]) -> Self {
        Self { lacking, ..self }
    }

    /// Servers that are known, and not there: a script that names one is told so.
    #[must_use]
    pub fn without(self, absent: &'a [Absent]) -> Self {
        Self { absent, ..self }
    }

    /// The absent server that a name is about, be it the global or a tool's flat name.
    pub(super) fn absent(&self, name: &str) -> Option<&'a Absent> {
        let is_about = |it: &&Absent| {
            let rest = name.strip_prefix(&*it.global);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        let about = self.absent.iter().filter(is_about);
        about.max_by_key(|it| it.global.len())
    }

    pub(super) fn lacks(&self, name: &str) -> bool {
        self.lacking.contains(&name)
    }

    /// All of it as declarations. Of a tool that is not told of, only that it is there.
    pub(super) fn declarations(&self) -> String {
        let bare = |(place, it): (usize, &Description)| match self.told.get(place) {
            Some(false) => it.bare(),
            _ => it.clone(),
        };
        let descriptions: Vec<_> = self.descriptions.iter().enumerate().map(bare).collect();
        let declared = declare(self.table, &descriptions, Level::Full, &|_, _| true);
        let mut text = declared.text;
        for server in &self.table.servers {
            for tool in &server.tools {
                if let Some(flat) = &tool.flat {
                    let member = crate::text::json(&tool.member.as_str().into());
                    text.push_str(&format!(
                        "declare const {flat}: typeof {}[{member}]\n",
                        server.global
                    ));
                }
            }
        }
        text
    }

    pub(super) fn server(&self, global: &str) -> Option<&'a ServerStubs> {
        self.table.servers.iter().find(|it| it.global == global)
    }

    pub(super) fn tool(&self, server: &'a ServerStubs, member: &str) -> Option<Tool<'a>> {
        let stub = server.tools.iter().find(|it| it.member == member)?;
        let description = self.descriptions.get(stub.description)?;
        Some(Tool {
            server,
            stub,
            description,
            is_told: self.told.get(stub.description).copied().unwrap_or(true),
        })
    }

    /// The tool that is a global of this name.
    pub(super) fn global_tool(&self, name: &str) -> Option<Tool<'a>> {
        let mut servers = self.table.servers.iter();
        servers.find_map(|server| {
            let has_name = |it: &&ToolStub| {
                let mut names = it.flat.iter().chain(&it.short);
                names.any(|it| it == name)
            };
            let stub = server.tools.iter().find(has_name)?;
            self.tool(server, &stub.member)
        })
    }

    /// The tool of this server that was probably meant, by its member.
    pub(super) fn closest_tool(
        server: &'a ServerStubs,
        member: &str,
        patience: &Patience,
    ) -> Option<&'a str> {
        let by_wire_name = server.tools.iter().find(|it| it.wire_name == member);
        by_wire_name.map(|it| it.member.as_str()).or_else(|| {
            let members = server.tools.iter().map(|it| it.member.as_str());
            patience.closest(member, members)
        })
    }

    /// Whether another server has a tool of this name.
    pub(super) fn elsewhere(&self, member: &str) -> Option<(&'a str, &'a str)> {
        self.table.servers.iter().find_map(|server| {
            let stub = server.tools.iter().find(|it| it.member == member)?;
            Some((server.global.as_str(), stub.member.as_str()))
        })
    }

    pub(super) fn globals(&self) -> impl Iterator<Item = &'a str> {
        self.table.servers.iter().map(|it| it.global.as_str())
    }

    pub(super) fn global_tools(&self) -> impl Iterator<Item = &'a str> {
        let tools = self.table.servers.iter().flat_map(|it| &it.tools);
        let names = tools.flat_map(|it| it.flat.iter().chain(&it.short));
        names.map(String::as_str)
    }
}

impl Tool<'_> {
    /// As a script writes it.
    pub(super) fn name(&self) -> String {
        format!("{}.{}", self.server.global, self.stub.member)
    }
}
