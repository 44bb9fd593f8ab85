//! The tools that a script may call: the stubs with their descriptions.

use std::borrow::Cow;

use codegen_shared::finding::CheckResult;
use codegen_shared::message::{
    AbsentServer, CheckRequest, Reply, Request, ToolMention, encode_shape,
};
use sandbox_protocol::codec::CodecError;

use super::tools::EncodedTools;
use crate::declare::{Level, declare};
use crate::description::Description;
use crate::shape;
use crate::stub::{StubTable, ToolStub};

/// Maximum number of requests for one check. A second one is needed if a script hides the name of a
/// tool.
const ROUNDS_MAX: usize = 3;

/// The tools that a script is checked against.
#[derive(Debug, Clone, Copy)]
pub struct Surface<'a> {
    table: &'a StubTable,
    descriptions: &'a [Description],
    mentions: &'a [ToolMention],
    lacking: &'a [&'a str],
    absent: &'a [Absent],
    encoded: Option<&'a EncodedTools>,
}

/// A server that is configured but whose tools are not available now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    /// The global that stands for the server when it is available.
    pub global: String,
    /// Why it is not available, as the rest of a sentence whose subject is the server.
    pub why: String,
    /// Advice for the user.
    pub next: String,
}

impl<'a> Surface<'a> {
    /// Creates a surface. `table` was built from `descriptions`.
    #[must_use]
    pub fn new(table: &'a StubTable, descriptions: &'a [Description]) -> Self {
        Self {
            table,
            descriptions,
            mentions: &[],
            lacking: &[],
            absent: &[],
            encoded: None,
        }
    }

    /// Sets what findings may contain about each tool, in the order of the descriptions. By
    /// default, findings may describe all tools.
    #[must_use]
    pub fn mentioning(self, mentions: &'a [ToolMention]) -> Self {
        Self { mentions, ..self }
    }

    fn mention(&self, description: usize) -> ToolMention {
        let mention = self.mentions.get(description).copied();
        mention.unwrap_or(ToolMention::Everything)
    }

    /// Sets the globals that the engine of the run lacks, and members of globals such as
    /// `Intl.Segmenter`.
    #[must_use]
    pub fn lacking(self, lacking: &'a [&'a str]) -> Self {
        Self { lacking, ..self }
    }

    /// Sets the servers that are configured but not available. A script that names one gets a
    /// finding with the reason.
    #[must_use]
    pub fn without(self, absent: &'a [Absent]) -> Self {
        Self { absent, ..self }
    }

    /// Sets the names of the table's tools, if the caller has encoded them already.
    #[must_use]
    pub fn encoded(self, encoded: &'a EncodedTools) -> Self {
        Self {
            encoded: Some(encoded),
            ..self
        }
    }

    /// Starts the exchange of messages with a checker guest that checks `script`.
    #[must_use]
    pub fn exchange(&self, name: &'a str, script: &'a str) -> Exchange<'a> {
        Exchange {
            surface: *self,
            name,
            script,
            wanted: Vec::new(),
            rounds: 0,
        }
    }

    /// Checks a script. `ask` passes a request to a checker guest and returns its reply.
    pub fn check<E: From<CodecError>>(
        &self,
        name: &str,
        script: &str,
        mut ask: impl FnMut(&[u8]) -> Result<Reply, E>,
    ) -> Result<CheckResult, E> {
        let mut exchange = self.exchange(name, script);
        loop {
            let reply = ask(&exchange.request()?)?;
            if let Some(checked) = exchange.reply(reply)? {
                return Ok(checked);
            }
        }
    }

    /// Encodes a script and the information that its check needs. `wanted` contains the positions
    /// of tools whose shapes the guest asked for in reply to an earlier request.
    fn request(&self, name: &str, script: &str, wanted: &[u32]) -> Result<Vec<u8>, CodecError> {
        let encoded = match self.encoded {
            Some(encoded) => Cow::Borrowed(encoded),
            None => Cow::Owned(EncodedTools::new(self.table)),
        };
        let mentions: Vec<u8> = match self.mentions {
            [] => Vec::new(),
            _ => {
                let descriptions = encoded.descriptions.iter();
                descriptions.map(|it| self.mention(*it) as u8).collect()
            }
        };
        let is_told = |it: &usize| self.mention(*it) == ToolMention::Everything;
        let mut shapes = Vec::new();
        for place in encoded
            .mentioned(script)
            .into_iter()
            .chain(wanted.iter().copied())
        {
            let description = encoded.descriptions.get(place as usize);
            if let Some(description) = description.filter(|it| is_told(it))
                && let Some(description) = self.descriptions.get(*description)
            {
                shapes.push((place, encode_shape(&shape::tool_shape(description))?));
            }
        }
        let absent = self.absent.iter().map(|it| AbsentServer {
            global: &it.global,
            why: &it.why,
            next: &it.next,
        });
        let request = CheckRequest {
            script,
            is_typescript: [".ts", ".mts", ".cts"].iter().any(|it| name.ends_with(it)),
            tools: &encoded.bytes,
            mentions: &mentions,
            shapes: shapes
                .iter()
                .map(|(place, shape)| (*place, &**shape))
                .collect(),
            lacking: self.lacking.to_vec(),
            absent: absent.collect(),
        };
        Request::Check(request).encode()
    }

    /// Declares all tools that findings may name. A tool that findings must not describe is
    /// declared by its name only.
    pub(super) fn declarations(&self) -> String {
        let bare = |(place, it): (usize, &Description)| match self.mention(place) {
            ToolMention::Everything => it.clone(),
            ToolMention::Name | ToolMention::Nothing => it.bare(),
        };
        let is_named = |tool: &ToolStub| self.mention(tool.description) != ToolMention::Nothing;
        let descriptions: Vec<_> = self.descriptions.iter().enumerate().map(bare).collect();
        let declared = declare(self.table, &descriptions, Level::Full, &|_, tool| {
            is_named(tool)
        });
        let mut text = declared.text;
        for server in &self.table.servers {
            for tool in server.tools.iter().filter(|it| is_named(it)) {
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
}

/// One check: requests to a checker guest and its replies, until the result is known.
#[derive(Debug)]
pub struct Exchange<'a> {
    surface: Surface<'a>,
    name: &'a str,
    script: &'a str,
    wanted: Vec<u32>,
    rounds: usize,
}

impl Exchange<'_> {
    /// Returns the next request.
    pub fn request(&mut self) -> Result<Vec<u8>, CodecError> {
        self.surface.request(self.name, self.script, &self.wanted)
    }

    /// Processes the reply to the last request. Returns `None` if another request is needed.
    pub fn reply(&mut self, reply: Reply) -> Result<Option<CheckResult>, CodecError> {
        self.rounds += 1;
        match reply {
            Reply::Checked(checked) => Ok(Some(checked)),
            Reply::ShapesWanted(tools) if self.rounds < ROUNDS_MAX => {
                self.wanted.extend(tools);
                Ok(None)
            }
            _ => Err(CodecError::Unexpected),
        }
    }
}
