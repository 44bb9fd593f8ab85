//! The embedding API: a broker is built once from servers, tools, rules, an
//! approver and limits, and then runs any number of scripts.

mod active_runs;
mod build_error;
mod builder;
mod call_context;
mod cancel;
mod drive;
mod engine_load;
mod entropy;
mod failed_start;
mod fetch;
mod latest_listings;
mod lock_check;
mod login_tool;
mod policies;
mod rate_limits;
mod registry;
mod resume;
mod run_context;
mod run_handle;
mod run_sharing;
mod schema_cache;
mod script;
mod script_check;
mod server_registry;
mod server_tools;
mod servers;
mod signed_ends;
mod sources;
mod status;
mod tool;
mod tool_checks;
pub(crate) mod tool_discovery;
pub(crate) mod tool_index;
mod tool_snapshot;
mod tools;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use airlock_core::catalog::{Catalog, Tool};
use airlock_core::code::Code;
use airlock_core::decide::{Answer, AuthorizedCall, DecisionContext, Question};
use airlock_core::flow::{FlowSpec, LabelConfig, SessionFlow};
use airlock_core::grant::{Grant, Use};
use airlock_core::id::{GrantId, RunId, ServerName, ToolId, ToolName};
use airlock_core::labels::Labels;
use airlock_core::limits::Limits;
use airlock_core::outcome::Reply;
use airlock_core::problem::Problem;
use airlock_core::report::{Report, Status};
use airlock_core::rules::Rules;
use airlock_core::run::{Fsync, GuestIdentity, RunOrigin, RunSpec};
use airlock_core::search::model::Model;
use airlock_core::tool_pattern::ToolPattern;
use codegen::declare::{self, Declarations, Level};
use codegen::description::Description;
use codegen::lock::Lock;
use codegen::stub::{ServerStubs, StubTable, ToolStub};
use codegen::uses::Uses;
use futures_util::future::LocalBoxFuture;
use tokio::sync::watch;

use crate::approver::Approver;
use crate::chain_file::ChainFileError;
use crate::client_bridge::ClientBridge;
use crate::extract::{self, Extractor};
use crate::private_file::StateDir;
use crate::resident;
use crate::resolve::PathResolver;
use crate::run_event::RunEvent;
use crate::secrets::Secrets;
use crate::telemetry::Telemetry;
use crate::tsc::Compiler;
use active_runs::ActiveRuns;
use airlock_sandbox::budget::{Budget, BudgetUsage, Busy, RunShare};
use airlock_sandbox::clock::Clock;
use airlock_sandbox::{CheckLimits, Checker, JsEngine, Sandbox, check_bytes_max};
pub(crate) use call_context::CallContext;
use drive::{EffectRunner, JournalWriter};
use failed_start::{never_started, not_resumed, unreadable};
pub(crate) use run_sharing::RunSharing;
use servers::Servers;
use signed_ends::SignedEnds;
use tool_discovery::OwnTools;
pub(crate) use tool_snapshot::ToolSnapshot;
use tools::tool_unusable;

pub use build_error::BuildError;
pub use builder::Builder;
pub(crate) use builder::SharedParts;
pub use cancel::Cancel;
pub use entropy::EntropyError;
pub(crate) use policies::{problems as policy_problems, rules_of, vocabulary_of};
pub(crate) use resume::READS_MAX_AGE;
pub use resume::ResumeOptions;
pub use run_context::{IdleFlag, ReachedLabels, RunContext, SuspendedFlag};
pub use run_handle::RunHandle;
pub use script::{CheckPolicy, Script};
pub use script_check::CheckReport;
pub(crate) use sources::misfits;
pub use status::{ServerState, ServerStatus};
pub use tool::{InProcessTool, ToolFailure};
pub use tool_discovery::{DescribedTools, ToolDiscovery};

/// Runs scripts against connected servers with pinned descriptions and a loaded sandbox. Cheap to
/// clone.
#[derive(Clone)]
pub struct Broker(Arc<Inner>);

