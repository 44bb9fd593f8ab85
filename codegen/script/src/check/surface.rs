//! The tools that a script may call, with the shapes that the host has sent.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use codegen_shared::identifiers::is_identifier;
use codegen_shared::message::{
    AbsentServer, CheckRequest, Flat, ServerNames, ToolMention, ToolNames, decode_shape,
    decode_tools,
};
use codegen_shared::shape::{Shape, ToolShape};
use sandbox_protocol::codec::CodecError;

use crate::closest::CompareBudget;

/// Maximum number of properties named in a suggestion.
const NAMED_MAX: usize = 3;

/// The tools that a script is checked against.
#[derive(Debug)]
pub(super) struct Surface<'a> {
    servers: Vec<ServerNames<'a>>,
    mentions: &'a [u8],
    lacking: &'a [&'a str],
    absent: &'a [AbsentServer<'a>],
    shapes: HashMap<u32, &'a [u8]>,
    decoded: RefCell<HashMap<u32, Rc<ToolShape>>>,
    /// Tools whose shapes are needed and were not sent.
    wanted: RefCell<BTreeSet<u32>>,
}

/// A tool that a script can refer to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tool<'a> {
    pub(super) server: &'a ServerNames<'a>,
    pub(super) names: &'a ToolNames<'a>,
    place: u32,
    /// Whether findings may describe the tool's arguments and result.
    pub(super) is_told: bool,
}

impl<'a> Surface<'a> {
    pub(super) fn decode(request: &'a CheckRequest<'a>) -> Result<Self, CodecError> {
        Ok(Self {
            servers: decode_tools(request.tools)?,
            mentions: request.mentions,
            lacking: &request.lacking,
            absent: &request.absent,
            shapes: request.shapes.iter().copied().collect(),
            decoded: RefCell::default(),
            wanted: RefCell::default(),
        })
    }

    /// Returns the tools whose shapes were not sent. The check must be repeated with these shapes.
    pub(super) fn into_wanted(self) -> Vec<u32> {
        self.wanted.into_inner().into_iter().collect()
    }

    /// Returns the shapes of a tool. If findings must not describe the tool, the shapes accept and
    /// return anything.
    pub(super) fn shape(&self, tool: Tool<'_>) -> Rc<ToolShape> {
        if let Some(shape) = self.decoded.borrow().get(&tool.place) {
            return Rc::clone(shape);
        }
        let sent = self.shapes.get(&tool.place).filter(|_| tool.is_told);
        let shape = sent.and_then(|bytes| decode_shape(bytes).ok());
        if shape.is_none() && tool.is_told {
            self.wanted.borrow_mut().insert(tool.place);
        }
        let shape = Rc::new(shape.unwrap_or_else(|| ToolShape {
            input: Shape::any(),
            output: None,
            named: Vec::new(),
            degraded: Vec::new(),
        }));
        let mut decoded = self.decoded.borrow_mut();
        decoded.insert(tool.place, Rc::clone(&shape));
        shape
    }

    /// Returns the unavailable server whose global, or the flat name of whose tool, is `name`.
    pub(super) fn absent(&self, name: &str) -> Option<&AbsentServer<'a>> {
        let is_about = |it: &&AbsentServer<'_>| {
            let rest = name.strip_prefix(it.global);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        let about = self.absent.iter().filter(is_about);
        about.max_by_key(|it| it.global.len())
    }

    pub(super) fn lacks(&self, name: &str) -> bool {
        self.lacking.contains(&name)
    }

    pub(super) fn server(&self, global: &str) -> Option<&ServerNames<'a>> {
        self.servers.iter().find(|it| it.global == global)
    }

    pub(super) fn tool<'s>(
        &'s self,
        server: &'s ServerNames<'a>,
        member: &str,
    ) -> Option<Tool<'s>> {
        let mut tools = server.tools.iter();
        let at = tools.position(|it| it.member == member);
        // A name that is no identifier is written in brackets.
        let at = at.or_else(|| {
            let mut tools = server.tools.iter();
            tools.position(|it| it.wire_name == member && !is_identifier(member))
        })?;
        let place = server.first + u32::try_from(at).ok()?;
        Some(Tool {
            server,
            names: server.tools.get(at)?,
            place,
            is_told: self.mention(place) == ToolMention::Everything,
        })
    }

    fn mention(&self, place: u32) -> ToolMention {
        ToolMention::of_byte(self.mentions.get(place as usize).copied())
    }

    /// Returns the tools of a server that findings may name.
    pub(super) fn named<'s>(
        &self,
        server: &'s ServerNames<'s>,
    ) -> impl Iterator<Item = &'s ToolNames<'s>> {
        let places = (server.first..).zip(&server.tools);
        let named = places.filter(|(place, _)| self.mention(*place) != ToolMention::Nothing);
        named.map(|(_, tool)| tool)
    }

    /// Returns the tool whose flat name is this global.
    pub(super) fn global_tool(&self, name: &str) -> Option<Tool<'_>> {
        self.servers.iter().find_map(|server| {
            let names = server
                .tools
                .iter()
                .find(|it| has_global(server, it, name))?;
            self.tool(server, names.member)
        })
    }

    /// Returns the tool of this server whose member name is closest.
    pub(super) fn closest_tool<'s>(
        &self,
        server: &'s ServerNames<'s>,
        member: &str,
        patience: &CompareBudget,
    ) -> Option<&'s str> {
        let by_wire_name = self.named(server).find(|it| it.wire_name == member);
        by_wire_name.map(|it| it.member).or_else(|| {
            let members = self.named(server).map(|it| it.member);
            patience.closest(member, members)
        })
    }

    /// Returns a tool with this name on another server.
    pub(super) fn elsewhere(&self, member: &str) -> Option<(&str, &str)> {
        self.servers.iter().find_map(|server| {
            let tool = self.named(server).find(|it| it.member == member)?;
            Some((server.global, tool.member))
        })
    }

    pub(super) fn globals(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(|it| it.global)
    }

    /// Returns the globals of all tools that findings may name.
    pub(super) fn global_tools(&self) -> Vec<String> {
        let mut names = Vec::new();
        for server in &self.servers {
            for tool in self.named(server) {
                match tool.flat {
                    Flat::None => {}
                    Flat::Joined => names.push(format!("{}_{}", server.global, tool.member)),
                    Flat::Other(flat) => names.push(flat.to_owned()),
                }
                names.extend(tool.short.map(str::to_owned));
            }
        }
        names
    }
}

fn has_global(server: &ServerNames<'_>, tool: &ToolNames<'_>, name: &str) -> bool {
    let is_flat = match tool.flat {
        Flat::None => false,
        Flat::Other(flat) => flat == name,
        Flat::Joined => {
            let rest = name.strip_prefix(server.global);
            rest.and_then(|rest| rest.strip_prefix('_')) == Some(tool.member)
        }
    };
    is_flat || tool.short == Some(name)
}

impl Tool<'_> {
    /// Returns the tool's name as a script writes it.
    pub(super) fn name(&self) -> String {
        format!("{}.{}", self.server.global, self.names.member)
    }

    /// Writes an example call: `github.get({ owner: …, repo: … })`.
    pub(super) fn call_with(&self, names: &[String]) -> String {
        if names.is_empty() {
            return format!("{}({{ … }})", self.name());
        }
        let shown: Vec<_> = names
            .iter()
            .take(NAMED_MAX)
            .map(|it| format!("{it}: …"))
            .collect();
        format!("{}({{ {} }})", self.name(), shown.join(", "))
    }
}
