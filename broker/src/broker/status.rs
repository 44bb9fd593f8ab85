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
    /// An earlier start waited for it in vain, and it was never seen since.
    pub was_missed: bool,
    /// What our configuration says of it, or else what it says of itself.
    pub about: Option<String>,
}

impl ServerStatus {
    /// Nobody can tell yet which tools it has, and that will change by itself.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.state == ServerState::Starting && self.tools.is_none()
    }

    /// Whether a start is held up for it, for a while: so that one that is slow, or never there,
    /// does not hold up each start, that is done once.
    #[must_use]
    pub fn holds_up_start(&self) -> bool {
        self.is_awaited() && !self.was_missed
    }
}

impl Broker {
    /// This start has waited long enough for those who are still missing.
    pub(crate) fn note_missed(&self) {
        self.0.servers.shelf.note_missed();
    }
}
