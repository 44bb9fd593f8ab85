//! The embedding API: a broker is built once from servers, tools, rules, an
//! approver and limits, and then runs any number of scripts.

mod along;
mod build_error;
mod builder;
mod cancel;
mod chance;
mod checked;
mod checks;
mod compiled;
mod engine;
mod event;
mod fetch;
mod going;
mod hearing;
mod locked;
mod offered;
pub(crate) mod own;
mod policies;
mod roster;
mod running;
mod says;
mod script;
mod seat;
mod servers;
mod shares;
mod shelf;
mod side_by_side;
mod sources;
mod status;
mod tool;
mod tools;
mod unstarted;

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use airlock_core::catalog::{Catalog, Tool};
use airlock_core::code::Code;
use airlock_core::decide::{Answer, AuthorizedCall, Question, Standing};
use airlock_core::flow::{Carried, FlowSpec, Labels, Sayings};
use airlock_core::grant::{Grant, Use};
use airlock_core::id::{GrantId, RunId, ServerName, ToolId, ToolName};
use airlock_core::limits::Limits;
use airlock_core::outcome::Reply;
use airlock_core::problem::Problem;
use airlock_core::report::Report;
use airlock_core::rules::{Pattern, Rules};
use airlock_core::run::{Fsync, GuestIdentity, RunSpec};
use airlock_core::search::model::Model;
use codegen::declare::{self, Declarations, Level};
use codegen::description::Description;
use codegen::lock::Lock;
use codegen::stub::{ServerStubs, StubTable, ToolStub};
use codegen::uses::Uses;
use futures_util::future::LocalBoxFuture;
use tokio::sync::watch;

use crate::approver::Approver;
use crate::budget::{Budget, BudgetUsage, Busy, Share};
use crate::carrier::Carrier;
use crate::clock::Clock;
use crate::config::Secrets;
use crate::drive::{self, Hands, Record};
use crate::extract::Extractor;
use crate::journal_file::StateDir;
use crate::resident;
use crate::resolve::Resolver;
use crate::sandbox::{CheckLimits, Checker, JsEngine, Sandbox, check_bytes_max};
use crate::serve::discovery;
use crate::telemetry::Telemetry;
use crate::tsc::Compiler;
pub(crate) use along::Along;
use going::Going;
use own::Own;
use servers::Servers;
use shares::Shares;
pub(crate) use shelf::Known;
use tools::tool_unusable;
use unstarted::{never_started, unreadable};

pub use build_error::BuildError;
pub use builder::Builder;
pub use cancel::Cancel;
pub use chance::NoChance;
pub use checked::{Check, CheckReport};
pub use event::RunEvent;
pub use own::{Described, Librarian};
pub(crate) use policies::{policies_of, problems as policy_problems};
pub use running::Running;
pub use script::Script;
pub use seat::{Reached, Rest, Seat};
pub use status::{ServerState, ServerStatus};
pub use tool::{InProcessTool, ToolFailure};

/// Servers connected, descriptions pinned, the sandbox loaded. Cheap to clone.
#[derive(Clone)]
pub struct Broker(Arc<Inner>);

