//! Writes the text that a model reads before it writes a script: TypeScript declarations at four
//! levels of detail. Each block is complete on its own.

mod alias;
mod block;
mod groups;
mod guidance;
mod note;
mod printed_text;
mod stated_facts;
mod types;

use std::collections::BTreeSet;

use crate::description::Description;
use crate::shape::{Degraded, ToolShape};
use crate::stub::{ServerStubs, StubTable, ToolStub};
use crate::text;

/// How much detail is shown for each tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Names,
    /// Name and first sentence.
    Lines,
    /// Types without descriptions.
    Signatures,
    /// Everything. No text is cut; a text that repeats within a block is printed once.
    Full,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Declarations {
    pub text: String,
    /// The rules that the types cannot express, by tool.
    pub degraded: Vec<DegradedTool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DegradedTool {
    pub server: String,
    pub wire_name: String,
    pub found: Vec<Degraded>,
}

const SENTENCE_CHARS_MAX: usize = 90;

/// Declares the tools of `table` that `only` selects. `table` was built from `descriptions`.
#[must_use]
pub fn declare(
    table: &StubTable,
    descriptions: &[Description],
    level: Level,
    only: &dyn Fn(&ServerStubs, &ToolStub) -> bool,
) -> Declarations {
    let mut page = DeclarationText::default();
    for server in &table.servers {
        let picked = server.tools.iter().filter(|tool| only(server, tool));
        let tools: Vec<DeclaredTool<'_>> = picked
            .filter_map(|stub| {
                Some(DeclaredTool {
                    stub,
                    description: descriptions.get(stub.description)?,
                })
            })
            .collect();
        if !tools.is_empty() {
            page.add(server, &tools, level);
        }
    }
    page.finish()
}

/// One tool to declare.
#[derive(Debug, Clone, Copy)]
struct DeclaredTool<'a> {
    stub: &'a ToolStub,
    description: &'a Description,
}

/// Builds the text of the declarations.
#[derive(Default)]
struct DeclarationText {
    text: String,
    degraded: Vec<DegradedTool>,
    /// Type names in use, in all blocks.
    taken: BTreeSet<String>,
    uses_int: bool,
}

impl DeclarationText {
    fn add(&mut self, server: &ServerStubs, tools: &[DeclaredTool<'_>], level: Level) {
        match level {
            Level::Names => self.add_names(server, tools),
            Level::Lines => self.add_lines(server, tools),
            Level::Signatures | Level::Full => self.add_block(server, tools, level),
        }
    }

    fn add_names(&mut self, server: &ServerStubs, tools: &[DeclaredTool<'_>]) {
        let names: Vec<&str> = tools.iter().map(|tool| tool.stub.member.as_str()).collect();
        self.text
            .push_str(&format!("{}: {}\n", server.global, names.join(", ")));
    }

    fn add_lines(&mut self, server: &ServerStubs, tools: &[DeclaredTool<'_>]) {
        self.text.push_str(&format!("{}:\n", server.global));
        for tool in tools {
            let sentence = summary(tool.description);
            let colon = if sentence.is_empty() { "" } else { ": " };
            self.text
                .push_str(&format!(" {}{colon}{sentence}\n", tool.stub.member));
        }
    }

    fn add_block(&mut self, server: &ServerStubs, tools: &[DeclaredTool<'_>], level: Level) {
        let shapes: Vec<ToolShape> = tools
            .iter()
            .map(|tool| crate::shape::tool_shape(tool.description))
            .collect();
        let block = block::render(
            server,
            tools,
            &shapes,
            level == Level::Full,
            &mut self.taken,
        );
        self.text.push_str(&block.text);
        self.uses_int |= block.uses_int;
        for (tool, shape) in tools.iter().zip(shapes) {
            if !shape.degraded.is_empty() {
                self.degraded.push(DegradedTool {
                    server: server.server.clone(),
                    wire_name: tool.stub.wire_name.clone(),
                    found: shape.degraded,
                });
            }
        }
    }

    fn finish(self) -> Declarations {
        let prelude = if self.uses_int {
            "type int = number\n"
        } else {
            ""
        };
        Declarations {
            text: format!("{prelude}{}", self.text),
            degraded: self.degraded,
        }
    }
}

/// Returns what a tool does in one sentence, from the server's description.
#[must_use]
pub fn summary(description: &Description) -> String {
    let sentence = text::first_sentence(
        description.text.as_deref().unwrap_or_default(),
        SENTENCE_CHARS_MAX,
    );
    match (&description.title, sentence.is_empty()) {
        (Some(title), true) => text::clip(&text::neutralise(title), SENTENCE_CHARS_MAX),
        _ => sentence,
    }
}

#[cfg(test)]
mod tests;
