//! Every configured server: how it stands, and the tools that it listed, be it
//! now or when it was last seen.

use std::collections::HashMap;

use airlock_core::id::ServerName;
use airlock_core::problem::Problem;
use codegen::lock::Lock;
use serde_json::Value;

use super::says::{Digests, Says};
use super::status::{ServerState, ServerStatus};
use super::tools::{Offered, tool_left_out};
use crate::config::{Secrets, Server};
use crate::listing_file::Listings;
use crate::lock_file::{self, Pin};
use crate::upstream::{ConnectError, Listed};

pub(super) struct Roster {
    entries: Vec<Entry>,
    lock: Option<Lock>,
    secrets: Secrets,
    listings: Listings,
    says: Says,
}

struct Entry {
    server: Server,
    state: ServerState,
    offered: Option<Offered>,
    /// What is wrong with it, or with single tools of it.
    problems: Vec<Problem>,
}

/// What has happened to a server.
#[derive(Debug)]
pub(super) enum Change {
    /// It has listed its tools, or could not.
    Listed(Box<Listed>),
    /// Its connection has ended until somebody needs it.
    Rests(ServerName),
}

impl Change {
    pub(super) fn server(&self) -> &ServerName {
        match self {
            Self::Listed(listed) => &listed.server,
            Self::Rests(server) => server,
        }
    }
}

impl Roster {
    pub(super) fn new(
        servers: Vec<Server>,
        lock: Option<Lock>,
        secrets: Secrets,
        listings: Listings,
    ) -> Self {
        let entry = |server: Server| Entry {
            state: match server.idle {
                Some(_) => ServerState::OnDemand,
                None => ServerState::Starting,
            },
            server,
            offered: None,
            problems: Vec::new(),
        };
        Self {
            entries: servers.into_iter().map(entry).collect(),
            lock,
            secrets,
            listings,
            says: Says::default(),
        }
    }

    /// What the servers say of their tools, from the moment on at which it was read.
    pub(super) fn says(&self) -> &Says {
        &self.says
    }

    /// Offers what servers listed when they were last seen, or what the lock file has of them.
    pub(super) fn recall(&mut self) {
        for at in 0..self.entries.len() {
            let Some(entry) = self.entries.get(at) else {
                continue;
            };
            let known = self.listings.load(&entry.server.spec.digest());
            let known = known.or_else(|| self.locked(&entry.server));
            let offered = known.map(|(says, tools)| self.offer(&entry.server, says, tools));
            if let Some(entry) = self.entries.get_mut(at) {
                entry.offered = offered;
            }
        }
    }

    /// What the lock file has of a server that is reached where it says.
    fn locked(&self, server: &Server) -> Option<(Option<String>, Vec<Value>)> {
        let locked = self.lock.as_ref()?.servers.get(&*server.spec.name.0)?;
        let is_it = locked.target == self.target(server);
        let tools = locked.tools.values();
        let tools = tools.map(|tool| Value::Object(tool.description.clone()));
        is_it.then(|| (locked.says.clone(), tools.collect()))
    }

    /// True when that changes which tools there are, or what is wrong with them.
    pub(super) fn apply(&mut self, change: Change) -> bool {
        match change {
            Change::Listed(listed) => self.listed(*listed),
            Change::Rests(server) => {
                if let Some(entry) = self.find(&server) {
                    entry.state = ServerState::OnDemand;
                }
                false
            }
        }
    }

    fn listed(&mut self, listed: Listed) -> bool {
        let name = listed.server.clone();
        let Some(entry) = self.entries.iter().find(|it| it.server.spec.name == name) else {
            return false;
        };
        if let Some(failure) = &listed.failure {
            let problem = self.unavailable(&name, failure);
            if let Some(entry) = self.find(&name) {
                entry.state = ServerState::Unavailable(problem.why.clone());
                entry.problems = vec![problem];
            }
            return true;
        }
        let says = listed
            .server_info
            .as_ref()
            .and_then(|info| lock_file::says(info, &self.secrets));
        let reading = listed.reading;
        let left_out = |bad: &_| tool_left_out(&name.0, format!("{bad}"));
        let problems: Vec<_> = listed.problems.iter().map(left_out).collect();
        let offered = self.offer(&entry.server, says, listed.tools);
        self.listings.store(
            &entry.server.spec.digest(),
            offered.says.as_deref(),
            &offered.tools,
        );
        self.says.put(name.clone(), reading, offered.digests());
        let Some(entry) = self.find(&name) else {
            return false;
        };
        let before = entry.offered.as_ref();
        let is_same = before.is_some_and(|it| it.says == offered.says && it.tools == offered.tools);
        let is_other = !is_same || entry.problems != problems;
        entry.state = ServerState::Connected;
        entry.problems = problems;
        entry.offered = Some(offered);
        is_other
    }

