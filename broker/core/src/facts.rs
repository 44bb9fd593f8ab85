//! The facts of a call: what rules can test besides the tool and the arguments. Facts are computed
//! once, when the script makes the call, and do not change. The decision, the human, the grant and
//! the journal see the same facts.
//!
//! A fact that cannot be computed is absent. An optional set is absent rather than empty: a
//! condition on all members is true for an empty set, so the call would look harmless.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::id::{CallId, Digest};
use crate::labels::{Labels, Writes};

/// Maximum length of a text that rules see in full. For a longer text, they see its digest and
/// length.
pub const TEXT_BYTES_MAX: usize = 4_096;

/// The facts of one call. Fields are JSON pointers into the arguments, such as `/to/0`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Labels of everything that had reached the run and its session before the call.
    pub labels: Labels,
    /// Whether no untrusted data had reached the session when the script arrived.
    pub script_trusted: bool,
    /// The effects of the tool, according to the configuration.
    pub writes: Writes,
    /// The roots under which all declared paths lie, after resolution. [`OUTSIDE`] represents a
    /// path that lies under no root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_roots: Option<BTreeSet<String>>,
    /// Destination hosts: `host`, or `host:port` if the port is not the scheme's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dest_hosts: Option<BTreeSet<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dest_addresses: Option<BTreeSet<String>>,
    /// The part after the `@` of each address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dest_domains: Option<BTreeSet<String>>,
    /// Whether every destination occurs in a trusted source. Absent if the call names no
    /// destination, unless the tool's destination is fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dest_explained: Option<bool>,
    /// Argument fields whose destination does not occur in any trusted source.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub dest_unexplained: BTreeSet<String>,
    /// Earlier results that the arguments repeat. They are evidence for the approver, and never a
    /// reason to allow the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<RepeatedText>,
    /// Destination and path fields whose text may be mistaken for another.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub lookalikes: BTreeSet<String>,
    pub counts: Counts,
    pub time: Time,
    /// Whether the tool's full description was shown in this session.
    pub disclosed: bool,
    /// Whether the tool's description is the one in the lock file. Absent without a lock file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub large_texts: BTreeMap<String, LargeText>,
}

/// Entry of [`Facts::path_roots`] for a path that lies under no configured root.
pub const OUTSIDE: &str = "outside";

/// One field of a call that repeats part of an earlier call's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepeatedText {
    pub field: String,
    pub call: CallId,
    /// Number of pieces of the result that the field contains.
    pub pieces: u32,
}

/// Numbers of calls and bytes that were allowed before this call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Number of allowed calls of this tool.
    pub calls_run: u64,
    pub calls_session: u64,
    /// Total size of the arguments that were sent to tools that write outside.
    pub bytes_run: u64,
    pub bytes_session: u64,
}

impl Counts {
    /// The number that rules see for calls of a session that nothing counted. It is the largest one
    /// that Cedar knows, so it exceeds every limit.
    pub const LARGEST: u64 = u64::MAX / 2;
}

/// The time of the call, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Time {
    pub at_ms: u64,
    pub hour: u8,
    /// Day of the week: 1 is Monday, 7 is Sunday.
    pub weekday: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargeText {
    pub bytes: u64,
    pub digest: Digest,
}

impl Default for Facts {
    /// Returns the worst-case facts, for a call about which nothing is known.
    fn default() -> Self {
        Self {
            labels: Labels::worst(),
            script_trusted: false,
            writes: Writes::default(),
            path_roots: None,
            dest_hosts: None,
            dest_addresses: None,
            dest_domains: None,
            dest_explained: None,
            dest_unexplained: BTreeSet::new(),
            shares: Vec::new(),
            lookalikes: BTreeSet::new(),
            counts: Counts::default(),
            time: Time::default(),
            disclosed: false,
            pinned: None,
            large_texts: BTreeMap::new(),
        }
    }
}

impl Default for Time {
    /// Returns the epoch, so that the weekday is valid.
    fn default() -> Self {
        Self::at(0)
    }
}

impl Time {
    #[must_use]
    pub fn at(now_ms: u64) -> Self {
        const HOUR_MS: u64 = 3_600_000;
        let hours = now_ms / HOUR_MS;
        // The first day of 1970 was a Thursday.
        let weekday = (hours / 24 + 3) % 7 + 1;
        Self {
            at_ms: now_ms,
            hour: u8::try_from(hours % 24).unwrap_or_default(),
            weekday: u8::try_from(weekday).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(now_ms: u64, hour: u8, weekday: u8) {
        let time = Time::at(now_ms);
        assert_eq!((time.hour, time.weekday), (hour, weekday), "{now_ms}");
    }

    #[test]
    fn time_fact_has_hour_and_weekday() {
        check(0, 0, 4);
        // 2026-11-21T15:40:00Z, a Saturday.
        check(1_795_275_600_000, 15, 6);
    }

    #[test]
    fn facts_round_trip() {
        let facts = Facts {
            dest_hosts: Some(["docs.rs".to_owned()].into()),
            ..Facts::default()
        };
        let text = serde_json::to_string(&facts).unwrap();
        let value = crate::json::parse(text.as_bytes()).unwrap();
        assert_eq!(Facts::deserialize(value).unwrap(), facts);
    }
}
