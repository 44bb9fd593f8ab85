//! `airlock run`: runs one script and prints its report.

mod repeatable_flags;
mod watch;

use std::cell::RefCell;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use airlock_core::journal::StartedCommand;
use airlock_core::problem::Problem;
use airlock_core::report::{Report, ReportedError, ReportedFinding, Status};
use clap::Args;
use futures_util::FutureExt as _;
use sandbox_protocol::ConsoleLevel;

use super::approvers::{self, ApprovalOptions};
use super::options::{LimitOptions, RuleOptions, ServerOptions, StateOptions, usage};
use super::progress::ProgressLine;
use super::resume::{ResumeFlags, Resumed};
use super::screen::Screen;
use super::servers::how_to_add_a_server;
use super::signals::{Signals, outlive_full_files};
use super::{Outcome, exit, input, print, print_json, runtime};
use crate::broker::{Broker, BuildError, Cancel, CheckPolicy, Script};
use crate::config::{
    BrokerSettings, CompilerSettings, Config, EngineSettings, Environment, RunSettings, Settings,
};
use crate::render::{self, escape};
use crate::run_event::RunEvent;
use airlock_sandbox::{JsEngine, SandboxError};
use repeatable_flags::RepeatableFlags;

/// Maximum time for servers to end after the report was printed.
const CLOSE_WALL: Duration = Duration::from_secs(3);

#[derive(Debug, Args)]
pub(super) struct RunOptions {
    #[command(flatten)]
    repeatable: RepeatableFlags,
    /// Script file, or `-` for stdin
    #[arg(value_name = "SCRIPT")]
    script: Option<PathBuf>,
    /// Script text
    #[arg(short = 'e', value_name = "CODE", allow_hyphen_values = true)]
    code: Option<String>,
    #[command(flatten, next_help_heading = "Servers")]
    servers: ServerOptions,
    #[command(flatten, next_help_heading = "Rules")]
    rules: RuleOptions,
    #[command(flatten)]
    broker: BrokerSettings,
    /// What happens if the check finds definite errors in the script: stop or warn [default: stop]
    #[arg(long, value_enum, default_value_t = CheckPolicy::Stop, hide_default_value = true, value_name = "MODE", help_heading = "Run")]
    check: CheckPolicy,
    #[command(flatten, next_help_heading = "Run")]
    compiler: CompilerSettings,
    #[command(flatten)]
    settings: RunSettings,
    #[command(flatten)]
    engine: EngineSettings,
    #[command(flatten, next_help_heading = "Approval")]
    approval: ApprovalOptions,
    #[command(flatten, next_help_heading = "Limits")]
    limits: LimitOptions,
    /// Value of the script's variable `input`: JSON, @FILE, or @- for stdin
    #[arg(
        long,
        value_name = "JSON",
        help_heading = "Run",
        allow_hyphen_values = true
    )]
    input: Option<String>,
    /// Seed for the script's random numbers
    #[arg(long, value_name = "N", help_heading = "Run")]
    seed: Option<u64>,
    #[command(flatten, next_help_heading = "Resume")]
    resume: ResumeFlags,
    #[command(flatten, next_help_heading = "Journal")]
    state: StateOptions,
    /// Run the script again whenever its file, or the file of --input, changes
    #[arg(long, help_heading = "Run", conflicts_with = "code")]
    watch: bool,
    /// Print one JSON object: status, value, error, console, calls, usage
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,
    /// Print only console lines, questions and problems on stderr
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
}

pub(super) fn run(options: RunOptions, environment: &Environment) -> Outcome {
    let screen = Screen::of_process(environment, options.quiet);
    let cancel = Cancel::new();
    if options.watch {
        return watch::run(&options, environment, &screen, &cancel);
    }
    run_once(&options, environment, &screen, &cancel, None)
}

/// Runs the script once. `signals` cancel the run; without them, this function handles signals
/// itself.
fn run_once(
    options: &RunOptions,
    environment: &Environment,
    screen: &Screen,
    cancel: &Cancel,
    signals: Option<&Signals>,
) -> Outcome {
    let config = load(options, environment)?;
    config
        .warnings
        .iter()
        .for_each(|warning| screen.warning(warning));
    let resumed = options.resume.open(&config.state_dir)?;
    if let Some(resumed) = resumed.as_ref().filter(|_| options.resume.is_dry_run()) {
        return resumed.show(options.json);
    }
    let mut source = Source::read(options, &config, resumed.as_ref())?;

    let runtime = runtime()?;
    // A cancelled run has its own time limit for its last journal entries.
    let own = signals
        .is_none()
        .then(|| Signals::cancel(cancel, screen, None));
    let is_never = options.approval.is_never(&config);
    let report = runtime.block_on(async {
        outlive_full_files();
        let job = RunJob {
            screen,
            cancel,
            options,
            suspends: options.approval.suspends(&config, resumed.as_ref()),
            nobody_answers: options.approval.nobody_answers(&config),
            resume_with: options.repeatable.command(&config.secrets),
            told: RefCell::default(),
        };
        let broker = job.connect(config).await?;
        if let Some(signals) = signals.or(own.as_ref()) {
            signals.started();
        }
        let asks_nobody = job.suspends || is_never;
        let still_waits = |resumed: &Resumed| {
            asks_nobody && !options.changes_recorded_run() && resumed.waits(&broker)
        };
        let report = match &resumed {
            // Another run would only put the same questions again.
            Some(resumed) if still_waits(resumed) => resumed.paused_report(),
            Some(resumed) => {
                source.script = resumed.prepare(&broker, source.script, screen)?;
                job.run(&broker, &source).await
            }
            None => job.run(&broker, &source).await,
        };
        let shown = job.show(&report, &source, !broker.catalog().has_others());
        let trouble = broker.telemetry_trouble();
        let _ = tokio::time::timeout(CLOSE_WALL, broker.close()).await;
        if let Some(trouble) = trouble.now_or_never() {
            screen.warning(&trouble);
        }
        shown.map(|()| report)
    })?;
    runtime.shutdown_background();
    Ok(exit::of_report(&report))
}