/// A weak reference to a broker.
#[derive(Clone)]
pub(crate) struct WeakBroker(Weak<Inner>);

impl WeakBroker {
    pub(crate) fn upgrade(&self) -> Option<Broker> {
        self.0.upgrade().map(Broker)
    }
}

/// Everything that all runs share.
pub(crate) struct Inner {
    pub(crate) sandbox: Sandbox,
    pub(crate) limits: Limits,
    pub(crate) budget: Budget,
    pub(crate) secrets: Secrets,
    /// Servers in whose results only configured credentials are masked.
    unmasked_servers: HashSet<ServerName>,
    pub(crate) clock: Clock,
    telemetry: Telemetry,
    servers: Arc<Servers>,
    in_process: HashMap<ToolId, InProcessTool>,
    approver: Option<Arc<dyn Approver>>,
    client_bridge: Option<Arc<dyn ClientBridge>>,
    /// How data flow is tracked in runs. `None` if neither policies nor labels are configured.
    flow: Option<FlowSpec>,
    label_config: Arc<LabelConfig>,
    pub(crate) resolver: PathResolver,
    fsync: Fsync,
    signed_ends: SignedEnds,
    /// Which of airlock's own tools scripts can call.
    own: OwnTools,
    extractor: Option<Arc<dyn Extractor>>,
    embeddings: Option<Arc<Model>>,
    compiler: Compiler,
    shares: RunSharing,
    state: StateDir,
    guest: GuestIdentity,
    runtime: tokio::runtime::Handle,
    active_runs: ActiveRuns,
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let catalog = self.catalog();
        let (servers, tools) = (catalog.servers().len(), catalog.tools().count());
        write!(f, "Broker({servers} servers, {tools} tools)")
    }
}

impl Broker {
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns whether the data flow of runs is tracked. Policies and labels need it, because they
    /// depend on what a run has read.
    #[must_use]
    pub fn is_watching(&self) -> bool {
        self.0.flow.is_some()
    }

    /// Runs a script on its own thread.
    #[must_use]
    pub fn run(&self, script: Script) -> RunHandle {
        self.run_in(RunContext::default(), script)
    }

    /// Runs a script on its own thread, in the session that `context` describes.
    #[must_use]
    pub fn run_in(&self, context: RunContext, script: Script) -> RunHandle {
        RunHandle::start(self.clone(), context, script)
    }

    /// Runs a script on the current thread, which is busy while the script computes. `watch`
    /// receives each event as it happens.
    pub async fn run_here(
        &self,
        script: Script,
        cancel: &Cancel,
        watch: impl FnMut(RunEvent),
    ) -> Report {
        let context = RunContext::default();
        match self.share(&context, &script, cancel).await {
            Ok(share) => {
                self.run_here_in((context, share), script, cancel, watch)
                    .await
            }
            Err(report) => *report,
        }
    }

    /// Reserves memory and a place for a run, or returns the report that refuses the run.
    async fn share(
        &self,
        context: &RunContext,
        script: &Script,
        cancel: &Cancel,
    ) -> Result<RunShare, Box<Report>> {
        let bytes = self.0.run_bytes_max(script);
        let share = self.0.budget.share(&context.caller, bytes);
        match cancel.or(share).await {
            Some(Ok(share)) => Ok(share),
            Some(Err(busy)) => Err(Box::new(failed_start::busy(&busy))),
            None => Err(Box::new(failed_start::cancelled(cancel.cancelled().await))),
        }
    }

