//! Builds a broker: connects to servers, lists their tools, compiles rules and loads the sandbox,
//! once.

mod own_tools;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use airlock_core::catalog::OWN_SERVER;
use airlock_core::flow::FlowSpec;
use airlock_core::grant::Grant;
use airlock_core::id::{ServerName, ToolId};
use airlock_core::level::Level;
use airlock_core::limits::Limits;
use airlock_core::problem::Problem;
use airlock_core::rules::PatternRule;
use airlock_core::run::{Fsync, GuestIdentity};
use airlock_core::shared_state::SessionName;
use airlock_core::tool_pattern::{BadToolPattern, ToolPattern};
use codegen::lock::Lock;
use futures_util::future::join_all;
use serde_json::Value;

use super::engine_load::EngineLoad;
use super::registry::{OpenedToolFiles, ToolRegistry};
use super::run_sharing::RunSharing;
use super::server_registry::{ServerChange, ServerRegistry};
use super::server_tools::ServerTools;
use super::servers::Servers;
use super::signed_ends::SignedEnds;
use super::sources::ToolSources;
use super::tool_checks::CheckRegistry;
use super::tool_discovery::OwnTools;
use super::{Broker, BuildError, InProcessTool, Inner, tool_discovery};
use crate::approver::Approver;
use crate::client_bridge::{ClientBridge, ClientCapabilities, DeclaredCapabilities};
use crate::config::{
    Config, FlowConfig, PolicyConfig, ServerConfig, TelemetryConfig, ToolTrust, TscChoice,
    UnknownKeys,
};
use crate::era_file;
use crate::extract::{self, Extractor};
use crate::listing_file::ListingStore;
use crate::lock_file::LockFile;
use crate::private_file::StateDir;
use crate::program::ExternalProgram;
use crate::resolve::PathResolver;
use crate::secrets::Secrets;
use crate::shared_file::SharedFile;
use crate::target_key::TargetKey;
use crate::telemetry::Telemetry;
use crate::tool_files::ToolFiles;
use crate::tsc::Compiler;
use crate::upstream::{MessageLimits, ServerSpec, Upstream, UpstreamSettings};
use airlock_sandbox::JsEngine;
use airlock_sandbox::budget::{Budget, BudgetLimits};
use airlock_sandbox::clock::Clock;

/// Collects the parts of a broker. If there are no rules, every call is denied. If there is no
/// approver, no question is asked.
#[derive(Default)]
pub struct Builder {
    servers: Vec<ServerConfig>,
    in_process: Vec<InProcessTool>,
    rules: Vec<PatternRule>,
    policies: PolicyConfig,
    flow: FlowConfig,
    approver: Option<Arc<dyn Approver>>,
    client_bridge: Option<Arc<dyn ClientBridge>>,
    declared: Option<DeclaredCapabilities>,
    limits: Limits,
    budget: BudgetLimits,
    /// What this broker shares with others of the process.
    shared: Option<SharedParts>,
    state_dir: Option<PathBuf>,
    descriptions: Option<ToolFiles>,
    lock: Option<LockFile>,
    fsync: Fsync,
    unknown_keys: UnknownKeys,
    engine: JsEngine,
    tsc: TscChoice,
    secrets: Secrets,
    base_env: Vec<(String, String)>,
    telemetry: Option<TelemetryConfig>,
    servers_required: bool,
    servers_join_later: bool,
    engine_later: bool,
    own: OwnTools,
    extractor: Option<Arc<dyn Extractor>>,
    embeddings: Option<PathBuf>,
    session: Option<SessionName>,
    project: Option<PathBuf>,
    grants: Vec<Grant>,
    signed_ends: SignedEnds,
}

/// What several brokers of one process share: the budget of all runs, and the person who is asked.
#[derive(Clone)]
pub(crate) struct SharedParts {
    budget: Budget,
    approver: Option<Arc<dyn Approver>>,
}

impl std::fmt::Debug for SharedParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedParts")
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Builder({} servers, {} tools)",
            self.servers.len(),
            self.in_process.len()
        )
    }
}

