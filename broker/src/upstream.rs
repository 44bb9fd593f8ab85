//! The MCP client: many servers, over stdio and streamable HTTP, in both protocol eras. No other
//! module communicates with servers.
//!
//! This module parses all messages of servers by method, tolerantly and within [`MessageLimits`].
//! The results are a [`Reply`](airlock_core::outcome::Reply) or a list of raw tools. This module
//! never decides whether a call may leave.

mod child;
mod connection;
mod connection_slot;
mod decode;
mod diagnostics;
pub(crate) mod era;
mod error;
pub(crate) mod fetch;
pub(crate) mod groups_and_tags;
mod handshake;
pub(crate) mod headers;
mod http;
mod input_required;
pub(crate) mod jsonrpc;
pub(crate) mod lines;
mod link;
mod list;
mod list_subscription;
mod login_request;
mod message_limits;
pub(crate) mod notifications;
mod outgoing;
mod pending;
mod pool;
pub(crate) mod raw;
mod server;
pub(crate) mod server_request;
mod spec;
mod sse;
mod stdio;
mod subscription_sync;
pub(crate) mod subscriptions;
pub(crate) mod url_elicitation;

pub use diagnostics::DiagnosticsReport;
pub use era::{Era, EraChoice, EraMemory};
pub use error::ConnectError;
pub use groups_and_tags::{GroupsAndTags, NameDescription};
pub(crate) use http::{challenge_of, client as http_client};
pub use list::ListProblem;
pub use message_limits::MessageLimits;
pub use pool::{ServerListing, Upstream, UpstreamSettings};
pub(crate) use server::{CallRevision, SendOutcome, ToolCall};
pub use spec::{ServerSpec, Timeouts, Transport};

pub use crate::secret::Secret;
pub use crate::server_url::{BadUrl, ServerUrl};

#[cfg(test)]
pub(crate) mod tests;
