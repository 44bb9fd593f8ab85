//! How a broker comes to be: connect, list, compile, load, once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use airlock_core::decide::Standing;
use airlock_core::flow::{FlowSpec, Unfitting};
use airlock_core::grant::Grant;
use airlock_core::id::{ServerName, ToolId};
use airlock_core::limits::Limits;
use airlock_core::problem::Problem;
use airlock_core::rules::{BadPattern, Level, Pattern, Rule, Rules};
use airlock_core::run::{Fsync, GuestIdentity};
use airlock_core::session::Disclosed;
use airlock_core::shared::SessionName;
use codegen::lock::Lock;
use serde_json::Value;

use super::locked;
use super::shares::Shares;
use super::shelf::{Opened, Shelf, Sources};
use super::tools::{Offered, Tools, tool_left_out, unmatched};
use super::{Broker, BuildError, InProcessTool, Inner, policies};
use crate::approver::Approver;
use crate::clock::Clock;
use crate::config::{
    Config, FlowConfig, PolicyConfig, Secrets, Server, Trust, TscChoice, UnknownKeys,
};
use crate::era_file;
use crate::journal_file::StateDir;
use crate::lock_file::{self, LockFile, Pin};
use crate::resolve::Resolver;
use crate::sandbox::Sandbox;
use crate::shared_file::SharedFile;
use crate::tool_files::ToolFiles;
use crate::tsc::Compiler;
use crate::upstream::{Caps, ConnectError, Listed, ServerSpec, Surroundings, Upstream};

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
    limits: Limits,
    state_dir: Option<PathBuf>,
    descriptions: Option<ToolFiles>,
    lock: Option<LockFile>,
    fsync: Fsync,
    unknown_keys: UnknownKeys,
    tsc: TscChoice,
    secrets: Secrets,
    base_env: Vec<(String, String)>,
    servers_required: bool,
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
        self.state_dir = Some(config.state_dir);
        self.descriptions = config.descriptions.map(ToolFiles::new);
        self.lock = config.lock.map(LockFile::new);
        self.fsync = config.fsync;
        self.unknown_keys = config.unknown_keys;
        self.tsc = config.tsc;
        self.secrets = config.secrets;
        self.base_env = config.base_env;
        self
    }

    #[must_use]
    pub fn server(mut self, spec: ServerSpec) -> Self {
        self.servers.push(Server {
            spec,
            trust: Trust::default(),
        });
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

    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
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

    /// A server that cannot be reached is then an error and not a problem among others.
    #[must_use]
    pub fn servers_required(mut self, required: bool) -> Self {
        self.servers_required = required;
        self
    }

    pub async fn build(self) -> Result<Broker, BuildError> {
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
        let specs: Vec<_> = self
            .servers
            .iter()
            .map(|server| server.spec.clone())
            .collect();
        let surroundings = Surroundings {
            base_env: self.base_env.clone(),
            caps,
            eras: era_file::memory(state.path()),
        };
        let loading = tokio::task::spawn_blocking(Sandbox::load_embedded);
        let (upstream, listed) = Upstream::connect_all(specs, &surroundings).await;
        let sandbox = loading.await.map_err(|_| BuildError::Interrupted)??;

        let (offered, mut problems) = self.offered(listed, lock.as_ref())?;
        problems.extend(
            lock.iter()
                .flat_map(|lock| locked::problems(lock, &offered)),
        );
        let sayings = Arc::new(self.flow.sayings.clone());
        let tools = Tools::of(&offered, &opened.loaded, &sayings, self.unknown_keys);
        problems.extend(labels_unfitting(&self.flow, &tools)?);
        let resolver = Resolver::new(&self.flow.roots, &self.servers);
        let policies = policies::load(&self.policies, &tools)?.map(Arc::new);
        problems.extend(policies.iter().flat_map(|it| policies::problems(it)));
        let has_policies = policies.is_some();
        let mut rules = Rules::new(self.rules, self.approver.is_some());
        if let Some(policies) = policies {
            rules = rules.with_policies(policies);
        }
        problems.extend(
            rules
                .unmatched(&tools.catalog)
                .into_iter()
                .map(|(rule, closest)| unmatched(rule, closest)),
        );
        let standing = Standing {
            catalog: Arc::default(),
            rules: Arc::new(rules),
            disclosed: Disclosed::All,
        };
        Ok(Broker(Arc::new(Inner {
            guest: GuestIdentity {
                name: sandbox.name().to_owned(),
                digest: sandbox.digest(),
            },
            sandbox,
            limits: self.limits,
            secrets: self.secrets,
            clock: Clock::start(),
            upstream,
            in_process: index(self.in_process),
            approver: self.approver,
            resolver,
            flow: (has_policies || !self.flow.is_empty()).then(|| FlowSpec {
                input_labels: self.flow.input_labels,
                known: Arc::new(self.flow.known),
                ..FlowSpec::default()
            }),
            shelf: Shelf::new(
                Sources {
                    offered,
                    sayings,
                    unknown_keys: self.unknown_keys,
                },
                opened,
                tools,
                standing,
                problems,
            ),
            fsync: self.fsync,
            compiler: Compiler::new(self.tsc, self.base_env, state.path()),
            shares,
            state,
            runtime,
            going: super::going::Going::default(),
        })))
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
        Ok(())
    }

    /// What servers and this process offer, and what is wrong with single servers.
    fn offered(
        &self,
        listed: Vec<Listed>,
        lock: Option<&Lock>,
    ) -> Result<(Vec<Offered>, Vec<Problem>), BuildError> {
        let mut problems = Vec::new();
        let mut offered = Vec::new();
        for list in listed {
            let server = list.server.0.to_string();
            if let Some(failure) = &list.failure {
                let problem = self.unavailable(&server, failure);
                if self.servers_required {
                    return Err(BuildError::Server(problem));
                }
                problems.push(problem);
                continue;
            }
            for bad in &list.problems {
                problems.push(tool_left_out(&server, bad.to_string()));
            }
            let trust = self.servers.iter().find(|it| *it.spec.name.0 == *server);
            let trust = trust.map(|it| it.trust.clone()).unwrap_or_default();
            let says = lock_file::says(&list);
            let target = self.target(&server);
            let pin = match (lock, &target) {
                (Some(lock), Some(target)) => Pin::of(lock, &server, target),
                _ => Pin::Free,
            };
            offered.push(Offered {
                server,
                trust,
                target,
                says,
                pin,
                tools: self.struck(list.tools),
            });
        }
        for tool in &self.in_process {
            let description = tool.description.clone();
            match offered.iter_mut().find(|offer| offer.server == tool.server) {
                Some(offer) => offer.tools.push(description),
                None => offered.push(Offered {
                    server: tool.server.clone(),
                    trust: Trust::own(),
                    target: None,
                    says: None,
                    pin: Pin::Free,
                    tools: vec![description],
                }),
            }
        }
        Ok((offered, problems))
    }

    fn target(&self, server: &str) -> Option<String> {
        let found = self.servers.iter().find(|it| *it.spec.name.0 == *server);
        let mut target = found?.spec.target();
        self.secrets.strike_text(&mut target);
        Some(target)
    }

    /// A server may repeat its credentials in its own descriptions, which the model reads.
    fn struck(&self, mut tools: Vec<Value>) -> Vec<Value> {
        tools
            .iter_mut()
            .for_each(|tool| self.secrets.strike_value(tool));
        tools
    }

    fn unavailable(&self, server: &str, failure: &ConnectError) -> Problem {
        let mut why = failure.to_string();
        self.secrets.strike_text(&mut why);
        Problem::new(
            "server-unavailable",
            format!("the server `{server}` cannot be used"),
            why,
            failure.next(),
        )
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

/// A table of labels that fits nothing is a mistake where its server is there, and may be about
/// another run where it is not.
fn labels_unfitting(flow: &FlowConfig, tools: &Tools) -> Result<Vec<Problem>, BuildError> {
    let takes = |id: &ToolId| {
        let description = tools
            .descriptions
            .iter()
            .find(|it| it.server == *id.server.0 && it.name == *id.tool.0)?;
        let properties = description.input_schema.get("properties")?.as_object()?;
        Some(properties.keys().cloned().collect())
    };
    let mut problems = Vec::new();
    for unfitting in flow.sayings.unfitting(&tools.catalog, takes) {
        let is_certain = unfitting.is_certain;
        let problem = labels_problem(unfitting);
        if is_certain {
            return Err(BuildError::Labels(problem));
        }
        problems.push(problem);
    }
    Ok(problems)
}

fn labels_problem(unfitting: Unfitting) -> Problem {
    let next = unfitting.closest.map_or_else(
        || "`airlock types --detail names` lists all tools".to_owned(),
        |meant| format!("did you mean `{meant}`?"),
    );
    let what = format!("the labels in {} fit nothing", unfitting.origin);
    Problem::new("config-invalid", what, unfitting.what, next)
}
