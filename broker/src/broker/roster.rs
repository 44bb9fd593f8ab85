//! Every configured server: how it stands, and the tools that it listed, be it
//! now or when it was last seen.

use std::collections::HashMap;

use airlock_core::id::ServerName;
use airlock_core::problem::Problem;
use airlock_core::search::Texts;
use codegen::lock::Lock;
use serde_json::Value;

use super::offered::Offered;
use super::says::{Digests, Says};
use super::side_by_side::side_by_side;
use super::status::{ServerState, ServerStatus};
use super::tools::tool_left_out;
use crate::config::{Secrets, Server};
use crate::listing_file::{Listings, Remembered};
use crate::lock_file::{self, Pin};
use crate::upstream::{ConnectError, Listed};

pub(super) struct Roster {
    entries: Vec<Entry>,
    lock: Option<Lock>,
    secrets: Secrets,
    listings: Listings,
    says: Says,
    /// Somebody searches in what is offered.
    is_searched: bool,
}

struct Entry {
    server: Server,
    state: ServerState,
    offered: Option<Offered>,
    /// An earlier start waited for it in vain.
    was_missed: bool,
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

/// What has to be made anew because of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Touches {
    /// Nothing but how the server stands.
    Standing,
    /// Also what is wrong with it, or with single tools of it.
    Problems,
    /// Also which tools there are.
    Tools,
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
            was_missed: false,
            problems: Vec::new(),
        };
        Self {
            entries: servers.into_iter().map(entry).collect(),
            lock,
            secrets,
            listings,
            says: Says::default(),
            is_searched: false,
        }
    }

    /// What the servers say of their tools, from the moment on at which it was read.
    pub(super) fn says(&self) -> &Says {
        &self.says
    }

    /// Offers what servers listed when they were last seen, or what the lock file has of them. It
    /// is searched in from now on.
    pub(super) fn recall(&mut self) {
        self.is_searched = true;
        let recalled = side_by_side(&self.entries, |entry| {
            let server = &entry.server;
            if let Some(remembered) = self.listings.load(&server.spec.digest()) {
                return Some(self.offer_remembered(server, remembered));
            }
            let (says, tools) = self.locked(server)?;
            Some(self.offer(server, says, tools))
        });
        for (entry, offered) in self.entries.iter_mut().zip(recalled) {
            entry.was_missed =
                offered.is_none() && self.listings.was_missed(&entry.server.spec.digest());
            entry.offered = offered;
        }
    }

    /// Remembers of which servers nothing is known though they were waited for.
    pub(super) fn note_missed(&self) {
        let missed = self.entries.iter().filter(|it| it.status().is_awaited());
        for entry in missed {
            self.listings.note_missed(&entry.server.spec.digest());
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

    pub(super) fn apply(&mut self, change: Change) -> Touches {
        match change {
            Change::Listed(listed) => self.listed(*listed),
            Change::Rests(server) => self.rests(&server),
        }
    }

    /// What it was unavailable for is over; what is wrong with single tools of it stays.
    fn rests(&mut self, server: &ServerName) -> Touches {
        let Some(entry) = self.find(server) else {
            return Touches::Standing;
        };
        let before = std::mem::replace(&mut entry.state, ServerState::OnDemand);
        if !matches!(before, ServerState::Unavailable(_)) {
            return Touches::Standing;
        }
        entry.problems.clear();
        Touches::Problems
    }

    fn listed(&mut self, listed: Listed) -> Touches {
        let name = listed.server.clone();
        let Some(entry) = self.entries.iter().find(|it| it.server.spec.name == name) else {
            return Touches::Standing;
        };
        if let Some(failure) = &listed.failure {
            let problem = self.unavailable(&name, failure);
            return self.lost(&name, problem);
        }
        let says = listed
            .server_info
            .as_ref()
            .and_then(|info| lock_file::says(info, &self.secrets));
        let left_out = |bad: &_| tool_left_out(&name.0, format!("{bad}"));
        let problems: Vec<_> = listed.problems.iter().map(left_out).collect();
        let other = self.offer_unless_same(entry, says, listed.tools);
        let touches = match &other {
            Some(_) => Touches::Tools,
            None if entry.problems != problems => Touches::Problems,
            None => Touches::Standing,
        };
        let Some(entry) = self.find(&name) else {
            return Touches::Standing;
        };
        entry.state = ServerState::Connected;
        entry.problems = problems;
        entry.offered = other.or_else(|| entry.offered.take());
        self.note(&name, listed.reading);
        touches
    }

    fn lost(&mut self, server: &ServerName, problem: Problem) -> Touches {
        let Some(entry) = self.find(server) else {
            return Touches::Standing;
        };
        let now = ServerState::Unavailable(problem.why.clone());
        let before = std::mem::replace(&mut entry.state, now);
        entry.problems = vec![problem];
        match before {
            // Tried again, and nothing has come of it.
            ServerState::Unavailable(_) => Touches::Problems,
            // What fits nothing may have waited for it.
            _ => Touches::Tools,
        }
    }

    /// Remembers what a server offers, and what calls of it are held against.
    fn note(&mut self, server: &ServerName, reading: u64) {
        let is_it = |it: &&Entry| it.server.spec.name == *server;
        let Some(entry) = self.entries.iter().find(is_it) else {
            return;
        };
        let Some(offered) = &entry.offered else {
            return;
        };
        let (spec, says) = (entry.server.spec.digest(), offered.says.as_deref());
        self.listings.store(&spec, says, offered.stored());
        if let Some(texts) = &offered.texts {
            self.listings.store_words(&spec, &offered.searched(), texts);
        }
        self.says.put(server.clone(), reading, offered.digests());
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

    /// Servers whose tools are known from before, and from nowhere else.
    pub(super) fn remembered(&self) -> Vec<ServerName> {
        let is_remembered = |it: &&Entry| {
            it.offered.is_some()
                && matches!(it.state, ServerState::Starting | ServerState::OnDemand)
        };
        let remembered = self.entries.iter().filter(is_remembered);
        remembered.map(|it| it.server.spec.name.clone()).collect()
    }

    /// Takes away what a server offers.
    pub(super) fn hold_back(&mut self, server: &ServerName) -> Option<Offered> {
        self.find(server)?.offered.take()
    }

    /// And offers it again.
    pub(super) fn put_back(&mut self, server: &ServerName, offered: Offered) {
        if let Some(entry) = self.find(server) {
            entry.offered = Some(offered);
        }
    }

    /// Nothing when it is what the server offers already: reading a thousand descriptions is
    /// work, and comparing them is little.
    fn offer_unless_same(
        &self,
        entry: &Entry,
        mut says: Option<String>,
        mut tools: Vec<Value>,
    ) -> Option<Offered> {
        self.strike(&mut says, &mut tools);
        let before = entry.offered.as_ref();
        let is_same = before.is_some_and(|it| it.says == says && it.lists(&tools));
        (!is_same).then(|| self.offered_by(&entry.server, says, tools))
    }

    fn offer(&self, server: &Server, mut says: Option<String>, mut tools: Vec<Value>) -> Offered {
        self.strike(&mut says, &mut tools);
        self.offered_by(server, says, tools)
    }

    /// As it was read when it was stored, unless there is something to strike out by now.
    fn offer_remembered(&self, server: &Server, remembered: Remembered) -> Offered {
        if self.secrets.strike(remembered.text()).is_some() {
            let tools = remembered.tools.iter().map(|it| it.text.value());
            return self.offer(server, remembered.says, tools.collect());
        }
        let name = server.spec.name.0.to_string();
        let offered = Offered::remembered(name, &remembered.tools);
        let words = self
            .listings
            .load_words(&server.spec.digest(), &offered.searched());
        self.placed(server, remembered.says, (offered, words))
    }

    /// A server may repeat its credentials in what it says of itself and of its tools, which
    /// the model reads. What is remembered may be older than the knowledge of a credential.
    fn strike(&self, says: &mut Option<String>, tools: &mut [Value]) {
        if let Some(says) = says {
            self.secrets.strike_text(says);
        }
        tools
            .iter_mut()
            .for_each(|tool| self.secrets.strike_value(tool));
    }

    fn offered_by(&self, server: &Server, says: Option<String>, tools: Vec<Value>) -> Offered {
        let name = server.spec.name.0.to_string();
        self.placed(server, says, (Offered::of(name, tools), None))
    }

    /// With what our configuration and the lock file know of the server, and with what search
    /// has read of its tools before.
    fn placed(
        &self,
        server: &Server,
        says: Option<String>,
        (offered, words): (Offered, Option<Texts>),
    ) -> Offered {
        let target = self.target(server);
        let pin = match &self.lock {
            Some(lock) => Pin::of(lock, &offered.server, &target),
            None => Pin::Free,
        };
        let offered = Offered {
            trust: server.trust.clone(),
            target: Some(target),
            says,
            pin,
            ..offered
        };
        match self.is_searched {
            true => offered.with_texts(words),
            false => offered,
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
            was_missed: self.was_missed,
            about: self.server.about.clone().or(says),
        }
    }
}
