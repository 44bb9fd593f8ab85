//! Manages the configured servers: the state of each, and the tools that it listed now or at an
//! earlier start.

use std::collections::HashMap;

use airlock_core::id::ServerName;
use airlock_core::problem::Problem;
use airlock_core::search::IndexedTexts;
use codegen::lock::Lock;
use serde_json::Value;

use super::latest_listings::{Digests, LatestListings};
use super::login_tool;
use super::server_tools::{ServerAbout, ServerTools};
use super::status::{ServerState, ServerStatus};
use super::tools::{groups_missing, tool_left_out};
use crate::config::{ServerConfig, ToolTrust};
use crate::listing_file::{ListingStore, StoredListing};
use crate::lock_file::{self, Pin};
use crate::parallel::side_by_side;
use crate::secrets::Secrets;
use crate::target_key::TargetKey;
use crate::upstream::{ConnectError, GroupsAndTags, ListProblem, ServerListing};

/// Maximum number of characters of a name in a message.
const NAME_CHARS_SHOWN: usize = 80;

pub(super) struct ServerRegistry {
    entries: Vec<ServerEntry>,
    lock: Option<Lock>,
    secrets: Secrets,
    listings: ListingStore,
    target_key: TargetKey,
    says: LatestListings,
    /// Whether the tools can be searched, so that their search texts are built.
    is_searched: bool,
}

struct ServerEntry {
    server: ServerConfig,
    state: ServerState,
    offered: Option<ServerTools>,
    /// Whether `offered` is only the tool that asks the person to log in.
    offers_login: bool,
    /// Whether an earlier start waited for this server without success.
    was_missed: bool,
    /// Problems of the server, or of single tools.
    problems: Vec<Problem>,
}

/// A change in the state of a server.
#[derive(Debug)]
pub(super) enum ServerChange {
    /// The server has listed its tools, or failed to do so.
    Listed(Box<ServerListing>),
    /// The connection of an on-demand server has ended until a call needs it.
    Rests(ServerName),
}

/// The parts that must be rebuilt after a change. Each scope includes the scopes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ChangeScope {
    /// Only the states of servers.
    Standing,
    /// Also the problems of the server or of single tools.
    Problems,
    /// Also the tools.
    Tools,
}

impl ServerChange {
    pub(super) fn server(&self) -> &ServerName {
        match self {
            Self::Listed(listed) => &listed.server,
            Self::Rests(server) => server,
        }
    }
}

impl ServerRegistry {
    pub(super) fn new(
        servers: Vec<ServerConfig>,
        lock: Option<Lock>,
        secrets: Secrets,
        (listings, target_key): (ListingStore, TargetKey),
    ) -> Self {
        let entry = |server: ServerConfig| ServerEntry {
            state: match server.idle {
                Some(_) => ServerState::OnDemand,
                None => ServerState::Starting,
            },
            server,
            offered: None,
            offers_login: false,
            was_missed: false,
            problems: Vec::new(),
        };
        Self {
            entries: servers.into_iter().map(entry).collect(),
            lock,
            secrets,
            listings,
            target_key,
            says: LatestListings::default(),
            is_searched: false,
        }
    }

    /// Returns the latest tool lists, which include each list as soon as it was read.
    pub(super) fn says(&self) -> &LatestListings {
        &self.says
    }

    /// Offers what servers listed at an earlier start, or else what the lock file contains for
    /// them. After this call, search texts are built.
    pub(super) fn recall(&mut self) {
        self.is_searched = true;
        let recalled = side_by_side(&self.entries, |entry| {
            let server = &entry.server;
            if let Some(remembered) = self.listings.load(&server.spec.digest()) {
                return Some(self.offer_remembered(server, remembered));
            }
            let (about, tools) = self.locked(server)?;
            Some(self.offer(server, about, tools))
        });
        for (entry, offered) in self.entries.iter_mut().zip(recalled) {
            entry.was_missed =
                offered.is_none() && self.listings.was_missed(&entry.server.spec.digest());
            entry.offered = offered;
        }
    }

    /// Records the servers for which the start waited without success and of which no tool is
    /// known.
    pub(super) fn note_missed(&self) {
        let missed = self.entries.iter().filter(|it| it.status().is_awaited());
        for entry in missed {
            self.listings.note_missed(&entry.server.spec.digest());
        }
    }

    /// Returns a server's name and tools from the lock file, if the server has the same target
    /// there.
    fn locked(&self, server: &ServerConfig) -> Option<(ServerAbout, Vec<Value>)> {
        let locked = self.lock.as_ref()?.servers.get(&*server.spec.name.0)?;
        let is_it = locked.target == self.target(server);
        let tools = locked.tools.values();
        let tools = tools.map(|tool| Value::Object(tool.description.clone()));
        let about = ServerAbout {
            says: locked.says.clone(),
            ..ServerAbout::default()
        };
        is_it.then(|| (about, tools.collect()))
    }

