//! The text that a model reads before it writes a script: TypeScript
//! declarations, in four degrees of detail, each block readable on its own.

mod alias;
mod block;
mod groups;
mod guidance;
mod note;
mod printed;
mod said;
mod types;

use std::collections::BTreeSet;

use crate::description::Description;
use crate::shape::{Degraded, ToolShape};
use crate::stub::{ServerStubs, StubTable, ToolStub};
use crate::text;

/// How much is said about each tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Names,
    /// Name and first sentence.
    Lines,
    /// Types without a word of prose.
    Signatures,
    /// Everything. No text is cut; text that repeats within a block is printed once.
    Full,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Declarations {
    pub text: String,
    /// What the types do not say, by tool.
    pub degraded: Vec<DegradedTool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DegradedTool {
    pub server: String,
    pub wire_name: String,
    pub found: Vec<Degraded>,
}

const SENTENCE_CHARS_MAX: usize = 90;

/// Declares the tools of `table` that `only` picks. `descriptions` are those that the table was built from.
#[must_use]
pub fn declare(
    table: &StubTable,
    descriptions: &[Description],
    level: Level,
    only: &dyn Fn(&ServerStubs, &ToolStub) -> bool,
) -> Declarations {
    let mut page = Page::default();
    for server in &table.servers {
        let picked = server.tools.iter().filter(|tool| only(server, tool));
        let tools: Vec<Picked<'_>> = picked
            .filter_map(|stub| {
                Some(Picked {
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

/// One tool that is to be declared.
#[derive(Debug, Clone, Copy)]
struct Picked<'a> {
    stub: &'a ToolStub,
    description: &'a Description,
}

/// A text in the making.
#[derive(Default)]
struct Page {
    text: String,
    degraded: Vec<DegradedTool>,
    /// Type names that are in use, over all blocks.
    taken: BTreeSet<String>,
    uses_int: bool,
}

impl Page {
    fn add(&mut self, server: &ServerStubs, tools: &[Picked<'_>], level: Level) {
        match level {
            Level::Names => self.add_names(server, tools),
            Level::Lines => self.add_lines(server, tools),
            Level::Signatures | Level::Full => self.add_block(server, tools, level),
        }
    }

    fn add_names(&mut self, server: &ServerStubs, tools: &[Picked<'_>]) {
        let names: Vec<&str> = tools.iter().map(|tool| tool.stub.member.as_str()).collect();
        self.text
            .push_str(&format!("{}: {}\n", server.global, names.join(", ")));
    }

    fn add_lines(&mut self, server: &ServerStubs, tools: &[Picked<'_>]) {
        self.text.push_str(&format!("{}:\n", server.global));
        for tool in tools {
            let sentence = summary(tool.description);
            let colon = if sentence.is_empty() { "" } else { ": " };
            self.text
                .push_str(&format!(" {}{colon}{sentence}\n", tool.stub.member));
        }
    }

    fn add_block(&mut self, server: &ServerStubs, tools: &[Picked<'_>], level: Level) {
        let shapes: Vec<ToolShape> = tools
            .iter()
            .map(|tool| crate::shape::of(tool.description))
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

/// What a tool does in one sentence, in its server's words.
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

/// Whether the type of an object, without its notes, says less about its keys than the shape.
pub(crate) fn says_less_than(object: &crate::shape::Object) -> bool {
    types::needs_rest_note(object)
}

#[cfg(test)]
mod tests;
