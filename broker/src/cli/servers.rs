//! `airlock servers`: connects to every configured server, and shows its state, protocol era and
//! number of tools, or why it cannot be used.

use std::borrow::Cow;

use airlock_core::id::ServerName;
use airlock_core::problem::Problem;
use clap::Args;
use codegen::closest::closest;
use serde_json::{Value, json};

use super::options::{ServerView, usage};
use super::progress::ProgressLine;
use super::screen::Screen;
use super::{Outcome, exit, print, print_json, runtime};
use crate::config::{Config, Environment, ServerConfig};
use crate::era_file;
use crate::lock_file;
use crate::login::{StoreError, StoredLogin, now_ms};
use crate::render::{counted, escape, login_expiry};
use crate::secrets::Secrets;
use crate::upstream::{
    ConnectError, DiagnosticsReport, ListProblem, MessageLimits, ServerListing, Upstream,
    UpstreamSettings,
};

#[derive(Debug, Args)]
pub(super) struct ServersOptions {
    /// Show only these servers [default: all]
    #[arg(value_name = "SERVER")]
    names: Vec<String>,
    /// Also print what each server wrote to its stderr
    #[arg(long)]
    stderr: bool,
    #[command(flatten)]
    pub(super) view: ServerView,
}

/// What one attempt to connect to a server has shown.
pub(super) struct CheckedServer {
    pub(super) name: String,
    target: String,
    is_on_demand: bool,
    listing: Option<ServerListing>,
    /// The stored login, or why it cannot be read. `None`: the server has no login.
    login: Option<Result<StoredLogin, StoreError>>,
    diagnostics: DiagnosticsReport,
}

pub(super) fn run(options: ServersOptions, environment: &Environment) -> Outcome {
    let screen = Screen::of_process(environment, options.view.json);
    let may_fail = options.view.servers.skip_unreachable;
    let is_json = options.view.json;
    let config = options.view.load(environment, &screen)?;
    let servers = chosen(&config, &options.names)?;
    let checked = runtime()?.block_on(check(&servers, &config, &screen));
    if is_json {
        let servers: Vec<Value> = checked
            .iter()
            .map(|it| it.json(&config.secrets, options.stderr))
            .collect();
        print_json(&json!({ "servers": servers }))?;
    } else {
        let width = checked.iter().map(|it| it.name.chars().count()).max();
        let rows: String = checked
            .iter()
            .map(|it| it.text(width.unwrap_or_default(), &config.secrets, options.stderr))
            .collect();
        print(&rows)?;
    }
    let is_whole = checked.iter().all(|it| it.failure().is_none());
    Ok(if is_whole || may_fail {
        exit::DONE
    } else {
        exit::CONFIGURATION
    })
}

/// Returns the servers with these names, or all servers.
fn chosen(config: &Config, names: &[String]) -> Result<Vec<ServerConfig>, Problem> {
    if config.servers.is_empty() {
        return Err(no_servers("there is no server to connect to"));
    }
    let known: Vec<&str> = config.servers.iter().map(|it| &*it.spec.name.0).collect();
    for name in names {
        if !known.contains(&name.as_str()) {
            return Err(unknown_server(name, &known));
        }
    }
    let is_chosen =
        |it: &&ServerConfig| names.is_empty() || names.iter().any(|name| **name == *it.spec.name.0);
    Ok(config.servers.iter().filter(is_chosen).cloned().collect())
}

/// Beginning of the advice to print what a server wrote.
const SHOWS_STDERR: &str = "`airlock servers --stderr` with the same server flags shows";

/// The configuration file that people keep in a project's folder.
const PROJECT_FILE: &str = "airlock.toml";

/// Returns the problem of a command that needs a server, and has none.
pub(super) fn no_servers(what: &str) -> Problem {
    usage(what, "no server is configured", how_to_add_a_server())
}