impl Builder {
    /// Applies the configuration from flags, files and the environment.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.servers.extend(config.servers);
        self.rules.extend(config.rules);
        self.policies = config.policies;
        self.flow = config.flow;
        self.limits = config.limits;
        self.budget = config.budget;
        self.state_dir = Some(config.state_dir);
        let settings = config.settings;
        self.tsc = settings.compiler.choice();
        self.descriptions = settings.tools.descriptions.map(ToolFiles::new);
        self.lock = settings.tools.lock.map(LockFile::new);
        self.fsync = settings.broker.fsync.unwrap_or_default();
        self.embeddings = settings.broker.embeddings;
        self.unknown_keys = settings.run.unknown_keys.unwrap_or_default();
        self.engine = settings.engine.engine.unwrap_or_default();
        self.secrets = config.secrets;
        self.base_env = config.base_env;
        self.telemetry = config.telemetry;
        if let Some(command) = config.anchor {
            self.signed_ends.set_anchor(command, self.base_env.clone());
        }
        if let Some(command) = config.extract {
            let program = ExternalProgram {
                program: command.program,
                args: command.args,
                env: self.base_env.clone(),
            };
            let deadline = Duration::from_millis(command.wall_ms);
            let bytes_max = self.limits.result_bytes_max;
            self.extractor = Some(Arc::new(extract::ExtractorCommand::new(
                program, deadline, bytes_max,
            )));
        }
        self
    }

    #[must_use]
    pub fn server(mut self, spec: ServerSpec) -> Self {
        self.servers.push(ServerConfig::new(spec));
        self
    }

    /// Adds servers. Each configuration also defines how far the server is trusted and whether
    /// airlock connects to it only on demand.
    #[must_use]
    pub fn servers(mut self, servers: impl IntoIterator<Item = ServerConfig>) -> Self {
        self.servers.extend(servers);
        self
    }

    #[must_use]
    pub fn tool(mut self, tool: InProcessTool) -> Self {
        self.in_process.push(tool);
        self
    }

    #[must_use]
    pub fn rules(mut self, rules: impl IntoIterator<Item = PatternRule>) -> Self {
        self.rules.extend(rules);
        self
    }

    pub fn allow(self, pattern: &str) -> Result<Self, BadToolPattern> {
        self.rule(Level::Allow, pattern)
    }

    pub fn ask(self, pattern: &str) -> Result<Self, BadToolPattern> {
        self.rule(Level::AskRun, pattern)
    }

    pub fn deny(self, pattern: &str) -> Result<Self, BadToolPattern> {
        self.rule(Level::Deny, pattern)
    }

    fn rule(self, level: Level, pattern: &str) -> Result<Self, BadToolPattern> {
        let pattern = ToolPattern::parse(pattern)?;
        Ok(self.rules([PatternRule {
            level,
            pattern,
            origin: Some("the host".into()),
        }]))
    }

    /// Sets the labels of servers and tools, the roots of file paths, and the known destinations.
    #[must_use]
    pub fn flow(mut self, flow: FlowConfig) -> Self {
        self.flow = flow;
        self
    }

    #[must_use]
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Sets the bridge that passes requests of servers on to the host: forms, addresses to open and
    /// sampling. Without a bridge, servers get the error that the host cannot be asked.
    #[must_use]
    pub fn client_bridge(mut self, client_bridge: impl ClientBridge + 'static) -> Self {
        self.client_bridge = Some(Arc::new(client_bridge));
        self
    }

    /// Sets the capabilities that are declared to servers of the older era, if they become known
    /// only after the broker is built. Those servers are not connected before.
    #[must_use]
    pub fn declared(mut self, declared: DeclaredCapabilities) -> Self {
        self.declared = Some(declared);
        self
    }

    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the budget that all runs of the broker share.
    #[must_use]
    pub fn budget(mut self, budget: BudgetLimits) -> Self {
        self.budget = budget;
        self
    }

    /// Sets the folder in which journals are kept.
    #[must_use]
    pub fn state_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.state_dir = Some(path.into());
        self
    }

    /// Sets the folder of tool files, which complete the tool descriptions of servers. The folder
    /// is checked for changes before each run.
    #[must_use]
    pub fn descriptions(mut self, folder: impl Into<PathBuf>) -> Self {
        self.descriptions = Some(ToolFiles::new(folder.into()));
        self
    }

    /// Sets the lock file. If a tool's description differs from the one in the lock file, calls of
    /// the tool are refused as `description-changed`. In-process tools are not compared with it.
    #[must_use]
    pub fn lock(mut self, path: impl Into<PathBuf>) -> Self {
        self.lock = Some(LockFile::new(path.into()));
        self
    }

    #[must_use]
    pub fn fsync(mut self, fsync: Fsync) -> Self {
        self.fsync = fsync;
        self
    }

    /// Sets how a call is handled whose arguments contain keys that the tool's schema neither names
    /// nor forbids.
    #[must_use]
    pub fn unknown_keys(mut self, unknown_keys: UnknownKeys) -> Self {
        self.unknown_keys = unknown_keys;
        self
    }

    /// Sets the engine that runs the scripts. The default is Boa.
    #[must_use]
    pub fn engine(mut self, engine: JsEngine) -> Self {
        self.engine = engine;
        self
    }

    /// Sets the TypeScript compiler that checks scripts before they run. By default there is none.
    /// Its findings are warnings.
    #[must_use]
    pub fn tsc(mut self, choice: TscChoice) -> Self {
        self.tsc = choice;
        self
    }

    /// Sets the values that are masked in results, errors and journals.
    #[must_use]
    pub fn secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Makes all runs part of a session: they share its labels, its disclosures and its grants.
    #[must_use]
    pub fn session(mut self, name: SessionName) -> Self {
        self.session = Some(name);
        self
    }

    /// Makes all runs share the grants of a project folder.
    #[must_use]
    pub fn project(mut self, folder: impl Into<PathBuf>) -> Self {
        self.project = Some(folder.into());
        self
    }

    /// Adds grants that were given earlier, for example those in a file. A grant counts only if all
    /// digests to which it is bound match.
    #[must_use]
    pub fn grants(mut self, grants: impl IntoIterator<Item = Grant>) -> Self {
        self.grants.extend(grants);
        self
    }

    /// Sets the Cedar rules, and the tool groups that the rules may use.
    #[must_use]
    pub fn policies(mut self, policies: PolicyConfig) -> Self {
        self.policies = policies;
        self
    }

    /// Sets where traces and metrics of runs are sent.
    #[must_use]
    pub fn telemetry(mut self, telemetry: TelemetryConfig) -> Self {
        self.telemetry = Some(telemetry);
        self
    }

    /// Makes a server that cannot be reached an error of [`Builder::build`] instead of an entry in
    /// [`Broker::problems`].
    #[must_use]
    pub fn servers_required(mut self, required: bool) -> Self {
        self.servers_required = required;
        self
    }

    /// Builds the broker without waiting for servers. The broker starts with the tools that servers
    /// listed when they were last connected. Each server joins once it is connected or needed, and
    /// [`Broker::changes`] reports that.
    #[must_use]
    pub fn servers_join_later(mut self, later: bool) -> Self {
        self.servers_join_later = later;
        self
    }

    /// Sets the receiver of problems that do not change the result of a run: the end of a journal
    /// could not be signed or sent out, or it is signed with a new key.
    #[must_use]
    pub fn warnings(mut self, warn: impl Fn(&Problem) + Send + Sync + 'static) -> Self {
        self.signed_ends.set_warn(Box::new(warn));
        self
    }

    /// Returns what further brokers of the process can share with this one.
    pub(crate) fn shared_parts(&self) -> Result<SharedParts, BuildError> {
        self.budget.validate()?;
        Ok(SharedParts {
            budget: Budget::new(&self.budget, self.limits.guest_memory_bytes_max),
            approver: self.approver.clone(),
        })
    }

    /// Shares these parts with other brokers.
    #[must_use]
    pub(crate) fn sharing(mut self, shared: SharedParts) -> Self {
        self.approver = shared.approver.clone().or(self.approver);
        self.shared = Some(shared);
        self
    }

    /// Builds the broker before the engine is loaded: see [`Broker::engine_loaded`].
    #[must_use]
    pub(crate) fn engine_later(mut self, later: bool) -> Self {
        self.engine_later = later;
        self
    }

    pub async fn build(mut self) -> Result<Broker, BuildError> {
        self.own.extraction |= self.own.discovery && self.extractor.is_some();
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| BuildError::NoRuntime)?;
        let state = self.state_dir.clone().ok_or(BuildError::NoStateDir)?;
        let state = StateDir::open(state).map_err(BuildError::State)?;
        self.check_names()?;
        let lock = self.lock.as_ref().map(LockFile::read_existing).transpose();
        let lock = lock.map_err(BuildError::Lock)?;
        let names = self.servers.iter().map(|it| it.spec.name.0.to_string());
        let own: BTreeSet<_> = self.in_process.iter().map(|it| it.server.clone()).collect();
        let files = self.descriptions.take();
        let files = files.map(|it| it.for_servers(names.chain(own)));
        let opened = OpenedToolFiles::open(files).map_err(BuildError::ToolFiles)?;
        let shares = self.shares(state.path())?;
        let message_limits = MessageLimits {
            result_bytes_max: self.limits.result_bytes_max as usize,
            ..MessageLimits::default()
        };
        let surroundings = UpstreamSettings {
            base_env: self.base_env.clone(),
            message_limits,
            eras: era_file::memory(state.path()),
            abilities: self.declared.clone().unwrap_or_else(|| {
                let client_bridge = self.client_bridge.as_deref();
                let abilities: ClientCapabilities = client_bridge
                    .map(ClientBridge::abilities)
                    .unwrap_or_default();
                abilities.from_now_on()
            }),
        };
        let shared = match self.shared.take() {
            Some(shared) => shared,
            None => self.shared_parts()?,
        };
        let budget = shared.budget;
        let run_bytes = &mut self.limits.guest_memory_bytes_max;
        *run_bytes = budget.run_bytes_max().min(*run_bytes);
        let engine = EngineLoad::new(self.engine, self.engine_later);
        let embeddings = own_tools::read_embeddings(self.embeddings.take()).await?;
        let specs = self.servers.iter().map(|it| it.spec.clone()).collect();
        let upstream = Upstream::new(specs, &surroundings);
        let server_registry = self.server_registry(lock, state.path(), &upstream).await?;
        let sources = self.sources();
        let has_policies = !self.policies.is_empty();
        let checks = CheckRegistry::new(self.unknown_keys);
        let registry = ToolRegistry::new(sources, server_registry, opened, checks)?;
        let sandbox = engine.sandbox().await?;
        let resolver = PathResolver::new(&self.flow, &self.servers);
        let idle = self.servers.iter();
        let idle = idle.map(|it| (it.spec.name.clone(), it.idle));
        let unmasked = self.servers.iter().map(|it| &it.spec);
        let unmasked = unmasked.filter(|spec| !spec.mask_credentials);
        let unmasked_servers = unmasked.map(|spec| spec.name.clone()).collect();
        let servers = Servers::new(upstream, registry, idle, runtime.clone());
        if self.servers_join_later {
            servers.start();
        }
        Ok(Broker(Arc::new(Inner {
            guest: GuestIdentity {
                name: sandbox.name().to_owned(),
                digest: sandbox.digest(),
            },
            sandbox,
            telemetry: Telemetry::start(self.telemetry, &budget),
            budget,
            limits: self.limits,
            secrets: self.secrets,
            unmasked_servers,
            clock: Clock::start(),
            servers,
            in_process: index(self.in_process),
            approver: self.approver,
            client_bridge: self.client_bridge,
            resolver,
            label_config: Arc::new(self.flow.label_config.clone()),
            flow: (has_policies || !self.flow.is_empty()).then(|| FlowSpec {
                input_labels: self.flow.input_labels,
                known: Arc::new(self.flow.known),
                ..FlowSpec::default()
            }),
            fsync: self.fsync,
            signed_ends: self.signed_ends,
            own: self.own,
            extractor: self.extractor,
            embeddings,
            compiler: Compiler::new(self.tsc, self.base_env, state.path()),
            shares,
            state,
            runtime,
            active_runs: super::active_runs::ActiveRuns::default(),
        })))
    }

    /// Returns the initial state of the servers, with the tools that they list now or listed
    /// earlier.
    async fn server_registry(
        &self,
        lock: Option<Lock>,
        state_dir: &Path,
        upstream: &Upstream,
    ) -> Result<ServerRegistry, BuildError> {
        let target_key = TargetKey::open(state_dir).map_err(BuildError::State)?;
        let stored = (ListingStore::new(state_dir), target_key);
        let mut server_registry =
            ServerRegistry::new(self.servers.clone(), lock, self.secrets.clone(), stored);
        if self.servers_join_later {
            server_registry.recall();
            return Ok(server_registry);
        }
        let listing = self.servers.iter().map(|it| upstream.list(&it.spec.name));
        for listed in join_all(listing).await.into_iter().flatten() {
            server_registry.apply(ServerChange::Listed(Box::new(listed)));
        }
        match server_registry.first_unavailable() {
            Some(problem) if self.servers_required => Err(BuildError::Server(problem.clone())),
            _ => Ok(server_registry),
        }
    }

    fn sources(&self) -> ToolSources {
        let mut by_server: Vec<(String, Vec<Value>)> = Vec::new();
        for tool in &self.in_process {
            let description = tool.description.clone();
            match by_server.iter_mut().find(|it| it.0 == tool.server) {
                Some((_, tools)) => tools.push(description),
                None => by_server.push((tool.server.clone(), vec![description])),
            }
        }
        let offered = |(server, tools)| ServerTools {
            trust: ToolTrust::own(),
            ..ServerTools::new(server, tools)
        };
        let mut own: Vec<ServerTools> = by_server.into_iter().map(offered).collect();
        if self.own.is_any() {
            own.push(tool_discovery::offered(self.own));
        }
        ToolSources {
            own,
            label_config: Arc::new(self.flow.label_config.clone()),
            policies: self.policies.clone(),
            rules: self.rules.clone(),
            approver_is_there: self.approver.is_some(),
        }
    }

    /// Returns the state that outlives a run. It is read here once, so that errors in it are
    /// reported at the start.
    fn shares(&self, state_dir: &Path) -> Result<RunSharing, BuildError> {
        let session = self.session.as_ref();
        let project = self.project.as_deref();
        let shares = RunSharing::new(
            session.map(|name| SharedFile::session(state_dir, name)),
            project.map(|folder| SharedFile::project(state_dir, folder)),
        );
        shares.check()?;
        shares.import(self.grants.clone())
    }

    fn check_names(&self) -> Result<(), BuildError> {
        let mut names = std::collections::HashSet::new();
        for server in &self.servers {
            ServerName::parse(&server.spec.name.0)?;
            if !names.insert(&*server.spec.name.0) {
                return Err(BuildError::NameTwice(server.spec.name.0.to_string()));
            }
        }
        for tool in &self.in_process {
            ServerName::parse(&tool.server)?;
            if names.contains(tool.server.as_str()) {
                return Err(BuildError::NameTwice(tool.server.clone()));
            }
        }
        let mut all = names
            .into_iter()
            .chain(self.in_process.iter().map(|it| &*it.server));
        if self.own.is_any() && all.any(|name| name == OWN_SERVER) {
            return Err(BuildError::NameReserved);
        }
        Ok(())
    }
}

fn index(tools: Vec<InProcessTool>) -> HashMap<ToolId, InProcessTool> {
    let id = |tool: &InProcessTool| {
        let name = tool.description.get("name").and_then(Value::as_str)?;
        ToolId::parse(&format!("{}.{name}", tool.server)).ok()
    };
    tools
        .into_iter()
        .filter_map(|tool| Some((id(&tool)?, tool)))
        .collect()
}