    pub(super) fn apply(&mut self, change: ServerChange) -> ChangeScope {
        match change {
            ServerChange::Listed(listed) => self.listed(*listed),
            ServerChange::Rests(server) => self.rests(&server),
        }
    }

    /// Marks a server as on demand. The problem that made it unavailable is cleared; problems of
    /// single tools stay.
    fn rests(&mut self, server: &ServerName) -> ChangeScope {
        let Some(entry) = self.find(server) else {
            return ChangeScope::Standing;
        };
        let before = std::mem::replace(&mut entry.state, ServerState::OnDemand);
        if !matches!(before, ServerState::Unavailable(_)) {
            return ChangeScope::Standing;
        }
        entry.problems.clear();
        ChangeScope::Problems
    }

    fn listed(&mut self, listed: ServerListing) -> ChangeScope {
        let name = listed.server.clone();
        let Some(entry) = self.entries.iter().find(|it| it.server.spec.name == name) else {
            return ChangeScope::Standing;
        };
        if let Some(failure) = &listed.failure {
            let problem = self.unavailable(&name, failure);
            let offers_login =
                matches!(failure, ConnectError::LoginRequired { .. }) && self.offer_login(&name);
            let lost = self.lost(&name, problem);
            return match offers_login {
                true => ChangeScope::Tools,
                false => lost,
            };
        }
        let mut tools = listed.tools;
        let says = listed
            .server_info
            .as_ref()
            .and_then(|info| lock_file::says(info, &self.secrets));
        let problem = |bad: &ListProblem| match bad {
            ListProblem::Filtering { .. } => groups_missing(&name.0, bad.to_string()),
            _ => tool_left_out(&name.0, bad.to_string()),
        };
        let mut problems: Vec<_> = listed.problems.iter().map(problem).collect();
        let mut about = ServerAbout {
            says,
            groups_and_tags: listed.groups_and_tags,
        };
        for tool in self.redact(&mut about, &mut tools) {
            problems.push(tool_left_out(&name.0, tool));
        }
        self.settle(&entry.server, &mut tools);
        let other = self.offer_unless_same(entry, about, tools);
        let touches = match &other {
            Some(_) => ChangeScope::Tools,
            None if entry.problems != problems => ChangeScope::Problems,
            None => ChangeScope::Standing,
        };
        let Some(entry) = self.find(&name) else {
            return ChangeScope::Standing;
        };
        entry.state = ServerState::Connected;
        entry.offers_login = false;
        entry.problems = problems;
        entry.offered = other.or_else(|| entry.offered.take());
        self.note(&name, listed.reading);
        touches
    }

    /// Offers hosts the tool that asks the person to log in, if no tool of the server is known.
    /// Returns whether it is offered from now on.
    fn offer_login(&mut self, server: &ServerName) -> bool {
        let is_it = |it: &&ServerEntry| it.server.spec.name == *server;
        let entry = self.entries.iter().find(is_it);
        let entry = entry.filter(|it| self.is_searched && it.offered.is_none());
        let login = entry.and_then(|it| Some((&it.server, it.server.spec.login.as_ref()?)));
        let Some((config, _)) = login.filter(|(_, login)| login.needs_person()) else {
            return false;
        };
        let tools = vec![login_tool::description()];
        let offered = ServerTools {
            // What is configured concerns the server's own tools.
            trust: ToolTrust::default(),
            ..self.offer(config, ServerAbout::default(), tools)
        };
        if let Some(entry) = self.find(server) {
            entry.offered = Some(offered);
            entry.offers_login = true;
        }
        true
    }

    fn lost(&mut self, server: &ServerName, problem: Problem) -> ChangeScope {
        let Some(entry) = self.find(server) else {
            return ChangeScope::Standing;
        };
        let now = ServerState::Unavailable(problem.why.clone());
        let before = std::mem::replace(&mut entry.state, now);
        entry.problems = vec![problem];
        match before {
            // A further attempt has failed.
            ServerState::Unavailable(_) => ChangeScope::Problems,
            // Rules that match no tool may have been accepted while this server was awaited.
            _ => ChangeScope::Tools,
        }
    }