/// A broker that may be gone.
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
    pub(crate) clock: Clock,
    telemetry: Telemetry,
    servers: Arc<Servers>,
    in_process: HashMap<ToolId, InProcessTool>,
    approver: Option<Arc<dyn Approver>>,
    carrier: Option<Arc<dyn Carrier>>,
    /// What runs are watched with, unless nobody wants to know.
    flow: Option<FlowSpec>,
    sayings: Arc<Sayings>,
    pub(crate) resolver: Resolver,
    fsync: Fsync,
    /// What of airlock's own scripts find.
    own: Own,
    extractor: Option<Arc<dyn Extractor>>,
    embeddings: Option<Arc<Model>>,
    compiler: Compiler,
    shares: Shares,
    state: StateDir,
    guest: GuestIdentity,
    runtime: tokio::runtime::Handle,
    going: Going,
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

    /// Whether runs are watched: there are policies or labels, which want to know what was read.
    #[must_use]
    pub fn is_watching(&self) -> bool {
        self.0.flow.is_some()
    }

    /// Runs a script on a thread of its own.
    #[must_use]
    pub fn run(&self, script: Script) -> Running {
        self.run_in(Seat::default(), script)
    }

    /// The same for a script of one of several sessions.
    #[must_use]
    pub fn run_in(&self, seat: Seat, script: Script) -> Running {
        Running::start(self.clone(), seat, script)
    }

    /// Runs a script on this thread, which is busy while the script computes.
    /// `watch` is told what happens, as it happens.
    pub async fn run_here(
        &self,
        script: Script,
        cancel: &Cancel,
        watch: impl FnMut(RunEvent),
    ) -> Report {
        let seat = Seat::default();
        match self.share(&seat, &script, cancel).await {
            Ok(share) => self.run_here_in((seat, share), script, cancel, watch).await,
            Err(report) => *report,
        }
    }

    /// Memory and a place for a run, or the report that refuses it.
    async fn share(
        &self,
        seat: &Seat,
        script: &Script,
        cancel: &Cancel,
    ) -> Result<Share, Box<Report>> {
        let bytes = self.0.run_bytes_max(script);
        let share = self.0.budget.share(&seat.caller, bytes);
        match cancel.or(share).await {
            Some(Ok(share)) => Ok(share),
            Some(Err(busy)) => Err(Box::new(unstarted::busy(&busy))),
            None => Err(Box::new(unstarted::cancelled(cancel.cancelled().await))),
        }
    }

    async fn run_here_in(
        &self,
        (seat, share): (Seat, Share),
        script: Script,
        cancel: &Cancel,
        mut watch: impl FnMut(RunEvent),
    ) -> Report {
        let broker = &*self.0;
        let now_ms = broker.clock.now_ms();
        let seed = || script.seed.map_or_else(chance::seed, Ok);
        let drawn = chance::run_id(now_ms).and_then(|run| Ok((run, seed()?)));
        let Ok((run, seed)) = drawn else {
            return never_started(Code::Internal);
        };
        let known = broker.known();
        let standing = Standing {
            disclosed: seat.disclosed,
            ..known.standing.clone()
        };
        let (state, catalog) = (&broker.state, &standing.catalog);
        let loaded = match broker.shares.begin(&run, state, catalog, now_ms) {
            Ok(loaded) => loaded,
            Err(error) => return unreadable(&error),
        };
        let parent = script.trace_parent.as_deref();
        let mut trace = broker.telemetry.run(&run, parent, now_ms);
        let ids = trace.ids();
        let share = &share;
        let check =
            checked::before_run(&script, broker, (&known, &standing), (share, cancel)).await;
        let limits = broker.limits_of(&script);
        let mut carried = script.carried;
        if let Some(session) = &loaded.session {
            carried.get_or_insert_default().join(&session.carried);
        }
        let approver = seat.approver.as_ref().or(broker.approver.as_ref());
        let approver = approver.map_or_else(|| "nobody".into(), |approver| approver.who());
        let grants = broker.shares.spec(&loaded, approver, now_ms);
        let record = Record::new(broker.state.clone(), run.clone(), &broker.secrets);
        let spec = RunSpec {
            run: run.clone(),
            check,
            script_name: script.name,
            script: script.text,
            input: script.input,
            seed,
            standing,
            flow: broker.flow_of(carried),
            limits,
            fsync: broker.fsync,
            guest: broker.guest.clone(),
            grants,
        };
        let mut watch = |event: RunEvent| {
            trace.hear(&event, broker.clock.now_ms());
            watch(event);
        };
        // Who starts the run without a session has seen all tools.
        let librarian = seat
            .librarian
            .or_else(|| broker.own.discovery.then(|| discovery::of(self)));
        let extractor = broker.extractor.as_ref().or(seat.extractor.as_ref());
        let hands = Hands::new(broker, record, cancel, &mut watch)
            .with_librarian(librarian.as_deref())
            .with_extractor(extractor.map(|it| &**it))
            .with_trace(ids)
            .with_limits(spec.limits)
            .with_share(share.clone())
            .with_reached(seat.reached)
            .with_rest(seat.rest)
            .with_approver(seat.approver.as_deref())
            .with_carrier(seat.carrier.as_deref().or(broker.carrier.as_deref()));
        let report = drive::drive(spec, hands).await;
        trace.finish(&report, broker.clock.now_ms());
        broker.carry_on(&run, report)
    }

    /// What can be known to be wrong with a script without running it.
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
        let surface = known.surface().lacking(lacking);
        let limits = CheckLimits::of(&limits).within(share);
        CheckReport::of((name, text), surface, &broker.secrets, compiler, &limits).await
    }

    /// Which globals and members a script uses; none of one that is too long to be run, or that
    /// cannot be read. Each call is held to what the session may use all the same.
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
        let limits = CheckLimits::of(limits).within(share?);
        let limits = limits.stopped_by(cancel.stop_handle().clone());
        Ok(checker.uses(script, limits).await)
    }

    /// Returns memory to the system that ended runs have left behind: in the sandboxes that are
    /// kept ready for others, and in the allocator of the process. [`Serve`](crate::serve::Serve)
    /// does so by itself.
    pub async fn return_memory(&self) {
        let sandbox = self.0.sandbox.clone();
        let returning = move || {
            sandbox.return_memory();
            if let Ok(checker) = Checker::embedded() {
                checker.return_memory();
            }
            resident::return_freed();
        };
        // Where nothing can be started, the process is at its end.
        let _ = tokio::task::spawn_blocking(returning).await;
    }

    /// For those that may not keep it.
    pub(crate) fn downgrade(&self) -> WeakBroker {
        WeakBroker(Arc::downgrade(&self.0))
    }

    /// What all runs use of what they may take together.
    #[must_use]
    pub fn budget_usage(&self) -> BudgetUsage {
        self.0.budget.usage()
    }

    /// The tools that scripts may see.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.known().standing.catalog)
    }

    /// The names under which scripts find them.
    #[must_use]
    pub fn stubs(&self) -> Arc<StubTable> {
        Arc::clone(&self.known().stubs)
    }

    /// Whether some call of this tool might be made: no rule denies them all.
    #[must_use]
    pub fn may_ever_call(&self, tool: &ToolId) -> bool {
        !self.rules().deny_always(tool)
    }

    /// Whether scripts find `airlock.search` and `airlock.describe`.
    #[must_use]
    pub fn has_discovery(&self) -> bool {
        self.0.own.discovery
    }

    /// What search knows of meanings.
    pub(crate) fn embeddings(&self) -> Option<&Arc<Model>> {
        self.0.embeddings.as_ref()
    }

    /// Whether scripts find `airlock.extract`.
    #[must_use]
    pub fn has_extraction(&self) -> bool {
        self.0.own.extraction
    }

    /// Whether a text may be repeated: no credential stands in it.
    #[must_use]
    pub fn is_quotable(&self, text: &str) -> bool {
        self.0.secrets.strike(text).is_none()
    }

    /// Credentials in a text become what stands for them.
    pub(crate) fn strike(&self, text: &mut String) {
        self.0.secrets.strike_text(text);
    }

    /// A session asked for full descriptions, perhaps more often than it may.
    pub(crate) fn note_fetch(&self, too_often: bool) {
        self.0.telemetry.fetched(too_often);
    }

    /// What each run is held to unless its script says otherwise.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// The full descriptions of all tools: what their servers say, with what tool files say.
    #[must_use]
    pub fn descriptions(&self) -> Arc<Vec<Description>> {
        Arc::clone(&self.known().descriptions)
    }

    /// What scripts may call, as TypeScript declarations: all tools, or those that fit a pattern.
    #[must_use]
    pub fn declarations(&self, level: Level, patterns: &[Pattern]) -> String {
        self.declared(level, patterns).text
    }

    /// The same, with what the types do not say.
    #[must_use]
    pub fn declared(&self, level: Level, patterns: &[Pattern]) -> Declarations {
        let known = self.known();
        let chosen = |server: &str, tool: &str| {
            let id = ToolId {
                server: ServerName(server.into()),
                tool: ToolName(tool.into()),
            };
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(&id))
        };
        let only = |server: &ServerStubs, tool: &ToolStub| chosen(&server.server, &tool.wire_name);
        declare::declare(&known.stubs, &known.descriptions, level, &only)
    }

    /// The rules that decide, besides what a human says.
    #[must_use]
    pub fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.0.servers.shelf.last().1.standing.rules)
    }

    /// One state of what is known of all tools.
    pub(crate) fn known(&self) -> Arc<Known> {
        self.0.known()
    }

    /// How each configured server stands.
    #[must_use]
    pub fn servers(&self) -> Vec<ServerStatus> {
        self.known().servers.clone()
    }

    /// Counts how often tools have changed because a server has joined, has changed, or rests,
    /// or because a tool file was found to say something else.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.servers.shelf.changes()
    }

    /// Connects to a server and reads its tools, unless that was done. An error says why that
    /// cannot be.
    pub async fn join(&self, server: &ServerName) -> Result<(), String> {
        self.0.servers.join(server).await
    }

    /// Ends the connection to a server that is there on demand, until it is needed again.
    /// False when it is called right now, or has to be there.
    pub async fn rest(&self, server: &ServerName) -> bool {
        self.0.servers.rest(server).await
    }

    /// What went wrong without stopping the others: a server that cannot be reached,
    /// a tool that cannot be offered, a rule that matches nothing, a tool file that does not fit.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        self.known().problems.clone()
    }

    /// Tools of which no call can be made, since their input schemas make no sense. It compiles
    /// the schemas of all tools; a run compiles those of the tools that it calls.
    #[must_use]
    pub fn unusable_tools(&self) -> Vec<Problem> {
        let catalog = self.catalog();
        let unusable = |tool: &Arc<Tool>| Some(tool_unusable(&tool.id, tool.input.unusable()?));
        catalog.tools().filter_map(unusable).collect()
    }

    /// What the servers said of their tools when they were connected, as a lock file has it.
    #[must_use]
    pub fn lock(&self) -> Lock {
        self.0.servers.shelf.lock()
    }

    /// Where a run's journal is.
    #[must_use]
    pub fn journal_path(&self, run: &RunId) -> std::path::PathBuf {
        self.0.state.journal_path(run)
    }

    /// Cancels all runs on threads of their own, also those that begin from now on, and
    /// returns when each of them has written the end of its journal.
    pub async fn end_runs(&self, why: &str) {
        self.0.going.end(why).await;
    }

    /// Comes when a collector was named and has not got something, be it after the broker's end.
    pub(crate) fn telemetry_trouble(&self) -> impl Future<Output = Problem> + use<> {
        let telemetry = self.0.telemetry.clone();
        async move { telemetry.trouble().await }
    }

    /// Ends all connections and the servers that were started for them.
    pub async fn close(self) {
        self.0.servers.close().await;
        self.0.telemetry.flush().await;
    }
}

