//! Logs in to an MCP server with OAuth 2.1, and renews the tokens. Everything here is pure: answers
//! of servers come in as text, and the next request or a refusal goes out. The shell sends the
//! requests, follows no redirect, and supplies time and randomness.
//!
//! The order is that of the authorization pages of both protocol eras: the challenge of the server,
//! its protected resource metadata, the metadata of the authorization server, the choice of the
//! client, the address for the person, and the exchange of the code.

mod address;
mod challenge;
mod client;
mod credential;
mod device;
mod error;
mod flow;
mod metadata;
mod redirect;
mod request;
mod scopes;
#[cfg(test)]
mod tests;
mod token;

pub use address::{AddressError, Network, checked, network_of_host, network_of_ip};
pub use challenge::Challenge;
pub use client::{AuthMethod, Client, ClientOrigin, ConfiguredClient, Grant, metadata_document};
pub use credential::Credential;
pub use device::DevicePrompt;
pub use error::LoginError;
pub use flow::{Event, Login, LoginInput, Randomness, Step};
pub use request::{Answer, Body, ClientProof, Request};
pub use scopes::ScopeSet;
pub use token::{refresh_request, refreshed, revocation_requests};

/// Maximum size of an answer of an authorization server.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of requests of one login. A longer chain of answers is refused.
const REQUESTS_MAX: u32 = 16;
/// The name of the device authorization grant (RFC 8628).
const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
