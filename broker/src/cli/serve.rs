//! `airlock serve`: all tools behind one MCP server.

use std::time::Duration;

use airlock_core::problem::Problem;
use clap::{Args, ValueEnum};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::approvers;
use super::door::{Door, DoorOptions};
use super::options::{
    LimitOptions, RuleOptions, SearchOptions, ServerOptions, StateOptions, usage,
};
use super::run::build_problem;
use super::screen::Screen;
use super::signals::{Signals, outlive_full_files};
use super::{Outcome, exit, print, runtime};
use crate::broker::{Broker, Cancel, ServerState};
use crate::config::{Config, Environment, units};
use crate::serve::{self, Disclosure, Gate, Mode, Serve, Settings};

/// What still goes on then gets this long to be dropped.
const LAST_WALL: Duration = Duration::from_millis(50);
/// Runs get this long to write their end, and hosts to hear of it.
const FAREWELL_WALL: Duration = Duration::from_millis(700);
/// Servers get this long to end by themselves after that.
const CLOSE_WALL: Duration = Duration::from_millis(1_100);
/// All of these, and what threads that compute can add to them.
const END_WALL: Duration = Duration::from_millis(2_500);

#[derive(Debug, Args)]
pub(super) struct ServeOptions {
    #[command(flatten, next_help_heading = "Servers")]
    servers: ServerOptions,
    #[command(flatten, next_help_heading = "Rules")]
    rules: RuleOptions,
    #[command(flatten, next_help_heading = "Tools")]
    search: SearchOptions,
    #[command(flatten, next_help_heading = "Transport")]
    door: DoorOptions,
    /// Which tools to list besides search_tools, get_tool_details and run_script
    #[arg(long, value_enum, default_value_t = Listed::Code, help_heading = "Tools")]
    tools: Listed,
    /// When to send full descriptions; auto decides by their share of the context
    #[arg(long, value_enum, default_value_t = Shown::Auto, help_heading = "Tools")]
    disclosure: Shown,
    /// Size of the model's context, in tokens
    #[arg(
        long,
        value_name = "N",
        default_value_t = 200_000,
        help_heading = "Tools"
    )]
    context_tokens: u64,
    /// Largest share of the context for full descriptions, in percent
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 3,
        help_heading = "Tools"
    )]
    disclosure_share: u64,
    /// How long the first requests wait for servers that have never connected
    #[arg(
        long,
        value_name = "TIME",
        default_value = "2s",
        help_heading = "Servers"
    )]
    start_wait: String,
    /// Requests that servers may make of the host during a call, if the host supports them, and
    /// whether their log messages are passed on [default: elicitation,sampling]
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        value_delimiter = ',',
        help_heading = "Servers"
    )]
    pass: Option<Vec<Passed>>,
    /// Offer a server's prompts and resources to hosts: SERVER, SERVER.prompts or SERVER.resources.
    /// Rules do not apply to them
    #[arg(long, value_name = "WHAT", help_heading = "Servers")]
    offer: Vec<String>,
    /// Print a text for the host's system prompt, and exit
    #[arg(long, help_heading = "Tools")]
    print_system_prompt: bool,
    #[command(flatten, next_help_heading = "Limits")]
    limits: LimitOptions,
    #[command(flatten, next_help_heading = "Journal")]
    state: StateOptions,
    /// When to sync the journal to disk: always, writes or never [default: writes]
    #[arg(long, value_name = "WHEN", help_heading = "Journal")]
    fsync: Option<String>,
    /// Script engine: boa or quickjs [default: boa]
    #[arg(long, value_name = "NAME", help_heading = "Limits")]
    engine: Option<String>,
    /// Print only problems to stderr
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Listed {
    /// No others: scripts call the tools
    Code,
    /// Every tool with a short description, to be called directly
    Progressive,
    /// Only call_tool, so that the list never changes
    Stable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Passed {
    /// Ask the user to fill in a form or open an address
    Elicitation,
    /// Ask the host's model for a text
    Sampling,
    /// Ask for the host's working folders
    Roots,
    /// Pass on log messages, from the level that the host sets
    Logging,
    /// Nothing
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shown {
    Auto,
    Progressive,
    Full,
}

pub(super) fn run(options: ServeOptions, environment: &Environment) -> Outcome {
    let mut settings = settings(&options)?;
    if options.print_system_prompt {
        return print(&format!("{}\n", serve::system_prompt(settings.mode))).map(|()| exit::DONE);
    }
    let screen = Screen::of_process(environment, options.quiet);
    let door = Door::of(&options.door, environment)?;
    let config = load(options, environment)?;
    settings.pass = config.pass.asked;
    settings.logs = config.pass.logs;
    settings.offers = config.offers.clone();
    settings.message_bytes_max = serve::message_bytes_max(&config.limits);
    config
        .warnings
        .iter()
        .for_each(|warning| screen.warning(warning));
    let runtime = runtime()?;
    let served = runtime.block_on(serve(&screen, config, settings, door));
    // A read of stdin cannot be called back; what servers left behind is killed.
    runtime.shutdown_timeout(LAST_WALL);
    served
}

fn settings(options: &ServeOptions) -> Result<Settings, Problem> {
    if options.disclosure_share > 100 {
        let why = "a share is at most 100 percent";
        return Err(usage(
            "`--disclosure-share` cannot be used",
            why,
            "write a number from 0 to 100",
        ));
    }
    let start_wait_ms = units::duration_ms(&options.start_wait).map_err(|bad| {
        usage(
            "`--start-wait` cannot be used",
            bad.to_string(),
            "write a time such as 2s or 500ms",
        )
    })?;
    Ok(Settings {
        start_wait: Duration::from_millis(start_wait_ms),
        mode: match options.tools {
            Listed::Code => Mode::Code,
            Listed::Progressive => Mode::Progressive,
            Listed::Stable => Mode::Stable,
        },
        disclosure: match options.disclosure {
            Shown::Auto => Disclosure::Auto,
            Shown::Progressive => Disclosure::Progressive,
            Shown::Full => Disclosure::Full,
        },
        context_tokens: options.context_tokens,
        disclosure_percent: options.disclosure_share,
        ..Settings::default()
    })
}

impl Passed {
    fn word(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |it| it.get_name().to_owned())
    }
}

fn load(options: ServeOptions, environment: &Environment) -> Result<Config, Problem> {
    let mut flags = options.servers.into_flags()?;
    options.rules.add_to(&mut flags);
    options.limits.add_to(&mut flags)?;
    flags.state_dir = options.state.state_dir;
    flags.fsync = options.fsync;
    flags.engine = options.engine;
    flags.embeddings = options.search.embeddings;
    let words = |passed: Vec<Passed>| passed.into_iter().map(Passed::word).collect();
    flags.pass = options.pass.map(words);
    flags.offer = options.offer;
    Config::load(flags, environment)
}

async fn serve(screen: &Screen, config: Config, settings: Settings, door: Door) -> Outcome {
    let cancel = Cancel::new();
    let signals = Signals::cancel(&cancel, screen, Some(END_WALL));
    outlive_full_files();
    let serve = Serve::new(settings).map_err(|error| {
        Problem::new("internal", "nothing can be served", error.to_string(), "")
    })?;
    let (place, listening) = open(door).await?;
    // No server holds up another; the person at the host is asked.
    let builder = approvers::elsewhere(Broker::builder(), &config, screen)?;
    let builder = builder
        .servers_join_later(true)
        .engine_later(true)
        .discovery(true)
        .declared(serve.declared())
        .extraction_by_seat()
        .config(config);
    let ready = serve.clone();
    // Compiling what thousands of tools take keeps no host from shaking hands.
    let building = tokio::spawn(async move {
        let broker = builder.build().await.map_err(build_problem)?;
        ready.ready(broker.clone());
        // Whoever comes to search is not kept waiting for what scripts need.
        broker.engine_loaded().await.map_err(build_problem)?;
        Ok::<_, Problem>(broker)
    });
    let mut crier = Crier::new(screen, place);
    let mut broker: Option<Broker> = None;
    // Nothing changes before there is a broker.
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
                // A host that does not read its answers keeps nobody here.
                let farewell = tokio::time::timeout(FAREWELL_WALL, &mut hosting).await;
                break farewell.unwrap_or(Ok(()));
            }
        }
    };
    if let Some(broker) = broker {
        let _ = tokio::time::timeout(CLOSE_WALL, broker.close()).await;
    }
    ended.map(|()| exit::DONE).map_err(broken_off)
}

