//! Each request by its method, in both eras.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use airlock_core::id::ServerName;
use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::awaiting;
use super::disclosure::{self, Latest};
use super::ending::Ending;
use super::filter::{self, Filter};
use super::listening::{self, Listeners, Lists};
use super::news::Bulletin;
use super::offered::{Listings, What};
use super::request::Request;
use super::rpc::{self, Lasting, Refusal};
use super::seal::{NoKey, Seal};
use super::settings::{Mode, Settings};
use super::shelf::Shelf;
use super::{logging, meta, news, offered, prompt, resources};
use crate::broker::{ServerState, ServerStatus};
use crate::carrier::{Abilities, Declared};
use crate::clock::Clock;
use crate::upstream::Era;
use crate::upstream::era::MODERN_VERSION;

/// What all connections share. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Desk(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shelf: watch::Receiver<Option<Arc<Shelf>>>,
    settings: Settings,
    clock: Clock,
    seal: Seal,
    ending: Ending,
    listeners: Listeners,
    latest_list: Latest,
    listings: Listings,
    bulletin: Bulletin,
    /// What servers of the older era are told that can be asked of hosts.
    declared: watch::Sender<Option<Abilities>>,
    /// Until then requests wait for servers whose tools nobody knows yet.
    start_ends: Instant,
    /// Whether it was noted which servers were still missing then.
    missed_noted: AtomicBool,
}

/// The methods that are answered before the servers are there.
const AT_ONCE: [&str; 7] = [
    "initialize",
    "server/discover",
    "ping",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "prompts/get",
];

/// Those of them in which servers have their part, where they are offered.
const OFFERED: [&str; 4] = [
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "prompts/get",
];

impl Desk {
    pub(super) fn new(
        shelf: watch::Receiver<Option<Arc<Shelf>>>,
        settings: Settings,
    ) -> Result<Self, NoKey> {
        let start_ends = Instant::now() + settings.start_wait;
        Ok(Self(Arc::new(Inner {
            start_ends,
            missed_noted: AtomicBool::new(false),
            shelf,
            settings,
            clock: Clock::start(),
            seal: Seal::new()?,
            ending: Ending::default(),
            listeners: Listeners::default(),
            latest_list: Latest::default(),
            listings: Listings::default(),
            bulletin: Bulletin::default(),
            declared: watch::Sender::new(None),
        })))
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.0.clock.now_ms()
    }

    pub(super) fn seal(&self) -> &Seal {
        &self.0.seal
    }

    pub(super) fn ending(&self) -> &Ending {
        &self.0.ending
    }

    /// The shelf, when the broker is there.
    pub(super) fn shelf_now(&self) -> Option<Arc<Shelf>> {
        self.0.shelf.borrow().clone()
    }

    /// The whole result, as it is sent.
    pub(super) async fn answer(&self, method: &str, request: &Request) -> Result<Value, Refusal> {
        request.session.touch(self.now_ms());
        let era = request.era;
        self.declare_for(method, request);
        let offers = !self.settings().offers.is_empty();
        if AT_ONCE.contains(&method) && !(offers && is_offered(method, request)) {
            let (result, lasting) = self.at_once(method, request)?;
            return Ok(rpc::enveloped(result, era, lasting));
        }
        if method == "logging/setLevel" && era == Era::Legacy && self.settings().logs {
            return logging::set_level(request);
        }
        let subscribes = era == Era::Legacy && self.settings().offers.any(What::Resources);
        if method == "resources/unsubscribe" && subscribes {
            return news::unsubscribe(request);
        }
        if method == "subscriptions/listen" && era == Era::Modern {
            let ended = listening::listen(self, request).await?;
            return Ok(rpc::enveloped(ended, era, Lasting::No));
        }
        let shelf = self.shelf_for(method, request).await?;
        let (result, lasting) = match method {
            "tools/list" => {
                let lasting = if shelf.is_filling() {
                    Lasting::Briefly
                } else {
                    Lasting::Private
                };
                (self.tools(&shelf, request)?, lasting)
            }
            "groups/list" => (filter::groups(&shelf), Lasting::Private),
            "tags/list" => (filter::tags(&shelf), Lasting::Private),
            "tools/call" => (self.call(&shelf, request).await?, Lasting::No),
            "resources/read" => (self.read(&shelf, request).await?, Lasting::Once),
            "resources/subscribe" if subscribes => {
                (news::subscribe(self, &shelf, request).await?, Lasting::No)
            }
            _ if offers => self.offered(method, &shelf, request).await?,
            _ => return Err(Refusal::no_method(method)),
        };
        Ok(rpc::enveloped(result, era, lasting))
    }

