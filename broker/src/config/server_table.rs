//! `[servers.NAME]` of our own file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use airlock_core::problem::Problem;
use serde::Deserialize;

use super::server::{Declared, Target, Trust, Tuning};
use super::{invalid, units, words};
use crate::upstream::{Era, EraChoice};

/// A server that was started on demand is left again after so long without a call.
const IDLE_MS: u64 = 5 * 60 * 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerTable {
    /// A whole command line when there is no `args`, else the program alone.
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
    /// How long a server that was started on demand stays without a call.
    idle: Option<String>,
    /// What it is good for, in a line.
    about: Option<String>,
    #[serde(default)]
    trust_annotations: bool,
    #[serde(default)]
    read_only: Vec<String>,
    #[serde(default)]
    destructive: Vec<String>,
}

/// Why a table is none, and what to write instead.
type Wrong = (String, &'static str);

impl ServerTable {
    pub(super) fn declare(self, name: String, origin: String) -> Result<Declared, Problem> {
        let server = format!("the server `{name}` ({origin}) cannot be used");
        let wrong = |(why, next): Wrong| invalid(server.clone(), why, next);
        let tuning = Tuning {
            era: Some(self.era().map_err(wrong)?),
            in_flight_max: self.in_flight,
            connect_timeout_ms: self.connect_timeout_ms().map_err(wrong)?,
            idle_ms: self.idle_ms().map_err(wrong)?,
            about: self.about.clone(),
        };
        let trust = Trust {
            annotations: self.trust_annotations,
            read_only: self.read_only.clone(),
            destructive: self.destructive.clone(),
        };
        Ok(Declared {
            target: self.target().map_err(wrong)?,
            name,
            origin,
            tuning,
            trust,
        })
    }

    fn era(&self) -> Result<EraChoice, Wrong> {
        match self.era.as_deref() {
            None | Some("auto") => Ok(EraChoice::Auto),
            Some(version) => {
                let era = Era::parse(version);
                let next = "write auto, 2025-11-25 or 2026-07-28";
                let era = era.ok_or_else(|| (format!("`{version}` is no era"), next))?;
                Ok(EraChoice::Pinned(era))
            }
        }
    }

    fn connect_timeout_ms(&self) -> Result<Option<u64>, Wrong> {
        let text = self.connect_timeout.as_deref();
        text.map(|it| duration_ms("connect_timeout", it))
            .transpose()
    }

    /// Of a server that starts on demand.
    fn idle_ms(&self) -> Result<Option<u64>, Wrong> {
        match (self.start.as_deref(), self.idle.as_deref()) {
            (None | Some("at-once"), None) => Ok(None),
            (None | Some("at-once"), Some(_)) => {
                let why = "it has `idle`, which is about servers that start on demand";
                Err((why.into(), "write start = \"on-demand\""))
            }
            (Some("on-demand"), None) => Ok(Some(IDLE_MS)),
            (Some("on-demand"), Some(text)) => duration_ms("idle", text).map(Some),
            (Some(other), _) => {
                let why = format!("`{other}` is no way to start");
                Err((why, "write at-once or on-demand"))
            }
        }
    }

    fn target(self) -> Result<Target, Wrong> {
        let has_address_keys = !self.headers.is_empty();
        let has_command_keys = self.args.is_some() || !self.env.is_empty() || self.cwd.is_some();
        match (self.command, self.url) {
            (Some(command), None) if !has_address_keys => {
                let (command, args) = match self.args {
                    Some(args) => (command, args),
                    None => command_line(&command)?,
                };
                Ok(Target::Stdio {
                    command,
                    args,
                    env: self.env,
                    cwd: self.cwd,
                })
            }
            (None, Some(url)) if !has_command_keys => Ok(Target::Http {
                url,
                headers: self.headers,
            }),
            (None, None) => {
                let why = "it has neither `command` nor `url`";
                Err((why.into(), "write one of them"))
            }
            _ => {
                let why = "it mixes what a command has (command, args, env, cwd) with what an \
                           address has (url, headers)";
                Err((why.into(), "keep one of the two"))
            }
        }
    }
}

fn duration_ms(key: &str, text: &str) -> Result<u64, Wrong> {
    units::duration_ms(text).map_err(|bad| (format!("`{key}`: {bad}"), "correct the duration"))
}

fn command_line(text: &str) -> Result<(String, Vec<String>), Wrong> {
    let words = words::split(text);
    let words = words.map_err(|bad| (format!("in its command, {bad}"), "close what is open"))?;
    let (program, args) = words
        .split_first()
        .ok_or_else(|| ("its command is empty".to_owned(), "write a command"))?;
    Ok((program.clone(), args.to_vec()))
}