/// Says how to configure a server. Names the `airlock.toml` of the working folder if it has servers,
/// because no command reads it by itself.
pub(super) fn how_to_add_a_server() -> String {
    const FLAGS: &str = "--server NAME=COMMAND, --mcp-config FILE, --config FILE or --demo";
    let text = std::fs::read_to_string(PROJECT_FILE).unwrap_or_default();
    match text
        .lines()
        .any(|line| line.trim_start().starts_with("[servers"))
    {
        true => format!(
            "add --config {PROJECT_FILE}, because {PROJECT_FILE} lies in this folder; or add {FLAGS}"
        ),
        false => format!("add {FLAGS}"),
    }
}

/// Returns the problem of a name that no configured server has.
pub(super) fn unknown_server(name: &str, known: &[&str]) -> Problem {
    if known.is_empty() {
        return no_servers(&format!("there is no server `{name}`"));
    }
    let why = format!("the configured servers are {}", known.join(", "));
    let next = match closest(name, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "use one of these names, or add the server with --server NAME=COMMAND".to_owned(),
    };
    usage(format!("there is no server `{name}`"), why, next)
}

pub(super) async fn check(
    servers: &[ServerConfig],
    config: &Config,
    screen: &Screen,
) -> Vec<CheckedServer> {
    let names: Vec<&str> = servers.iter().map(|it| &*it.spec.name.0).collect();
    let progress = ProgressLine::start(screen, format!("connecting to {}", names.join(", ")));
    let settings = UpstreamSettings {
        base_env: config.base_env.clone(),
        message_limits: MessageLimits {
            result_bytes_max: config.limits.result_bytes_max as usize,
            ..MessageLimits::default()
        },
        eras: era_file::memory(&config.state_dir),
        abilities: crate::client_bridge::ClientCapabilities::default().from_now_on(),
    };
    let specs = servers.iter().map(|it| it.spec.clone()).collect();
    let (upstream, mut listings) = Upstream::connect_all(specs, &settings).await;
    // A server's last lines on stderr arrive while it ends.
    upstream.close().await;
    drop(progress);
    let checked = |server: &ServerConfig| {
        let name: &ServerName = &server.spec.name;
        let mut target = server.spec.target();
        config.secrets.redact_text(&mut target);
        let at = listings.iter().position(|it| it.server == *name);
        CheckedServer {
            name: name.0.to_string(),
            target,
            is_on_demand: server.idle.is_some(),
            login: server
                .spec
                .login
                .as_ref()
                .and_then(|it| it.stored().transpose()),
            listing: at.map(|at| listings.swap_remove(at)),
            diagnostics: upstream.diagnostics(name).unwrap_or_default(),
        }
    };
    servers.iter().map(checked).collect()
}

impl CheckedServer {
    /// Returns why the server cannot be used, and advice.
    pub(super) fn failure(&self) -> Option<(String, Cow<'static, str>)> {
        let Some(listing) = &self.listing else {
            return Some(("the server was not asked".into(), "".into()));
        };
        let failure = listing.failure.as_ref()?;
        Some((failure.to_string(), failure.next()))
    }