    async fn run_here_in(
        &self,
        (context, share): (RunContext, RunShare),
        script: Script,
        cancel: &Cancel,
        mut watch: impl FnMut(RunEvent),
    ) -> Report {
        let broker = &*self.0;
        let now_ms = broker.clock.now_ms();
        let seed = || script.seed.map_or_else(entropy::seed, Ok);
        let drawn = entropy::run_id(now_ms).and_then(|run| Ok((run, seed()?)));
        let Ok((run, seed)) = drawn else {
            return never_started(Code::Internal);
        };
        let known = broker.known();
        let extractor = broker.extractor.as_ref().or(context.extractor.as_ref());
        let decision_context = DecisionContext {
            disclosed: context.disclosed,
            no_extractor: extractor.is_none().then_some(extract::NO_EXTRACTOR),
            ..known.decision_context.clone()
        };
        let (state, catalog) = (&broker.state, &decision_context.catalog);
        let shares = broker.shares.in_host_session(context.session);
        let origin = RunOrigin {
            program: Some(env!("CARGO_PKG_VERSION").to_owned()),
            caller: Some(shares.origin(&context.caller)),
            host: context.host,
            session: shares.session_name(),
            command: script.command.clone(),
        };
        let share = &share;
        let check = script_check::before_run(
            &script,
            broker,
            (&known, &decision_context),
            (share, cancel),
        )
        .await;
        if check.rejection.is_none() && !check.findings.is_empty() {
            let findings = check.findings.clone();
            watch(RunEvent::Checked { findings });
        }
        // A run that makes no call does not become the newest one of a chain, so that the answers of
        // people stay valid.
        if let (Some(resume), Some(rejection)) = (&script.resume, &check.rejection) {
            return failed_start::rejected(rejection.clone(), check.findings, resume);
        }
        if script.resume.is_some() && cancel.is_cancelled() {
            return failed_start::cancelled(cancel.cancelled().await);
        }
        // Hosts' runs are tracked only if something depends on it.
        let is_tracked = broker.flow.is_some() || !shares.is_of_host();
        let mut record = JournalWriter::new(state.clone(), run.clone(), &broker.secrets);
        // Other runs of the session see by this lock that the run is alive. It is held until the
        // end of the run is recorded in the session.
        let is_locked = shares.has_session() || script.resume.is_some();
        let alive = is_locked.then(|| record.lock()).flatten();
        // The run is entered into its chain before the guest starts.
        if let Some(resume) = &script.resume {
            if alive.is_none() {
                return never_started(Code::JournalUnwritable);
            }
            let position = &resume.position;
            let chain = state.chain(&position.root);
            if let Err(error) = chain.begin(&run, (&position.predecessor, resume.records), now_ms) {
                // After an I/O error, the record may be on disk. The empty journal makes it void.
                if !matches!(error, ChainFileError::Io { .. }) {
                    record.discard();
                }
                return not_resumed(&error);
            }
        }
        let loaded = match shares.begin(&run, state, (catalog, is_tracked), now_ms) {
            Ok(loaded) => loaded,
            Err(error) => {
                // The empty journal of a run that resumes shows that it did nothing.
                if script.resume.is_none() {
                    record.discard();
                }
                return unreadable(&error);
            }
        };
        let parent = script.trace_parent.as_deref();
        let mut trace = broker.telemetry.run(&run, parent, now_ms);
        let ids = trace.ids();
        let limits = broker.limits_of(&script);
        let mut carried = script.carried;
        let worst = broker.worst_labels();
        if let Some(session) = loaded.session.as_ref().filter(|_| is_tracked) {
            carried.get_or_insert_default().join(&session.flow(&worst));
        }
        let approver = context.approver.as_ref().or(broker.approver.as_ref());
        let reaches_person = approver.is_some_and(|approver| approver.place().is_some());
        let approver = approver.map_or_else(|| "nobody".into(), |approver| approver.who());
        let grants = shares.spec(&loaded, approver, now_ms);
        let spec = RunSpec {
            run: run.clone(),
            check,
            script_name: script.name,
            script: script.text,
            input: script.input,
            seed,
            decision_context,
            flow: broker.flow_of(carried),
            limits,
            fsync: broker.fsync,
            guest: broker.guest.clone(),
            grants,
            reaches_person,
            origin,
            redact: broker.secrets.redaction(),
            resume: script.resume,
            suspend_after_ms: script.suspend_after_ms,
        };
        let mut watch = |event: RunEvent| {
            trace.hear(&event, broker.clock.now_ms());
            watch(event);
        };
        // A caller without a session has access to all tools.
        let discovery = context.discovery.or_else(|| {
            broker
                .own
                .discovery
                .then(|| tool_index::discovery::for_broker(self))
        });
        let runner = EffectRunner::new(broker, record, cancel, &mut watch)
            .with_discovery(discovery.as_deref())
            .with_extractor(extractor.map(|it| &**it))
            .with_trace(ids)
            .with_limits(spec.limits)
            .with_share(share.clone())
            .with_shares(shares.clone())
            .with_reached(context.reached)
            .with_rest(context.rest)
            .with_suspended(context.suspended)
            .with_approver(context.approver.as_deref())
            .with_client_bridge(
                context
                    .client_bridge
                    .as_deref()
                    .or(broker.client_bridge.as_deref()),
            );
        let (report, mut journal) = drive::drive(spec, runner).await;
        if let Some(end) = journal.end()
            && let Some(head) = broker.signed_ends.sign(&broker.state, end).await
        {
            watch(RunEvent::Signed { head });
        }
        drop(journal);
        share.note_end(!matches!(report.status, Status::Failed | Status::Stopped));
        trace.finish(&report, broker.clock.now_ms());
        let report = match is_tracked {
            true => broker.carry_on((&run, &shares), report, worst),
            false => report,
        };
        drop(alive);
        report
    }

