//! `airlock serve`: offers all tools as one MCP server.

mod callers;

use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use airlock_core::problem::Problem;
use clap::{Args, ValueEnum};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::approvers;
use super::listen::{Listen, ListenOptions};
use super::options::{LimitOptions, RuleOptions, ServerOptions, StateOptions, usage};
use super::run::build_problem;
use super::screen::Screen;
use super::signals::{Signals, outlive_full_files};
use super::{Outcome, exit, print, runtime};
use crate::broker::{Broker, Builder, Cancel, ServerState};
use crate::client_bridge::DeclaredCapabilities;
use crate::config::{
    ApproverChoice, BrokerSettings, Config, CredentialOwner, EngineSettings, Environment,
    SuspendAfter,
};
use crate::private_file::StateDir;
use crate::prune::{PruneRule, prune};
use crate::render::counted;
use crate::serve::{self, AccessGuard, Disclosure, ListMode, McpServer, ServeSettings};
use airlock_sandbox::clock::Clock;
use airlock_sandbox::units;

/// Maximum time for remaining tasks to be dropped at the end.
const LAST_WALL: Duration = Duration::from_millis(50);
/// Maximum time for cancelled runs to wait for the outcomes of calls.
const OUTCOMES_WALL: Duration = Duration::from_millis(400);
/// Maximum time for runs to record their end, and for hosts to receive their last answers.
const FAREWELL_WALL: Duration = Duration::from_millis(700);
/// Interval at which journals older than `journals_keep` are deleted.
const PRUNE_EVERY: Duration = Duration::from_secs(3_600);
/// Maximum time for servers to end after the runs and the hosts.
const CLOSE_WALL: Duration = Duration::from_millis(1_100);
/// Maximum time for the whole end: the sum of the times above, and a margin for busy threads.
const END_WALL: Duration = Duration::from_millis(2_500);

#[derive(Debug, Args)]
pub(super) struct ServeOptions {
    #[command(flatten, next_help_heading = "Servers")]
    servers: ServerOptions,
    #[command(flatten, next_help_heading = "Rules")]
    rules: RuleOptions,
    #[command(flatten)]
    broker: BrokerSettings,
    #[command(flatten, next_help_heading = "Transport")]
    door: ListenOptions,
    /// Which tools to list besides search_tools, get_tool_details, run_script, read_result and resume_run
    #[arg(long, value_enum, default_value_t = ListMode::Code, help_heading = "Tools")]
    tools: ListMode,
    /// When the model gets the full tool descriptions. The model can call a tool only after it has
    /// received the tool's full description
    #[arg(long, value_enum, default_value_t = Disclosure::Auto, help_heading = "Tools")]
    disclosure: Disclosure,
    /// Size of the model's context in tokens, for `--disclosure auto`
    #[arg(
        long,
        value_name = "N",
        default_value_t = 200_000,
        help_heading = "Tools"
    )]
    context_tokens: u64,
    /// Largest share of the context that full descriptions may take, in percent, for
    /// `--disclosure auto`
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 3,
        help_heading = "Tools"
    )]
    disclosure_share: u64,
    /// Longest tool description, in characters. Longer ones are shortened, and their tools have to be
    /// read before a call [default: what the host is known to show, else 2000]
    #[arg(long, value_name = "N", help_heading = "Tools")]
    description_chars: Option<usize>,
    /// Time after which a run that waits for an answer outside the host is returned as paused. Must
    /// be shorter than the host's timeout [default: as known for the host, else 40s]
    #[arg(long, value_name = "DURATION", help_heading = "Approval")]
    pause_after: Option<String>,
    /// How long the first requests wait for servers that have never connected
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "2s",
        help_heading = "Servers"
    )]
    start_wait: String,
    /// Requests that servers may send to the host during a call, if the host supports them
    /// [default: elicitation,sampling]
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        value_delimiter = ',',
        help_heading = "Servers"
    )]
    pass: Option<Vec<PassArg>>,
    /// Offer a server's prompts and resources to hosts: SERVER, SERVER.prompts or SERVER.resources.
    /// Rules do not apply to prompts and resources
    #[arg(long, value_name = "WHAT", help_heading = "Servers")]
    offer: Vec<String>,
    /// Print a text for the host's system prompt, and exit
    #[arg(long, help_heading = "Tools")]
    print_system_prompt: bool,
    /// Read a file of grants, which are approvals that cover several calls. Every run gets the
    /// grants of scope `run`, each time with all their uses
    #[arg(long = "grant", value_name = "FILE", help_heading = "Approval")]
    grants: Vec<PathBuf>,
    #[command(flatten, next_help_heading = "Limits")]
    limits: LimitOptions,
    #[command(flatten, next_help_heading = "Journal")]
    state: StateOptions,
    #[command(flatten)]
    engine: EngineSettings,
    /// Print only problems on stderr
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PassArg {
    /// Requests to the user to fill in a form or open a URL
    Elicitation,
    /// Requests for text from the host's model
    Sampling,
    /// Requests for the host's working folders
    Roots,
    /// Log messages, from the level that the host sets
    Logging,
    /// Nothing; allowed only as the single value
    None,
}