impl RunOptions {
    /// Whether flags give a run that is resumed another script, another input, approvals or servers.
    fn changes_recorded_run(&self) -> bool {
        self.script.is_some()
            || self.code.is_some()
            || self.input.is_some()
            || self.approval.has_grants()
            || self.resume.names_servers()
    }
}

fn load(options: &RunOptions, environment: &Environment) -> Result<Config, Problem> {
    let mut flags = options.servers.clone().into_flags()?;
    options.rules.clone().add_to(&mut flags);
    options.limits.clone().add_to(&mut flags)?;
    flags.settings = Settings {
        state: options.state.clone(),
        broker: options.broker.clone(),
        compiler: options.compiler.clone(),
        run: options.settings.clone(),
        engine: options.engine.clone(),
        ..flags.settings
    };
    Config::load(flags, environment)
}

/// The script, and its name and text for messages.
struct Source {
    name: String,
    /// Empty if it contains a credential, so that no line of it is quoted.
    text: String,
    script: Script,
}

impl Source {
    fn read(
        options: &RunOptions,
        config: &Config,
        resumed: Option<&Resumed>,
    ) -> Result<Self, Problem> {
        let is_stdin = |path: &PathBuf| path.as_os_str() == "-";
        if options.input.as_deref() == Some("@-") && options.script.as_ref().is_some_and(is_stdin) {
            let why = "the script and its input would both be read from stdin";
            return Err(usage(
                "stdin cannot be read twice",
                why,
                "write the script or the input to a file",
            ));
        }
        let (path, code) = (options.script.as_deref(), options.code.clone());
        let script = match resumed.filter(|_| path.is_none() && code.is_none()) {
            Some(resumed) => resumed.script()?,
            None => {
                let (name, text) = input::script(path, code, &config.limits)?;
                Script::body(text).named(name)
            }
        };
        let (name, text) = (script.name.clone(), script.text.clone());
        let mut script = script.with_check(options.check);
        if let Some(argument) = &options.input {
            script = script.with_input(&input::input("--input", argument, &config.limits)?);
        }
        if options.approval.suspends(config, resumed) {
            script = script.suspended_after(Duration::ZERO);
        }
        if let Some(seed) = options.seed {
            script = script.with_seed(seed);
        }
        let is_quotable = config.secrets.redact(&text).is_none();
        let text = if is_quotable { text } else { String::new() };
        Ok(Self { name, text, script })
    }
}

struct RunJob<'a> {
    screen: &'a Screen,
    cancel: &'a Cancel,
    options: &'a RunOptions,
    /// Whether a run that waits only for people is suspended at once.
    suspends: bool,
    /// Whether calls that need approval can only be allowed by a grant.
    nobody_answers: bool,
    /// The flags with which the run can be resumed.
    resume_with: StartedCommand,
    /// The findings of the check that were shown before the script ran.
    told: RefCell<Vec<ReportedFinding>>,
}