    pub(super) fn declared(&self) -> Declared {
        self.0.declared.subscribe()
    }

    /// The first one counts: servers are connected to once, whoever comes later.
    pub(super) fn declare(&self, abilities: Abilities) {
        self.0.declared.send_if_modified(|declared| {
            let is_first = declared.is_none();
            declared.get_or_insert(abilities);
            is_first
        });
    }

    /// Where there is one host, servers are told what that one can be asked.
    fn declare_for(&self, method: &str, request: &Request) {
        let is_silent = request.era == Era::Legacy && matches!(method, "ping" | "server/discover");
        if is_silent || self.0.declared.borrow().is_some() {
            return;
        }
        let abilities = match (method, request.params.get("capabilities")) {
            ("initialize", Some(capabilities)) => Abilities::of(capabilities),
            _ => request.abilities(self),
        };
        self.declare(abilities.within(self.settings().pass));
    }

    /// What servers have besides tools, with our own beside it.
    async fn offered(
        &self,
        method: &str,
        shelf: &Shelf,
        request: &Request,
    ) -> Result<(Value, Lasting), Refusal> {
        if method.ends_with("/list") {
            one_page(request)?;
        }
        let list = match method {
            "resources/list" => offered::list_resources(self, shelf, request).await,
            "resources/templates/list" => offered::list_templates(self, shelf, request).await,
            "prompts/list" => offered::list_prompts(self, shelf, request).await,
            "prompts/get" => {
                let prompt = offered::get_prompt(self, shelf, request).await?;
                return Ok((prompt, Lasting::No));
            }
            "completion/complete" => {
                let completion = offered::complete(self, shelf, request).await?;
                return Ok((completion, Lasting::No));
            }
            _ => return Err(Refusal::no_method(method)),
        };
        Ok((list, Lasting::Briefly))
    }

    async fn read(&self, shelf: &Shelf, request: &Request) -> Result<Value, Refusal> {
        let uri = request.params.get("uri").and_then(Value::as_str);
        if uri.is_none_or(resources::is_own) || self.settings().offers.is_empty() {
            return resources::read(self, shelf, request);
        }
        offered::read_resource(self, shelf, request).await
    }

    fn at_once(&self, method: &str, request: &Request) -> Result<(Value, Lasting), Refusal> {
        let answer = match (method, request.era) {
            ("initialize", Era::Legacy) => (self.initialized(request), Lasting::No),
            ("ping", Era::Legacy) => (json!({}), Lasting::No),
            ("server/discover", Era::Modern) => (self.discovered(), Lasting::Private),
            ("server/discover", Era::Legacy) => {
                let message = format!("`_meta` lacks `{}`", rpc::VERSION_KEY);
                return Err(Refusal::invalid(message));
            }
            ("resources/list", _) => {
                one_page(request)?;
                (resources::list(), Lasting::Private)
            }
            ("resources/templates/list", _) => {
                one_page(request)?;
                (resources::templates(), Lasting::Private)
            }
            ("prompts/list", _) => {
                one_page(request)?;
                (prompt::list(), Lasting::Private)
            }
            ("prompts/get", _) => (prompt::read(request, self.settings().mode)?, Lasting::No),
            _ => return Err(Refusal::no_method(method)),
        };
        Ok(answer)
    }

    /// The list of tools, as it changes.
    pub(super) fn lists(&self) -> Lists {
        Lists::of(self.0.shelf.clone())
    }