pub(super) fn run(options: ServeOptions, environment: &Environment) -> Outcome {
    let mut settings = settings(&options)?;
    if options.print_system_prompt {
        return print(&format!("{}\n", serve::system_prompt(settings.mode))).map(|()| exit::DONE);
    }
    let screen = Screen::of_process(environment, options.quiet);
    let door = Listen::from_options(&options.door, environment)?;
    let grants = options.grants.clone();
    let project = options.servers.project()?;
    let tells_callers_apart = options.door.tells_callers_apart();
    let mut config = load(options, environment)?;
    let has_own_logins = tells_callers_apart && assign_logins(&mut config)?;
    settings.pass = config.pass.asked;
    settings.logs = config.pass.logs;
    settings.offers = config.offers.clone();
    settings.labels_keep = config.labels_keep;
    match config.suspend_after {
        Some(SuspendAfter::Never) => settings.suspend_after = None,
        Some(SuspendAfter::Wait(wait)) => settings.suspend_after = Some(wait),
        None => {}
    }
    settings.answers_come_later = config.approver == Some(ApproverChoice::Later);
    settings.has_approver = !matches!(
        config.approver,
        None | Some(ApproverChoice::Terminal | ApproverChoice::Never)
    );
    settings.message_bytes_max = serve::message_bytes_max(&config.limits);
    config
        .warnings
        .iter()
        .for_each(|warning| screen.warning(warning));
    let runtime = runtime()?;
    let grants = GrantSources { grants, project };
    let served = runtime.block_on(async {
        match has_own_logins {
            true => callers::serve(&screen, config, settings, door, grants).await,
            false => serve(&screen, config, settings, door, grants).await,
        }
    });
    // The time is limited because a read of stdin cannot be cancelled. Dropping the remaining tasks
    // kills the processes that servers left behind.
    runtime.shutdown_timeout(LAST_WALL);
    served
}

fn settings(options: &ServeOptions) -> Result<ServeSettings, Problem> {
    if options.disclosure_share > 100 {
        let why = "the share is more than 100 percent";
        return Err(usage(
            "invalid value for `--disclosure-share`",
            why,
            "write a number from 0 to 100",
        ));
    }
    let pause_after = options.pause_after.as_deref();
    let pause_after = pause_after.map(|it| duration("--pause-after", it));
    Ok(ServeSettings {
        start_wait: duration("--start-wait", &options.start_wait)?,
        pause_after: pause_after.transpose()?,
        description_chars_max: options.description_chars,
        mode: options.tools,
        disclosure: options.disclosure,
        context_tokens: options.context_tokens,
        disclosure_percent: options.disclosure_share,
        ..ServeSettings::default()
    })
}

fn duration(flag: &str, text: &str) -> Result<Duration, Problem> {
    let ms = units::duration_ms(text).map_err(|bad| {
        let what = format!("invalid value for `{flag}`");
        usage(&what, bad.to_string(), "write a time such as 2s or 500ms")
    })?;
    Ok(Duration::from_millis(ms))
}

impl PassArg {
    fn word(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |it| it.get_name().to_owned())
    }
}

/// Returns the configuration that `airlock serve` would use.
pub(super) fn load(options: ServeOptions, environment: &Environment) -> Result<Config, Problem> {
    let mut flags = options.servers.into_flags()?;
    options.rules.add_to(&mut flags);
    options.limits.add_to(&mut flags)?;
    flags.settings.state = options.state;
    flags.settings.broker = options.broker;
    flags.settings.engine = options.engine;
    let words = |passed: Vec<PassArg>| passed.into_iter().map(PassArg::word).collect();
    flags.pass = options.pass.map(words);
    flags.offer = options.offer;
    Config::load(flags, environment)
}

/// Decides whose logins are used if callers are told apart. Returns whether callers have logins of
/// their own. Without `credentials`, a server with a login is refused: every caller would act as the
/// person who logged in. Logins that are made later are then not used.
fn assign_logins(config: &mut Config) -> Result<bool, Problem> {
    let mut has_own_logins = false;
    for server in &mut config.servers {
        match server.credentials {
            Some(CredentialOwner::Shared) => continue,
            Some(CredentialOwner::Caller) => {
                has_own_logins = true;
                continue;
            }
            None => {}
        }
        if server.spec.login.take().is_some_and(|it| it.is_used()) {
            let name = &server.spec.name.0;
            return Err(usage(
                format!("the server `{name}` has a login, which all callers would share"),
                "`--oauth-resource` tells callers apart",
                format!(
                    "set `credentials = \"caller\"` for the server, so that each caller logs in, or \
                     `credentials = \"shared\"`; or run `airlock logout {name}` and remove `oauth`"
                ),
            ));
        }
    }
    Ok(has_own_logins)
}