impl Inner {
    /// The limits of a run, which can have no more memory than there is for all.
    fn limits_of(&self, script: &Script) -> Limits {
        let limits = script.limits.unwrap_or(self.limits);
        let bytes_max = self.budget.run_bytes_max();
        Limits {
            guest_memory_bytes_max: limits.guest_memory_bytes_max.min(bytes_max),
            ..limits
        }
    }

    /// The most memory that a run of this script may come to hold.
    fn run_bytes_max(&self, script: &Script) -> u64 {
        let bytes = self.limits_of(script).guest_memory_bytes_max;
        bytes.max(check_bytes_max(script.text.len()))
    }

    /// Room for reading a script, besides any run.
    async fn share_of_check(&self, caller: &Arc<str>, script: &str) -> Result<Share, Busy> {
        let bytes = check_bytes_max(script.len());
        let share = self.budget.share(caller, bytes).await?;
        // Checks have a thread to themselves.
        share.on_own_thread();
        Ok(share)
    }

    pub(crate) fn known(&self) -> Arc<Known> {
        self.servers.shelf.now()
    }

    /// What a run has read goes on with its session.
    fn carry_on(&self, run: &RunId, report: Report) -> Report {
        let worst = Carried {
            labels: Labels::worst(),
            ..Carried::default()
        };
        let carried = report.flow.as_ref().unwrap_or(&worst);
        match self.shares.finish(run, carried) {
            Ok(()) => report,
            // The value stays here: the session would not know what it carries.
            Err(error) => Report {
                calls: report.calls,
                usage: report.usage,
                run: report.run,
                ..unreadable(&error)
            },
        }
    }