    /// Stores the tools that a server offers, and their digests, which are compared before each
    /// call.
    fn note(&mut self, server: &ServerName, reading: u64) {
        let is_it = |it: &&ServerEntry| it.server.spec.name == *server;
        let Some(entry) = self.entries.iter().find(is_it) else {
            return;
        };
        let Some(offered) = &entry.offered else {
            return;
        };
        let (spec, about) = (entry.server.spec.digest(), &offered.about);
        let (says, groups_and_tags) = (about.says.as_deref(), &about.groups_and_tags);
        self.listings
            .store(&spec, says, groups_and_tags, offered.stored());
        if let Some(texts) = &offered.texts {
            self.listings.store_words(&spec, &offered.searched(), texts);
        }
        self.says.put(server.clone(), reading, offered.digests());
    }

    /// Refuses the list of a server because the rules cannot be checked against it. The server
    /// offers no tools until its list changes.
    pub(super) fn refuse(&mut self, server: &ServerName, problem: &Problem) {
        if let Some(entry) = self.find(server) {
            entry.state = ServerState::Unavailable(problem.why.clone());
            entry.problems = vec![problem.clone()];
            entry.offered = None;
        }
    }

    /// Returns the servers whose tools are known only from an earlier start or the lock file.
    pub(super) fn remembered(&self) -> Vec<ServerName> {
        let is_remembered = |it: &&ServerEntry| {
            it.offered.is_some()
                && matches!(it.state, ServerState::Starting | ServerState::OnDemand)
        };
        let remembered = self.entries.iter().filter(is_remembered);
        remembered.map(|it| it.server.spec.name.clone()).collect()
    }

    /// Removes and returns the tools that a server offers.
    pub(super) fn hold_back(&mut self, server: &ServerName) -> Option<ServerTools> {
        self.find(server)?.offered.take()
    }

    /// Restores the tools that [`Self::hold_back`] removed.
    pub(super) fn put_back(&mut self, server: &ServerName, offered: ServerTools) {
        if let Some(entry) = self.find(server) {
            entry.offered = Some(offered);
        }
    }

    /// Gives lists whose order the lock file exempts the accepted order.
    fn settle(&self, server: &ServerConfig, tools: &mut [Value]) {
        let name = &*server.spec.name.0;
        let locked = self.lock.as_ref().and_then(|it| it.servers.get(name));
        let Some(locked) = locked.filter(|it| it.target == self.target(server)) else {
            return;
        };
        for tool in tools {
            let name = tool.get("name").and_then(Value::as_str);
            if let Some(locked) = name.and_then(|it| locked.tools.get(it)) {
                codegen::lock::settle(tool, locked);
            }
        }
    }

    /// Returns `None` if the server already offers the same tools. Comparing a thousand
    /// descriptions is much faster than reading them.
    fn offer_unless_same(
        &self,
        entry: &ServerEntry,
        about: ServerAbout,
        tools: Vec<Value>,
    ) -> Option<ServerTools> {
        let before = entry.offered.as_ref();
        let is_same = before.is_some_and(|it| it.about == about && it.lists(&tools));
        (!is_same).then(|| self.offered_by(&entry.server, about, tools))
    }

    fn offer(
        &self,
        server: &ServerConfig,
        mut about: ServerAbout,
        mut tools: Vec<Value>,
    ) -> ServerTools {
        self.redact(&mut about, &mut tools);
        self.settle(server, &mut tools);
        self.offered_by(server, about, tools)
    }

    /// Returns a stored list unchanged, unless it contains a credential that is known now.
    fn offer_remembered(&self, server: &ServerConfig, remembered: StoredListing) -> ServerTools {
        let known = self.secrets.known_only();
        let contains_credential = known.redact(remembered.text()).is_some();
        let about = ServerAbout {
            says: remembered.says,
            groups_and_tags: remembered.groups_and_tags,
        };
        if contains_credential {
            let tools = remembered.tools.iter().map(|it| it.text.value());
            return self.offer(server, about, tools.collect());
        }
        let name = server.spec.name.0.to_string();
        let offered = ServerTools::remembered(name, &remembered.tools);
        let words = self
            .listings
            .load_words(&server.spec.digest(), &offered.searched());
        self.placed(server, about, (offered, words))
    }

    /// Masks credentials. A server may repeat its credentials in the descriptions of itself and of
    /// its tools, which the model reads. A stored list may be older than a credential. A tool with
    /// a credential in its structure is removed. Returns the reason for each removed tool.
    fn redact(&self, about: &mut ServerAbout, tools: &mut Vec<Value>) -> Vec<String> {
        if let Some(says) = &mut about.says {
            self.secrets.redact_text(says);
        }
        about
            .groups_and_tags
            .sanitize(|text| self.secrets.redact_text(text));
        let mut removed = Vec::new();
        tools.retain_mut(|tool| {
            let is_clean = self.secrets.redact_tool(tool);
            if !is_clean {
                let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
                let name = self.secrets.redact(name).unwrap_or_else(|| name.to_owned());
                let name = codegen::text::neutralise(&name);
                let name = codegen::text::clip(&name, NAME_CHARS_SHOWN);
                removed.push(format!(
                    "the name or the schema of its tool `{name}` contains a configured credential"
                ));
            }
            is_clean
        });
        removed
    }

