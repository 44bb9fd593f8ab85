//! One server's tools as it listed them, each of them read once.

use codegen::description::{BadTool, Description};
use serde_json::Value;

use super::says::Digests;
use crate::config::Trust;
use crate::lock_file::Pin;

#[derive(Debug)]
pub(super) struct Offered {
    pub(super) server: String,
    pub(super) trust: Trust,
    /// Where it is reached; nothing for the host's own tools.
    pub(super) target: Option<String>,
    /// What it calls itself.
    pub(super) says: Option<String>,
    pub(super) pin: Pin,
    pub(super) tools: Vec<Value>,
    /// What each of `tools` says, in their order.
    pub(super) read: Vec<Result<Description, BadTool>>,
}

impl Offered {
    /// Of a server that nothing else is known of.
    pub(super) fn of(server: String, tools: Vec<Value>) -> Self {
        let read = tools.iter().map(|tool| Description::parse(&server, tool));
        Self {
            read: read.collect(),
            server,
            trust: Trust::default(),
            target: None,
            says: None,
            pin: Pin::Free,
            tools,
        }
    }

    /// The tools that can be used, each as it was listed and as it was read.
    pub(super) fn usable(&self) -> impl Iterator<Item = (&Value, &Description)> {
        let both = self.tools.iter().zip(&self.read);
        both.filter_map(|(said, read)| Some((said, read.as_ref().ok()?)))
    }

    /// Of what the server itself says of its tools.
    pub(super) fn digests(&self) -> Digests {
        let mut digests = Digests::new();
        for (_, description) in self.usable() {
            let name = description.name.clone();
            digests.entry(name).or_insert(description.upstream);
        }
        digests
    }
}
