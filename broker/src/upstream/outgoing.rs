//! A request to a server, independent of the transport, and the reasons why it may get no answer.

use std::time::Duration;

use airlock_core::login::Challenge;
use airlock_core::outcome::LostCause;

use super::server_request::RequestOwner;

/// A request before it has an id.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutgoingRequest {
    pub(crate) method: &'static str,
    /// JSON text of an object, sent unchanged.
    pub(crate) params: String,
    /// The value of the `Mcp-Name` header: the tool's name.
    pub(crate) name: Option<String>,
    /// Additional headers of this request, over HTTP.
    pub(crate) headers: Vec<(String, String)>,
    /// Whether airlock cancels the request at the server when the request is dropped. Not set for
    /// the handshake.
    pub(crate) cancellable: bool,
    /// The owner of the request, who is asked if the server makes inquiries while it works on the
    /// request.
    pub(crate) owner: RequestOwner,
}

/// Says how a person logs in with this command, or without one.
pub(crate) fn how_to_log_in(command: Option<&str>) -> String {
    match command {
        Some(command) => format!("a person can log in with `{command}`"),
        None => "a person can log in at a host that opens addresses".to_owned(),
    }
}

/// The reason why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LinkError {
    /// The request certainly did not arrive.
    NotSent { why: String },
    /// The request was not sent, because the login cannot be used. `next` is advice.
    LoginUnusable { why: String, next: &'static str },
    /// The HTTP session has ended; the request was not accepted.
    SessionGone,
    /// The HTTP server answered with this status and without a JSON-RPC message.
    Status { status: u16, why: String },
    /// The request was sent, and its outcome is unknown.
    Lost { why: String, cause: LostCause },
    /// The server has done nothing because it requires a login. `next` is the command, unless the
    /// login is that of a caller.
    LoginRequired {
        why: String,
        next: Option<String>,
        challenge: Box<Challenge>,
    },
    /// The server has done nothing because it requires a URL to be opened first. The person
    /// declined or did not answer.
    Unopened { was_declined: bool },
}

impl LinkError {
    pub(crate) fn why(&self) -> String {
        match self {
            Self::NotSent { why } | Self::Status { why, .. } | Self::Lost { why, .. } => {
                why.clone()
            }
            Self::LoginUnusable { why, next } => format!("{why}; {next}"),
            Self::LoginRequired { why, next, .. } => {
                format!("{why}; {}", how_to_log_in(next.as_deref()))
            }
            Self::SessionGone => "the HTTP session has ended".to_owned(),
            Self::Unopened { was_declined } => {
                let what = "the server requires a URL to be opened first";
                match was_declined {
                    true => format!("{what}; the person declined, and nothing was done"),
                    false => format!("{what}; the person did not open it, and nothing was done"),
                }
            }
        }
    }

    /// Whether the error concerns the connection to the server and not the request.
    pub(crate) fn is_connection_error(&self) -> bool {
        match self {
            Self::NotSent { .. } | Self::LoginUnusable { .. } | Self::SessionGone => true,
            Self::Status { status, .. } => *status >= 500,
            Self::Lost { cause, .. } => *cause == LostCause::Disconnected,
            Self::LoginRequired { .. } | Self::Unopened { .. } => false,
        }
    }

    pub(crate) fn timed_out(within: Duration) -> Self {
        Self::Lost {
            why: format!("no answer within {} ms", within.as_millis()),
            cause: LostCause::TimedOut,
        }
    }

    pub(crate) fn disconnected(why: impl Into<String>) -> Self {
        Self::Lost {
            why: why.into(),
            cause: LostCause::Disconnected,
        }
    }

    pub(crate) fn too_large(bytes_max: usize) -> Self {
        Self::Lost {
            why: format!("the answer is larger than {bytes_max} bytes"),
            cause: LostCause::TooLarge,
        }
    }

    pub(crate) fn unreadable(why: impl Into<String>) -> Self {
        Self::Lost {
            why: why.into(),
            cause: LostCause::Unreadable,
        }
    }
}
