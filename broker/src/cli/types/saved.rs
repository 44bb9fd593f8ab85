//! Reads tools from saved `tools/list` results or from a lock file, instead of from servers.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use airlock_core::catalog::ToolOwner;
use airlock_core::id::{ServerName, ToolId, ToolName};
use airlock_core::json::{self, Bounds};
use airlock_core::problem::Problem;
use codegen::description::Description;
use codegen::stub::StubTable;
use serde_json::Value;

use super::TypeSource;
use crate::broker::rules_of;
use crate::cli::input;
use crate::cli::options::{ServerOptions, usage};
use crate::cli::run::build_problem;
use crate::cli::screen::Screen;
use crate::config::Config;
use crate::lock_file::{self, LockFile};
use crate::tool_files::{self, LoadedToolFiles, ToolFiles};

const BOUNDS: Bounds = Bounds {
    bytes_max: 64 * 1024 * 1024,
    depth_max: 128,
    nodes_max: 4_000_000,
};

/// Reads saved lists for a configuration, whose rules say which tools are always denied. Nothing is
/// connected to.
pub(in crate::cli) fn for_config(
    sources: &[String],
    config: &Config,
) -> Result<TypeSource, Problem> {
    let found = read(sources, config.settings.tools.descriptions.clone())?;
    let rules = rules_of(config, &found.descriptions).map_err(build_problem)?;
    let id = |it: &Description| {
        let server = ServerName(it.server.as_str().into());
        let tool = ToolName(it.name.as_str().into());
        ToolId { server, tool }
    };
    let ids = found.descriptions.iter().map(id);
    let denied = ids.filter(|it| rules.always_denied(ToolOwner::Other, it).is_some());
    let denied = denied.collect();
    Ok(TypeSource { denied, ..found })
}

/// Refuses `--from` together with a server that would have to be connected.
pub(in crate::cli) fn refuse_servers(servers: &ServerOptions) -> Result<(), Problem> {
    if !servers.connects() {
        return Ok(());
    }
    let what = "`--from` cannot be combined with flags that name servers";
    let why = "--from reads the tools from a file and connects to no server";
    Err(usage(what, why, "remove --from or the server flags"))
}

/// Reads saved lists. Each source is `FILE` or `NAME=FILE`; by default, the server's name is the
/// beginning of the file name.
pub(in crate::cli) fn read(
    sources: &[String],
    folder: Option<PathBuf>,
) -> Result<TypeSource, Problem> {
    let mut lists: Vec<(String, Vec<Value>)> = Vec::new();
    for source in sources {
        let (server, path) = named(source)?;
        let value = whole(&path)?;
        let tools = tools(&value).ok_or_else(|| {
            let why = "expected {\"tools\": […]}, or a JSON-RPC response with such a result";
            unreadable(&path, why.into(), "save the result of tools/list")
        })?;
        if lists.iter().any(|(it, _)| *it == server) {
            let why = format!("two files define the server `{server}`");
            let next = "name the servers with --from NAME=FILE";
            return Err(usage("conflicting files", why, next));
        }
        lists.push((server, tools.clone()));
    }
    described(&lists, folder)
}

/// Reads the descriptions that were accepted into a lock file, for the servers of a configuration.
/// Refuses a lock file that was written for another target of one of them: a run would refuse all
/// calls to that server, because its tools may be others.
pub(in crate::cli) fn locked(
    path: &Path,
    config: &Config,
    screen: &Screen,
) -> Result<TypeSource, Problem> {
    let lock = LockFile::new(path.to_owned()).read_existing()?;
    for server in &config.servers {
        let mut target = server.spec.target();
        config.secrets.redact_text(&mut target);
        let name = &*server.spec.name.0;
        match lock_file::stranger(&lock, name, &target) {
            Some(problem) if lock.servers.contains_key(name) => {
                let what = format!("the lock file does not fit the server `{name}`");
                return Err(Problem::new(
                    "lock-invalid",
                    what,
                    problem.why,
                    problem.next,
                ));
            }
            Some(problem) => {
                let what = format!("the tools of the server `{name}` are not known here");
                screen.warning(&Problem::new(
                    "tools-unknown",
                    what,
                    problem.why,
                    problem.next,
                ));
            }
            None => {}
        }
    }
    let lists: Vec<(String, Vec<Value>)> = lock
        .servers
        .into_iter()
        .map(|(server, pinned)| {
            let tools = pinned.tools.into_values();
            let tools = tools.map(|tool| Value::Object(tool.description));
            (server, tools.collect())
        })
        .collect();
    described(&lists, config.settings.tools.descriptions.clone())
}

fn described(
    lists: &[(String, Vec<Value>)],
    folder: Option<PathBuf>,
) -> Result<TypeSource, Problem> {
    let loaded = match folder {
        Some(folder) => {
            let servers = lists.iter().map(|(server, _)| server.clone());
            ToolFiles::new(folder).for_servers(servers).load()?
        }
        None => LoadedToolFiles::default(),
    };
    let mut problems = loaded.problems.clone();
    let mut descriptions: Vec<Description> = Vec::new();
    for (server, tools) in lists {
        for tool in tools {
            match Description::parse(server, tool) {
                Ok(description) => match loaded.about(server, &description.name) {
                    Some(file) => {
                        let (full, faults) = description.with_file(&file.read);
                        descriptions.push(full);
                        let faults = faults.iter();
                        problems.extend(faults.map(|it| tool_files::problem(&file.name, it)));
                    }
                    None => descriptions.push(description),
                },
                Err(bad) => problems.push(Problem::new(
                    "tool-unusable",
                    format!("a tool of `{server}` is not offered"),
                    bad.to_string(),
                    "the server's other tools still work",
                )),
            }
        }
    }
    Ok(TypeSource {
        stubs: StubTable::build(&descriptions),
        descriptions,
        problems,
        denied: HashSet::new(),
    })
}

fn named(source: &str) -> Result<(String, PathBuf), Problem> {
    if let Some((name, path)) = source.split_once('=')
        && ServerName::parse(name).is_ok()
    {
        return Ok((name.to_owned(), path.into()));
    }
    let path = PathBuf::from(source);
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let name = file.split('.').next().unwrap_or_default().to_owned();
    match ServerName::parse(&name) {
        Ok(_) => Ok((name, path)),
        Err(bad) => {
            let what = format!("cannot derive a server name from {}", path.display());
            Err(usage(what, bad.to_string(), "write --from NAME=FILE"))
        }
    }
}

fn whole(path: &Path) -> Result<Value, Problem> {
    let bytes = input::file(path, "the list", u64::from(BOUNDS.bytes_max))?;
    json::read(&bytes, BOUNDS)
        .map_err(|bad| unreadable(path, bad.to_string(), "save the result of tools/list"))
}

fn tools(value: &Value) -> Option<&Vec<Value>> {
    let list = value
        .get("tools")
        .or_else(|| value.get("result")?.get("tools"));
    list?.as_array()
}

fn unreadable(path: &Path, why: String, next: &str) -> Problem {
    usage(format!("invalid tool list {}", path.display()), why, next)
}
