//! MCP as a client: many servers, over stdio and streamable HTTP, in both
//! protocol eras. The only room that speaks to a server.
//!
//! Everything a server sends is taken apart here by method, tolerantly and
//! within [`Caps`]; what leaves this room is a [`Reply`](airlock_core::outcome::Reply)
//! or a list of raw tools. Nothing here decides whether a call may leave.

mod caps;
mod child;
mod connection;
mod decode;
mod diagnostics;
pub(crate) mod era;
mod error;
pub(crate) mod fetch;
mod following;
mod handshake;
pub(crate) mod headers;
mod http;
pub(crate) mod inquiry;
pub(crate) mod jsonrpc;
pub(crate) mod lines;
mod link;
mod list;
mod listening;
pub(crate) mod news;
pub(crate) mod opening;
mod pool;
pub(crate) mod raw;
mod rounds;
mod secret;
mod server;
mod slot;
mod spec;
mod sse;
mod stdio;
mod waiting;
pub(crate) mod wall;
pub(crate) mod watching;

pub use caps::Caps;
pub use diagnostics::Report as DiagnosticsReport;
pub use era::{Era, EraChoice, EraMemory};
pub use error::ConnectError;
pub(crate) use http::client as http_client;
pub use list::ListProblem;
pub use pool::{Listed, Surroundings, Upstream};
pub use secret::Secret;
pub(crate) use server::{Against, Asked, Sent};
pub use spec::{BadUrl, ServerSpec, ServerUrl, Timeouts, Transport};

#[cfg(test)]
pub(crate) mod tests;