    /// Checks a script without running it.
    pub async fn check(&self, script: &Script) -> CheckReport {
        let broker = &*self.0;
        let known = broker.known();
        let (name, text) = (&script.name, &script.text);
        let limits = broker.limits_of(script);
        if text.len() > limits.script_bytes_max as usize {
            return CheckReport::too_long(&limits);
        }
        let share = match broker.share_of_check(&Arc::default(), text).await {
            Ok(share) => share,
            Err(busy) => return CheckReport::busy(&busy),
        };
        let compiler = &broker.compiler;
        let lacking = broker.sandbox.engine().map_or(&[][..], JsEngine::lacks);
        let mentions = script_check::mentions(&known, &known.decision_context);
        let surface = known.surface().mentioning(&mentions).lacking(lacking);
        let limits = CheckLimits::from_limits(&limits).within(share);
        CheckReport::new((name, text), surface, &broker.secrets, compiler, &limits).await
    }

    /// Returns which globals and members a script uses. The result is empty if the script is too
    /// long to run or cannot be parsed. Every call of the script is still checked against the tools
    /// that the session may use.
    pub(crate) async fn uses(
        &self,
        caller: &Arc<str>,
        script: &str,
        cancel: &Cancel,
    ) -> Result<Uses, Busy> {
        let limits = &self.0.limits;
        let is_too_long = script.len() > limits.script_bytes_max as usize;
        let Some(checker) = Checker::embedded().ok().filter(|_| !is_too_long) else {
            return Ok(Uses::default());
        };
        let Some(share) = cancel.or(self.0.share_of_check(caller, script)).await else {
            return Ok(Uses::default());
        };
        let limits = CheckLimits::from_limits(limits).within(share?);
        let limits = limits.stopped_by(cancel.stop_handle().clone());
        Ok(checker.uses(script, limits).await)
    }

    /// Returns memory of ended runs to the operating system. It comes from sandboxes that are kept
    /// ready for other runs, and from the allocator of the process.
    /// [`McpServer`](crate::serve::McpServer) calls this by itself.
    pub async fn return_memory(&self) {
        let sandbox = self.0.sandbox.clone();
        let returning = move || {
            sandbox.return_memory();
            if let Ok(checker) = Checker::embedded() {
                checker.return_memory();
            }
            resident::return_freed();
        };
        // This fails only while the runtime shuts down, when the process is about to end.
        let _ = tokio::task::spawn_blocking(returning).await;
    }

    /// Returns a reference that does not keep the broker alive.
    pub(crate) fn downgrade(&self) -> WeakBroker {
        WeakBroker(Arc::downgrade(&self.0))
    }