/// Grants that people gave before.
struct GrantSources {
    /// Files of grants.
    grants: Vec<PathBuf>,
    /// The folder whose runs share the grants of scope `project`.
    project: PathBuf,
}

async fn serve(
    screen: &Screen,
    config: Config,
    settings: ServeSettings,
    door: Listen,
    sources: GrantSources,
) -> Outcome {
    let cancel = Cancel::new();
    let signals = Signals::cancel(&cancel, screen, Some(END_WALL));
    outlive_full_files();
    // A host declares that it shows questions only if airlock may pass them on.
    let asks_only_host = !settings.has_approver && settings.pass.form;
    let serve = mcp_server(&config, settings)?;
    let (place, listening) = open(door).await?;
    if listening.is_none() && asks_only_host {
        tokio::spawn(warn_if_nobody_is_asked(serve.declared(), screen.clone()));
    }
    prune_in_background(&config, screen)?;
    // The approver answers only for hosts that cannot ask their user.
    let builder = approvers::add_fallback_approver(Broker::builder(), &config, screen)?;
    let builder = configured(builder, config, &serve, &sources, screen)?;
    let ready = serve.clone();
    // Spawned, so that compiling thousands of tools does not delay the handshake with a host.
    let building = tokio::spawn(async move {
        let broker = builder.build().await.map_err(build_problem)?;
        ready.ready(broker.clone());
        // The engine is loaded after the broker is ready, so that searches need not wait for it.
        broker.engine_loaded().await.map_err(build_problem)?;
        Ok::<_, Problem>(broker)
    });
    let mut crier = ServerAnnouncer::new(screen, place);
    let mut broker: Option<Broker> = None;
    // This channel reports no changes. The broker's channel replaces it.
    let (_nothing, mut changes) = watch::channel(0);
    let hosting = async {
        match listening {
            None => serve.stdio().await,
            Some((listener, gate)) => serve.http(listener, gate).await,
        }
    };
    tokio::pin!(building, hosting);
    let ended = loop {
        tokio::select! {
            built = &mut building, if broker.is_none() => {
                let built = built.map_err(interrupted)??;
                signals.started();
                crier.tell(&built);
                let (screen, trouble) = (screen.clone(), built.telemetry_trouble());
                tokio::spawn(async move { screen.warning(&trouble.await) });
                changes = built.changes();
                broker = Some(built);
            }
            Ok(()) = changes.changed() => {
                if let Some(broker) = &broker {
                    crier.tell(broker);
                }
            }
            ended = &mut hosting => break ended,
            why = cancel.cancelled() => {
                serve.end(&why);
                break farewell(hosting.as_mut(), || broker.clone().into_iter().collect()).await;
            }
        }
    };
    if let Some(broker) = broker {
        let _ = tokio::time::timeout(CLOSE_WALL, broker.close()).await;
    }
    ended.map(|()| exit::DONE).map_err(broken_off)
}

fn mcp_server(config: &Config, settings: ServeSettings) -> Result<McpServer, Problem> {
    let state = StateDir::open(config.state_dir.clone())?;
    McpServer::new(settings, state).map_err(|error| {
        let what = "cannot create the MCP server";
        let next = "check the state directory, or choose another one with --state-dir FOLDER";
        Problem::new("state-unreadable", what, error.to_string(), next)
    })
}

/// Adds everything except the approver to the builder of a broker for this server.
fn configured(
    builder: Builder,
    config: Config,
    serve: &McpServer,
    sources: &GrantSources,
    screen: &Screen,
) -> Result<Builder, Problem> {
    let builder = match sources.grants.as_slice() {
        [] => builder,
        paths => approvers::add_grants(builder, paths)?.project(sources.project.clone()),
    };
    let warnings = screen.clone();
    Ok(builder
        .warnings(move |problem| warnings.warning(problem))
        .servers_join_later(true)
        .engine_later(true)
        .discovery(true)
        .declared(serve.declared())
        .extraction_by_context()
        .config(config))
}

/// Waits until the hosts have their last answers, after the end has begun. `brokers` returns the
/// brokers whose runs then no longer wait.
async fn farewell(
    mut hosting: Pin<&mut impl Future<Output = std::io::Result<()>>>,
    brokers: impl FnOnce() -> Vec<Broker>,
) -> std::io::Result<()> {
    if let Ok(ended) = tokio::time::timeout(OUTCOMES_WALL, hosting.as_mut()).await {
        return ended;
    }
    brokers().iter().for_each(Broker::stop_waiting);
    // A host that does not read its answers must not delay the exit.
    let farewell = tokio::time::timeout(FAREWELL_WALL, hosting).await;
    farewell.unwrap_or(Ok(()))
}

