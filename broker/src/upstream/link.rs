//! The transport of one connection: sends a request to a server and returns its answer.

use super::http::HttpLink;
use super::jsonrpc::Answer;
use super::outgoing::{LinkError, OutgoingRequest};
use super::stdio::StdioLink;
use crate::deadline::Deadline;

#[derive(Debug)]
pub(crate) enum Link {
    Stdio(StdioLink),
    Http(HttpLink),
}

impl Link {
    /// Sends a request and waits for the answer. If the future is dropped after the request was
    /// sent, airlock cancels the request at the server.
    pub(crate) async fn request(
        &self,
        outgoing: &OutgoingRequest,
        deadline: &Deadline,
    ) -> Result<Answer, LinkError> {
        match self {
            Self::Stdio(link) => link.request(outgoing, deadline).await,
            Self::Http(link) => link.request(outgoing, deadline).await,
        }
    }

    pub(crate) async fn notify(&self, method: &'static str, params: &str) -> Result<(), LinkError> {
        match self {
            Self::Stdio(link) => link.notify(method, params).await,
            Self::Http(link) => link.notify(method, params).await,
        }
    }

    /// Whether the link is closed, so that nothing can be sent.
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
