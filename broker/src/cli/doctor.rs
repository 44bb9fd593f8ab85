//! `airlock doctor`: checks each agent host on this machine that uses airlock: its entry, airlock's
//! configuration, the servers, who is asked, and the state directory.

use std::path::{Path, PathBuf};

use airlock_core::problem::Problem;
use clap::{Args, Parser as _};
use serde_json::{Value, json};

use super::options::usage;
use super::screen::Screen;
use super::{Cli, Command, Outcome, exit, init, print, print_json, runtime, serve, servers};
use crate::config::{ApproverChoice, Config, Environment};
use crate::host_setup::{self, AIRLOCK, HostFile, Scope, is_airlock, servers_of};
use crate::private_file::StateDir;
use crate::render::{counted, escape};

#[derive(Debug, Args)]
pub(super) struct DoctorOptions {
    /// Also read the airlock.toml that is in this folder or that a host's file in this folder names,
    /// and start its servers
    #[arg(long)]
    start_project_servers: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// The result of one check.
#[derive(Debug)]
struct Finding {
    what: String,
    state: State,
}

#[derive(Debug)]
enum State {
    Good(String),
    /// Worth knowing, and no fault.
    Note(String),
    Bad {
        why: String,
        next: String,
    },
}

/// A host that uses airlock, with the results of its checks.
struct CheckedHost {
    file: HostFile,
    findings: Vec<Finding>,
}

pub(super) fn run(options: DoctorOptions, environment: &Environment) -> Outcome {
    let screen = Screen::of_process(environment, options.json);
    let project = init::current_folder()?;
    let mut hosts = Vec::new();
    for file in host_setup::find(environment, &project) {
        let starts = options.start_project_servers;
        hosts.extend(check(file, &project, starts, environment, &screen));
    }
    if hosts.is_empty() {
        let why = "no configuration file of a known host has an entry that starts `airlock serve`";
        let next = "run `airlock init`, or run this command in the project's folder";
        return Err(usage("no host uses airlock", why, next));
    }
    match options.json {
        true => print_json(&as_json(&hosts))?,
        false => print(&escape::block(&as_text(&hosts)))?,
    }
    let mut findings = hosts.iter().flat_map(|it| &it.findings);
    let is_well = !findings.any(|it| matches!(it.state, State::Bad { .. }));
    Ok(if is_well {
        exit::DONE
    } else {
        exit::CONFIGURATION
    })
}

/// Checks one place. Returns `None` if it does not start airlock. Without `starts`, reads no
/// configuration of the project, because its authors chose what it starts, not the user.
fn check(
    file: HostFile,
    project: &Path,
    starts: bool,
    environment: &Environment,
    screen: &Screen,
) -> Option<CheckedHost> {
    let text = std::fs::read_to_string(&file.path).map_err(|error| error.to_string());
    let listed = text.and_then(|text| servers_of(&file, &text));
    let mut host = CheckedHost {
        file,
        findings: Vec::new(),
    };
    let listed = match listed {
        Ok(listed) => listed,
        Err(why) => {
            host.bad(
                "file",
                why,
                "correct the file, and run `airlock doctor` again",
            );
            return Some(host);
        }
    };
    let (name, entry) = listed
        .iter()
        .find(|(name, entry)| *name == AIRLOCK || is_airlock(entry))?;
    let beside = listed.keys().filter(|it| *it != name);
    let beside: Vec<&str> = beside.map(String::as_str).collect();
    if !beside.is_empty() {
        let note = format!("the host starts {} itself", beside.join(", "));
        host.add("entry", State::Note(note));
    }
    let args = host.check_entry(entry, project, environment);
    let is_foreign =
        host.file.scope == Scope::Project || names_project_file(&args.0, &host.file, project);
    if starts || !is_foreign {
        host.check_configuration(&args, screen);
    } else {
        let note = "not read, because it is in this folder or a file in this folder names it, and it can \
                    start programs; add --start-project-servers to check it";
        host.add("configuration", State::Note(note.into()));
    }
    Some(host)
}

impl CheckedHost {
    fn add(&mut self, what: &str, state: State) {
        let what = what.to_owned();
        self.findings.push(Finding { what, state });
    }

    fn bad(&mut self, what: &str, why: impl Into<String>, next: impl Into<String>) {
        let (why, next) = (why.into(), next.into());
        self.add(what, State::Bad { why, next });
    }