fn prune_in_background(config: &Config, screen: &Screen) -> Result<(), Problem> {
    if let Some(keep) = config.journals_keep {
        let state = StateDir::open(config.state_dir.clone())?;
        tokio::spawn(prune_regularly(state, keep, screen.clone()));
    }
    Ok(())
}

/// Deletes the journals of old run chains, at once and then every hour.
async fn prune_regularly(state: StateDir, keep: Duration, screen: Screen) {
    let mut hours = tokio::time::interval(PRUNE_EVERY);
    let rule = PruneRule {
        keep,
        unsigned: false,
        dry_run: false,
    };
    let mut kept_before = 0;
    loop {
        hours.tick().await;
        let state = state.clone();
        let pruned = move || prune(&state, rule, Clock::start().now_ms());
        match tokio::task::spawn_blocking(pruned).await {
            Ok(Ok(pruned)) => {
                let kept = pruned.kept.len();
                if kept > kept_before {
                    let kept = counted(kept, "old run chain");
                    screen.remark(&format!(
                        "did not delete {kept}; `airlock runs prune --dry-run` lists the reasons\n"
                    ));
                }
                kept_before = kept;
            }
            Ok(Err(error)) => screen.warning(&error.into_problem()),
            Err(_) => {}
        }
    }
}

/// Warns the user if the host that connects cannot show questions.
async fn warn_if_nobody_is_asked(mut declared: DeclaredCapabilities, screen: Screen) {
    let Ok(capabilities) = declared.wait_for(Option::is_some).await.map(|it| *it) else {
        return;
    };
    if capabilities.is_some_and(|it| !it.form) {
        screen.warning(&Problem::new(
            "unanswered",
            "this host cannot ask its user about calls",
            "it does not show questions, and no other approver is configured, so calls that need \
             approval are refused",
            "set `approver = \"web\"` in the configuration file, and a page asks; or \
             `approver = \"later\"`, and `airlock runs answer RUN:CALL allow` answers; or use --grant FILE or \
             --allow TOOL",
        ));
    }
}

/// Returns a description of the address, and the listener with its guard unless hosts use stdin.
async fn open(door: Listen) -> Result<(String, Option<(TcpListener, AccessGuard)>), Problem> {
    let (address, gate) = match door {
        Listen::Stdio => return Ok(("stdio".to_owned(), None)),
        Listen::Http(address, gate) => (address, gate),
    };
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let what = format!("cannot listen on {address}");
        crate::config::invalid(what, error.to_string(), "choose another port")
    })?;
    let address = listener.local_addr().unwrap_or(address);
    Ok((serve::url(address), Some((listener, gate))))
}

fn broken_off(error: std::io::Error) -> Problem {
    let what = "the connection to the host failed";
    let next = "check that the host is still running";
    Problem::new("internal", what, error.to_string(), next)
}

fn interrupted(error: tokio::task::JoinError) -> Problem {
    let what = "airlock could not start";
    Problem::new("internal", what, error.to_string(), "start airlock again")
}

/// Prints the state of the servers for a person.
struct ServerAnnouncer<'a> {
    screen: &'a Screen,
    place: String,
    reported: Vec<Problem>,
    /// The status line that was printed last.
    line: String,
}

impl<'a> ServerAnnouncer<'a> {
    fn new(screen: &'a Screen, place: String) -> Self {
        Self {
            screen,
            place,
            reported: Vec::new(),
            line: String::new(),
        }
    }

    fn tell(&mut self, broker: &Broker) {
        for problem in broker.problems() {
            if problem.code != "tool-renamed" && !self.reported.contains(&problem) {
                self.screen.warning(&problem);
                self.reported.push(problem);
            }
        }
        let servers = broker.servers();
        let starting = servers
            .iter()
            .filter(|it| it.state == ServerState::Starting);
        let line = match starting.count() {
            0 => {
                let (catalog, place) = (broker.catalog(), &self.place);
                let others = catalog.servers().iter().filter(|it| !it.is_own());
                let counts = others.map(|it| it.tools.iter().filter(|it| !it.denied).count());
                let (servers, tools) = counts.fold((0, 0), |(n, sum), it| (n + 1, sum + it));
                let (tools, servers) = (counted(tools, "tool"), counted(servers, "server"));
                format!("serving {tools} of {servers} on {place}\n")
            }
            1 => format!("serving on {}; 1 server is starting\n", self.place),
            count => format!("serving on {}; {count} servers are starting\n", self.place),
        };
        if line != self.line {
            self.screen.remark(&line);
            self.line = line;
        }
    }
}
