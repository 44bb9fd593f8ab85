//! Settings of the server: which tools are listed, when descriptions are disclosed, and the limits
//! of a session. Every limit is finite.

use std::time::Duration;

use airlock_core::limits::Limits;
use airlock_core::session::FetchRate;
use clap::ValueEnum;
use rustix::process::{Resource, getrlimit};

use crate::broker::tool_index::DeclareLimit;
use crate::client_bridge::ClientCapabilities;
use crate::config::{Offers, PassThrough};
use crate::host_record::{CallerKey, RecordTimes};

/// How long a run waits for people only, before it is suspended.
const SUSPEND_AFTER: Duration = Duration::from_secs(60);

/// The tools that `tools/list` contains in addition to airlock's own tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ListMode {
    /// No further tools: the model calls tools in scripts
    #[default]
    Code,
    /// Every tool with a short description, so that the model can also call tools directly
    Progressive,
    /// Only call_tool, which can call any tool; the list never changes
    Stable,
}

/// When the model gets the full tool descriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Disclosure {
    /// With the tool list if all descriptions together fit into `--disclosure-share`; otherwise on
    /// request
    #[default]
    Auto,
    /// On request only
    Progressive,
    /// Always with the tool list
    Full,
}

#[derive(Debug, Clone)]
pub struct ServeSettings {
    pub mode: ListMode,
    pub disclosure: Disclosure,
    /// The model's context size, in tokens.
    pub context_tokens: u64,
    /// Maximum share of the context for declarations that are disclosed at once, in percent.
    pub disclosure_percent: u64,
    /// The kinds of requests that servers may send to hosts that support them.
    pub pass: ClientCapabilities,
    /// Whether servers' log messages during a call are sent to hosts that want them.
    pub logs: bool,
    /// The servers whose prompts and resources hosts get; no rule is evaluated for them. Empty by
    /// default.
    pub offers: Offers,
    /// Whether an approver is configured for hosts that cannot ask their user.
    pub has_approver: bool,
    /// Time after the start during which requests wait for servers that have never connected.
    pub start_wait: Duration,
    pub fetch_rate: FetchRate,
    /// Limits of HTTP connections.
    pub patience: ConnectionLimits,
    /// Maximum length of a host's message, in bytes; see [`message_bytes_max`].
    pub message_bytes_max: usize,
    /// Maximum number of calls of one session in progress at the same time.
    pub calls_in_flight_max: usize,
    pub sessions_max: usize,
    /// Idle time after which a session is over.
    pub session_idle: Duration,
    /// How long the labels of a caller are kept after its last session; the idle time of a session
    /// by default.
    pub labels_keep: Option<Duration>,
    /// Maximum length of a value in a result, in bytes; `read_result` returns the rest.
    pub text_bytes_max: usize,
    /// Maximum length of a tool's description, in characters, for all hosts. By default, a table of
    /// known hosts says it.
    pub description_chars_max: Option<usize>,
    /// Time after which a run that waits for an approver outside the host is paused, for all hosts.
    /// By default, a table of known hosts says it.
    pub pause_after: Option<Duration>,
    /// How long a run waits for people only, before it is suspended: it ends, and a later run
    /// continues it. `None`: never.
    pub suspend_after: Option<Duration>,
    /// Whether the runs of hosts that cannot ask their user are suspended at once.
    pub answers_come_later: bool,
    /// Maximum size of the long values kept per session, in bytes.
    pub kept_bytes_max: usize,
    /// Maximum size of the long values kept for all sessions, in bytes; the oldest are dropped
    /// first.
    pub kept_bytes_max_of_all: usize,
}

/// Limits of HTTP connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Maximum time to receive the head of a request, counted from when the connection is idle.
    pub head: Duration,
    /// Maximum time to receive the body of a request.
    pub body: Duration,
    pub connections_max: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(60),
            body: Duration::from_secs(60),
            connections_max: connections_max(),
        }
    }
}

/// Returns the default number of connections. It leaves file descriptors for servers, journals and
/// files.
fn connections_max() -> usize {
    const MAX: u64 = 4_096;
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    (descriptors / 2).clamp(1, MAX) as usize
}

/// Returns the length of the longest message that is useful within these limits, in bytes: a script
/// in which every other character is escaped, with its input or with the host's answers.
#[must_use]
pub fn message_bytes_max(limits: &Limits) -> usize {
    const AROUND: usize = 1024 * 1024;
    let beside = limits.input_bytes_max.max(limits.result_bytes_max);
    2 * limits.script_bytes_max as usize + beside as usize + AROUND
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self {
            mode: ListMode::default(),
            disclosure: Disclosure::default(),
            context_tokens: 200_000,
            disclosure_percent: 3,
            pass: PassThrough::default().asked,
            logs: PassThrough::default().logs,
            offers: Offers::default(),
            has_approver: false,
            start_wait: Duration::from_secs(2),
            patience: ConnectionLimits::default(),
            fetch_rate: FetchRate::default(),
            message_bytes_max: message_bytes_max(&Limits::default()),
            calls_in_flight_max: 16,
            sessions_max: 1_000,
            session_idle: Duration::from_secs(3_600),
            labels_keep: None,
            text_bytes_max: 24 * 1024,
            description_chars_max: None,
            pause_after: None,
            suspend_after: Some(SUSPEND_AFTER),
            answers_come_later: false,
            kept_bytes_max: 32 * 1024 * 1024,
            kept_bytes_max_of_all: 256 * 1024 * 1024,
        }
    }
}

impl ServeSettings {
    /// Returns the maximum number of sessions of one caller that are held in memory. All hosts that
    /// use the shared token are one caller.
    pub(super) fn sessions_of_one_max(&self, caller: &CallerKey) -> usize {
        const SHARE: usize = 4;
        match caller.is_token() {
            true => self.sessions_max,
            false => (self.sessions_max / SHARE).max(1),
        }
    }

    /// Returns how long the records of sessions and callers are kept.
    pub(super) fn record_times(&self) -> RecordTimes {
        RecordTimes {
            idle: self.session_idle,
            labels_keep: self.labels_keep.unwrap_or(self.session_idle),
        }
    }

    /// Whether `tools/list` contains full entries.
    pub(super) fn lists_whole(&self) -> bool {
        self.mode == ListMode::Progressive && self.disclosure == Disclosure::Full
    }

    /// Returns how many declarations are shown before a host asks for any.
    pub(super) fn declare_limit(&self) -> DeclareLimit {
        match self.disclosure {
            Disclosure::Progressive => DeclareLimit::Nothing,
            // Shown declarations would change the list whenever servers change.
            Disclosure::Auto if self.mode == ListMode::Stable => DeclareLimit::Nothing,
            Disclosure::Full => DeclareLimit::Everything,
            Disclosure::Auto => {
                let share = self.context_tokens.saturating_mul(self.disclosure_percent);
                DeclareLimit::Tokens(share / 100)
            }
        }
    }
}
