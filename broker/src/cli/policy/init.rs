//! `airlock policy init`: writes rules, labels and cases for the tools of the configured servers. A person edits them.
//! What comes from a server's own claims or from the name of an argument is marked as a guess.

mod example;
mod fields;
mod guess;
mod text;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use airlock_core::catalog::OWN_SERVER;
use airlock_core::problem::Problem;
use clap::Args;
use codegen::description::Description;
use serde_json::json;

use super::sources::{Folders, LoadError, SourceOptions};
use crate::cli::options::usage;
use crate::cli::screen::Screen;
use crate::cli::servers::no_servers;
use crate::cli::{Outcome, exit, print, print_json};
use crate::config::Environment;
use crate::render::counted;
use guess::GuessedTool;

#[derive(Debug, Args)]
pub(in crate::cli) struct InitOptions {
    /// The new files are written into this folder, which may exist
    #[arg(value_name = "FOLDER", default_value = "policies")]
    folder: PathBuf,
    #[command(flatten)]
    sources: SourceOptions,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

const RULES: &str = "rules.cedar";
const CASES: &str = "rules.cases.toml";
const CONFIG: &str = "airlock.toml";

pub(super) fn run(options: InitOptions, environment: &Environment, screen: &Screen) -> Outcome {
    let folder = options.folder;
    let file_flags = options.sources.file_flags();
    for name in [RULES, CASES, CONFIG] {
        refuse_existing(&folder.join(name))?;
    }
    let opened = options
        .sources
        .open(Folders::Added(Vec::new()), environment, screen);
    let opened = opened.map_err(|error| match error {
        LoadError::Other(problem) => problem,
        LoadError::Rules(findings) => {
            let why = findings.first().map(ToString::to_string);
            let next = "name a configuration without policies, or correct them";
            Problem::new(
                "policy-invalid",
                "invalid policies",
                why.unwrap_or_default(),
                next,
            )
        }
    })?;
    let tools = guessed(&opened.descriptions);
    if tools.is_empty() {
        return Err(no_servers("there are no tools to write rules for"));
    }
    let config = format!("{}{}", text::CONFIG_HEADER, text::config(&tools, ".."));
    let files = [
        (RULES, text::rules(&tools)),
        (CASES, text::cases(&tools)),
        (CONFIG, config),
    ];
    for (name, text) in &files {
        write_new(&folder.join(name), text)?;
    }
    let reads = tools.iter().filter(|it| it.only_reads).count();
    let shown = folder.display();
    if options.json {
        let files: Vec<String> = files
            .iter()
            .map(|(name, _)| folder.join(name).display().to_string())
            .collect();
        print_json(&json!({ "files": files, "tools": tools.len(), "permitted": reads }))?;
    } else {
        print(&format!(
            "{}: {} permitted without asking, because their servers claim that they only read; \
             {} asked about\n",
            counted(tools.len(), "tool"),
            reads,
            tools.len() - reads
        ))?;
        let (first, flags) = match file_flags {
            Some(flags) => ("", flags),
            None => (
                "\n  airlock lock, with the same server flags",
                "--lock airlock.lock".to_owned(),
            ),
        };
        screen.remark(&format!(
            "wrote {RULES}, {CASES} and {CONFIG} into {shown}\n\
             next: read {shown}/{CONFIG}, where each guess is marked, and correct it; \
             then run{first}\n  \
             airlock policy check {shown} --config {shown}/{CONFIG} {flags}\n  \
             airlock policy test {shown} --config {shown}/{CONFIG} {flags}\n"
        ));
    }
    Ok(exit::DONE)
}

/// A first policy for tools: the rules with their cases, and the part of `airlock.toml` beside them.
pub(in crate::cli) struct FirstPolicy {
    pub(in crate::cli) files: [(&'static str, String); 2],
    pub(in crate::cli) config: String,
    pub(in crate::cli) tools: usize,
    /// The number of tools that are permitted without asking.
    pub(in crate::cli) permitted: usize,
}

/// Returns a first policy. `root` is the folder with the name `project` in rules.
pub(in crate::cli) fn first_policy(descriptions: &[Description], root: &str) -> FirstPolicy {
    let tools = guessed(descriptions);
    FirstPolicy {
        files: [(RULES, text::rules(&tools)), (CASES, text::cases(&tools))],
        config: text::config(&tools, root),
        tools: tools.len(),
        permitted: tools.iter().filter(|it| it.only_reads).count(),
    }
}

/// Returns the tools in the order of their names, each name once.
fn guessed(descriptions: &[Description]) -> Vec<GuessedTool> {
    // airlock's own tools reach no server.
    let of_servers = descriptions.iter().filter(|it| it.server != OWN_SERVER);
    let mut tools: Vec<GuessedTool> = of_servers.map(GuessedTool::new).collect();
    tools.sort_by(|one, other| (&one.server, &one.name).cmp(&(&other.server, &other.name)));
    tools.dedup_by(|one, other| one.server == other.server && one.name == other.name);
    tools
}

fn refuse_existing(path: &Path) -> Result<(), Problem> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(usage(
        format!("{} exists", path.display()),
        "this command writes new files, and changes none",
        "name another folder: `airlock policy init FOLDER`",
    ))
}

fn write_new(path: &Path, text: &str) -> Result<(), Problem> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = std::fs::create_dir_all(folder).and_then(|()| {
        let mut file = std::fs::File::create_new(path)?;
        file.write_all(text.as_bytes())
    });
    written.map_err(|error| {
        usage(
            format!("{} cannot be written", path.display()),
            error.to_string(),
            "name a folder that can be written: `airlock policy init FOLDER`",
        )
    })
}