    fn offered_by(
        &self,
        server: &ServerConfig,
        about: ServerAbout,
        tools: Vec<Value>,
    ) -> ServerTools {
        let name = server.spec.name.0.to_string();
        self.placed(server, about, (ServerTools::new(name, tools), None))
    }

    /// Completes the tools of a server with its configuration, its entry in the lock file, and the
    /// search texts that were built earlier.
    fn placed(
        &self,
        server: &ServerConfig,
        about: ServerAbout,
        (offered, words): (ServerTools, Option<IndexedTexts>),
    ) -> ServerTools {
        let target = self.target(server);
        let pin = match &self.lock {
            Some(lock) => Pin::from_lock(lock, &offered.server, &target),
            None => Pin::Free,
        };
        let offered = ServerTools {
            trust: server.trust.clone(),
            identity: Some(format!("{target} {}", self.target_key.digest(&server.spec))),
            target: Some(target),
            about,
            pin,
            ..offered
        };
        match self.is_searched {
            true => offered.with_texts(words),
            false => offered,
        }
    }

    fn target(&self, server: &ServerConfig) -> String {
        let mut target = server.spec.target();
        self.secrets.redact_text(&mut target);
        target
    }

    fn unavailable(&self, server: &ServerName, failure: &ConnectError) -> Problem {
        let mut why = failure.to_string();
        self.secrets.redact_text(&mut why);
        let what = format!("the server `{}` cannot be used", server.0);
        Problem::new("server-unavailable", what, why, failure.next())
    }

    pub(super) fn lock(&self) -> Option<&Lock> {
        self.lock.as_ref()
    }

    pub(super) fn offered(&self) -> impl Iterator<Item = &ServerTools> {
        self.entries.iter().filter_map(|it| it.offered.as_ref())
    }

    /// Returns what all servers say about their groups and tags. If several servers describe the
    /// same name, the first one in the order of names counts.
    pub(super) fn groups_and_tags(&self) -> GroupsAndTags {
        let mut offered: Vec<_> = self.offered().collect();
        offered.sort_by_key(|it| &it.server);
        let mut all = GroupsAndTags::default();
        for about in offered.iter().map(|it| &it.about.groups_and_tags) {
            for (into, from) in [
                (&mut all.groups, &about.groups),
                (&mut all.tags, &about.tags),
            ] {
                for (name, about) in from {
                    into.entry(name.clone()).or_insert_with(|| about.clone());
                }
            }
        }
        all
    }

    /// Returns the digests of each server's tool descriptions. They are empty for a server that
    /// offers nothing.
    pub(super) fn digests(&self) -> HashMap<&str, Digests> {
        let digests = |it: &ServerEntry| it.offered.as_ref().map(ServerTools::digests);
        let entries = self.entries.iter();
        entries
            .map(|it| (&*it.server.spec.name.0, digests(it).unwrap_or_default()))
            .collect()
    }

    /// Returns the problem of the first server that could not be connected.
    pub(super) fn first_unavailable(&self) -> Option<&Problem> {
        let gone = |it: &&ServerEntry| matches!(it.state, ServerState::Unavailable(_));
        self.entries
            .iter()
            .find(gone)
            .and_then(|it| it.problems.first())
    }

    pub(super) fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.entries.iter().flat_map(|it| &it.problems)
    }

    /// Returns the servers whose tools are unknown.
    pub(super) fn unseen(&self) -> impl Iterator<Item = &str> {
        let is_unseen = |it: &&ServerEntry| it.offered.is_none() || it.offers_login;
        let unseen = self.entries.iter().filter(is_unseen);
        unseen.map(|it| &*it.server.spec.name.0)
    }

    /// Returns whether some server has never been connected but may still connect.
    pub(super) fn is_incomplete(&self) -> bool {
        let unseen = |it: &ServerEntry| {
            it.offered.is_none() && !matches!(it.state, ServerState::Unavailable(_))
        };
        self.entries.iter().any(unseen)
    }

    pub(super) fn statuses(&self) -> Vec<ServerStatus> {
        self.entries.iter().map(ServerEntry::status).collect()
    }

    fn find(&mut self, server: &ServerName) -> Option<&mut ServerEntry> {
        let is_it = |it: &&mut ServerEntry| it.server.spec.name == *server;
        self.entries.iter_mut().find(is_it)
    }
}

impl ServerEntry {
    fn status(&self) -> ServerStatus {
        let says = self.offered.as_ref().and_then(|it| it.about.says.clone());
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
