//! What one host's connection has been shown: a tool can be called in a session
//! only after its full description was disclosed there, with the digest that
//! the tool still has. This orders the work of a model; it is no security
//! border, and every other layer decides besides it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::Tool;
use crate::code::Code;
use crate::id::{Digest, ToolId};

/// Where a description is read that has to be read first.
pub const DESCRIPTIONS_URI: &str = "resource:///tool_descriptions";

/// Which tools a run may call, as its session knows them.
#[derive(Debug, Clone, Default)]
pub enum Disclosed {
    /// Whoever starts the run has seen everything: the command line, an embedding host.
    #[default]
    All,
    Only(Arc<HashMap<ToolId, Digest>>),
}

/// One session: its disclosures, and how often it may still fetch.
#[derive(Debug, Clone)]
pub struct Session {
    disclosed: Arc<HashMap<ToolId, Digest>>,
    fetches: Bucket,
    latest_ms: u64,
}

/// Tokens that come back with time.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    millitokens: u64,
    since_ms: u64,
}

/// How often descriptions may be fetched in one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchRate {
    /// At once, when none was fetched for a while.
    pub burst: u32,
    pub per_minute: u32,
}

impl Default for FetchRate {
    fn default() -> Self {
        Self {
            burst: 60,
            per_minute: 120,
        }
    }
}

/// A fetch that comes too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("descriptions are fetched too often; the next fetch is possible in {retry_after_ms} ms")]
pub struct TooOften {
    pub retry_after_ms: u64,
}

impl Disclosed {
    /// Why a tool may not be called yet, and the code that goes with it. airlock's own need no
    /// disclosure.
    #[must_use]
    pub fn objection(&self, tool: &Tool) -> Option<(Code, String)> {
        let Self::Only(disclosed) = self else {
            return None;
        };
        if tool.whose.is_own() {
            return None;
        }
        let id = &tool.id;
        match disclosed.get(id) {
            Some(digest) if *digest == tool.description_digest => None,
            Some(_) => Some((
                Code::DescriptionChanged,
                format!(
                    "the description of `{id}` has changed since it was disclosed; \
                     read {} again",
                    uri_of(id)
                ),
            )),
            None => Some((
                Code::NotDisclosed,
                format!(
                    "TOOL_DESCRIPTION_REQUIRED: tool '{id}' requires fetching its description \
                     before use; read {}",
                    uri_of(id)
                ),
            )),
        }
    }

    /// These descriptions were shown in the session meanwhile.
    pub fn add(&mut self, shown: &[(ToolId, Digest)]) {
        if let Self::Only(disclosed) = self {
            Arc::make_mut(disclosed).extend(shown.iter().cloned());
        }
    }

    #[must_use]
    pub fn allows(&self, tool: &Tool) -> bool {
        self.objection(tool).is_none()
    }
}

/// The resource that discloses one tool.
#[must_use]
pub fn uri_of(tool: &ToolId) -> String {
    format!("{DESCRIPTIONS_URI}?tools={tool}")
}

impl Session {
    #[must_use]
    pub fn new(rate: FetchRate, now_ms: u64) -> Self {
        Self {
            disclosed: Arc::default(),
            fetches: Bucket {
                millitokens: u64::from(rate.burst) * 1_000,
                since_ms: now_ms,
            },
            latest_ms: now_ms,
        }
    }

    pub fn disclose(&mut self, tool: &Tool) {
        Arc::make_mut(&mut self.disclosed).insert(tool.id.clone(), tool.description_digest);
    }

    #[must_use]
    pub fn has_disclosed(&self) -> bool {
        !self.disclosed.is_empty()
    }

    /// What a run of this session may call, from now on until it ends.
    #[must_use]
    pub fn disclosed(&self) -> Disclosed {
        Disclosed::Only(Arc::clone(&self.disclosed))
    }