    /// Returns the word for the server's state.
    fn state(&self) -> &'static str {
        let failure = self.listing.as_ref().map(|it| it.failure.as_ref());
        match failure {
            Some(None) => "connected",
            Some(Some(ConnectError::LoginRequired { .. })) => "login-required",
            _ => "unavailable",
        }
    }

    fn login_text(&self) -> Option<String> {
        Some(match self.login.as_ref()? {
            Ok(StoredLogin {
                credential, place, ..
            }) => {
                let scopes = match credential.scopes.is_empty() {
                    true => String::new(),
                    false => format!(" · scopes {}", credential.scopes),
                };
                let expiry = login_expiry(credential, now_ms());
                format!(
                    "{expiry} · issuer {}{scopes} · key: {}",
                    credential.issuer,
                    place.as_str()
                )
            }
            Err(error) => format!("cannot be read: {error}; {}", error.next()),
        })
    }

    fn login_json(&self) -> Value {
        match &self.login {
            None => Value::Null,
            Some(Err(error)) => json!({ "problem": error.to_string(), "next": error.next() }),
            Some(Ok(StoredLogin {
                credential, place, ..
            })) => json!({
                "issuer": credential.issuer,
                "scopes": credential.scopes,
                "expires_at_ms": credential.expires_at_ms,
                "renews": credential.renews(),
                "key": place.as_str(),
            }),
        }
    }

    pub(super) fn tools(&self) -> usize {
        self.listing.as_ref().map_or(0, |it| it.tools.len())
    }

    /// Returns the server's own name and version.
    fn server_info(&self, secrets: &Secrets) -> Option<String> {
        let info = self.listing.as_ref()?.server_info.as_ref()?;
        lock_file::says(info, secrets)
    }

    /// Returns the kind and the text of each problem.
    fn problems(&self, secrets: &Secrets) -> Vec<(&'static str, String)> {
        let problems = self.listing.iter().flat_map(|it| &it.problems);
        let masked = |problem: String| secrets.redact(&problem).unwrap_or(problem);
        let kind = |problem: &ListProblem| match problem {
            ListProblem::Filtering { .. } => "groups: unknown",
            _ => "tool: left out",
        };
        problems
            .map(|it| (kind(it), masked(it.to_string())))
            .collect()
    }

    fn text(&self, width: usize, secrets: &Secrets, with_stderr: bool) -> String {
        let mut text = format!("{:<width$}  ", self.name);
        let target = escape::line(&self.target).into_owned();
        match self.failure() {
            None => {
                let era = self.listing.as_ref().and_then(|it| it.version.clone());
                let era = era.unwrap_or_default();
                let tools = counted(self.tools(), "tool");
                let when = match self.is_on_demand {
                    true => "  on demand",
                    false => "",
                };
                let info = self.server_info(secrets).unwrap_or_default();
                let info = escape::line(&info);
                text.push_str(&format!(
                    "connected    {era}  {tools:<9}{when}  {target}  {info}"
                ));
                text.truncate(text.trim_end().len());
                text.push('\n');
            }
            Some((why, next)) => {
                let why = secrets.redact(&why).unwrap_or(why);
                text.push_str(&format!("{:<11}  {target}\n", self.state()));
                text.push_str(&format!("     why: {}\n", escape::line(&why)));
                let next = match with_stderr {
                    true => next.replace(SHOWS_STDERR, "the lines below show"),
                    false => next.into_owned(),
                };
                text.push_str(&format!("    next: {next}\n"));
                if !self.diagnostics.stderr.trim().is_empty() && !with_stderr {
                    text.push_str(&format!(
                        "  stderr: {}; add --stderr to print it\n",
                        counted(self.diagnostics.stderr.lines().count(), "line")
                    ));
                }
            }
        }
        if let Some(login) = self.login_text() {
            text.push_str(&format!("   login: {}\n", escape::line(&login)));
        }
        for (kind, problem) in self.problems(secrets) {
            text.push_str(&format!("    {kind}: {}\n", escape::line(&problem)));
        }
        if with_stderr {
            for line in self.diagnostics.stderr.lines() {
                text.push_str(&format!("  stderr: {}\n", escape::line(line)));
            }
            if self.diagnostics.stderr.trim().is_empty() {
                text.push_str("  stderr: nothing was written\n");
            }
        }
        text
    }

    fn json(&self, secrets: &Secrets, with_stderr: bool) -> Value {
        let failure = self.failure();
        let listing = self.listing.as_ref();
        let mut object = json!({
            "name": self.name,
            "state": self.state(),
            "on_demand": self.is_on_demand,
            "target": self.target,
            "era": listing.and_then(|it| it.era).map(|era| era.version()),
            "version": listing.and_then(|it| it.version.clone()),
            "login": self.login_json(),
            "tools": failure.is_none().then(|| self.tools()),
            "server_info": self.server_info(secrets),
            "left_out": self.problems(secrets).into_iter().map(|(_, text)| text).collect::<Vec<_>>(),
        });
        if let Some(members) = object.as_object_mut() {
            if let Some((why, next)) = failure {
                let why = secrets.redact(&why).unwrap_or(why);
                members.insert("why".into(), why.into());
                members.insert("next".into(), next.into());
            }
            if with_stderr {
                members.insert("stderr".into(), self.diagnostics.stderr.clone().into());
            }
        }
        object
    }
}
