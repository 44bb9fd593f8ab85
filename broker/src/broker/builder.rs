//! How a broker comes to be: connect, list, compile, load, once.

mod own_tools;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use airlock_core::catalog::OWN_SERVER;
use airlock_core::flow::FlowSpec;
use airlock_core::grant::Grant;
use airlock_core::id::{ServerName, ToolId};
use airlock_core::limits::Limits;
use airlock_core::rules::{BadPattern, Level, Pattern, Rule};
use airlock_core::run::{Fsync, GuestIdentity};
use airlock_core::shared::SessionName;
use codegen::lock::Lock;
use futures_util::future::join_all;
use serde_json::Value;

use super::checks::AllChecks;
use super::engine::Engine;
use super::offered::Offered;
use super::own::Own;
use super::roster::{Change, Roster};
use super::servers::Servers;
use super::shares::Shares;
use super::shelf::{Opened, Shelf};
use super::sources::Sources;
use super::{Broker, BuildError, InProcessTool, Inner, own};
use crate::approver::Approver;
use crate::budget::{Budget, BudgetLimits};
use crate::carrier::{Abilities, Carrier, Declared};
use crate::clock::Clock;
use crate::config::{
    Config, FlowConfig, PolicyConfig, Secrets, Server, Trust, TscChoice, UnknownKeys,
};
use crate::era_file;
use crate::extract::{self, Extractor};
use crate::journal_file::StateDir;
use crate::listing_file::Listings;
use crate::lock_file::LockFile;
use crate::program::Program;
use crate::resolve::Resolver;
use crate::sandbox::JsEngine;
use crate::shared_file::SharedFile;
use crate::telemetry::{Telemetry, TelemetryConfig};
use crate::tool_files::ToolFiles;
use crate::tsc::Compiler;
use crate::upstream::{Caps, ServerSpec, Surroundings, Upstream};

