//! The state that the runs of one session or one project share, in a file of airlock's own format.
//! A change is read, modified and written back under one lock. The shell owns the lock and the
//! file.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use codegen::canonical;
use serde::{Deserialize, Serialize};

use crate::flow::{Declassification, SessionFlow};
use crate::grant::{Grant, Scope, Use};
use crate::id::{Digest, GrantId, RunId, ToolId};
use crate::json::{self, Bounds};
use crate::labels::{Label, Labels};

/// Version of the format. A reader refuses every other version.
pub const VERSION: u32 = 1;
pub const BYTES_MAX: u32 = 32 * 1024 * 1024;
/// Maximum number of expired grants that stay listed.
const EXPIRED_MAX: usize = 500;
/// Maximum number of stored grants, far above what people give.
const GRANTS_MAX: usize = 10_000;

/// The name of a session: letters, digits, `_`, `-` and `.`, starting with a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct SessionName(Arc<str>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid session name `{0}`; expected at most {max} letters, digits, `_`, `-` and `.`, \
     starting with a letter or digit",
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

/// The state that all runs of one session, or of one project, share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedState {
    pub scope: Scope,
    /// Name of the session, or folder of the project.
    pub name: String,
    /// Labels and counts of the finished runs.
    pub carried: SessionFlow,
    /// Whether the data that some run has read is unknown. It then counts as having every label
    /// that the configuration knows.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_unknown: bool,
    /// Labels that a person has removed from the data that is unknown.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unknown_declassified: Vec<Label>,
    /// Runs that have begun, with their start times. A run that never recorded its end may have
    /// read anything.
    pub running: BTreeMap<RunId, u64>,
    /// Digests of the full descriptions that were shown.
    pub disclosed: BTreeMap<ToolId, Digest>,
    pub grants: Vec<StoredGrant>,
    /// The capabilities that a host declared when its session began, as JSON.
    #[serde(default, skip_serializing_if = "is_default")]
    pub capabilities: Option<String>,
    /// The sessions of a caller, with the times of their last use.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sessions: BTreeMap<String, u64>,
    /// When a caller last used one of its sessions.
    #[serde(default, skip_serializing_if = "is_default")]
    pub used_at_ms: u64,
    /// Who a caller is, in words for people.
    #[serde(default, skip_serializing_if = "is_default")]
    pub who: Option<String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A grant that outlives its run, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredGrant {
    pub grant: Grant,
    /// Why the grant ended early; `None` if it did not.
    pub over: Option<GrantEnd>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantEnd {
    pub at_ms: u64,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SharedStateError {
    #[error("the file is damaged: {0}")]
    Corrupt(String),
    #[error("unsupported version {0}; expected {VERSION}")]
    Version(u64),
    #[error("the file belongs to {found}, not to {wanted}")]
    Other { found: String, wanted: String },
}

/// Why no use of a shared grant can be claimed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantUnavailable {
    #[error("the grant is no longer known")]
    Unknown,
    #[error("{0}")]
    Over(String),
    #[error("the maximum of {GRANTS_MAX} stored grants is reached")]
    TooMany,
}

impl SharedState {
    #[must_use]
    pub fn new(scope: Scope, name: impl Into<String>) -> Self {
        Self {
            scope,
            name: name.into(),
            carried: SessionFlow::default(),
            read_unknown: false,
            unknown_declassified: Vec::new(),
            running: BTreeMap::new(),
            disclosed: BTreeMap::new(),
            grants: Vec::new(),
            capabilities: None,
            sessions: BTreeMap::new(),
            used_at_ms: 0,
            who: None,
        }
    }

    /// Returns the text of the whole file: a line with version and digest, and a line with the
    /// state.
    pub fn to_text(&self) -> Result<String, SharedStateError> {
        let failed = |error: serde_json::Error| SharedStateError::Corrupt(error.to_string());
        let state = serde_json::to_value(self).map_err(failed)?;
        let state = String::from_utf8_lossy(&canonical::canonical(&state)).into_owned();
        let digest = Digest::sha256(state.as_bytes());
        Ok(format!(
            "{{\"digest\":\"{digest}\",\"v\":{VERSION}}}\n{state}\n"
        ))
    }

    /// Parses the output of [`SharedState::to_text`], and refuses a modified file.
    pub fn parse(text: &[u8]) -> Result<Self, SharedStateError> {
        #[derive(Deserialize)]
        struct Head {
            v: u64,
            digest: Option<Digest>,
        }
        let corrupt = |why: &str| SharedStateError::Corrupt(why.to_owned());
        let bounds = Bounds {
            bytes_max: BYTES_MAX,
            depth_max: 16,
            nodes_max: 4_000_000,
        };
        json::measure(text, bounds).map_err(|bad| SharedStateError::Corrupt(bad.to_string()))?;
        let mut lines = text.splitn(3, |byte| *byte == b'\n');
        let head = lines.next().and_then(json::typed::<Head>);
        let head = head.ok_or_else(|| corrupt("the first line is invalid"))?;
        if head.v != u64::from(VERSION) {
            return Err(SharedStateError::Version(head.v));
        }
        let state = lines
            .next()
            .ok_or_else(|| corrupt("the second line is missing"))?;
        if lines.next() != Some(&[]) || head.digest != Some(Digest::sha256(state)) {
            return Err(corrupt("the digest does not match"));
        }
        json::typed(state).ok_or_else(|| corrupt("the second line is invalid"))
    }

    /// Checks that this is the state of the given session or project.
    pub fn is_of(&self, scope: Scope, name: &str) -> Result<(), SharedStateError> {
        if self.scope == scope && self.name == name {
            return Ok(());
        }
        Err(SharedStateError::Other {
            found: format!("the {} `{}`", self.scope, self.name),
            wanted: format!("the {scope} `{name}`"),
        })
    }

    /// Records that a run begins. `is_gone` returns whether an earlier run died without recording
    /// its end. The data that such a run read is unknown, so the worst labels are assumed.
    pub fn begin(&mut self, run: RunId, now_ms: u64, is_gone: impl Fn(&RunId) -> bool) {
        self.end_gone(is_gone);
        self.running.insert(run, now_ms);
    }

    /// Assumes the worst if a run died without recording its end. Returns whether one did.
    pub fn end_gone(&mut self, is_gone: impl Fn(&RunId) -> bool) -> bool {
        let before = self.running.len();
        self.running.retain(|run, _| !is_gone(run));
        let some_died = self.running.len() < before;
        if some_died {
            self.assume_worst();
        }
        some_died
    }

    /// Records that calls were made whose data and number are unknown.
    pub fn assume_worst(&mut self) {
        self.read_unknown = true;
        self.unknown_declassified.clear();
        self.carried.labels.join(&Labels::worst());
        self.carried.counts_unknown = true;
    }

    /// Removes labels from everything that was read so far, and records who declassified them.
    pub fn declassify(&mut self, declassification: Declassification) {
        let unknown = &mut self.unknown_declassified;
        unknown.extend(declassification.labels.iter().cloned());
        unknown.sort();
        unknown.dedup();
        let is_known = Labels::worst().declassified(unknown).is_empty();
        if !self.read_unknown || is_known {
            self.read_unknown = false;
            unknown.clear();
        }
        self.carried.declassify(declassification);
    }

    /// Returns the labels and counts of the finished runs. `worst` contains every label that the
    /// configuration knows.
    #[must_use]
    pub fn flow(&self, worst: &Labels) -> SessionFlow {
        let mut flow = self.carried.clone();
        if self.read_unknown {
            let unknown = worst.declassified(&self.unknown_declassified);
            flow.labels.join(&unknown);
        }
        flow
    }

    /// Adds the labels and disclosures of another session of the same caller, whose data the model
    /// may have seen. Counts and grants are not added.
    pub fn inherit(&mut self, other: &Self) {
        match (self.read_unknown, other.read_unknown) {
            (_, false) => {}
            (false, true) => {
                self.read_unknown = true;
                self.unknown_declassified = other.unknown_declassified.clone();
            }
            (true, true) => {
                let of_other = &other.unknown_declassified;
                self.unknown_declassified.retain(|it| of_other.contains(it));
            }
        }
        self.carried.labels.join(&other.carried.labels);
        self.carried.join_declassified(&other.carried);
        self.disclosed.extend(other.disclosed.clone());
    }

    /// Records the end of a run, with its labels and counts.
    pub fn finish(&mut self, run: &RunId, carried: &SessionFlow) {
        self.running.remove(run);
        self.carried.join(carried);
    }

    /// Stores a new grant. A grant that is already stored keeps its number of uses.
    pub fn keep(&mut self, grant: Grant) -> Result<(), GrantUnavailable> {
        if self.grants.iter().any(|kept| kept.grant.id == grant.id) {
            return Ok(());
        }
        self.forget_expired(grant.given_at_ms);
        if self.grants.len() >= GRANTS_MAX {
            return Err(GrantUnavailable::TooMany);
        }
        self.grants.push(StoredGrant { grant, over: None });
        Ok(())
    }

    /// Counts one use, before the call for which it is claimed.
    pub fn claim(&mut self, grant: &GrantId, now_ms: u64) -> Result<Use, GrantUnavailable> {
        let kept = self
            .grants
            .iter_mut()
            .find(|kept| kept.grant.id == *grant)
            .ok_or(GrantUnavailable::Unknown)?;
        if let Some(over) = &kept.over {
            return Err(GrantUnavailable::Over(over.why.clone()));
        }
        if let Some(why) = kept.grant.spent(now_ms) {
            return Err(GrantUnavailable::Over(why.to_owned()));
        }
        kept.grant.uses += 1;
        Ok(Use {
            grant: grant.clone(),
            number: kept.grant.uses,
            uses_max: kept.grant.uses_max,
            expires_at_ms: kept.grant.expires_at_ms,
        })
    }

    /// Ends a grant, which stays listed. Returns false if there was no such open grant.
    pub fn end(&mut self, grant: &GrantId, why: &str, now_ms: u64) -> bool {
        let open = |kept: &&mut StoredGrant| kept.grant.id == *grant && kept.over.is_none();
        let Some(kept) = self.grants.iter_mut().find(open) else {
            return false;
        };
        kept.over = Some(GrantEnd {
            at_ms: now_ms,
            why: why.to_owned(),
        });
        true
    }

    /// Removes surplus expired grants. A grant that was used up or revoked early stays listed until
    /// it expires; otherwise a grant file could give the same grant again with new uses.
    fn forget_expired(&mut self, now_ms: u64) {
        let is_expired = |kept: &StoredGrant| kept.grant.expires_at_ms <= now_ms;
        let expired = self.grants.iter().filter(|kept| is_expired(kept)).count();
        let mut surplus = expired.saturating_sub(EXPIRED_MAX);
        self.grants.retain(|kept| {
            let goes = surplus > 0 && is_expired(kept);
            surplus -= usize::from(goes);
            !goes
        });
    }
}

impl StoredGrant {
    /// Returns why the grant no longer allows calls, or `None` if it still does.
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
            description: Digest::sha256(b"d"),
            script: Some(Digest::sha256(b"s")),
            policy: Digest::sha256(b"p"),
            condition: Condition::anything(),
            uses_max: NonZeroU32::new(uses_max).unwrap(),
            uses: 0,
            given_at_ms: 1,
            expires_at_ms: 100,
            labels: Labels::worst(),
            shown: Digest::sha256(b"shown"),
            by: "terminal".into(),
        }
    }

    fn shared() -> SharedState {
        let mut shared = SharedState::new(Scope::Session, "work");
        shared.keep(grant("r.1", 2)).unwrap();
        shared
    }

    #[test]
    fn use_is_counted_once_and_bounded() {
        let mut shared = shared();
        let id = GrantId("r.1".into());
        assert_eq!(shared.claim(&id, 1).unwrap().number, 1);
        // Adding the same grant from a file again keeps its uses.
        shared.keep(grant("r.1", 2)).unwrap();
        assert_eq!(shared.claim(&id, 1).unwrap().number, 2);
        let why = shared.claim(&id, 1).unwrap_err();
        assert_eq!(why, GrantUnavailable::Over("the grant is used up".into()));
        let other = GrantId("r.2".into());
        assert_eq!(shared.claim(&other, 1), Err(GrantUnavailable::Unknown));
    }

    #[test]
    fn expired_or_ended_grant_gives_no_use() {
        let mut shared = shared();
        let id = GrantId("r.1".into());
        assert_eq!(
            shared.claim(&id, 100),
            Err(GrantUnavailable::Over("the grant has expired".into()))
        );
        assert!(shared.end(&id, "revoked", 5) && !shared.end(&id, "again", 6));
        assert_eq!(
            shared.claim(&id, 6),
            Err(GrantUnavailable::Over("revoked".into()))
        );
        shared.keep(grant("r.1", 9)).unwrap();
        assert_eq!(
            shared.claim(&id, 6),
            Err(GrantUnavailable::Over("revoked".into()))
        );
    }

    #[test]
    fn state_round_trips_and_changed_byte_is_rejected() {
        let shared = shared();
        let text = shared.to_text().unwrap().into_bytes();
        assert_eq!(SharedState::parse(&text).unwrap(), shared);
        for at in 0..text.len() {
            let mut changed = text.clone();
            changed[at] ^= 1;
            assert!(SharedState::parse(&changed).is_err(), "{at}");
            assert!(SharedState::parse(&text[..at]).is_err(), "{at}");
        }
        let newer = String::from_utf8(text)
            .unwrap()
            .replace("\"v\":1", "\"v\":2");
        assert_eq!(
            SharedState::parse(newer.as_bytes()),
            Err(SharedStateError::Version(2))
        );
    }

    #[test]
    fn revoked_grant_is_kept_long_after_expiry() {
        let mut shared = SharedState::new(Scope::Project, "/a");
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
    fn unfinished_run_leaves_worst_labels() {
        let run = |name: &str| RunId(name.into());
        let mut shared = SharedState::new(Scope::Session, "work");
        shared.begin(run("a"), 1, |_| true);
        assert!(shared.carried.labels.is_empty());
        shared.finish(&run("a"), &SessionFlow::default());
        shared.begin(run("b"), 2, |_| true);
        shared.begin(run("c"), 3, |_| false);
        assert!(shared.carried.labels.is_empty() && !shared.read_unknown);
        shared.begin(run("d"), 3, |run| &*run.0 == "b");
        assert_eq!(shared.carried.labels, Labels::worst());
        assert_eq!(shared.running.len(), 2);
        // The configuration may know labels that were not known when the run was lost.
        let mail = Labels::from_iter([crate::labels::Label::parse("private:mail").unwrap()]);
        let all = Labels::worst().joined(&mail);
        assert_eq!(shared.flow(&all).labels, all);
    }

    #[test]
    fn declassified_worst_labels_do_not_return() {
        let label = |word: &str| Label::parse(word).unwrap();
        let declassify = |shared: &mut SharedState, words: &[&str], counts| {
            shared.declassify(Declassification {
                labels: words.iter().map(|it| label(it)).collect(),
                counts,
                by: "Ann".into(),
                at_ms: 1,
            });
        };
        let mail = Labels::from_iter([label("private:mail")]);
        let worst = Labels::worst().joined(&mail);
        let left = |shared: &SharedState| shared.flow(&worst).labels.to_texts();
        let mut shared = SharedState::new(Scope::Session, "work");
        shared.assume_worst();
        declassify(&mut shared, &["private:mail"], false);
        assert_eq!(left(&shared), ["private", "untrusted"]);
        declassify(&mut shared, &["private"], false);
        assert_eq!(left(&shared), ["untrusted"]);
        assert!(shared.read_unknown && shared.carried.counts_unknown);
        // Another session of the caller inherits what is left, with the names of the people.
        let mut other = SharedState::new(Scope::Session, "other");
        other.inherit(&shared);
        assert_eq!(left(&other), ["untrusted"]);
        assert_eq!(other.carried.declassified, shared.carried.declassified);
        let mut stricter = SharedState::new(Scope::Session, "stricter");
        stricter.assume_worst();
        other.inherit(&stricter);
        assert_eq!(left(&other), worst.to_texts());
        declassify(&mut shared, &["untrusted"], true);
        assert_eq!(left(&shared), Vec::<String>::new());
        assert!(!shared.read_unknown && !shared.carried.counts_unknown);
        // What is lost later is the worst again.
        shared.assume_worst();
        assert_eq!(left(&shared), worst.to_texts());
        assert!(shared.carried.counts_unknown);
    }

    #[test]
    fn session_name_is_a_valid_file_name() {
        for good in ["a", "2026-11.work_1"] {
            assert!(SessionName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "../x", "a/b", "-a", "a b", "ä", &"a".repeat(65)] {
            assert!(SessionName::parse(bad).is_err(), "{bad}");
        }
    }
}