    /// Returns how much of the shared budget all runs use together.
    #[must_use]
    pub fn budget_usage(&self) -> BudgetUsage {
        self.0.budget.usage()
    }

    /// Returns the tools that scripts may see.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.known().decision_context.catalog)
    }

    /// Returns the names that scripts use for the tools.
    #[must_use]
    pub fn stubs(&self) -> Arc<StubTable> {
        Arc::clone(&self.known().stubs)
    }

    /// Returns whether some call of this tool can be allowed. It is false if a rule denies all
    /// calls.
    #[must_use]
    pub fn may_ever_call(&self, tool: &ToolId) -> bool {
        !self.known().is_denied(tool)
    }

    /// Returns whether scripts can call `airlock.search` and `airlock.describe`.
    #[must_use]
    pub fn has_discovery(&self) -> bool {
        self.0.own.discovery
    }

    /// Returns the model that search uses to compare meanings.
    pub(crate) fn embeddings(&self) -> Option<&Arc<Model>> {
        self.0.embeddings.as_ref()
    }

    /// Returns whether every run can call `airlock.extract`, and not only those whose host offers its
    /// model.
    #[must_use]
    pub fn has_extractor(&self) -> bool {
        self.0.extractor.is_some()
    }

    /// Returns whether scripts can call `airlock.extract`.
    #[must_use]
    pub fn has_extraction(&self) -> bool {
        self.0.own.extraction
    }

    /// Returns whether a text contains no credential and may therefore be quoted.
    #[must_use]
    pub fn is_quotable(&self, text: &str) -> bool {
        self.0.secrets.redact(text).is_none()
    }

    /// Replaces the credentials in a text by a mask.
    pub(crate) fn redact(&self, text: &mut String) {
        self.0.secrets.redact_text(text);
    }

    /// Records in the metrics that a session asked for full descriptions. `too_often` is set if the
    /// session exceeded its limit.
    pub(crate) fn note_fetch(&self, too_often: bool) {
        self.0.telemetry.fetched(too_often);
    }

    /// Returns the limits of a run, unless its script sets other limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Returns the full descriptions of all tools: those of the servers, completed by tool files.
    #[must_use]
    pub fn descriptions(&self) -> Arc<Vec<Description>> {
        Arc::clone(&self.known().descriptions)
    }

    /// Returns TypeScript declarations of the tools that scripts may call, or of those that match
    /// one of `patterns`. Tools whose calls are always denied by a rule are left out.
    #[must_use]
    pub fn declarations(&self, level: Level, patterns: &[ToolPattern]) -> String {
        self.declared(level, patterns).text
    }

    /// Returns the same declarations as [`Broker::declarations`], with a list of the schema details
    /// that the types cannot express.
    #[must_use]
    pub fn declared(&self, level: Level, patterns: &[ToolPattern]) -> Declarations {
        let known = self.known();
        let chosen = |server: &str, tool: &str| {
            let id = ToolId {
                server: ServerName(server.into()),
                tool: ToolName(tool.into()),
            };
            let is_chosen = patterns.is_empty() || patterns.iter().any(|it| it.matches(&id));
            is_chosen && !known.is_denied(&id)
        };
        let only = |server: &ServerStubs, tool: &ToolStub| chosen(&server.server, &tool.wire_name);
        declare::declare(&known.stubs, &known.descriptions, level, &only)
    }

    /// Returns where a person answers the broker's questions, or `None` if no person can.
    pub(crate) fn approval_place(&self) -> Option<String> {
        self.0.approver.as_ref()?.place()
    }

    /// Reminds the person of the questions of suspended runs. Returns `false` if the broker's approver
    /// takes no answers to them.
    pub(crate) fn remind_person(&self) -> bool {
        let approver = self.0.approver.as_ref();
        approver.is_some_and(|approver| approver.remind())
    }

    /// Returns the approver, for another one that cannot ask a person.
    pub(crate) fn shared_approver(&self) -> Option<Arc<dyn Approver>> {
        self.0.approver.clone()
    }

    /// Returns the rules that decide on calls. They do not include the answers of approvers.
    #[must_use]
    pub fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.0.servers.registry.last().1.decision_context.rules)
    }

    /// Whether there is a folder of tool files, which may change at any time.
    pub(crate) fn has_tool_files(&self) -> bool {
        self.0.servers.registry.has_files()
    }

    /// Returns the current snapshot of all tools.
    pub(crate) fn known(&self) -> Arc<ToolSnapshot> {
        self.0.known()
    }

    /// Returns the state of each configured server.
    #[must_use]
    pub fn servers(&self) -> Vec<ServerStatus> {
        self.known().servers.clone()
    }

    /// Returns a counter of tool changes. It increases when a server has joined, has changed or is
    /// disconnected, or when a tool file has changed.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.servers.registry.changes()
    }

    /// Connects to a server and reads its tools, unless it is connected. The error is the reason
    /// why the connection failed.
    pub async fn join(&self, server: &ServerName) -> Result<(), String> {
        self.0.servers.join(server).await
    }

    /// Ends the connection to an on-demand server until a call needs it again. Returns false if a
    /// call is using the server now, or if the server is not on demand.
    pub async fn rest(&self, server: &ServerName) -> bool {
        self.0.servers.rest(server).await
    }

    /// Returns the problems that do not stop the broker: a server that cannot be reached, a tool
    /// that cannot be offered, a rule that matches nothing, a tool file that does not match its
    /// tool.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        self.known().problems.clone()
    }

    /// Returns the tools that cannot be called because their input schemas are invalid. This
    /// compiles the schemas of all tools; a run compiles only those of the tools that it calls.
    #[must_use]
    pub fn unusable_tools(&self) -> Vec<Problem> {
        let catalog = self.catalog();
        let unusable =
            |tool: &Arc<Tool>| Some(tool_unusable(&tool.id, tool.args_check.unusable()?));
        catalog.tools().filter_map(unusable).collect()
    }

    /// Returns the tool descriptions that the servers sent when they connected, in the form of a
    /// lock file.
    #[must_use]
    pub fn lock(&self) -> Lock {
        self.0.servers.registry.lock()
    }

    /// Returns the path of a run's journal.
    #[must_use]
    pub fn journal_path(&self, run: &RunId) -> std::path::PathBuf {
        self.0.state.journal_path(run)
    }

    /// Cancels all runs that have their own thread, including runs that begin later. Returns when
    /// each of them has written the end of its journal.
    pub async fn end_runs(&self, why: &str) {
        self.0.active_runs.end(why).await;
    }

    /// Ends all cancelled runs that still wait for the outcomes of calls.
    pub(crate) fn stop_waiting(&self) {
        self.0.active_runs.stop_waiting();
    }

    /// Resolves when data could not be sent to a configured telemetry collector, possibly after the
    /// broker has ended.
    pub(crate) fn telemetry_trouble(&self) -> impl Future<Output = Problem> + use<> {
        let telemetry = self.0.telemetry.clone();
        async move { telemetry.trouble().await }
    }

    /// Ends all connections, and the server processes that were started for them.
    pub async fn close(self) {
        self.0.servers.close().await;
        self.0.telemetry.flush().await;
    }
}

