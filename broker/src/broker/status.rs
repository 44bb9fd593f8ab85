//! How each configured server stands with the broker, as hosts may be told.

use super::Broker;

/// What keeps a server's tools from being called, if anything does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    /// It is being connected to, and has not listed its tools since the broker was built.
    Starting,
    /// It has listed its tools.
    Connected,
    /// It is connected to when somebody needs it.
    OnDemand,
    /// It could not be connected to; the text says why.
    Unavailable(String),
}

/// One server as it stands now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    pub name: String,
    pub state: ServerState,
    /// Whether it is connected to only when needed.
    pub is_on_demand: bool,
    /// How many tools it lists, or listed when it was last seen. None: it was never seen.
    pub tools: Option<usize>,
    /// What our configuration says of it, or else what it says of itself.
    pub about: Option<String>,
}

impl ServerStatus {
    /// Nobody can tell yet which tools it has, and that will change by itself.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.state == ServerState::Starting && self.tools.is_none()
    }
}

impl Broker {
    /// Whether tools of some server were known at the start, from when it was last seen.
    pub(crate) fn remembers(&self) -> bool {
        self.0.servers.shelf.remembers()
    }
}
