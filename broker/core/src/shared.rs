//! What runs share: the state of one session or one project, as it stands in a
//! file of ours. Whoever changes it reads it, changes it and writes it back
//! under one lock; the lock and the file are the shell's.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use codegen::canonical;
use serde::{Deserialize, Serialize};

use crate::flow::{Carried, Labels};
use crate::grant::{Grant, Scope, Use};
use crate::id::{Digest, GrantId, RunId, ToolId};
use crate::json::{self, Bounds};

/// Version of the format. A reader refuses every other.
pub const VERSION: u32 = 1;
pub const BYTES_MAX: u32 = 32 * 1024 * 1024;
/// Grants whose time is over are listed until there are so many of them.
const EXPIRED_MAX: usize = 500;
/// More would be no decision of a person any more.
const GRANTS_MAX: usize = 10_000;

/// What a session is called: letters, digits, `_`, `-` and `.`, the first one a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct SessionName(Arc<str>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a name of a session: letters, digits, `_`, `-` and `.`, at most {max}, the first one \
     a letter or digit",
    max = SessionName::CHARS_MAX
)]
pub struct BadSessionName(String);

impl SessionName {
    pub const CHARS_MAX: usize = 64;

    pub fn parse(text: &str) -> Result<Self, BadSessionName> {
        let fits = text.len() <= Self::CHARS_MAX
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        if fits {
            Ok(Self(text.into()))
        } else {
            Err(BadSessionName(text.chars().take(80).collect()))
        }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SessionName {
    type Error = BadSessionName;

    fn try_from(text: String) -> Result<Self, BadSessionName> {
        Self::parse(&text)
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What all runs of one session, or of one project, have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shared {
    pub scope: Scope,
    /// The session's name, or the project's folder.
    pub name: String,
    /// What its runs had read and sent by their end.
    pub carried: Carried,
    /// Runs that began, and when. One that never said what it had read may have read anything.
    pub running: BTreeMap<RunId, u64>,
    /// Full descriptions that were shown, by their digests.
    pub disclosed: BTreeMap<ToolId, Digest>,
    pub grants: Vec<Kept>,
}

/// A grant that outlives its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    pub grant: Grant,
    /// Why it is over before its time.
    pub over: Option<Over>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Over {
    pub at_ms: u64,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadShared {
    #[error("it is not what was written: {0}")]
    Corrupt(String),
    #[error("it has version {0}, and this program knows {VERSION}")]
    Version(u64),
    #[error("it is about {found}, and not about {wanted}")]
    Other { found: String, wanted: String },
}

/// Why a shared grant gives no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoUse {
    #[error("it is not known any more")]
    Unknown,
    #[error("{0}")]
    Over(String),
    #[error("there are {GRANTS_MAX} of them, and no more are kept")]
    TooMany,
}

impl Shared {
    #[must_use]
    pub fn new(scope: Scope, name: impl Into<String>) -> Self {
        Self {
            scope,
            name: name.into(),
            carried: Carried::default(),
            running: BTreeMap::new(),
            disclosed: BTreeMap::new(),
            grants: Vec::new(),
        }
    }

    /// The whole file: a line with version and digest, and a line with the state.
    pub fn to_text(&self) -> Result<String, BadShared> {
        let failed = |error: serde_json::Error| BadShared::Corrupt(error.to_string());
        let state = serde_json::to_value(self).map_err(failed)?;
        let state = String::from_utf8_lossy(&canonical::canonical(&state)).into_owned();
        let digest = Digest::of(state.as_bytes());
        Ok(format!(
            "{{\"digest\":\"{digest}\",\"v\":{VERSION}}}\n{state}\n"
        ))
    }

    /// Reads what [`Shared::to_text`] wrote, and nothing that was changed since.
    pub fn parse(text: &[u8]) -> Result<Self, BadShared> {
        #[derive(Deserialize)]
        struct Head {
            v: u64,
            digest: Option<Digest>,
        }
        let corrupt = |why: &str| BadShared::Corrupt(why.to_owned());
        let bounds = Bounds {
            bytes_max: BYTES_MAX,
            depth_max: 16,
            nodes_max: 4_000_000,
        };
        json::measure(text, bounds).map_err(|bad| BadShared::Corrupt(bad.to_string()))?;
        let mut lines = text.splitn(3, |byte| *byte == b'\n');
        let head = lines.next().and_then(json::typed::<Head>);
        let head = head.ok_or_else(|| corrupt("its first line cannot be read"))?;
        if head.v != u64::from(VERSION) {
            return Err(BadShared::Version(head.v));
        }
        let state = lines.next().ok_or_else(|| corrupt("its end is missing"))?;
        if lines.next() != Some(&[]) || head.digest != Some(Digest::of(state)) {
            return Err(corrupt("its digest does not fit"));
        }
        json::typed(state).ok_or_else(|| corrupt("its second line cannot be read"))
    }

    /// Whether this is the state of that session or project.
    pub fn is_of(&self, scope: Scope, name: &str) -> Result<(), BadShared> {
        if self.scope == scope && self.name == name {
            return Ok(());
        }
        Err(BadShared::Other {
            found: format!("the {} `{}`", self.scope, self.name),
            wanted: format!("the {scope} `{name}`"),
        })
    }

    /// A run begins. `is_gone` tells of one that began before whether it can still end: what it
    /// had read, nobody will say any more, and so it was the worst.
    pub fn begin(&mut self, run: RunId, now_ms: u64, is_gone: impl Fn(&RunId, u64) -> bool) {
        let before = self.running.len();
        self.running
            .retain(|run, since_ms| !is_gone(run, *since_ms));
        if self.running.len() < before {
            self.carried.labels.join(&Labels::worst());
        }
        self.running.insert(run, now_ms);
    }

    /// It ended, and says what it had read and sent.
    pub fn finish(&mut self, run: &RunId, carried: &Carried) {
        self.running.remove(run);
        self.carried.join(carried);
    }

    /// A new grant, or one from a file that is known already: it keeps its uses then.
    pub fn keep(&mut self, grant: Grant) -> Result<(), NoUse> {
        if self.grants.iter().any(|kept| kept.grant.id == grant.id) {
            return Ok(());
        }
        self.forget_expired(grant.given_at_ms);
        if self.grants.len() >= GRANTS_MAX {
            return Err(NoUse::TooMany);
        }
        self.grants.push(Kept { grant, over: None });
        Ok(())
    }

    /// One use, counted before whatever it is for happens.
    pub fn claim(&mut self, grant: &GrantId, now_ms: u64) -> Result<Use, NoUse> {
        let kept = self
            .grants
            .iter_mut()
            .find(|kept| kept.grant.id == *grant)
            .ok_or(NoUse::Unknown)?;
        if let Some(over) = &kept.over {
            return Err(NoUse::Over(over.why.clone()));
        }
        if let Some(why) = kept.grant.spent(now_ms) {
            return Err(NoUse::Over(why.to_owned()));
        }
        kept.grant.uses += 1;
        Ok(Use {
            grant: grant.clone(),
            number: kept.grant.uses,
            uses_max: kept.grant.uses_max,
            expires_at_ms: kept.grant.expires_at_ms,
        })
    }

    /// It is over from now on, and stays listed. Whether there was one to end.
    pub fn end(&mut self, grant: &GrantId, why: &str, now_ms: u64) -> bool {
        let open = |kept: &&mut Kept| kept.grant.id == *grant && kept.over.is_none();
        let Some(kept) = self.grants.iter_mut().find(open) else {
            return false;
        };
        kept.over = Some(Over {
            at_ms: now_ms,
            why: why.to_owned(),
        });
        true
    }

    /// What was used up or revoked before its time stays known until then: a file that gives
    /// it again would make it anew.
    fn forget_expired(&mut self, now_ms: u64) {
        let is_expired = |kept: &Kept| kept.grant.expires_at_ms <= now_ms;
        let expired = self.grants.iter().filter(|kept| is_expired(kept)).count();
        let mut surplus = expired.saturating_sub(EXPIRED_MAX);
        self.grants.retain(|kept| {
            let goes = surplus > 0 && is_expired(kept);
            surplus -= usize::from(goes);
            !goes
        });
    }
}

impl Kept {
    /// Why it allows nothing any more.
    #[must_use]
    pub fn over(&self, now_ms: u64) -> Option<&str> {
        let over = self.over.as_ref().map(|over| over.why.as_str());
        over.or_else(|| self.grant.spent(now_ms))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::grant::Condition;

    fn grant(id: &str, uses_max: u32) -> Grant {
        Grant {
            id: GrantId(id.into()),
            scope: Scope::Session,
            tool: ToolId::parse("fs.write").unwrap(),
            description: Digest::of(b"d"),
            script: Some(Digest::of(b"s")),
            policy: Digest::of(b"p"),
            condition: Condition::anything(),
            uses_max: NonZeroU32::new(uses_max).unwrap(),
            uses: 0,
            given_at_ms: 1,
            expires_at_ms: 100,
            labels: Labels::worst(),
            shown: Digest::of(b"shown"),
            by: "terminal".into(),
        }
    }

    fn shared() -> Shared {
        let mut shared = Shared::new(Scope::Session, "work");
        shared.keep(grant("r.1", 2)).unwrap();
        shared
    }

    #[test]
    fn a_use_is_counted_once_and_never_beyond_the_most() {
        let mut shared = shared();
        let id = GrantId("r.1".into());
        assert_eq!(shared.claim(&id, 1).unwrap().number, 1);
        // The same grant from a file again: its uses stay.
        shared.keep(grant("r.1", 2)).unwrap();
        assert_eq!(shared.claim(&id, 1).unwrap().number, 2);
        let why = shared.claim(&id, 1).unwrap_err();
        assert_eq!(why, NoUse::Over("it is used up".into()));
        let other = GrantId("r.2".into());
        assert_eq!(shared.claim(&other, 1), Err(NoUse::Unknown));
    }

    #[test]
    fn what_has_expired_or_was_ended_gives_no_use() {
        let mut shared = shared();
        let id = GrantId("r.1".into());
        assert_eq!(
            shared.claim(&id, 100),
            Err(NoUse::Over("it has expired".into()))
        );
        assert!(shared.end(&id, "revoked", 5) && !shared.end(&id, "again", 6));
        assert_eq!(shared.claim(&id, 6), Err(NoUse::Over("revoked".into())));
        shared.keep(grant("r.1", 9)).unwrap();
        assert_eq!(shared.claim(&id, 6), Err(NoUse::Over("revoked".into())));
    }

    #[test]
    fn a_state_reads_back_and_no_changed_byte_is_believed() {
        let shared = shared();
        let text = shared.to_text().unwrap().into_bytes();
        assert_eq!(Shared::parse(&text).unwrap(), shared);
        for at in 0..text.len() {
            let mut changed = text.clone();
            changed[at] ^= 1;
            assert!(Shared::parse(&changed).is_err(), "{at}");
            assert!(Shared::parse(&text[..at]).is_err(), "{at}");
        }
        let newer = String::from_utf8(text)
            .unwrap()
            .replace("\"v\":1", "\"v\":2");
        assert_eq!(Shared::parse(newer.as_bytes()), Err(BadShared::Version(2)));
    }

    #[test]
    fn what_was_revoked_is_forgotten_only_long_after_its_time() {
        let mut shared = Shared::new(Scope::Project, "/a");
        for n in 0..EXPIRED_MAX + 5 {
            shared.keep(grant(&n.to_string(), 1)).unwrap();
            assert!(shared.end(&GrantId(n.to_string().into()), "revoked", 5));
        }
        assert_eq!(shared.grants.len(), EXPIRED_MAX + 5);
        let late = Grant {
            given_at_ms: 100,
            expires_at_ms: 200,
            ..grant("late", 1)
        };
        shared.keep(late).unwrap();
        assert_eq!(shared.grants.len(), EXPIRED_MAX + 1);
        assert_eq!(shared.grants[0].grant.id, GrantId("5".into()));
    }

    #[test]
    fn a_run_that_never_said_what_it_read_leaves_the_worst_behind() {
        let run = |name: &str| RunId(name.into());
        let mut shared = Shared::new(Scope::Session, "work");
        shared.begin(run("a"), 1, |_, _| true);
        assert!(shared.carried.labels.is_empty());
        shared.finish(&run("a"), &Carried::default());
        shared.begin(run("b"), 2, |_, _| true);
        shared.begin(run("c"), 3, |_, _| false);
        assert!(shared.carried.labels.is_empty());
        shared.begin(run("d"), 4, |run, since_ms| &*run.0 == "b" && since_ms == 2);
        assert_eq!(shared.carried.labels, Labels::worst());
        assert_eq!(shared.running.len(), 2);
    }

    #[test]
    fn a_session_has_a_name_that_is_a_file_name() {
        for good in ["a", "2026-11.work_1"] {
            assert!(SessionName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "../x", "a/b", "-a", "a b", "ä", &"a".repeat(65)] {
            assert!(SessionName::parse(bad).is_err(), "{bad}");
        }
    }
}