    fn problem(&mut self, what: &str, problem: &Problem) {
        self.bad(
            what,
            format!("{}: {}", problem.what, problem.why),
            &problem.next,
        );
    }

    /// Checks which program the host starts. Returns its arguments and its environment.
    fn check_entry(
        &mut self,
        entry: &Value,
        project: &Path,
        environment: &Environment,
    ) -> (Vec<String>, Environment) {
        let environment = self.environment_of(entry, environment);
        let expanded = |text: &str| {
            let expanded = self.file.expand(text, &environment);
            expanded.unwrap_or_else(|_| text.to_owned())
        };
        let command = entry.get("command").and_then(Value::as_str);
        let command = expanded(command.unwrap_or_default());
        let args = entry.get("args").and_then(Value::as_array);
        let args = args.into_iter().flatten().filter_map(Value::as_str);
        let args: Vec<String> = args.map(expanded).collect();
        match find_program(&command, project, &environment) {
            Some(program) => self.add(
                "entry",
                State::Good(format!("starts {}", program.display())),
            ),
            None => {
                let why = format!("there is no program `{command}`");
                let next = match self.file.scope {
                    // Other people use the entry too.
                    Scope::Project => {
                        "install airlock so that `airlock` is on the PATH, or correct `command`"
                    }
                    Scope::User | Scope::Local => {
                        "run `airlock init --undo`, then `airlock init --write`"
                    }
                };
                self.bad("entry", why, next);
            }
        }
        (args, environment)
    }

    fn check_configuration(
        &mut self,
        (args, environment): &(Vec<String>, Environment),
        screen: &Screen,
    ) {
        match configuration(args, environment) {
            Ok(config) => self.check_config(&config, screen),
            Err(problem) => self.problem("configuration", &problem),
        }
    }

    /// Returns the environment in which the host starts airlock.
    fn environment_of(&mut self, entry: &Value, environment: &Environment) -> Environment {
        let mut variables = Vec::new();
        let env = entry.get("env").and_then(Value::as_object);
        for (name, value) in env.into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            match self.file.expand(value, environment) {
                Ok(value) => variables.push((name.clone(), value)),
                Err(why) => {
                    let note = format!("the variable {name} is not checked: {why}");
                    self.add("entry", State::Note(note));
                    variables.push((name.clone(), value.to_owned()));
                }
            }
        }
        environment.clone().with(variables)
    }

    fn check_config(&mut self, config: &Config, screen: &Screen) {
        let count = counted(config.servers.len(), "server");
        self.add("configuration", State::Good(count));
        match runtime() {
            Ok(runtime) => {
                let checked = runtime.block_on(servers::check(&config.servers, config, screen));
                for server in checked {
                    let what = format!("server {}", server.name);
                    match server.failure() {
                        None => {
                            let tools = counted(server.tools(), "tool");
                            self.add(&what, State::Good(format!("lists {tools}")));
                        }
                        Some((why, next)) => {
                            let why = config.secrets.redact(&why).unwrap_or(why);
                            self.bad(&what, why, next);
                        }
                    }
                }
            }
            Err(problem) => self.problem("servers", &problem),
        }
        self.check_approver(config);
        let state = StateDir::open(config.state_dir.clone());
        match state.and_then(|it| it.try_to_write().map(|()| it)) {
            Ok(state) => {
                let shown = state.path().display().to_string();
                self.add("state directory", State::Good(shown));
            }
            Err(problem) => self.problem("state directory", &problem),
        }
    }

    fn check_approver(&mut self, config: &Config) {
        let title = self.file.titles();
        let state = match &config.approver {
            _ if self.file.asks_its_user() => State::Good(format!("{title} asks its user")),
            Some(ApproverChoice::Web) => match config.browser {
                Some(_) => State::Good("a page in the browser asks".into()),
                None => State::Note(
                    "no browser was found; the link to the page is in a file that airlock names on \
                     stderr"
                        .into(),
                ),
            },
            Some(ApproverChoice::Command(program, _)) => State::Good(format!("`{program}` asks")),
            Some(ApproverChoice::Later) => {
                State::Good("runs wait for `airlock runs answer`".into())
            }
            None | Some(ApproverChoice::Terminal | ApproverChoice::Never) => State::Bad {
                why: format!("{title} cannot show questions, so calls that need one are refused"),
                next: "write approver = \"web\" into airlock.toml".into(),
            },
        };
        self.add("approver", state);
    }

