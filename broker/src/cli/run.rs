//! `airlock run`: one script, one report.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use airlock_core::problem::Problem;
use airlock_core::report::{Report, Status};
use clap::Args;
use sandbox_protocol::ConsoleLevel;

use super::options::{LimitOptions, RuleOptions, ServerOptions, StateOptions, usage};
use super::progress::Progress;
use super::screen::Screen;
use super::signals::cancel_on_signals;
use super::{Outcome, exit, input, print, print_json, runtime};
use crate::approver::Terminal;
use crate::broker::{Broker, BuildError, Cancel, RunEvent, Script};
use crate::config::{Config, Environment};
use crate::render::{self, escape};

/// Servers get this long to end by themselves after the report is out.
const CLOSE_WALL: Duration = Duration::from_secs(3);

#[derive(Debug, Args)]
pub(super) struct RunOptions {
    /// The script's file, or `-` for stdin
    #[arg(value_name = "SCRIPT")]
    script: Option<PathBuf>,
    /// The script itself
    #[arg(short = 'e', value_name = "CODE", allow_hyphen_values = true)]
    code: Option<String>,
    #[command(flatten, next_help_heading = "Servers")]
    servers: ServerOptions,
    #[command(flatten, next_help_heading = "Rules")]
    rules: RuleOptions,
    /// Nobody is asked: what would be asked is not done
    #[arg(long)]
    no_ask: bool,
    #[command(flatten, next_help_heading = "Limits")]
    limits: LimitOptions,
    /// The script's global `input`, as JSON or @FILE
    #[arg(
        long,
        value_name = "JSON",
        help_heading = "Run",
        allow_hyphen_values = true
    )]
    input: Option<String>,
    /// Everything random that the script sees follows from this number
    #[arg(long, value_name = "N", help_heading = "Run")]
    seed: Option<u64>,
    #[command(flatten, next_help_heading = "Journal")]
    state: StateOptions,
    /// When the journal is synced to the disk: always, writes or never [default: writes]
    #[arg(long, value_name = "WHEN", help_heading = "Journal")]
    fsync: Option<String>,
    /// Print one JSON object: status, value, error, console, calls, usage
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,
    /// Nothing on stderr but console lines, questions and problems
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
}

pub(super) fn run(options: RunOptions, environment: &Environment) -> Outcome {
    let screen = Screen::of_process(environment, options.quiet);
    let mut flags = options.servers.clone().into_flags()?;
    options.rules.add_to(&mut flags);
    options.limits.add_to(&mut flags)?;
    flags.state_dir = options.state.state_dir;
    flags.fsync = options.fsync;
    let config = Config::load(flags, environment)?;
    config
        .warnings
        .iter()
        .for_each(|warning| screen.warning(warning));

    let is_stdin = |path: &PathBuf| path.as_os_str() == "-";
    if options.input.as_deref() == Some("@-") && options.script.as_ref().is_some_and(is_stdin) {
        let why = "the script and its input would both be read from stdin";
        return Err(usage(
            "stdin cannot be read twice",
            why,
            "put one of them into a file",
        ));
    }
    let (name, text) = input::script(options.script.as_deref(), options.code, &config.limits)?;
    let mut script = Script::body(text.clone()).named(name.clone());
    if let Some(argument) = &options.input {
        script = script.with_input(&input::input(argument, &config.limits)?);
    }
    if let Some(seed) = options.seed {
        script = script.with_seed(seed);
    }

    let runtime = runtime()?;
    let cancel = Cancel::new();
    let job = Job {
        screen: &screen,
        cancel: &cancel,
    };
    let report = runtime.block_on(async {
        cancel_on_signals(&cancel);
        let ask = !options.no_ask;
        let broker = job
            .connect(config, ask, !options.servers.skip_unreachable)
            .await?;
        let report = job.run(&broker, script).await;
        let _ = tokio::time::timeout(CLOSE_WALL, broker.close()).await;
        Ok(report)
    })?;
    runtime.shutdown_background();
    show(&report, (&name, &text), &screen, options.json)?;
    Ok(exit::of_report(&report))
}

struct Job<'a> {
    screen: &'a Screen,
    cancel: &'a Cancel,
}

impl Job<'_> {
    async fn connect(
        &self,
        config: Config,
        ask: bool,
        servers_required: bool,
    ) -> Result<Broker, Problem> {
        let mut builder = Broker::builder().servers_required(servers_required);
        if let Some(terminal) = ask.then(Terminal::open).and_then(Result::ok) {
            builder = builder.approver(terminal);
        }
        let names: Vec<_> = config
            .servers
            .iter()
            .map(|server| &*server.spec.name.0)
            .collect();
        let progress = Progress::start(self.screen, format!("connecting to {}", names.join(", ")));
        let built = tokio::select! {
            built = builder.config(config).build() => built,
            why = self.cancel.cancelled() => return Err(Problem::new("cancelled", "nothing was run", why, "")),
        };
        drop(progress);
        let broker = built.map_err(build_problem)?;
        // What a tool is called in scripts is told by `airlock types`.
        let told = |problem: &&Problem| problem.code != "tool-renamed";
        let problems = broker.problems().iter().filter(told);
        problems.for_each(|problem| self.screen.warning(problem));
        Ok(broker)
    }

    async fn run(&self, broker: &Broker, script: Script) -> Report {
        let progress = Progress::start(self.screen, "running");
        let watch = |event: RunEvent| match event {
            RunEvent::Console { level, text } => self.console(level, &text),
            event => progress.hear(&event),
        };
        broker.run_here(script, self.cancel, watch).await
    }

    /// With `--json` the lines are in the report, and still shown as they happen.
    fn console(&self, level: ConsoleLevel, text: &str) {
        let shown = escape::block(text);
        self.screen.show(&match level {
            ConsoleLevel::Debug => format!("{}\n", self.screen.style.dim(&shown)),
            ConsoleLevel::Log | ConsoleLevel::Info => format!("{shown}\n"),
            ConsoleLevel::Warn => format!("{}\n", self.screen.style.yellow(&shown)),
            ConsoleLevel::Error => format!("{}\n", self.screen.style.red(&shown)),
        });
    }
}

fn show(
    report: &Report,
    script: (&str, &str),
    screen: &Screen,
    is_json: bool,
) -> Result<(), Problem> {
    if is_json {
        print_json(report)?;
    } else if let Some(value) = &report.value {
        print(&render::value(value, std::io::stdout().is_terminal()))?;
    }
    if report.console_dropped_bytes > 0 {
        screen.remark(&format!(
            "… {} bytes of console output were dropped\n",
            report.console_dropped_bytes
        ));
    }
    if let Some(problem) = render::ending(report, script) {
        screen.problem(&problem);
        if !report.calls.is_empty() {
            screen.show(&format!("calls:\n{}", render::calls(&report.calls)));
        }
    }
    if report.status != Status::Done || !report.calls.is_empty() {
        screen.remark(&format!("{}\n", screen.style.dim(&render::footer(report))));
    }
    Ok(())
}

pub(super) fn build_problem(error: BuildError) -> Problem {
    match error {
        BuildError::Server(problem) => problem,
        BuildError::Sandbox(_) => Problem::new(
            "internal",
            "the sandbox cannot be loaded",
            error.to_string(),
            "build airlock again",
        ),
        other => crate::config::invalid(
            "the broker cannot be set up",
            other.to_string(),
            "correct the configuration",
        ),
    }
}
