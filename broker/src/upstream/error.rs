//! Errors that make a server unusable, and advice for each.

use std::borrow::Cow;
use std::time::Duration;

use super::outgoing::how_to_log_in;

/// An error while connecting. Its texts contain no credential, no argument of the command, and no
/// query of the address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    #[error("`{command}` cannot be started: {why}")]
    Start { command: String, why: String },
    #[error("{url} cannot be reached: {why}")]
    Unreachable { url: String, why: String },
    #[error("{url} refused the credentials (HTTP status {status})")]
    Unauthorized { url: String, status: u16 },
    #[error("{url}: {why}")]
    LoginRequired {
        url: String,
        why: String,
        /// The command that logs in, with its flags. Only the person at the terminal sees it. A caller
        /// has none.
        next: Option<String>,
    },
    #[error("the login cannot be used: {why}")]
    LoginUnusable { why: String, next: &'static str },
    #[error("invalid setting `{setting}`: {why}")]
    Setting { setting: String, why: String },
    #[error("the server did not finish connecting within {} ms{}", .within.as_millis(), words(.last_words))]
    TimedOut {
        within: Duration,
        last_words: Option<String>,
    },
    #[error("the connection ended during the handshake: {how}{}", words(.last_words))]
    Ended {
        how: String,
        last_words: Option<String>,
    },
    #[error("the server offers only protocol version {theirs}, which airlock does not support")]
    Version { theirs: String },
    #[error("the server does not answer as an MCP server: {why}")]
    NotMcp { why: String },
    #[error("the server's list of tools could not be read: {why}{}", words(.last_words))]
    List {
        why: String,
        last_words: Option<String>,
    },
    #[error("the last {failures} attempts to connect failed: {last}")]
    GivenUp { failures: u32, last: String },
}

fn words(last_words: &Option<String>) -> String {
    last_words
        .as_ref()
        .map(|words| format!("; {words}"))
        .unwrap_or_default()
}

impl ConnectError {
    /// Applies `shown` to every text that may come from the server or hold a secret.
    pub(super) fn map_texts(self, shown: impl Fn(&str) -> String) -> Self {
        let words = |words: Option<String>| words.as_deref().map(&shown);
        match self {
            Self::Start { command, why } => Self::Start {
                command,
                why: shown(&why),
            },
            Self::Unreachable { url, why } => Self::Unreachable {
                url: shown(&url),
                why: shown(&why),
            },
            Self::Unauthorized { url, status } => Self::Unauthorized {
                url: shown(&url),
                status,
            },
            Self::LoginUnusable { why, next } => Self::LoginUnusable {
                why: shown(&why),
                next,
            },
            Self::LoginRequired { url, why, next } => Self::LoginRequired {
                url: shown(&url),
                why: shown(&why),
                next,
            },
            Self::TimedOut { within, last_words } => Self::TimedOut {
                within,
                last_words: words(last_words),
            },
            Self::Ended { how, last_words } => Self::Ended {
                how: shown(&how),
                last_words: words(last_words),
            },
            Self::Version { theirs } => Self::Version {
                theirs: shown(&theirs),
            },
            Self::NotMcp { why } => Self::NotMcp { why: shown(&why) },
            Self::List { why, last_words } => Self::List {
                why: shown(&why),
                last_words: words(last_words),
            },
            ours @ (Self::Setting { .. } | Self::GivenUp { .. }) => ours,
        }
    }

    /// Returns advice for the person.
    #[must_use]
    pub fn next(&self) -> Cow<'static, str> {
        let next = match self {
            Self::LoginRequired { next, .. } => {
                let run = |command: &String| format!("run `{command}`");
                return next
                    .as_ref()
                    .map_or_else(|| how_to_log_in(None), run)
                    .into();
            }
            Self::Start { .. } => {
                "check the spelling of the command and that it is on PATH; only PATH, HOME and the configured variables are passed on"
            }
            Self::Unreachable { .. } => "check the address, and that the server is running",
            Self::LoginUnusable { next, .. } => next,
            Self::Unauthorized { .. } => "check the configured headers; a token may have expired",
            Self::Setting { .. } => "correct the setting",
            Self::TimedOut { .. } => {
                "`airlock servers --stderr` with the same server flags shows what it waits for; `connect_timeout` in airlock.toml gives it more time"
            }
            Self::Ended { .. } => {
                "`airlock servers --stderr` with the same server flags shows all that it printed; it gets only PATH, HOME and the configured variables, and runs in airlock's working folder unless `cwd` is set"
            }
            Self::Version { .. } => {
                "use a version of the server that supports protocol version 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26 or 2024-11-05"
            }
            Self::NotMcp { .. } => {
                "name the command or address of an MCP server on stdio or streamable HTTP; `airlock servers --stderr` with the same server flags shows what it printed"
            }
            Self::List { .. } => "report this to the server's author, or remove the server",
            Self::GivenUp { .. } => "check the server; airlock tries again after a while",
        };
        next.into()
    }
}
