//! Encodes the names of all tools for the checker guest, and finds the tools that a script may call
//! by the words in the script.

use std::collections::{HashMap, HashSet};

use codegen_shared::message::{Flat, ServerNames, ToolNames, encode_tools};

use crate::stub::{ServerStubs, StubTable, ToolStub};

/// The names of the tools of a [`StubTable`], encoded once for many checks.
#[derive(Debug, Clone, Default)]
pub struct EncodedTools {
    pub(super) bytes: Vec<u8>,
    /// For each tool in the order of `bytes`, its index in the descriptions.
    pub(super) descriptions: Vec<usize>,
    /// The tools by a word that every script that calls them contains.
    by_word: HashMap<String, Vec<Mention>>,
}

/// A tool whose name may be mentioned by a word.
#[derive(Debug, Clone)]
struct Mention {
    /// Position of the tool in the order of the names.
    tool: u32,
    /// A global that must be mentioned too; `None` if the word alone is enough.
    global: Option<String>,
}

impl EncodedTools {
    #[must_use]
    pub fn new(table: &StubTable) -> Self {
        let servers: Vec<_> = table.servers.iter().map(server_names).collect();
        let mut encoded = Self {
            // If the names exceed the largest frame, the table is empty. The check then knows no
            // tools, and no finding about tools is certain.
            bytes: encode_tools(&servers).unwrap_or_default(),
            ..Self::default()
        };
        for server in &table.servers {
            for tool in &server.tools {
                encoded.add(&server.global, tool);
            }
        }
        encoded
    }

    fn add(&mut self, global: &str, tool: &ToolStub) {
        let Ok(place) = u32::try_from(self.descriptions.len()) else {
            return;
        };
        self.descriptions.push(tool.description);
        let mut mention = |word: &str, global: Option<&str>| {
            let mentions = self.by_word.entry(word.to_owned()).or_default();
            mentions.push(Mention {
                tool: place,
                global: global.map(str::to_owned),
            });
        };
        mention(&tool.member, Some(global));
        for word in tool.flat.iter().chain(&tool.short) {
            mention(word, None);
        }
    }

    /// Returns the positions of the tools that a script probably calls. A script can hide a name,
    /// for example with an escape in the name; the guest then asks for the tool's shape.
    pub(super) fn mentioned(&self, script: &str) -> Vec<u32> {
        let words: HashSet<&str> = words(script).collect();
        let mut mentioned: Vec<u32> = words
            .iter()
            .filter_map(|word| self.by_word.get(*word))
            .flatten()
            .filter(|it| {
                let global = it.global.as_deref();
                global.is_none_or(|global| words.contains(global))
            })
            .map(|it| it.tool)
            .collect();
        mentioned.sort_unstable();
        mentioned.dedup();
        mentioned
    }
}

fn server_names(server: &ServerStubs) -> ServerNames<'_> {
    ServerNames {
        global: &server.global,
        first: 0,
        tools: server
            .tools
            .iter()
            .map(|tool| tool_names(&server.global, tool))
            .collect(),
    }
}

fn tool_names<'a>(global: &str, tool: &'a ToolStub) -> ToolNames<'a> {
    let is_joined = |flat: &str| {
        let rest = flat.strip_prefix(global);
        rest.and_then(|rest| rest.strip_prefix('_')) == Some(&tool.member)
    };
    ToolNames {
        member: &tool.member,
        wire_name: &tool.wire_name,
        flat: match tool.flat.as_deref() {
            None => Flat::None,
            Some(flat) if is_joined(flat) => Flat::Joined,
            Some(flat) => Flat::Other(flat),
        },
        short: tool.short.as_deref(),
        order: tool.order.to_vec(),
        deprecated: tool.deprecated.as_deref(),
    }
}

/// Returns the parts of a script that can be names.
fn words(script: &str) -> impl Iterator<Item = &str> {
    let is_in_name =
        |byte: &u8| matches!(byte, b'_' | b'$' | 0x80..) || byte.is_ascii_alphanumeric();
    let bytes = script.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..)?;
        let start = at + rest.iter().position(is_in_name)?;
        let word = bytes.get(start..)?;
        let length = word.iter().position(|byte| !is_in_name(byte));
        at = start + length.unwrap_or(word.len());
        script.get(start..at)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::description::Description;

    #[test]
    fn mentioned_finds_members_flat_names_and_nothing_of_other_servers() {
        let describe =
            |server, name| Description::parse(server, &json!({"name": name, "inputSchema": {}}));
        let tools = [
            describe("fs", "read"),
            describe("fs", "write"),
            describe("git", "read"),
        ];
        let tools = tools.map(Result::unwrap);
        let encoded = EncodedTools::new(&StubTable::build(&tools));
        let check = |script: &str, expected: &[u32]| {
            assert_eq!(encoded.mentioned(script), expected, "{script}");
        };
        check("return fs.read({})", &[0]);
        check("return fs['write']()", &[1]);
        check("git_read()", &[2]);
        check("fs; git; read", &[0, 2]);
        check("read()", &[]);
        check("fs.readé()", &[]);
        check("", &[]);
    }
}
