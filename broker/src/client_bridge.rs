//! Passes the inquiries that a server sends during a call on to the host, and the answers back.
//! Scripts never answer an inquiry, and never see the answer.

mod answer_deadline;
mod call_progress;
mod log_message;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use airlock_core::id::ServerName;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

pub use airlock_core::inquiry::InquiryKind;
pub use answer_deadline::{AnswerDeadline, AnswerDeadlinePause};
pub use call_progress::{CallProgress, ProgressReports, ProgressSink};
pub use log_message::{LogLevel, LogMessage, LogSink};

/// A pending answer. Dropping it withdraws the inquiry.
pub type BridgeFuture<'a> = Pin<Box<dyn Future<Output = ClientReply> + Send + 'a>>;

/// Passes inquiries of servers on to a host, and returns the host's answers.
pub trait ClientBridge: Send + Sync {
    /// Returns the kinds of inquiries that servers may send. airlock declares these capabilities to
    /// servers, and passes on no other inquiries.
    fn abilities(&self) -> ClientCapabilities;

    /// Whether a person can be asked to log in to a server, at an address that airlock names.
    fn can_log_in(&self) -> bool {
        self.abilities().address
    }

    /// Returns a name of the host that is unique among bridges. A server may continue a call that
    /// this host gave up; its inquiries can then reach this host during a later call. Without a
    /// name, the host counts as a new one in each run.
    fn host(&self) -> Option<Arc<str>> {
        None
    }

    /// Passes an inquiry on to the host. A bridge that must wait before it can ask pauses `time`
    /// until then.
    fn carry(&self, inquiry: ServerRequest, time: AnswerDeadline) -> BridgeFuture<'_>;

    /// Returns where log messages of servers go, or `None` if they are not wanted.
    fn log_sink(&self) -> Option<LogSink> {
        None
    }

    /// Returns where reports of progress go, or `None` if they are not wanted.
    fn progress_sink(&self) -> Option<ProgressSink> {
        None
    }
}

/// The kinds of inquiries that servers can send to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientCapabilities {
    /// A form that the person fills in.
    pub form: bool,
    /// An address that the person opens.
    pub address: bool,
    /// A text from the host's model.
    pub sampling: bool,
    /// A text from the host's model with tools of the server, which the server runs itself.
    pub sampling_tools: bool,
    /// The folders in which the host works.
    pub roots: bool,
}

/// The capabilities that are declared to servers, once they are known.
pub type DeclaredCapabilities = watch::Receiver<Option<ClientCapabilities>>;

/// One inquiry, reduced to the members that the protocol defines.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerRequest {
    pub server: ServerName,
    pub wants: InquiryKind,
    /// The parameters as the server wrote them. Their texts may contain anything.
    pub params: Value,
    /// The server's key for this inquiry, if the era has keys. It distinguishes inquiries that the
    /// server sends together.
    pub key: Option<String>,
}

/// The host's reply.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientReply {
    Result(Value),
    Error {
        code: i64,
        message: String,
    },
    /// There was no answer.
    Nothing,
}

impl ClientCapabilities {
    /// All capabilities.
    pub const ALL: Self = Self {
        form: true,
        address: true,
        sampling: true,
        sampling_tools: true,
        roots: true,
    };

    /// Reads the capabilities that a host declares as a client. Elicitation without a mode means
    /// forms.
    #[must_use]
    pub fn from_capabilities(capabilities: &Value) -> Self {
        let object = |name: &str| capabilities.get(name).and_then(Value::as_object);
        let elicitation = object("elicitation");
        let mode = |mode: &str| elicitation.is_some_and(|it| it.contains_key(mode));
        let sampling = object("sampling");
        Self {
            form: mode("form") || elicitation.is_some_and(Map::is_empty),
            address: mode("url"),
            sampling: sampling.is_some(),
            sampling_tools: sampling.is_some_and(|it| it.contains_key("tools")),
            roots: object("roots").is_some(),
        }
    }

    /// Returns the capabilities in the form in which airlock declares them to servers.
    #[must_use]
    pub fn declared(self) -> Value {
        let modes = [("form", self.form), ("url", self.address)];
        let modes: Map<_, _> = present(modes);
        let with: Map<_, _> = present([("tools", self.sampling_tools)]);
        let mut declared = Map::new();
        if !modes.is_empty() {
            declared.insert("elicitation".into(), modes.into());
        }
        if self.sampling {
            declared.insert("sampling".into(), with.into());
        }
        if self.roots {
            declared.insert("roots".into(), json!({}));
        }
        declared.into()
    }

    /// Returns the capabilities as a value that is known from the start.
    #[must_use]
    pub fn from_now_on(self) -> DeclaredCapabilities {
        watch::channel(Some(self)).1
    }

    /// Returns the capabilities that `self` and `other` both have.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        Self {
            form: self.form && other.form,
            address: self.address && other.address,
            sampling: self.sampling && other.sampling,
            sampling_tools: self.sampling_tools && other.sampling_tools,
            roots: self.roots && other.roots,
        }
    }

    #[must_use]
    pub fn has(self, wants: InquiryKind) -> bool {
        match wants {
            InquiryKind::Form => self.form,
            InquiryKind::Address => self.address,
            InquiryKind::Sampling => self.sampling,
            InquiryKind::Roots => self.roots,
        }
    }
}

fn present<const N: usize>(named: [(&str, bool); N]) -> Map<String, Value> {
    let present = named.into_iter().filter(|(_, there)| *there);
    present
        .map(|(name, _)| (name.to_owned(), json!({})))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_capabilities_round_trip() {
        let form = ClientCapabilities {
            form: true,
            ..ClientCapabilities::default()
        };
        for (capabilities, expected) in [
            (json!({}), ClientCapabilities::default()),
            (json!({"elicitation": {}}), form),
            (json!({"elicitation": {"form": {}}}), form),
            (
                json!({"elicitation": true, "sampling": []}),
                ClientCapabilities::default(),
            ),
            (
                json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}),
                ClientCapabilities::ALL,
            ),
            (
                json!({"elicitation": {"url": {}}, "sampling": {}}),
                ClientCapabilities {
                    address: true,
                    sampling: true,
                    ..ClientCapabilities::default()
                },
            ),
        ] {
            let read = ClientCapabilities::from_capabilities(&capabilities);
            assert_eq!(read, expected, "{capabilities}");
            assert_eq!(
                ClientCapabilities::from_capabilities(&read.declared()),
                expected,
                "{capabilities}"
            );
        }
    }
}