    /// The rules cannot be held against what a server listed: nothing of it is offered until it
    /// lists something else.
    pub(super) fn refuse(&mut self, server: &ServerName, problem: &Problem) {
        if let Some(entry) = self.find(server) {
            entry.state = ServerState::Unavailable(problem.why.clone());
            entry.problems = vec![problem.clone()];
            entry.offered = None;
        }
    }

    /// Nothing counts but what servers say now. False when nothing else did.
    pub(super) fn forget(&mut self) -> bool {
        let is_remembered = |it: &&mut Entry| {
            it.offered.is_some()
                && matches!(it.state, ServerState::Starting | ServerState::OnDemand)
        };
        let remembered = self.entries.iter_mut().filter(is_remembered);
        remembered.map(|entry| entry.offered = None).count() > 0
    }

    fn offer(&self, server: &Server, mut says: Option<String>, mut tools: Vec<Value>) -> Offered {
        // A server may repeat its credentials in what it says of itself and of its tools, which
        // the model reads. What is remembered may be older than the knowledge of a credential.
        if let Some(says) = &mut says {
            self.secrets.strike_text(says);
        }
        tools
            .iter_mut()
            .for_each(|tool| self.secrets.strike_value(tool));
        let name = server.spec.name.0.to_string();
        let target = self.target(server);
        let pin = match &self.lock {
            Some(lock) => Pin::of(lock, &name, &target),
            None => Pin::Free,
        };
        Offered {
            server: name,
            trust: server.trust.clone(),
            target: Some(target),
            says,
            pin,
            tools,
        }
    }

    fn target(&self, server: &Server) -> String {
        let mut target = server.spec.target();
        self.secrets.strike_text(&mut target);
        target
    }

    fn unavailable(&self, server: &ServerName, failure: &ConnectError) -> Problem {
        let mut why = failure.to_string();
        self.secrets.strike_text(&mut why);
        let what = format!("the server `{}` cannot be used", server.0);
        Problem::new("server-unavailable", what, why, failure.next())
    }

    pub(super) fn lock(&self) -> Option<&Lock> {
        self.lock.as_ref()
    }

    pub(super) fn offered(&self) -> impl Iterator<Item = &Offered> {
        self.entries.iter().filter_map(|it| it.offered.as_ref())
    }

    /// Of what each server says of its tools; nothing of those of which nothing is offered.
    pub(super) fn digests(&self) -> HashMap<&str, Digests> {
        let digests = |it: &Entry| it.offered.as_ref().map(Offered::digests);
        let entries = self.entries.iter();
        entries
            .map(|it| (&*it.server.spec.name.0, digests(it).unwrap_or_default()))
            .collect()
    }

    /// The first server that could not be connected to.
    pub(super) fn first_unavailable(&self) -> Option<&Problem> {
        let gone = |it: &&Entry| matches!(it.state, ServerState::Unavailable(_));
        self.entries
            .iter()
            .find(gone)
            .and_then(|it| it.problems.first())
    }

    pub(super) fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.entries.iter().flat_map(|it| &it.problems)
    }

    /// Servers whose tools nobody knows.
    pub(super) fn unseen(&self) -> impl Iterator<Item = &str> {
        let unseen = self.entries.iter().filter(|it| it.offered.is_none());
        unseen.map(|it| &*it.server.spec.name.0)
    }

    /// Some server has never been seen, and may still be.
    pub(super) fn is_incomplete(&self) -> bool {
        let unseen =
            |it: &Entry| it.offered.is_none() && !matches!(it.state, ServerState::Unavailable(_));
        self.entries.iter().any(unseen)
    }

    pub(super) fn statuses(&self) -> Vec<ServerStatus> {
        self.entries.iter().map(Entry::status).collect()
    }

    fn find(&mut self, server: &ServerName) -> Option<&mut Entry> {
        let is_it = |it: &&mut Entry| it.server.spec.name == *server;
        self.entries.iter_mut().find(is_it)
    }
}

impl Entry {
    fn status(&self) -> ServerStatus {
        let says = self.offered.as_ref().and_then(|it| it.says.clone());
        ServerStatus {
            name: self.server.spec.name.0.to_string(),
            state: self.state.clone(),
            is_on_demand: self.server.idle.is_some(),
            tools: self.offered.as_ref().map(|it| it.tools.len()),
            about: self.server.about.clone().or(says),
        }
    }
}
