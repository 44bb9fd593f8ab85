//! The table `[servers.NAME]` of `airlock.toml`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use airlock_core::problem::Problem;
use serde::Deserialize;

use super::choice;
use super::invalid;
use super::oauth::OauthTable;
use super::server::{CredentialOwner, DeclaredServer, ServerTarget, ServerTuning, ToolTrust};
use crate::shell_words;
use crate::upstream::{Era, EraChoice};
use airlock_sandbox::units;

/// Default time without a call after which an on-demand server is disconnected, in milliseconds.
const IDLE_MS: u64 = 5 * 60 * 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerTable {
    /// The program. If there is no `args`, this is the whole command line.
    command: Option<String>,
    args: Option<Vec<String>>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    era: Option<String>,
    in_flight: Option<usize>,
    connect_timeout: Option<String>,
    /// `at-once` or `on-demand`.
    start: Option<String>,
    /// The time without a call after which an on-demand server is disconnected.
    idle: Option<String>,
    /// A description of the server in one line.
    about: Option<String>,
    /// Whether credentials of known shapes are masked in the server's results. On by default.
    mask_credentials: Option<bool>,
    /// How airlock logs in to the server.
    oauth: Option<OauthTable>,
    /// Whose login `airlock serve` uses if it tells callers apart.
    #[serde(default, deserialize_with = "choice::of_file")]
    credentials: Option<CredentialOwner>,
    #[serde(default)]
    trust_annotations: bool,
    #[serde(default)]
    read_only: Vec<String>,
    #[serde(default)]
    destructive: Vec<String>,
    #[serde(default)]
    idempotent: Vec<String>,
}

/// The reason why a table is invalid, and advice.
type TableError = (String, &'static str);

impl ServerTable {
    pub(super) fn declare(self, name: String, origin: String) -> Result<DeclaredServer, Problem> {
        let server = format!("invalid server `{name}` ({origin})");
        let wrong = |(why, next): TableError| invalid(server.clone(), why, next);
        let tuning = ServerTuning {
            era: Some(self.era().map_err(wrong)?),
            in_flight_max: self.in_flight,
            connect_timeout_ms: self.connect_timeout_ms().map_err(wrong)?,
            idle_ms: self.idle_ms().map_err(wrong)?,
            about: self.about.clone(),
            mask_credentials: self.mask_credentials,
            oauth: self.oauth.clone(),
            credentials: self.credentials,
        };
        let trust = ToolTrust {
            annotations: self.trust_annotations,
            read_only: self.read_only.clone(),
            destructive: self.destructive.clone(),
            idempotent: self.idempotent.clone(),
            origin: origin.clone(),
        };
        Ok(DeclaredServer {
            target: self.target().map_err(wrong)?,
            name,
            origin,
            tuning,
            trust,
        })
    }

    fn era(&self) -> Result<EraChoice, TableError> {
        match self.era.as_deref() {
            None | Some("auto") => Ok(EraChoice::Auto),
            Some(version) => {
                let era = Era::parse(version);
                let next = "write auto, 2025-11-25 or 2026-07-28";
                let why = || format!("invalid `era` value `{version}`");
                let era = era.ok_or_else(|| (why(), next))?;
                Ok(EraChoice::Pinned(era))
            }
        }
    }

    fn connect_timeout_ms(&self) -> Result<Option<u64>, TableError> {
        let text = self.connect_timeout.as_deref();
        text.map(|it| duration_ms("connect_timeout", it))
            .transpose()
    }

    /// Returns the idle time of an on-demand server.
    fn idle_ms(&self) -> Result<Option<u64>, TableError> {
        match (self.start.as_deref(), self.idle.as_deref()) {
            (None | Some("at-once"), None) => Ok(None),
            (None | Some("at-once"), Some(_)) => {
                let why = "`idle` works only for servers that start on demand";
                Err((why.into(), "write start = \"on-demand\""))
            }
            (Some("on-demand"), None) => Ok(Some(IDLE_MS)),
            (Some("on-demand"), Some(text)) => duration_ms("idle", text).map(Some),
            (Some(other), _) => {
                let why = format!("invalid `start` value `{other}`");
                Err((why, "write at-once or on-demand"))
            }
        }
    }

    fn target(self) -> Result<ServerTarget, TableError> {
        let has_address_keys = !self.headers.is_empty();
        let has_command_keys = self.args.is_some() || !self.env.is_empty() || self.cwd.is_some();
        match (self.command, self.url) {
            (Some(command), None) if !has_address_keys => {
                let (command, args) = match self.args {
                    Some(args) => (command, args),
                    None => command_line(&command)?,
                };
                Ok(ServerTarget::Stdio {
                    command,
                    args,
                    env: self.env,
                    cwd: self.cwd,
                })
            }
            (None, Some(url)) if !has_command_keys => Ok(ServerTarget::Http {
                url,
                headers: self.headers,
            }),
            (None, None) => {
                let why = "neither `command` nor `url` is set";
                Err((why.into(), "set one of them"))
            }
            _ => {
                let why = "keys for a command (command, args, env, cwd) cannot be combined with \
                           keys for an address (url, headers)";
                Err((why.into(), "keep only keys of one kind"))
            }
        }
    }
}

fn duration_ms(key: &str, text: &str) -> Result<u64, TableError> {
    units::duration_ms(text).map_err(|bad| (format!("`{key}`: {bad}"), "correct the duration"))
}

fn command_line(text: &str) -> Result<(String, Vec<String>), TableError> {
    let words = shell_words::split(text);
    let advice = "close the quote, or remove the last backslash";
    let words = words.map_err(|bad| (format!("invalid command: {bad}"), advice))?;
    let (program, args) = words
        .split_first()
        .ok_or_else(|| ("the command is empty".to_owned(), "write a command"))?;
    Ok((program.clone(), args.to_vec()))
}
