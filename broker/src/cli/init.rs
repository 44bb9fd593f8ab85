//! `airlock init`: puts the servers of the agent hosts on this machine behind airlock. Without
//! `--write` it only shows what would change.

mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use airlock_core::problem::Problem;
use clap::Args;
use clap::builder::PossibleValuesParser;
use codegen::description::Description;

use super::connect::visit;
use super::options::{StateOptions, usage};
use super::policy::{FirstPolicy, first_policy};
use super::screen::Screen;
use super::{Outcome, exit, print, print_json};
use crate::broker::Broker;
use crate::config::{Config, Environment};
use crate::host_setup::{
    self, AirlockCommand, CONFIG, Change, Created, HostFile, HostPlan, KNOWN_IDS, Scope, Undone,
};
use crate::private_file::StateDir;
use crate::render::escape;
use crate::shell_words;

#[derive(Debug, Args)]
pub(super) struct InitOptions {
    /// Write the changes. A copy of each changed file is kept beside it
    #[arg(long)]
    write: bool,
    /// Take back what --write changed
    #[arg(long, conflicts_with_all = ["write", "hosts", "command", "no_connect"])]
    undo: bool,
    /// Change only this host; can be given several times [default: all hosts]
    #[arg(long = "host", value_name = "HOST", value_parser = PossibleValuesParser::new(KNOWN_IDS))]
    hosts: Vec<String>,
    /// Command line with which hosts start airlock [default: the path of this program; `airlock` in
    /// files of this folder; `npx` or `uvx` if they started this program]
    #[arg(long, value_name = "CMD")]
    command: Option<String>,
    /// Start no server. The first rules then ask about every tool
    #[arg(long)]
    no_connect: bool,
    /// Also start the servers that files in this folder name
    #[arg(long, conflicts_with_all = ["no_connect", "undo"])]
    start_project_servers: bool,
    #[command(flatten)]
    state: StateOptions,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// The change of one host with the new files.
struct HostChange {
    plan: HostPlan,
    policy: FirstPolicy,
    /// The text of the new `airlock.toml`.
    config: String,
}

/// What was found on this machine.
#[derive(Default)]
struct Findings {
    changes: Vec<HostChange>,
    /// Hosts from which no server moves.
    unchanged: Vec<HostPlan>,
    unreadable: Vec<(PathBuf, String)>,
}

pub(super) fn run(options: InitOptions, environment: &Environment) -> Outcome {
    let screen = Screen::of_process(environment, options.json);
    let state = options.state.clone().load(environment)?.state_dir;
    if options.undo {
        return undo(&StateDir::existing(state)?, options.json);
    }
    let project = current_folder()?;
    let airlock = airlock_command(options.command.as_deref())?;
    let mut findings = Findings::default();
    let mut texts = BTreeMap::new();
    for file in host_setup::find(environment, &project) {
        let is_named = |id: &str| options.hosts.iter().any(|it| it == id);
        let is_chosen = options.hosts.is_empty() || file.kinds().any(|it| is_named(it.id()));
        if is_chosen {
            findings.add(file, &airlock, &mut texts);
        }
    }
    for change in &mut findings.changes {
        // The authors of the project chose these programs, not the user.
        let is_foreign = change.plan.file.scope == Scope::Project && !options.start_project_servers;
        if is_foreign && !options.no_connect {
            let why = "its tools are not known: its servers were not started, because a file in this folder names them; add --start-project-servers to start them";
            change.plan.ignored.push(why.to_owned());
        }
        let connects = !options.no_connect && !is_foreign;
        change.complete(connects, environment, &screen);
    }
    let changed = findings.changed_files(&texts)?;
    if options.write {
        let created: Vec<Created> = findings
            .changes
            .iter()
            .flat_map(HostChange::files)
            .collect();
        host_setup::write(&StateDir::open(state)?, &changed, &created)?;
    }
    if options.json {
        print_json(&report::json(&findings, options.write))?;
    } else {
        print(&escape::block(&report::text(&findings, options.write)))?;
        screen.remark(report::next(&findings, options.write));
    }
    let is_whole = findings.unreadable.is_empty();
    Ok(if is_whole {
        exit::DONE
    } else {
        exit::CONFIGURATION
    })
}

impl Findings {
    /// Plans the change of one place. `texts` holds the files that were read so far, by their paths
    /// without links.
    fn add(
        &mut self,
        file: HostFile,
        airlock: &AirlockCommand,
        texts: &mut BTreeMap<PathBuf, String>,
    ) {
        let path = file.path.clone();
        let planned =
            read(&file.target(), texts).and_then(|text| host_setup::plan(file, text, airlock));
        match planned {
            Ok(None) => {}
            Ok(Some(plan)) if plan.moved.is_empty() => self.unchanged.push(plan),
            Ok(Some(plan)) => self.changes.push(HostChange::new(plan)),
            Err(why) => {
                let is_known = self.unreadable.iter().any(|(known, _)| *known == path);
                if !is_known {
                    self.unreadable.push((path, why));
                }
            }
        }
    }