    /// Performs a call that was decided: in this process, or by its server.
    pub(crate) fn call(
        &self,
        call: AuthorizedCall,
        along: Along,
    ) -> LocalBoxFuture<'static, Reply> {
        let call = call.into_parts();
        match self.in_process.get(&call.tool) {
            Some(function) => function.call(call.args.value().clone()),
            None => Box::pin(Arc::clone(&self.servers).call(call, along)),
        }
    }

    /// A run that is part of a session is watched for the session's sake.
    fn flow_of(&self, carried: Option<Carried>) -> Option<FlowSpec> {
        if self.flow.is_none() && carried.is_none() {
            return None;
        }
        Some(FlowSpec {
            carried: carried.unwrap_or_default(),
            ..self.flow.clone().unwrap_or_default()
        })
    }

    pub(crate) fn ask(&self, question: Question) -> LocalBoxFuture<'_, Answer> {
        match &self.approver {
            Some(approver) => approver.ask(question),
            None => Box::pin(std::future::ready(Answer::Unanswered)),
        }
    }

    /// Keeps a grant that was given for more than one run.
    pub(crate) async fn keep(&self, grant: Grant) -> Result<(), String> {
        let shares = self.shares.clone();
        let kept = self.runtime.spawn_blocking(move || shares.keep(grant));
        kept.await.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Counts one use of a grant that runs share.
    pub(crate) fn claim(&self, grant: GrantId) -> LocalBoxFuture<'static, Result<Use, String>> {
        let (shares, now_ms) = (self.shares.clone(), self.clock.now_ms());
        let claimed = self
            .runtime
            .spawn_blocking(move || shares.claim(&grant, now_ms));
        Box::pin(async move { claimed.await.unwrap_or_else(|error| Err(error.to_string())) })
    }
}

#[cfg(test)]
mod budget_tests;
#[cfg(test)]
mod grant_tests;
#[cfg(test)]
mod own_tests;
#[cfg(test)]
mod tests;