    pub(super) fn listeners(&self) -> &Listeners {
        &self.0.listeners
    }

    pub(super) fn listings(&self) -> &Listings {
        &self.0.listings
    }

    /// What offered servers tell.
    pub(super) fn bulletin(&self) -> &Bulletin {
        &self.0.bulletin
    }

    pub(super) fn latest_list(&self) -> &Latest {
        &self.0.latest_list
    }

    /// The tools that are there now; shortly after a start, those of all servers, if that is soon.
    pub(super) async fn shelf(&self) -> Result<Arc<Shelf>, Refusal> {
        let filled =
            |shelf: &Option<Arc<Shelf>>| shelf.as_ref().is_some_and(|it| !it.is_waited_for());
        let mut shelf = self.0.shelf.clone();
        let there = async {
            let in_time = timeout_at(self.0.start_ends, shelf.wait_for(filled));
            let is_late = in_time.await.is_err();
            let there = shelf.wait_for(Option::is_some).await;
            let there = there.ok().and_then(|it| it.clone())?;
            if is_late {
                self.note_missed(&there).await;
            }
            Some(there)
        };
        let there = tokio::select! {
            there = there => there,
            refusal = self.0.ending.refusal() => return Err(refusal),
        };
        there.ok_or_else(|| Refusal::new(rpc::INTERNAL, "the broker could not be set up"))
    }

    /// Has those who are still missing remembered, so that no later start is held up for them.
    async fn note_missed(&self, shelf: &Shelf) {
        let was_waited = !self.settings().start_wait.is_zero();
        if !was_waited || self.0.missed_noted.swap(true, Ordering::Relaxed) {
            return;
        }
        let broker = shelf.broker.clone();
        let _ = tokio::task::spawn_blocking(move || broker.note_missed()).await;
    }

    /// The same, with the servers that the request needs by name, however long they take.
    async fn shelf_for(&self, method: &str, request: &Request) -> Result<Arc<Shelf>, Refusal> {
        let shelf = self.shelf().await?;
        let needed = awaiting::needed(&shelf, method, request).await;
        if needed.is_empty() {
            return Ok(shelf);
        }
        let joining = needed.iter().map(|it| ServerName(it.as_str().into()));
        let joining: Vec<_> = joining.collect();
        let joined = join_all(joining.iter().map(|it| shelf.broker.join(it)));
        tokio::select! {
            _ = joined => {}
            _ = request.cancel.cancelled() => return Ok(shelf),
            refusal = self.0.ending.refusal() => return Err(refusal),
        }
        self.seen(&needed).await
    }

    /// The shelf in which these servers have listed their tools, or cannot.
    pub(super) async fn seen(&self, servers: &[String]) -> Result<Arc<Shelf>, Refusal> {
        let seen = |shelf: &Option<Arc<Shelf>>| {
            let status = |name: &String| {
                let known = shelf.as_ref().map(|it| &it.known.servers);
                known?.iter().find(|it| it.name == *name)
            };
            let settled = |it: &ServerStatus| {
                it.tools.is_some() || matches!(it.state, ServerState::Unavailable(_))
            };
            servers.iter().all(|name| status(name).is_some_and(settled))
        };
        let mut shelves = self.0.shelf.clone();
        let there = tokio::select! {
            there = shelves.wait_for(seen) => there.ok().and_then(|it| it.clone()),
            refusal = self.0.ending.refusal() => return Err(refusal),
        };
        there.ok_or_else(|| Refusal::new(rpc::INTERNAL, "the broker is gone"))
    }

    fn initialized(&self, request: &Request) -> Value {
        let capabilities = request.params.get("capabilities").cloned();
        request
            .session
            .set_capabilities(capabilities.unwrap_or_else(|| json!({})));
        json!({
            "protocolVersion": rpc::agreed_version(&request.params),
            "capabilities": self.capabilities_of_ours(),
            "serverInfo": rpc::server_info(),
            "instructions": prompt::text(self.settings().mode),
        })
    }