/// Where hosts come in, in words; and what they are heard with, unless they are at the standard
/// input.
async fn open(door: Door) -> Result<(String, Option<(TcpListener, Gate)>), Problem> {
    let (address, gate) = match door {
        Door::Stdio => return Ok(("stdio".to_owned(), None)),
        Door::Http(address, gate) => (address, gate),
    };
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let what = format!("{address} cannot be listened on");
        crate::config::invalid(what, error.to_string(), "choose another port")
    })?;
    let address = listener.local_addr().unwrap_or(address);
    Ok((serve::url(address), Some((listener, gate))))
}

fn broken_off(error: std::io::Error) -> Problem {
    let what = "the connection to the host broke";
    let next = "see to what the host reads and writes";
    Problem::new("internal", what, error.to_string(), next)
}

fn interrupted(error: tokio::task::JoinError) -> Problem {
    let what = "the broker could not be set up";
    Problem::new("internal", what, error.to_string(), "start it again")
}

/// Tells a person what becomes of the servers.
struct Crier<'a> {
    screen: &'a Screen,
    place: String,
    told: Vec<Problem>,
    /// What was last said to be served.
    line: String,
}

impl<'a> Crier<'a> {
    fn new(screen: &'a Screen, place: String) -> Self {
        Self {
            screen,
            place,
            told: Vec::new(),
            line: String::new(),
        }
    }

    fn tell(&mut self, broker: &Broker) {
        for problem in broker.problems() {
            if problem.code != "tool-renamed" && !self.told.contains(&problem) {
                self.screen.warning(&problem);
                self.told.push(problem);
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
                let counts = others.map(|it| it.tools.len());
                let (servers, tools) = counts.fold((0, 0), |(n, sum), it| (n + 1, sum + it));
                format!("serving {tools} tools of {servers} servers on {place}\n")
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
