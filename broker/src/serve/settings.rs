//! How hosts are served: what is listed, when descriptions are disclosed, and
//! what one session may use up. Nothing here is unlimited.

use std::time::Duration;

use airlock_core::limits::Limits;
use airlock_core::session::FetchRate;

use super::http::Patience;
use super::offered::Offers;
use crate::carrier::Abilities;
use crate::config::Passing;

/// What stands in `tools/list` besides our own tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Nothing: tools are called in scripts.
    #[default]
    Code,
    /// Every tool, called directly once it was disclosed: in minimal form, unless everything is
    /// disclosed at once.
    Progressive,
    /// `call_tool` alone, so that the list never changes.
    Stable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Disclosure {
    /// All at once when that takes no more than a share of the context, else progressively.
    #[default]
    Auto,
    Progressive,
    Full,
}

#[derive(Debug, Clone)]
pub struct Settings {
    pub mode: Mode,
    pub disclosure: Disclosure,
    /// The context of the model, in tokens.
    pub context_tokens: u64,
    /// Share of the context that declarations may take at once, in percent.
    pub disclosure_percent: u64,
    /// What servers may ask of hosts, where a host can be asked for it.
    pub pass: Abilities,
    /// Whether hosts that want to hear it are told what servers log in the middle of a call.
    pub logs: bool,
    /// Prompts and resources of servers, which hosts get without any rule; none by default.
    pub offers: Offers,
    /// How long after a start requests wait for servers that were never seen.
    pub start_wait: Duration,
    pub fetch_rate: FetchRate,
    /// What is expected of connections, over HTTP.
    pub patience: Patience,
    /// Longest message of a host; see [`message_bytes_max`].
    pub message_bytes_max: usize,
    /// Calls of one session that are worked on at the same time.
    pub calls_in_flight_max: usize,
    pub sessions_max: usize,
    /// A session whose host says nothing for so long is forgotten.
    pub session_idle: Duration,
    /// Bytes of a result text before the rest is left behind its resource.
    pub text_bytes_max: usize,
    /// Bytes of long values that are kept for one session.
    pub kept_bytes_max: usize,
    /// The same for all sessions together: the oldest make room.
    pub kept_bytes_max_of_all: usize,
}

/// Room for the longest message that makes sense within these limits: a script, in which every
/// other character may have to be escaped, with its input or with what the host answers.
#[must_use]
pub fn message_bytes_max(limits: &Limits) -> usize {
    const AROUND: usize = 1024 * 1024;
    let beside = limits.input_bytes_max.max(limits.result_bytes_max);
    2 * limits.script_bytes_max as usize + beside as usize + AROUND
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            disclosure: Disclosure::default(),
            context_tokens: 200_000,
            disclosure_percent: 3,
            pass: Passing::default().asked,
            logs: Passing::default().logs,
            offers: Offers::default(),
            start_wait: Duration::from_secs(2),
            patience: Patience::default(),
            fetch_rate: FetchRate::default(),
            message_bytes_max: message_bytes_max(&Limits::default()),
            calls_in_flight_max: 16,
            sessions_max: 1_000,
            session_idle: Duration::from_secs(3_600),
            text_bytes_max: 24 * 1024,
            kept_bytes_max: 32 * 1024 * 1024,
            kept_bytes_max_of_all: 256 * 1024 * 1024,
        }
    }
}

impl Settings {
    /// Sessions of one caller, where an authorization server tells callers apart.
    pub(super) fn sessions_of_one_max(&self) -> usize {
        const SHARE: usize = 4;
        (self.sessions_max / SHARE).max(1)
    }

    /// Nobody has asked for anything to be said briefly.
    pub(super) fn lists_whole(&self) -> bool {
        self.mode == Mode::Progressive && self.disclosure == Disclosure::Full
    }

    pub(super) fn tokens_at_once(&self) -> u64 {
        self.context_tokens.saturating_mul(self.disclosure_percent) / 100
    }
}