/// Collects what a broker is made of. Without rules nothing is allowed, and
/// without an approver nothing is asked.
#[derive(Default)]
pub struct Builder {
    servers: Vec<Server>,
    in_process: Vec<InProcessTool>,
    rules: Vec<Rule>,
    policies: PolicyConfig,
    flow: FlowConfig,
    approver: Option<Arc<dyn Approver>>,
    carrier: Option<Arc<dyn Carrier>>,
    declared: Option<Declared>,
    limits: Limits,
    budget: BudgetLimits,
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
    own: Own,
    extractor: Option<Arc<dyn Extractor>>,
    embeddings: Option<PathBuf>,
    session: Option<SessionName>,
    project: Option<PathBuf>,
    grants: Vec<Grant>,
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
    /// Everything that flags, files and the environment say.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.servers.extend(config.servers);
        self.rules.extend(config.rules);
        self.policies = config.policies;
        self.flow = config.flow;
        self.limits = config.limits;
        self.budget = config.budget;
        self.state_dir = Some(config.state_dir);
        self.descriptions = config.descriptions.map(ToolFiles::new);
        self.lock = config.lock.map(LockFile::new);
        self.fsync = config.fsync;
        self.embeddings = config.embeddings;
        self.unknown_keys = config.unknown_keys;
        self.engine = config.engine;
        self.tsc = config.tsc;
        self.secrets = config.secrets;
        self.base_env = config.base_env;
        self.telemetry = config.telemetry;
        if let Some(command) = config.extract {
            let program = Program {
                program: command.program,
                args: command.args,
                env: self.base_env.clone(),
            };
            let wall = Duration::from_millis(command.wall_ms);
            let bytes_max = self.limits.result_bytes_max;
            self.extractor = Some(Arc::new(extract::Command::new(program, wall, bytes_max)));
        }
        self
    }

    #[must_use]
    pub fn server(mut self, spec: ServerSpec) -> Self {
        self.servers.push(Server::new(spec));
        self
    }

    /// Servers, each with what is known of it besides where it is: whom to trust, and whether it
    /// is connected to only when it is needed.
    #[must_use]
    pub fn servers(mut self, servers: impl IntoIterator<Item = Server>) -> Self {
        self.servers.extend(servers);
        self
    }

    #[must_use]
    pub fn tool(mut self, tool: InProcessTool) -> Self {
        self.in_process.push(tool);
        self
    }

    #[must_use]
    pub fn rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.rules.extend(rules);
        self
    }

    pub fn allow(self, pattern: &str) -> Result<Self, BadPattern> {
        self.rule(Level::Allow, pattern)
    }

    pub fn ask(self, pattern: &str) -> Result<Self, BadPattern> {
        self.rule(Level::AskRun, pattern)
    }

    pub fn deny(self, pattern: &str) -> Result<Self, BadPattern> {
        self.rule(Level::Deny, pattern)
    }

    fn rule(self, level: Level, pattern: &str) -> Result<Self, BadPattern> {
        let pattern = Pattern::parse(pattern)?;
        Ok(self.rules([Rule {
            level,
            pattern,
            origin: Some("the host".into()),
        }]))
    }

    /// What servers and tools read and write, where files lie, and which destinations are known.
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

    /// Who carries what servers ask of the host: forms, addresses, texts of its model. Without
    /// one, servers are told that nothing can be asked.
    #[must_use]
    pub fn carrier(mut self, carrier: impl Carrier + 'static) -> Self {
        self.carrier = Some(Arc::new(carrier));
        self
    }

    /// What servers of the older era are told that can be asked, when that is known later than
    /// now. They are not connected to before.
    #[must_use]
    pub fn declared(mut self, declared: Declared) -> Self {
        self.declared = Some(declared);
        self
    }

    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What all runs of the broker may take together.
    #[must_use]
    pub fn budget(mut self, budget: BudgetLimits) -> Self {
        self.budget = budget;
        self
    }

    /// Where journals are kept.
    #[must_use]
    pub fn state_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.state_dir = Some(path.into());
        self
    }

    /// The folder of tool files, which add to what servers say of their tools. It is looked at
    /// again before each run.
    #[must_use]
    pub fn descriptions(mut self, folder: impl Into<PathBuf>) -> Self {
        self.descriptions = Some(ToolFiles::new(folder.into()));
        self
    }

    /// The lock file. What a server says of its tools must be what was accepted there, or calls
    /// are refused as `description-changed`. Tools of this process are not looked up.
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

    /// What becomes of a call with keys that its tool neither names nor forbids.
    #[must_use]
    pub fn unknown_keys(mut self, unknown_keys: UnknownKeys) -> Self {
        self.unknown_keys = unknown_keys;
        self
    }

    /// Which engine runs the scripts: Boa, unless it is said otherwise.
    #[must_use]
    pub fn engine(mut self, engine: JsEngine) -> Self {
        self.engine = engine;
        self
    }

    /// The TypeScript compiler that is asked about scripts before they run; none by default.
    /// What it says are warnings.
    #[must_use]
    pub fn tsc(mut self, choice: TscChoice) -> Self {
        self.tsc = choice;
        self
    }

    /// Values that are struck out of results, errors and journals.
    #[must_use]
    pub fn secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Runs then share what this session has: its labels, its disclosures and its grants.
    #[must_use]
    pub fn session(mut self, name: SessionName) -> Self {
        self.session = Some(name);
        self
    }

    /// Runs then share the grants of this folder.
    #[must_use]
    pub fn project(mut self, folder: impl Into<PathBuf>) -> Self {
        self.project = Some(folder.into());
        self
    }

    /// Grants that were given before, such as those in a file. Each counts only where the
    /// digests that it is bound to fit.
    #[must_use]
    pub fn grants(mut self, grants: impl IntoIterator<Item = Grant>) -> Self {
        self.grants.extend(grants);
        self
    }

    /// Rules in Cedar, and the groups that they may name.
    #[must_use]
    pub fn policies(mut self, policies: PolicyConfig) -> Self {
        self.policies = policies;
        self
    }

    /// Where traces and metrics of runs go.
    #[must_use]
    pub fn telemetry(mut self, telemetry: TelemetryConfig) -> Self {
        self.telemetry = Some(telemetry);
        self
    }

    /// A server that cannot be reached is then an error and not a problem among others.
    #[must_use]
    pub fn servers_required(mut self, required: bool) -> Self {
        self.servers_required = required;
        self
    }

    /// The broker is then there at once, with the tools that servers listed when they were last
    /// seen. Each server joins when it is there, or when it is needed; [`Broker::changes`] tells.
    #[must_use]
    pub fn servers_join_later(mut self, later: bool) -> Self {
        self.servers_join_later = later;
        self
    }

    /// The broker is then there before scripts can run: see [`Broker::engine_loaded`].
    #[must_use]
    pub(crate) fn engine_later(mut self, later: bool) -> Self {
        self.engine_later = later;
        self
    }

    pub async fn build(mut self) -> Result<Broker, BuildError> {
        self.own.extraction |= self.own.discovery && self.extractor.is_some();
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| BuildError::NoRuntime)?;
        let state = StateDir::new(self.state_dir.clone().ok_or(BuildError::NoStateDir)?);
        self.check_names()?;
        let lock = self.lock.as_ref().map(LockFile::read_existing).transpose();
        let lock = lock.map_err(BuildError::Lock)?;
        let opened = Opened::open(self.descriptions.clone()).map_err(BuildError::ToolFiles)?;
        let shares = self.shares(state.path())?;
        let caps = Caps {
            result_bytes_max: self.limits.result_bytes_max as usize,
            ..Caps::default()
        };
        let surroundings = Surroundings {
            base_env: self.base_env.clone(),
            caps,
            eras: era_file::memory(state.path()),
            abilities: self.declared.clone().unwrap_or_else(|| {
                let carrier = self.carrier.as_deref();
                let abilities: Abilities = carrier.map(Carrier::abilities).unwrap_or_default();
                abilities.from_now_on()
            }),
        };
        self.budget.validate()?;
        let budget = Budget::new(&self.budget, self.limits.guest_memory_bytes_max);
        let run_bytes = &mut self.limits.guest_memory_bytes_max;
        *run_bytes = budget.run_bytes_max().min(*run_bytes);
        let engine = Engine::of(self.engine, self.engine_later);
        let embeddings = own_tools::read_embeddings(self.embeddings.take()).await?;
        let specs = self.servers.iter().map(|it| it.spec.clone()).collect();
        let upstream = Upstream::new(specs, &surroundings);
        let roster = self.roster(lock, state.path(), &upstream).await?;
        let sources = self.sources();
        let has_policies = !self.policies.is_empty();
        let checks = AllChecks::new(self.unknown_keys);
        let shelf = Shelf::new(sources, roster, opened, checks)?;
        let sandbox = engine.sandbox().await?;
        let resolver = Resolver::new(&self.flow.roots, &self.servers);
        let idle = self.servers.iter();
        let idle = idle.map(|it| (it.spec.name.clone(), it.idle));
        let servers = Servers::new(upstream, shelf, idle, runtime.clone());
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
            clock: Clock::start(),
            servers,
            in_process: index(self.in_process),
            approver: self.approver,
            carrier: self.carrier,
            resolver,
            sayings: Arc::new(self.flow.sayings.clone()),
            flow: (has_policies || !self.flow.is_empty()).then(|| FlowSpec {
                input_labels: self.flow.input_labels,
                known: Arc::new(self.flow.known),
                ..FlowSpec::default()
            }),
            fsync: self.fsync,
            own: self.own,
            extractor: self.extractor,
            embeddings,
            compiler: Compiler::new(self.tsc, self.base_env, state.path()),
            shares,
            state,
            runtime,
            going: super::going::Going::default(),
        })))
    }

    /// What is known of the servers at the start: what they say now, or what they said before.
    async fn roster(
        &self,
        lock: Option<Lock>,
        state_dir: &Path,
        upstream: &Upstream,
    ) -> Result<Roster, BuildError> {
        let listings = Listings::new(state_dir);
        let mut roster = Roster::new(self.servers.clone(), lock, self.secrets.clone(), listings);
        if self.servers_join_later {
            roster.recall();
            return Ok(roster);
        }
        let listing = self.servers.iter().map(|it| upstream.list(&it.spec.name));
        for listed in join_all(listing).await.into_iter().flatten() {
            roster.apply(Change::Listed(Box::new(listed)));
        }
        match roster.first_unavailable() {
            Some(problem) if self.servers_required => Err(BuildError::Server(problem.clone())),
            _ => Ok(roster),
        }
    }

    fn sources(&self) -> Sources {
        let mut by_server: Vec<(String, Vec<Value>)> = Vec::new();
        for tool in &self.in_process {
            let description = tool.description.clone();
            match by_server.iter_mut().find(|it| it.0 == tool.server) {
                Some((_, tools)) => tools.push(description),
                None => by_server.push((tool.server.clone(), vec![description])),
            }
        }
        let offered = |(server, tools)| Offered {
            trust: Trust::own(),
            ..Offered::of(server, tools)
        };
        let mut own: Vec<Offered> = by_server.into_iter().map(offered).collect();
        if self.own.is_any() {
            own.push(own::offered(self.own));
        }
        Sources {
            own,
            sayings: Arc::new(self.flow.sayings.clone()),
            policies: self.policies.clone(),
            rules: self.rules.clone(),
            approver_is_there: self.approver.is_some(),
        }
    }

    /// What is kept for more than one run, read once so that what is wrong with it shows now.
    fn shares(&self, state_dir: &Path) -> Result<Shares, BuildError> {
        let session = self.session.as_ref();
        let project = self.project.as_deref();
        let shares = Shares::new(
            session.map(|name| SharedFile::session(state_dir, name)),
            project.map(|folder| SharedFile::project(state_dir, folder)),
        );
        shares.load()?;
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