    fn heading(&self) -> String {
        let (title, path) = (self.file.titles(), self.file.path.display());
        match self.file.scope {
            Scope::Local => format!("{title}, {path}, for this project"),
            Scope::User | Scope::Project => format!("{title}, {path}"),
        }
    }
}

/// Reads the configuration that these arguments of a host's entry name.
fn configuration(args: &[String], environment: &Environment) -> Result<Config, Problem> {
    let serve = args.iter().position(|it| it == "serve").unwrap_or_default();
    let words = args.get(serve..).unwrap_or_default().iter();
    let words = std::iter::once("airlock").chain(words.map(String::as_str));
    let parsed = Cli::try_parse_from(words).map_err(|error| {
        let why = error.kind().to_string();
        let next = "correct the arguments of the host's entry";
        usage("the entry's arguments are invalid", why, next)
    })?;
    match parsed.command {
        Command::Serve(options) => serve::load(*options, environment),
        _ => Err(usage("the entry does not run `airlock serve`", "", "")),
    }
}

/// Whether the arguments of an entry name a file of the project that says what airlock starts. A
/// relative path begins at the folder in which the host starts airlock, which is the project's.
fn names_project_file(args: &[String], file: &HostFile, project: &Path) -> bool {
    const FLAGS: [&str; 3] = ["--config", "--mcp-config", "--policy"];
    let is_inside = |path: &str| {
        let path = Path::new(path);
        let real = path.canonicalize();
        let real = real.unwrap_or_else(|_| path.to_owned());
        let real_project = project.canonicalize();
        let real_project = real_project.unwrap_or_else(|_| project.to_owned());
        // `airlock init` made this folder for the user, whose home can be the current folder.
        let is_own = path.starts_with(&file.folder);
        path.is_relative()
            || (!is_own && (path.starts_with(project) || real.starts_with(real_project)))
    };
    let following = args.iter().skip(1).map(Some).chain([None]);
    args.iter().zip(following).any(|(arg, next)| {
        let (flag, value) = match arg.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (arg.as_str(), next.map(String::as_str)),
        };
        FLAGS.contains(&flag) && value.is_some_and(is_inside)
    })
}

/// Returns the path of a program, as a host finds it.
fn find_program(command: &str, project: &Path, environment: &Environment) -> Option<PathBuf> {
    let is_program = |path: &Path| {
        use std::os::unix::fs::PermissionsExt as _;
        let meta = path.metadata();
        meta.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    let folders: Vec<PathBuf> = match command.contains('/') {
        true => vec![project.to_owned()],
        false => std::env::split_paths(environment.text("PATH").unwrap_or_default()).collect(),
    };
    let mut paths = folders.iter().map(|folder| folder.join(command));
    paths.find(|path| is_program(path))
}

fn as_text(hosts: &[CheckedHost]) -> String {
    let mut text = String::new();
    for host in hosts {
        text.push_str(&format!("{}\n", host.heading()));
        for finding in &host.findings {
            let what = &finding.what;
            text.push_str(&match &finding.state {
                State::Good(seen) => format!("  ok    {what}: {seen}\n"),
                State::Note(note) => format!("  note  {what}: {note}\n"),
                State::Bad { why, next } => {
                    format!("  bad   {what}: {why}\n        next: {next}\n")
                }
            });
        }
    }
    text
}

fn as_json(hosts: &[CheckedHost]) -> Value {
    let finding = |it: &Finding| match &it.state {
        State::Good(seen) => json!({"what": it.what, "state": "ok", "seen": seen}),
        State::Note(note) => json!({"what": it.what, "state": "note", "seen": note}),
        State::Bad { why, next } => {
            json!({"what": it.what, "state": "bad", "why": why, "next": next})
        }
    };
    let host = |it: &CheckedHost| {
        let findings: Vec<Value> = it.findings.iter().map(finding).collect();
        json!({"host": it.file.kind.id(), "file": it.file.path, "findings": findings})
    };
    let hosts: Vec<Value> = hosts.iter().map(host).collect();
    json!({ "hosts": hosts })
}