    /// Takes one fetch, or says when there is one again.
    pub fn fetch(&mut self, rate: FetchRate, now_ms: u64) -> Result<(), TooOften> {
        let waited_ms = now_ms.saturating_sub(self.fetches.since_ms);
        let back = waited_ms.saturating_mul(u64::from(rate.per_minute)) / 60;
        let most = u64::from(rate.burst) * 1_000;
        let there = self.fetches.millitokens.saturating_add(back).min(most);
        self.fetches = Bucket {
            millitokens: there,
            since_ms: now_ms,
        };
        match there.checked_sub(1_000) {
            Some(left) => {
                self.fetches.millitokens = left;
                Ok(())
            }
            None => {
                let missing = 1_000_u64.saturating_sub(there);
                let per_minute = u64::from(rate.per_minute.max(1));
                let retry_after_ms = missing.saturating_mul(60).div_ceil(per_minute);
                Err(TooOften { retry_after_ms })
            }
        }
    }

    /// The host has said something.
    pub fn touch(&mut self, now_ms: u64) {
        self.latest_ms = self.latest_ms.max(now_ms);
    }

    /// When it last did.
    #[must_use]
    pub fn used_at_ms(&self) -> u64 {
        self.latest_ms
    }

    #[must_use]
    pub fn is_stale(&self, now_ms: u64, idle_ms_max: u64) -> bool {
        now_ms.saturating_sub(self.latest_ms) > idle_ms_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tool;

    #[test]
    fn a_tool_may_be_called_once_its_description_was_disclosed_in_this_session() {
        let (read, write) = (tool("fs.read"), tool("fs.write"));
        let mut session = Session::new(FetchRate::default(), 0);
        let before = session.disclosed();
        session.disclose(&read);
        assert!(session.disclosed().allows(&read) && !session.disclosed().allows(&write));
        assert!(!before.allows(&read), "a view does not change afterwards");
        let other = Session::new(FetchRate::default(), 0);
        assert!(!other.disclosed().allows(&read));
        assert!(Disclosed::All.allows(&write));
        let (code, why) = before.objection(&read).unwrap();
        assert_eq!(code, Code::NotDisclosed);
        assert!(why.contains("resource:///tool_descriptions?tools=fs.read"));
    }

    #[test]
    fn what_was_shown_meanwhile_counts_from_then_on_and_our_own_tools_need_none() {
        let read = tool("fs.read");
        let session = Session::new(FetchRate::default(), 0);
        let (mut view, other) = (session.disclosed(), session.disclosed());
        view.add(&[(read.id.clone(), read.description_digest)]);
        assert!(view.allows(&read) && !other.allows(&read));
        let own = Tool {
            whose: crate::catalog::Whose::OwnWithin,
            ..tool("airlock.search")
        };
        assert!(other.allows(&own));
    }

    #[test]
    fn a_changed_description_has_to_be_disclosed_again() {
        let read = tool("fs.read");
        let mut session = Session::new(FetchRate::default(), 0);
        session.disclose(&read);
        let changed = Tool {
            description_digest: Digest::of(b"v2"),
            ..read
        };
        let objection = session.disclosed().objection(&changed);
        assert_eq!(objection.unwrap().0, Code::DescriptionChanged);
    }

    #[test]
    fn fetches_come_back_with_time_and_never_beyond_the_burst() {
        let rate = FetchRate {
            burst: 2,
            per_minute: 60,
        };
        let mut session = Session::new(rate, 0);
        for (now_ms, expected) in [
            (0, Ok(())),
            (0, Ok(())),
            (0, Err(1_000)),
            (400, Err(600)),
            (1_000, Ok(())),
            (1_000, Err(1_000)),
            (900_000, Ok(())),
            (900_000, Ok(())),
            (900_000, Err(1_000)),
        ] {
            let fetched = session.fetch(rate, now_ms);
            let expected = expected.map_err(|retry_after_ms| TooOften { retry_after_ms });
            assert_eq!(fetched, expected, "at {now_ms}");
        }
    }

    #[test]
    fn a_session_is_stale_when_its_host_was_silent_for_too_long() {
        let mut session = Session::new(FetchRate::default(), 1_000);
        assert!(!session.is_stale(2_000, 1_000) && session.is_stale(2_001, 1_000));
        session.touch(2_001);
        assert!(!session.is_stale(3_000, 1_000));
    }
}