impl Inner {
    /// Returns the credentials to mask in a server's results.
    pub(crate) fn secrets_in_results(&self, server: &ServerName) -> Secrets {
        match self.unmasked_servers.contains(server) {
            true => self.secrets.known_only(),
            false => self.secrets.clone(),
        }
    }

    pub(crate) fn is_unmasked(&self, server: &ServerName) -> bool {
        self.unmasked_servers.contains(server)
    }

    /// Returns the limits of a run. Its memory limit is at most the memory for all runs together.
    fn limits_of(&self, script: &Script) -> Limits {
        let limits = script.limits.unwrap_or(self.limits);
        let bytes_max = self.budget.run_bytes_max();
        Limits {
            guest_memory_bytes_max: limits.guest_memory_bytes_max.min(bytes_max),
            ..limits
        }
    }

    /// Returns the maximum memory in bytes that a run of this script can use.
    fn run_bytes_max(&self, script: &Script) -> u64 {
        let bytes = self.limits_of(script).guest_memory_bytes_max;
        bytes.max(check_bytes_max(script.text.len()))
    }

    /// Reserves memory for reading a script outside a run.
    async fn share_of_check(&self, caller: &Arc<str>, script: &str) -> Result<RunShare, Busy> {
        let bytes = check_bytes_max(script.len());
        let share = self.budget.share(caller, bytes).await?;
        // A check has its thread for itself.
        share.on_own_thread();
        Ok(share)
    }

