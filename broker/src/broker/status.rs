//! The state of each configured server, as hosts may see it.

use super::Broker;

/// The state of a server: whether its tools can be called, and why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    /// The server is being connected, and has not listed its tools since the broker was built.
    Starting,
    /// The server has listed its tools.
    Connected,
    /// The server is connected when a call needs it.
    OnDemand,
    /// The server could not be connected, for the contained reason.
    Unavailable(String),
}

/// The current state of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    pub name: String,
    pub state: ServerState,
    /// Whether the server is connected only when a call needs it.
    pub is_on_demand: bool,
    /// The number of tools that the server lists, or listed when it was last connected. `None` if
    /// it was never connected.
    pub tools: Option<usize>,
    /// Whether an earlier start waited for this server without success, and it has never been
    /// connected since.
    pub was_missed: bool,
    /// The description from the configuration, or else the description that the server itself
    /// sends.
    pub about: Option<String>,
}

impl ServerState {
    /// Returns the word that hosts and scripts see.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Connected => "connected",
            Self::OnDemand => "on-demand",
            Self::Unavailable(_) => "unavailable",
        }
    }
}

impl ServerStatus {
    /// Returns whether the server's tools are unknown and it is being connected.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.state == ServerState::Starting && self.tools.is_none()
    }

    /// Returns whether a start waits for this server. Only one start waits for a server that does
    /// not connect, so that a slow or absent server does not delay every start.
    #[must_use]
    pub fn holds_up_start(&self) -> bool {
        self.is_awaited() && !self.was_missed
    }
}

impl Broker {
    /// Records that this start no longer waits for the servers that are still missing.
    pub(crate) fn note_missed(&self) {
        self.0.servers.registry.note_missed();
    }
}
