//! Types for requests other than tool calls: prompts, resources and completions. Results are parsed
//! completely, within limits.

use serde_json::{Map, Value};

/// One request that is not a tool call.
#[derive(Debug)]
pub(crate) struct Fetch {
    pub(crate) method: &'static str,
    pub(crate) params: Map<String, Value>,
    /// The value of the `Mcp-Name` header.
    pub(crate) name: Option<String>,
    /// Maximum length of the result, in bytes, in addition to the limit for all results.
    pub(crate) bytes_max: usize,
}

/// A result, and the length of its text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FetchResponse {
    pub(crate) value: Value,
    pub(crate) bytes: usize,
}

/// The reason why there is no result. Texts are masked and not cut: a cut before all credentials
/// are redacted could leave half of a credential.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FetchError {
    /// The server answered with an error.
    Refused { code: i64, message: String },
    /// The server cannot be reached, or its answer is invalid.
    Failed(String),
    /// The request did not arrive, because the server is not connected or the connection has ended.
    Ended(String),
}