    pub(crate) fn known(&self) -> Arc<ToolSnapshot> {
        self.servers.registry.now()
    }

    /// Adds the labels and counts of a run to its session.
    fn carry_on(
        &self,
        (run, shares): (&RunId, &RunSharing),
        report: Report,
        worst: Labels,
    ) -> Report {
        let worst = SessionFlow {
            labels: worst,
            ..SessionFlow::default()
        };
        let carried = report.flow.as_ref().unwrap_or(&worst);
        match shares.finish(run, carried, self.clock.now_ms()) {
            Ok(()) => report,
            // The value is not returned: the session could not record the labels of its data.
            Err(error) => Report {
                calls: report.calls,
                usage: report.usage,
                run: report.run,
                ..unreadable(&error)
            },
        }
    }

    /// Performs an authorized call: in this process, or by its server.
    pub(crate) fn call(
        &self,
        call: AuthorizedCall,
        call_context: CallContext,
    ) -> LocalBoxFuture<'static, Reply> {
        let call = call.into_parts();
        match self.in_process.get(&call.tool) {
            Some(function) => function.call(call.args.value().clone()),
            None => Box::pin(Arc::clone(&self.servers).call(call, call_context)),
        }
    }

    /// Returns the flow settings of a run. A run that belongs to a session is always tracked,
    /// because the session needs its labels.
    fn flow_of(&self, carried: Option<SessionFlow>) -> Option<FlowSpec> {
        if self.flow.is_none() && carried.is_none() {
            return None;
        }
        Some(FlowSpec {
            carried: carried.unwrap_or_default(),
            ..self.flow.clone().unwrap_or_default()
        })
    }

    pub(crate) fn approver(&self) -> Option<&dyn Approver> {
        self.approver.as_deref()
    }

    pub(crate) fn ask(&self, question: Question) -> LocalBoxFuture<'_, Answer> {
        match &self.approver {
            Some(approver) => approver.ask(question),
            None => Box::pin(std::future::ready(Answer::Unanswered)),
        }
    }

    /// Returns every label that the configuration knows.
    fn worst_labels(&self) -> Labels {
        let input_labels = self.flow.as_ref().map(|flow| flow.input_labels.clone());
        let worst = self.label_config.unlabelled().reads;
        worst.joined(&input_labels.unwrap_or_default())
    }

    /// Stores a grant that is valid for more than one run.
    pub(crate) async fn keep(&self, shares: RunSharing, grant: Grant) -> Result<(), String> {
        let kept = self.runtime.spawn_blocking(move || shares.keep(grant));
        kept.await.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Counts one use of a shared grant.
    pub(crate) fn claim(
        &self,
        shares: RunSharing,
        grant: GrantId,
    ) -> LocalBoxFuture<'static, Result<Use, String>> {
        let now_ms = self.clock.now_ms();
        let claimed = self
            .runtime
            .spawn_blocking(move || shares.claim(&grant, now_ms));
        Box::pin(async move { claimed.await.unwrap_or_else(|error| Err(error.to_string())) })
    }
}

#[cfg(test)]
mod budget_tests;
#[cfg(test)]
mod declassify_tests;
#[cfg(test)]
mod drain_tests;
#[cfg(test)]
mod grant_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tool_discovery_tests;