    fn discovered(&self) -> Value {
        json!({
            "supportedVersions": [MODERN_VERSION],
            "capabilities": self.capabilities_of_ours(),
            "instructions": prompt::text(self.settings().mode),
        })
    }

    fn capabilities_of_ours(&self) -> Value {
        let lists = json!({"groups": {"listChanged": true}, "tags": {"listChanged": true}});
        let mut capabilities = json!({
            "tools": {"listChanged": true},
            "resources": {},
            "prompts": {},
            "filtering": lists,
            // The same where hosts of the newer era look for what is not in the protocol.
            "extensions": {
                "dev.airlock/filtering": lists,
                "dev.airlock/tools": features(self.settings().mode),
            },
        });
        let offers = &self.settings().offers;
        if !offers.is_empty() {
            rpc::put(&mut capabilities, "completions", json!({}));
        }
        if offers.any(What::Prompts) {
            rpc::put(&mut capabilities, "prompts", json!({"listChanged": true}));
        }
        if offers.any(What::Resources) {
            let both = json!({"subscribe": true, "listChanged": true});
            rpc::put(&mut capabilities, "resources", both);
        }
        if self.settings().logs {
            rpc::put(&mut capabilities, "logging", json!({}));
        }
        capabilities
    }

    fn tools(&self, shelf: &Shelf, request: &Request) -> Result<Value, Refusal> {
        one_page(request)?;
        let takes_handle = request.handle.is_some();
        if let Some(filter) = Filter::read(&request.params)? {
            let tools = meta::filtered(shelf, self.settings().mode, &filter);
            return Ok(json!({ "tools": tools }));
        }
        disclosure::list(self, shelf, &request.session);
        Ok(json!({"tools": meta::list(shelf, self.settings().mode, takes_handle)}))
    }

    async fn call(&self, shelf: &Shelf, request: &Request) -> Result<Value, Refusal> {
        let name = request.params.get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| Refusal::invalid("`name` is missing or not a string"))?;
        let nothing = Map::new();
        let args = match request.params.get("arguments") {
            None | Some(Value::Null) => &nothing,
            Some(Value::Object(args)) => args,
            Some(_) => return Err(Refusal::invalid("`arguments` is not an object")),
        };
        if let Some(answered) = meta::call(self, shelf, request, name, args).await {
            return answered.into_result();
        }
        let Some(tool) = shelf.find(name) else {
            let message = format!("there is no tool `{}`", rpc::shown(name));
            return Err(Refusal::invalid(message));
        };
        let answered = match self.settings().mode {
            Mode::Progressive => {
                meta::call_directly(self, shelf, request, (tool, name), args).await
            }
            Mode::Stable => meta::Answered::wrong(format!(
                "`{name}` is called through call_tool, or in a script as {}",
                tool.in_scripts()
            )),
            Mode::Code => meta::Answered::wrong(format!(
                "`{name}` is called in scripts: run_script with `return await {}({{…}})`",
                tool.in_scripts()
            )),
        };
        answered.into_result()
    }
}

/// What a host may rely on without trying it.
fn features(mode: Mode) -> Value {
    json!({
        "mode": match mode {
            Mode::Code => "code",
            Mode::Progressive => "progressive",
            Mode::Stable => "stable",
        },
        "search": {
            "modes": ["words", "regex"],
            "filters": ["servers", "groups", "tags", "category"],
            "details": ["names", "lines", "signatures"],
        },
        "details": ["typescript", "json"],
        "metadata": ["category", "version", "deprecated", "replacement"],
    })
}

/// Servers have their part in it; our own prompt is there without them.
fn is_offered(method: &str, request: &Request) -> bool {
    let is_own = || request.params.get("name").and_then(Value::as_str) == Some(prompt::NAME);
    OFFERED.contains(&method) && !(method == "prompts/get" && is_own())
}

fn one_page(request: &Request) -> Result<(), Refusal> {
    match request.params.get("cursor") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(Refusal::invalid("there is only one page")),
    }
}
