//! MCP as a server: what we offer to agent hosts. The tools of all servers stand
//! behind a few of our own; full descriptions are disclosed as they are needed.
//!
//! The only room that speaks to a host. Whether a call may be made is decided
//! where it is decided for every other run.

mod asking;
mod awaiting;
mod binaries;
mod blocks;
mod desk;
mod disclosure;
pub(crate) mod discovery;
mod ending;
mod feed;
mod filter;
mod handing;
mod http;
mod idle;
mod inquiring;
mod kept;
mod listening;
mod logging;
mod meta;
mod news;
mod offered;
mod peer;
mod progress;
mod prompt;
mod request;
mod resources;
mod rpc;
mod sampling;
mod seal;
mod session;
mod settings;
mod shelf;
mod stdio;
mod suspended;
mod text;
mod wish;

use std::io;
use std::sync::{Arc, Weak};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::broker::Broker;
use crate::carrier::Declared;
use desk::Desk;
use shelf::Shelf;
use stdio::Parting;

pub use http::{BadOauth, BadToken, Gate, OauthSettings, Patience, ResourceServer, url};
pub use offered::{BadOffer, Offer, Offers};
pub use prompt::text as system_prompt;
pub use seal::NoKey;
pub use settings::{Disclosure, Mode, Settings, message_bytes_max};

/// A broker as a server. Cheap to clone; all clones serve the same.
#[derive(Debug, Clone)]
pub struct Serve {
    desk: Desk,
    shelf: Arc<watch::Sender<Option<Arc<Shelf>>>>,
    settings: Settings,
}

impl Serve {
    /// Hosts can connect at once, and wait for the broker where they need it.
    pub fn new(settings: Settings) -> Result<Self, NoKey> {
        let (shelf, watched) = watch::channel(None);
        Ok(Self {
            desk: Desk::new(watched, settings.clone())?,
            shelf: Arc::new(shelf),
            settings,
        })
    }

    /// What servers are to be told that can be asked of hosts; known when the first host has
    /// spoken, or when hosts can come over HTTP. For [`Builder::declared`](crate::Builder).
    #[must_use]
    pub fn declared(&self) -> Declared {
        self.desk.declared()
    }

    /// The broker is there. Called where a tokio runtime is entered, which then takes in what
    /// changes.
    pub fn ready(&self, broker: Broker) {
        let changes = broker.changes();
        tokio::spawn(news::follow(broker.clone(), self.desk.clone()));
        tokio::spawn(idle::return_memory(broker.clone()));
        let shelf = Shelf::new(broker, &self.settings);
        self.shelf.send_replace(Some(Arc::new(shelf)));
        let shelf = Arc::downgrade(&self.shelf);
        tokio::spawn(follow(changes, shelf, self.settings.clone()));
    }

    /// Ends all runs and everything that is served, for all hosts: [`Self::over`] and
    /// [`Self::http`] return when the hosts have heard how their runs ended.
    pub fn end(&self, why: &str) {
        self.desk.ending().begin(why);
    }

    /// Serves one host over stdin and stdout, until it is gone.
    pub async fn stdio(&self) -> io::Result<()> {
        self.over(tokio::io::stdin(), tokio::io::stdout()).await
    }

    /// Serves one host over any two streams of lines.
    pub async fn over(
        &self,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> io::Result<()> {
        stdio::serve(self.desk.clone(), input, output, Parting::default()).await
    }

    /// Serves any number of hosts over streamable HTTP, until it is dropped.
    pub async fn http(&self, listener: TcpListener, gate: Gate) -> io::Result<()> {
        // Hosts of every kind may come; where one cannot be asked, its calls' servers hear it.
        self.desk.declare(self.settings.pass);
        http::serve(self.desk.clone(), listener, gate).await
    }
}

/// A new shelf whenever a server has joined or changed.
async fn follow(
    mut changes: watch::Receiver<u64>,
    shelf: Weak<watch::Sender<Option<Arc<Shelf>>>>,
    settings: Settings,
) {
    while changes.changed().await.is_ok() {
        let before = shelf.upgrade().and_then(|shelf| shelf.borrow().clone());
        let Some(before) = before else {
            return;
        };
        let settings = settings.clone();
        let making = tokio::task::spawn_blocking(move || before.renewed(&settings));
        if let (Ok(made), Some(shelf)) = (making.await, shelf.upgrade()) {
            shelf.send_replace(Some(Arc::new(made)));
        }
    }
}

#[cfg(test)]
mod tests;
