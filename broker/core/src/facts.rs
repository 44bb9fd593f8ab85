//! What a rule may ask about a call besides its tool and its arguments. Facts
//! are computed once, when the script makes the call, and travel with it: the
//! decision, the human, the grant and the journal see the same ones.
//!
//! A fact that cannot be computed is absent. No set in here is empty and
//! present where an empty one would be harmless: a rule that compares it would
//! be right about nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::flow::Labels;
use crate::id::{CallId, Digest};

/// Texts above this stand for themselves by digest and length.
pub const TEXT_BYTES_MAX: usize = 4_096;

/// Fields are JSON pointers into the arguments, such as `/to/0`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Of everything that had reached the run, and its session, before the call.
    pub labels: Labels,
    /// Nothing untrusted had reached the session when the script arrived.
    pub script_trusted: bool,
    /// What the tool does with what it is given, as our configuration says.
    pub writes: Writes,
    /// The roots under which all declared paths lie, after resolution; [`OUTSIDE`] for those
    /// that lie under none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_roots: Option<BTreeSet<String>>,
    /// `host`, or `host:port` where the port is not the scheme's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dest_hosts: Option<BTreeSet<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dest_addresses: Option<BTreeSet<String>>,
    /// What stands behind the `@` of the addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dest_domains: Option<BTreeSet<String>>,
    /// Whether something trusted names every destination. Absent when the call names none,
    /// unless the tool's destination is always the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dest_explained: Option<bool>,
    /// The fields that nothing trusted explains.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub dest_unexplained: BTreeSet<String>,
    /// Evidence for whoever is asked; never a reason to allow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<Share>,
    /// Fields of destinations and paths that may be read as something else than they are.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub lookalikes: BTreeSet<String>,
    pub counts: Counts,
    pub time: Time,
    /// The tool's full description was shown in this session.
    pub disclosed: bool,
    /// The tool's description is the one in the lock file. Absent without a lock file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// Fields of which a policy sees nothing. Absent when no policy looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmodelled: Option<BTreeSet<String>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub large_texts: BTreeMap<String, LargeText>,
}

/// Stands in [`Facts::path_roots`] for a path that lies under no configured root.
pub const OUTSIDE: &str = "outside";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writes {
    /// Somebody else gets to see it.
    pub external: bool,
    /// Something is changed.
    pub state: bool,
}

/// One field repeats what an earlier call had returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    pub field: String,
    pub call: CallId,
    /// How many pieces of the text were found again.
    pub pieces: u32,
}

/// Before this call, of calls that were allowed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Of this tool.
    pub calls_run: u64,
    pub calls_session: u64,
    /// Of all arguments that went to tools which write outside.
    pub bytes_run: u64,
    pub bytes_session: u64,
}

/// UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Time {
    pub at_ms: u64,
    pub hour: u8,
    /// 1 is Monday, 7 is Sunday.
    pub weekday: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargeText {
    pub bytes: u64,
    pub digest: Digest,
}

impl Default for Writes {
    /// Unlabelled means the worst.
    fn default() -> Self {
        Self {
            external: true,
            state: true,
        }
    }
}

impl Default for Facts {
    /// What is known of a call when nothing is known of it.
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
            unmodelled: None,
            large_texts: BTreeMap::new(),
        }
    }
}

impl Default for Time {
    /// A moment that there was, so that its weekday is one.
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
    fn the_time_of_a_call_is_an_hour_and_a_weekday() {
        check(0, 0, 4);
        // 2026-11-21T15:40:00Z, a Saturday.
        check(1_795_275_600_000, 15, 6);
    }

    #[test]
    fn facts_read_back_as_they_were_written() {
        let facts = Facts {
            dest_hosts: Some(["docs.rs".to_owned()].into()),
            ..Facts::default()
        };
        let text = serde_json::to_string(&facts).unwrap();
        let value = crate::json::parse(text.as_bytes()).unwrap();
        assert_eq!(Facts::deserialize(value).unwrap(), facts);
    }
}
