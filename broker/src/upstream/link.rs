//! One way to put a request to a server and get its answer, whatever carries it.

use std::time::Duration;

use airlock_core::outcome::LostCause;

use super::http::HttpLink;
use super::inquiry::Whose;
use super::jsonrpc::Answer;
use super::stdio::StdioLink;
use super::wall::Wall;

/// A request of ours before it has an id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outgoing {
    pub(crate) method: &'static str,
    /// JSON text of an object, sent as it is.
    pub(crate) params: String,
    /// What the `Mcp-Name` header repeats: the tool's name.
    pub(crate) name: Option<String>,
    /// Headers of this request alone, over HTTP.
    pub(crate) headers: Vec<(String, String)>,
    /// Tell the server when nobody waits any more. Not for the handshake.
    pub(crate) cancellable: bool,
    /// Who is asked what the server asks in the middle of it.
    pub(crate) whose: Whose,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LinkError {
    /// Provably nothing arrived.
    NotSent { why: String },
    /// The HTTP session is no more; the request was not accepted.
    SessionGone,
    /// The HTTP server answered with this status and without a JSON-RPC message.
    Status { status: u16, why: String },
    /// It left, and nobody can tell what became of it.
    Lost { why: String, cause: LostCause },
    /// The server wants an address to be opened first and has done nothing; whoever was asked to
    /// open it has declined, or has not answered.
    Unopened { was_declined: bool },
}

impl LinkError {
    pub(crate) fn why(&self) -> String {
        match self {
            Self::NotSent { why } | Self::Status { why, .. } | Self::Lost { why, .. } => {
                why.clone()
            }
            Self::SessionGone => "the HTTP session is gone".to_owned(),
            Self::Unopened { was_declined } => {
                let what = "the server wants an address to be opened first";
                match was_declined {
                    true => format!("{what}, which was declined; it has done nothing"),
                    false => format!("{what}, which was not done; the call has done nothing"),
                }
            }
        }
    }

    /// It says nothing of the request, and much of the way to the server.
    pub(crate) fn is_of_the_way(&self) -> bool {
        match self {
            Self::NotSent { .. } | Self::SessionGone => true,
            Self::Status { status, .. } => *status >= 500,
            Self::Lost { cause, .. } => *cause == LostCause::Disconnected,
            Self::Unopened { .. } => false,
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

#[derive(Debug)]
pub(crate) enum Link {
    Stdio(StdioLink),
    Http(HttpLink),
}

impl Link {
    /// Dropping the future tells the server that nobody waits any more, when the request has left.
    pub(crate) async fn request(
        &self,
        outgoing: &Outgoing,
        wall: &Wall,
    ) -> Result<Answer, LinkError> {
        match self {
            Self::Stdio(link) => link.request(outgoing, wall).await,
            Self::Http(link) => link.request(outgoing, wall).await,
        }
    }

    pub(crate) async fn notify(&self, method: &'static str, params: &str) -> Result<(), LinkError> {
        match self {
            Self::Stdio(link) => link.notify(method, params).await,
            Self::Http(link) => link.notify(method, params).await,
        }
    }

    /// Nothing can be sent over it any more.
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Stdio(link) => link.is_closed(),
            Self::Http(link) => link.is_closed(),
        }
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Stdio(link) => link.close().await,
            Self::Http(link) => link.close().await,
        }
    }
}
