//! Encodes the names of all tools. They are the largest part of a request, so they are encoded once
//! for many checks and decoded without copying.

use sandbox_protocol::codec::CodecError;
use sandbox_protocol::codec::wire::{Reader, Writer};

const HAS_WIRE_NAME: u8 = 1;
const HAS_JOINED_FLAT: u8 = 2;
const HAS_OTHER_FLAT: u8 = 4;
const HAS_SHORT: u8 = 8;
const HAS_ORDER: u8 = 16;
const IS_DEPRECATED: u8 = 32;

/// The names under which a script finds a server and its tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerNames<'a> {
    pub global: &'a str,
    /// Position of the server's first tool among the tools of all servers.
    pub first: u32,
    pub tools: Vec<ToolNames<'a>>,
}

/// The names of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolNames<'a> {
    /// The member of the server's global: `global.member(…)`.
    pub member: &'a str,
    /// The name that the server uses.
    pub wire_name: &'a str,
    pub flat: Flat<'a>,
    /// The tool's own global; few tools have one.
    pub short: Option<&'a str>,
    /// The names of its arguments in order, for a call that passes values instead of one object.
    pub order: Vec<&'a str>,
    /// Present if the tool is deprecated; the text may be empty.
    pub deprecated: Option<&'a str>,
}

/// The flat name of a tool: a global in addition to the server's global.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flat<'a> {
    None,
    /// The name `global_member`.
    Joined,
    Other(&'a str),
}

/// Encodes the names of each server's tools. `first` is not written; the decoder computes it.
pub fn encode_tools(servers: &[ServerNames<'_>]) -> Result<Vec<u8>, CodecError> {
    let mut w = Writer::bare(Vec::new());
    w.count(servers.len());
    for server in servers {
        w.text(server.global);
        w.count(server.tools.len());
        for tool in &server.tools {
            write_tool(&mut w, tool);
        }
    }
    w.finish()
}

fn write_tool(w: &mut Writer, tool: &ToolNames<'_>) {
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    let has_wire_name = tool.wire_name != tool.member;
    w.u8(flag(has_wire_name, HAS_WIRE_NAME)
        | flag(tool.flat == Flat::Joined, HAS_JOINED_FLAT)
        | flag(matches!(tool.flat, Flat::Other(_)), HAS_OTHER_FLAT)
        | flag(tool.short.is_some(), HAS_SHORT)
        | flag(!tool.order.is_empty(), HAS_ORDER)
        | flag(tool.deprecated.is_some(), IS_DEPRECATED));
    w.text(tool.member);
    if has_wire_name {
        w.text(tool.wire_name);
    }
    if let Flat::Other(flat) = tool.flat {
        w.text(flat);
    }
    if let Some(short) = tool.short {
        w.text(short);
    }
    if !tool.order.is_empty() {
        w.count(tool.order.len());
        tool.order.iter().for_each(|name| w.text(name));
    }
    if let Some(why) = tool.deprecated {
        w.text(why);
    }
}

/// Decodes the output of [`encode_tools`].
pub fn decode_tools(bytes: &[u8]) -> Result<Vec<ServerNames<'_>>, CodecError> {
    let mut r = Reader::bare(bytes);
    let mut first = 0;
    let servers = r.sequence("servers", |r| {
        let global = r.borrowed_text("global")?;
        let tools = r.sequence("tools", read_tool)?;
        let server = ServerNames {
            global,
            first,
            tools,
        };
        first += u32::try_from(server.tools.len()).map_err(|_| CodecError::TooLarge)?;
        Ok(server)
    })?;
    r.finish()?;
    Ok(servers)
}

fn read_tool<'a>(r: &mut Reader<'a>) -> Result<ToolNames<'a>, CodecError> {
    let flags = r.u8("tool")?;
    let has = |flag: u8| flags & flag != 0;
    let member = r.borrowed_text("member")?;
    Ok(ToolNames {
        member,
        wire_name: if has(HAS_WIRE_NAME) {
            r.borrowed_text("wire name")?
        } else {
            member
        },
        flat: if has(HAS_OTHER_FLAT) {
            Flat::Other(r.borrowed_text("flat name")?)
        } else if has(HAS_JOINED_FLAT) {
            Flat::Joined
        } else {
            Flat::None
        },
        short: if has(HAS_SHORT) {
            Some(r.borrowed_text("short name")?)
        } else {
            None
        },
        order: if has(HAS_ORDER) {
            r.sequence("order", |r| r.borrowed_text("argument name"))?
        } else {
            Vec::new()
        },
        deprecated: if has(IS_DEPRECATED) {
            Some(r.borrowed_text("deprecation")?)
        } else {
            None
        },
    })
}
