//! The tool descriptions that one session has been shown. A tool can be called in a session only
//! after its current full description was disclosed there. Disclosure helps the model to use tools
//! correctly. It is not a security boundary: rules and all other checks still apply.

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::Tool;
use crate::code::Code;
use crate::id::{Digest, ToolId};

/// URI of the resource with the descriptions that must be read before a call.
pub const DESCRIPTIONS_URI: &str = "resource:///tool_descriptions";

/// The tools that disclosure allows a run to call.
#[derive(Debug, Clone, Default)]
pub enum DisclosedTools {
    /// All tools: the caller is the command line or an embedding program, which sees every
    /// description.
    #[default]
    All,
    Only(Arc<HashMap<ToolId, Digest>>),
}

/// One session: its disclosures, and the rate limit for fetching descriptions.
#[derive(Debug, Clone)]
pub struct Session {
    disclosed: Arc<HashMap<ToolId, Digest>>,
    fetches: Bucket,
    latest_ms: u64,
}

/// A token bucket, which refills over time.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    millitokens: u64,
    since_ms: u64,
}

/// How often one session may fetch descriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchRate {
    /// Maximum number of fetches at once after a pause.
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

/// The error for a fetch that exceeds the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many description fetches; the next one is possible in {retry_after_ms} ms")]
pub struct RateLimited {
    pub retry_after_ms: u64,
}

impl DisclosedTools {
    /// Returns why a tool may not be called yet, with the code. airlock's own tools need no
    /// disclosure.
    #[must_use]
    pub fn objection(&self, tool: &Tool) -> Option<(Code, String)> {
        let Self::Only(disclosed) = self else {
            return None;
        };
        if tool.owner.is_own() {
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

    /// Adds descriptions that were shown in the session after this value was created.
    pub fn add(&mut self, shown: &[(ToolId, Digest)]) {
        if let Self::Only(disclosed) = self {
            Arc::make_mut(disclosed).extend(shown.iter().cloned());
        }
    }

    /// Removes the tools for which `stays` is false.
    pub fn retain(&mut self, stays: impl Fn(&ToolId) -> bool) {
        if let Self::Only(disclosed) = self
            && !disclosed.keys().all(&stays)
        {
            Arc::make_mut(disclosed).retain(|id, _| stays(id));
        }
    }

    #[must_use]
    pub fn allows(&self, tool: &Tool) -> bool {
        self.objection(tool).is_none()
    }
}

/// Returns the URI of the resource that discloses one tool.
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

    /// Adds descriptions that were disclosed before, such as before a restart.
    pub fn restore(&mut self, disclosed: impl IntoIterator<Item = (ToolId, Digest)>) {
        Arc::make_mut(&mut self.disclosed).extend(disclosed);
    }

    #[must_use]
    pub fn has_disclosed(&self) -> bool {
        !self.disclosed.is_empty()
    }

    /// Returns the tools that a run of this session may call if it starts now.
    #[must_use]
    pub fn disclosed(&self) -> DisclosedTools {
        DisclosedTools::Only(Arc::clone(&self.disclosed))
    }

    /// Counts one fetch. If the rate limit is reached, returns the time until the next fetch is
    /// possible.
    pub fn fetch(&mut self, rate: FetchRate, now_ms: u64) -> Result<(), RateLimited> {
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
                Err(RateLimited { retry_after_ms })
            }
        }
    }

    /// Notes that the host has sent something.
    pub fn touch(&mut self, now_ms: u64) {
        self.latest_ms = self.latest_ms.max(now_ms);
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
    fn tool_is_callable_after_disclosure_in_session() {
        let (read, write) = (tool("fs.read"), tool("fs.write"));
        let mut session = Session::new(FetchRate::default(), 0);
        let before = session.disclosed();
        session.disclose(&read);
        assert!(session.disclosed().allows(&read) && !session.disclosed().allows(&write));
        assert!(!before.allows(&read), "a view does not change afterwards");
        let other = Session::new(FetchRate::default(), 0);
        assert!(!other.disclosed().allows(&read));
        assert!(DisclosedTools::All.allows(&write));
        let (code, why) = before.objection(&read).unwrap();
        assert_eq!(code, Code::NotDisclosed);
        assert!(why.contains("resource:///tool_descriptions?tools=fs.read"));
    }

    #[test]
    fn later_disclosure_counts_and_own_tools_need_none() {
        let read = tool("fs.read");
        let session = Session::new(FetchRate::default(), 0);
        let (mut view, other) = (session.disclosed(), session.disclosed());
        view.add(&[(read.id.clone(), read.description_digest)]);
        assert!(view.allows(&read) && !other.allows(&read));
        let own = Tool {
            owner: crate::catalog::ToolOwner::OwnLocal,
            ..tool("airlock.search")
        };
        assert!(other.allows(&own));
    }

    #[test]
    fn changed_description_must_be_disclosed_again() {
        let read = tool("fs.read");
        let mut session = Session::new(FetchRate::default(), 0);
        session.disclose(&read);
        let changed = Tool {
            description_digest: Digest::sha256(b"v2"),
            ..read
        };
        let objection = session.disclosed().objection(&changed);
        assert_eq!(objection.unwrap().0, Code::DescriptionChanged);
    }

    #[test]
    fn fetch_tokens_refill_up_to_burst() {
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
            let expected = expected.map_err(|retry_after_ms| RateLimited { retry_after_ms });
            assert_eq!(fetched, expected, "at {now_ms}");
        }
    }

    #[test]
    fn silent_session_becomes_stale() {
        let mut session = Session::new(FetchRate::default(), 1_000);
        assert!(!session.is_stale(2_000, 1_000) && session.is_stale(2_001, 1_000));
        session.touch(2_001);
        assert!(!session.is_stale(3_000, 1_000));
    }
}