    /// Returns the changed files. A file in which several places change is changed once.
    fn changed_files(&self, texts: &BTreeMap<PathBuf, String>) -> Result<Vec<Change>, Problem> {
        let mut edited: BTreeMap<PathBuf, String> = BTreeMap::new();
        for change in &self.changes {
            // A link to the file stays a link.
            let path = change.plan.file.target();
            let known = edited.get(&path).or_else(|| texts.get(&path));
            let text = known.map_or("", |it| it);
            let text = change.plan.edited(text).map_err(|why| {
                let what = format!("cannot change {}", path.display());
                Problem::new("setup-failed", what, why, "correct the file")
            })?;
            edited.insert(path, text);
        }
        let changed = edited.into_iter().map(|(path, after)| Change {
            before: texts.get(&path).cloned().unwrap_or_default().into_bytes(),
            after: after.into_bytes(),
            path,
        });
        Ok(changed.collect())
    }
}

impl HostChange {
    fn new(plan: HostPlan) -> Self {
        Self {
            plan,
            policy: first_policy(&[], ""),
            config: String::new(),
        }
    }

    /// Writes the first rules. Without a connection to the servers, no tool is known.
    fn complete(&mut self, connects: bool, environment: &Environment, screen: &Screen) {
        let descriptions = match connects {
            true => self.descriptions(environment, screen),
            false => Ok(Vec::new()),
        };
        let descriptions = descriptions.unwrap_or_else(|problem| {
            let why = format!("its tools are not known: {}: {}", problem.what, problem.why);
            self.plan.ignored.push(why);
            Vec::new()
        });
        self.policy = first_policy(&descriptions, &self.plan.file.shown_root());
        self.config = report::config(&self.plan, &self.policy.config);
    }

    /// Asks the servers for their tools. Only the host can replace its placeholders, so some servers
    /// may not start.
    fn descriptions(
        &self,
        environment: &Environment,
        screen: &Screen,
    ) -> Result<Vec<Description>, Problem> {
        let path = self.plan.file.folder.join(CONFIG);
        let variables = self.plan.variables.iter().map(|(name, value)| {
            let expanded = self.plan.file.expand(value, environment);
            (name.clone(), expanded.unwrap_or_else(|_| value.clone()))
        });
        let environment = environment.clone().with(variables);
        let config = Config::of_text(&self.plan.servers, &path, &environment)?;
        let builder = Broker::builder().config(config).discovery(true);
        visit(builder.servers_required(false), screen, async |broker| {
            broker.descriptions().to_vec()
        })
    }

    fn files(&self) -> Vec<Created> {
        let folder = &self.plan.file.folder;
        let config = (CONFIG, &self.config);
        let rules = self.policy.files.iter().map(|(name, text)| (*name, text));
        std::iter::once(config)
            .chain(rules)
            .map(|(name, text)| Created {
                path: folder.join(name),
                text: text.clone(),
                named_by: self.plan.file.target(),
            })
            .collect()
    }
}

fn read<'a>(path: &Path, texts: &'a mut BTreeMap<PathBuf, String>) -> Result<&'a str, String> {
    if !texts.contains_key(path) {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        texts.insert(path.to_owned(), text);
    }
    Ok(texts.get(path).map_or("", |it| it))
}

fn undo(state: &StateDir, json: bool) -> Outcome {
    let undone = host_setup::undo(state)?;
    match json {
        true => print_json(&report::undone_json(&undone))?,
        false => print(&report::undone(&undone))?,
    }
    let is_whole = !undone
        .iter()
        .any(|it| matches!(it, Undone::Kept { .. } | Undone::StillNamed(_)));
    Ok(if is_whole {
        exit::DONE
    } else {
        exit::CONFIGURATION
    })
}

pub(super) fn current_folder() -> Result<PathBuf, Problem> {
    std::env::current_dir().map_err(|error| {
        let what = "cannot find the current folder";
        let next = "run airlock in an existing folder";
        Problem::new("internal", what, error.to_string(), next)
    })
}

fn airlock_command(flag: Option<&str>) -> Result<AirlockCommand, Problem> {
    let Some(flag) = flag else {
        let program = super::options::this_program()?;
        let program = program.into_os_string().into_string().map_err(|_| {
            let why = "the path of this program is not UTF-8";
            usage("hosts cannot start this program", why, "add --command CMD")
        })?;
        return Ok(AirlockCommand::of_program(&program));
    };
    let wrong = |why: String| {
        let next = "write a command line, such as 'npx -y airlock-mcp'";
        usage("invalid value for `--command`", why, next)
    };
    let words = shell_words::split(flag).map_err(|bad| wrong(bad.to_string()))?;
    match words.is_empty() {
        true => Err(wrong("the command is empty".into())),
        false => Ok(AirlockCommand::chosen(words)),
    }
}