impl RunJob<'_> {
    async fn connect(&self, config: Config) -> Result<Broker, Problem> {
        let required = !self.options.servers.skip_unreachable;
        let builder = Broker::builder().servers_required(required).discovery(true);
        let builder = self
            .options
            .approval
            .equip(builder, &config, self.screen, self.suspends)?;
        let screen = self.screen.clone();
        let builder = builder.warnings(move |problem| screen.warning(problem));
        let builder = builder.project(self.options.servers.project()?);
        let names: Vec<_> = config
            .servers
            .iter()
            .map(|server| &*server.spec.name.0)
            .collect();
        let progress =
            ProgressLine::start(self.screen, format!("connecting to {}", names.join(", ")));
        let built = tokio::select! {
            built = builder.config(config).build() => built,
            why = self.cancel.cancelled() => return Err(Problem::new("cancelled", "airlock was cancelled during its start", why, "")),
        };
        drop(progress);
        let broker = built.map_err(build_problem)?;
        // Only `airlock types` reports renamed tools.
        let is_shown = |problem: &&Problem| problem.code != "tool-renamed";
        let problems = broker.problems();
        let problems = problems.iter().filter(is_shown);
        problems.for_each(|problem| self.screen.warning(problem));
        Ok(broker)
    }

    async fn run(&self, broker: &Broker, source: &Source) -> Report {
        let progress = ProgressLine::start(self.screen, "running");
        let script = source.script.clone().started_by(self.resume_with.clone());
        let watch = |event: RunEvent| match event {
            RunEvent::Console { level, text } => self.console(level, &text),
            RunEvent::Checked { findings } => {
                self.show_findings(findings.iter(), source);
                *self.told.borrow_mut() = findings;
            }
            event => progress.hear(&event),
        };
        broker.run_here(script, self.cancel, watch).await
    }

    fn show(&self, report: &Report, source: &Source, no_servers: bool) -> Result<(), Problem> {
        if self.options.json {
            print_json(report)?;
        } else if let Some(value) = &report.value {
            print(&render::value(value, std::io::stdout().is_terminal()))?;
        }
        let told = self.told.borrow();
        let untold = render::untold_findings(report).filter(|it| !told.contains(it));
        self.show_findings(untold, source);
        if let Some(mut problem) = render::ending(report, &source.name) {
            let error = report.error.as_ref();
            let names_server =
                |error: &ReportedError| error.message.starts_with("there is no server");
            if report.status == Status::Paused {
                problem.next = format!(
                    "`airlock runs waiting` lists the questions; after the answers, run: {}",
                    render::resume_command(&report.run, Some(&self.resume_with))
                );
            } else if no_servers && error.is_some_and(names_server) {
                problem.what = format!("no server is configured; {}", problem.what);
                problem.next = how_to_add_a_server();
            } else if no_servers && error.is_some_and(|it| it.name == "ReferenceError") {
                problem.next = format!("no server is configured; {}", how_to_add_a_server());
            }
            self.screen.problem(&problem);
            let excerpt = error.and_then(|error| render::excerpt(error, &source.text));
            self.screen.show(&excerpt.unwrap_or_default());
        }
        let open = render::open_calls(report);
        if let Some(open) = &open {
            self.screen.show(&render::warning(open, self.screen.style));
        }
        if (open.is_some() || report.status != Status::Done) && !report.calls.is_empty() {
            let calls = render::calls(&report.calls);
            self.screen.show(&format!("calls:\n{calls}"));
        }
        if let Some(how) = render::how_to_resume(report, &self.resume_with) {
            self.screen.show(&how);
        }
        if self.nobody_answers {
            self.screen.show(&approvers::sufficient(report));
        }
        if report.status != Status::Done || !report.calls.is_empty() {
            let footer = self.screen.style.dim(&render::footer(report));
            self.screen.remark(&format!("{footer}\n"));
        }
        Ok(())
    }

    fn show_findings<'f>(
        &self,
        findings: impl Iterator<Item = &'f ReportedFinding>,
        source: &Source,
    ) {
        for finding in findings {
            let shown = render::finding(finding, &source.name, &source.text, self.screen.style);
            self.screen.remark(&shown);
        }
    }

    /// Shows a console line immediately. With `--json`, the report contains it too.
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

/// Returns the problem of an engine that is not part of this build.
fn not_carried(engine: JsEngine) -> Problem {
    let carried = JsEngine::ALL
        .into_iter()
        .filter(|engine| engine.image().is_some());
    let carried: Vec<_> = carried.map(JsEngine::name).collect();
    Problem::new(
        "sandbox-unavailable",
        format!("the engine `{engine}` is not part of this build of airlock"),
        format!("this build has only {}", carried.join(" and ")),
        format!(
            "run `cargo xtask engine {engine}` in airlock's source folder, then build airlock again; or choose another engine"
        ),
    )
}

pub(super) fn build_problem(error: BuildError) -> Problem {
    match error {
        BuildError::Server(mut problem) => {
            problem
                .next
                .push_str("; add `--skip-unreachable` to continue without this server");
            problem
        }
        BuildError::State(problem)
        | BuildError::Labels(problem)
        | BuildError::ToolFiles(problem)
        | BuildError::Embeddings(problem)
        | BuildError::Lock(problem) => problem,
        BuildError::Shared(error) => super::grants::unreadable(&error),
        BuildError::NoScope { .. } => super::options::usage(
            "a grant's scope does not exist in this run",
            error.to_string(),
            "for a grant of a session, use `airlock run` with --session NAME",
        ),
        BuildError::Sandbox(SandboxError::FilesTooSmall { .. }) => Problem::new(
            "sandbox-unavailable",
            "cannot load the sandbox",
            error.to_string(),
            "raise the file size limit (`ulimit -f`)",
        ),
        BuildError::Sandbox(SandboxError::NotCarried(engine)) => not_carried(engine),
        BuildError::Sandbox(_) => Problem::new(
            "internal",
            "cannot load the sandbox",
            error.to_string(),
            "build airlock again",
        ),
        BuildError::Policies(_) => Problem::new(
            "policy-invalid",
            "invalid policies",
            error.to_string(),
            "`airlock policy check` lists all errors",
        ),
        other => crate::config::invalid(
            "invalid configuration",
            other.to_string(),
            "correct the configuration",
        ),
    }
}
