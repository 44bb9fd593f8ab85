//! Reads lines back into entries and checks every link of the chain, and every digest of content
//! that is recorded. A last line without a newline, as left by a crash, is reported as a cut. Every
//! other mismatch is a broken line; the reader reports the first one.

use std::collections::{BTreeMap, BTreeSet};

use codegen::canonical;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::chain::is_text_of;
use super::content::ContentCheck;
use super::{
    Body, DecidedEntry, EndedEntry, ReusedEntry, RunStartedEntry, SettledEntry, SuspendedEntry,
};
use super::{VERSION, VERSION_MIN, Verdict};
use crate::id::{CallId, Digest, GrantId};
use crate::json::{self, Bounds};

/// Bounds of one journal line: arguments up to the deepest possible limit, plus a few levels around
/// them.
const LINE: Bounds = Bounds {
    bytes_max: u32::MAX,
    depth_max: 600,
    nodes_max: u32::MAX,
};

/// One parsed line.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct JournalLine {
    pub v: u32,
    pub seq: u64,
    pub prev: Option<Digest>,
    pub at_ms: u64,
    #[serde(flatten)]
    pub body: Body,
}

#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedJournal {
    pub lines: Vec<JournalLine>,
    /// Where the journal is cut off, because the process or the machine died while writing.
    pub cut: Option<CutPoint>,
    /// Calls that were allowed to leave and have no recorded outcome.
    pub in_doubt: Vec<CallId>,
    /// Uses of shared grants that were about to be counted, without a record of the result.
    pub uses_in_doubt: Vec<(CallId, GrantId)>,
    /// Digest of the last complete line.
    pub head: Option<Digest>,
    /// Indexes of the lines of each call.
    by_call: BTreeMap<CallId, Vec<usize>>,
}

/// The place where the complete lines end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutPoint {
    pub after_line: usize,
    pub bytes: usize,
}

/// The first line that does not fit the lines before it, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct BrokenLine {
    pub line: usize,
    pub why: String,
}

impl VerifiedJournal {
    /// Returns the decision on a call, with its tool, arguments and reasons.
    #[must_use]
    pub fn decided(&self, call: CallId) -> Option<&DecidedEntry> {
        self.of_call(call).find_map(|body| match body {
            Body::Decided(decided) => Some(&**decided),
            _ => None,
        })
    }

    /// Returns the outcome of a call that left.
    #[must_use]
    pub fn settled(&self, call: CallId) -> Option<&SettledEntry> {
        self.of_call(call).find_map(|body| match body {
            Body::Settled(settled) => Some(&**settled),
            _ => None,
        })
    }

    /// Returns the entry of a call that reused an earlier outcome.
    #[must_use]
    pub fn reused(&self, call: CallId) -> Option<&ReusedEntry> {
        self.of_call(call).find_map(|body| match body {
            Body::Reused(reused) => Some(&**reused),
            _ => None,
        })
    }

    /// Returns all entries of a call, in order.
    pub fn of_call(&self, call: CallId) -> impl Iterator<Item = &Body> {
        let places = self.by_call.get(&call).into_iter().flatten();
        places.filter_map(|at| Some(&self.lines.get(*at)?.body))
    }

    #[must_use]
    pub fn started(&self) -> Option<&RunStartedEntry> {
        match &self.lines.first()?.body {
            Body::RunStarted(started) => Some(started),
            _ => None,
        }
    }

    /// Returns whether digests were compared with the recorded content. Journals of version 1 hold
    /// digests of the content before secrets were masked, so they cannot be compared.
    #[must_use]
    pub fn is_content_checked(&self) -> bool {
        self.lines.first().is_none_or(|line| line.v >= 2)
    }

    /// Returns whether the run waits for people without a process.
    #[must_use]
    pub fn suspended(&self) -> Option<&SuspendedEntry> {
        match self.lines.last().map(|line| &line.body) {
            Some(Body::Suspended(suspended)) => Some(suspended),
            _ => None,
        }
    }

    #[must_use]
    pub fn ended(&self) -> Option<&EndedEntry> {
        match self.lines.last().map(|line| &line.body) {
            Some(Body::Ended(ended)) => Some(ended),
            _ => None,
        }
    }
}

/// Reads and verifies a whole journal.
pub fn read(bytes: &[u8]) -> Result<VerifiedJournal, BrokenLine> {
    let mut reader = Reader::default();
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|b| *b == b'\n') {
        let (line, after) = rest.split_at(end);
        reader.take(line).map_err(|why| BrokenLine {
            line: reader.lines.len() + 1,
            why,
        })?;
        rest = after.get(1..).unwrap_or_default();
    }
    let after_line = reader.lines.len();
    if reader.ended && !rest.is_empty() {
        let why = "`ended` or `suspended` must be the last entry".into();
        let line = after_line + 1;
        return Err(BrokenLine { line, why });
    }
    let cut = (!rest.is_empty()).then_some(CutPoint {
        after_line,
        bytes: rest.len(),
    });
    let in_doubt = reader.open.into_iter().collect();
    let uses_in_doubt = reader.claimed.into_iter().collect();
    Ok(VerifiedJournal {
        lines: reader.lines,
        cut,
        in_doubt,
        uses_in_doubt,
        head: reader.head,
        by_call: reader.by_call,
    })
}

#[derive(Default)]
struct Reader {
    lines: Vec<JournalLine>,
    head: Option<Digest>,
    by_call: BTreeMap<CallId, Vec<usize>>,
    decided: BTreeSet<CallId>,
    /// Calls that were allowed and are not settled yet.
    open: BTreeSet<CallId>,
    /// Claimed grants of calls that have no later entry.
    claimed: BTreeMap<CallId, GrantId>,
    ended: bool,
    content: ContentCheck,
}

impl Reader {
    fn take(&mut self, text: &[u8]) -> Result<(), String> {
        json::measure(text, LINE).map_err(|bad| bad.to_string())?;
        let line = match self.usual_line(text) {
            Some(line) => line,
            None => self.any_line(text)?,
        };
        if line.seq != self.lines.len() as u64 {
            return Err(format!(
                "line number {}; expected {}",
                line.seq,
                self.lines.len()
            ));
        }
        if line.prev != self.head {
            return Err("the digest of the previous line does not match".into());
        }
        self.follow(&line.body)?;
        if line.v >= 2 {
            self.content.take(&line.body)?;
        }
        self.head = Some(Digest::sha256(text));
        if let Some(call) = line.body.call() {
            self.by_call.entry(call).or_default().push(self.lines.len());
        }
        self.lines.push(line);
        Ok(())
    }

    /// Parses a line that has exactly the text that this version of the format writes. This is faster
    /// than [`Reader::any_line`], and stricter.
    fn usual_line(&self, text: &[u8]) -> Option<JournalLine> {
        let line = json::typed::<JournalLine>(text)?;
        let first = self.lines.first().map_or(VERSION, |line| line.v);
        let is_current = line.v == VERSION && first == VERSION;
        let place = (line.seq, line.prev);
        let is_usual = is_current && is_text_of(text, &line.body, place, line.at_ms);
        is_usual.then_some(line)
    }

    /// Parses a line of any version, or returns what is wrong with it. Since version 2, a line with
    /// members that are not part of its kind is refused, because no command would show them.
    fn any_line(&self, text: &[u8]) -> Result<JournalLine, String> {
        let value = json::parse(text).map_err(|bad| bad.to_string())?;
        if canonical::canonical(&value) != text {
            return Err("not in canonical form".into());
        }
        let first = self.lines.first().map(|line| u64::from(line.v));
        match value.get("v").and_then(Value::as_u64) {
            Some(v) if first.is_some_and(|first| v != first) => {
                return Err(format!("version {v} differs from that of the first entry"));
            }
            Some(v) if (VERSION_MIN.into()..=VERSION.into()).contains(&v) => {}
            Some(v) => {
                return Err(format!(
                    "unsupported version {v}; expected {VERSION_MIN} to {VERSION}"
                ));
            }
            None => return Err("missing version".into()),
        }
        let said = value.as_object().map_or(0, Map::len);
        let line: JournalLine = serde_json::from_value(value).map_err(|error| error.to_string())?;
        let body = serde_json::to_value(&line.body).map_err(|error| error.to_string())?;
        // `v`, `seq`, `prev` and `at_ms` are the members of every line.
        match body.as_object().map_or(0, Map::len) + 4 == said || line.v < 2 {
            true => Ok(line),
            false => Err("unknown or missing member".into()),
        }
    }

    /// Checks that the entry may follow the previous entries.
    fn follow(&mut self, body: &Body) -> Result<(), String> {
        let first = self.lines.is_empty();
        if first != matches!(body, Body::RunStarted(_)) {
            return Err("`run-started` must be the first entry, and only the first".into());
        }
        if self.ended {
            return Err("`ended` or `suspended` must be the last entry".into());
        }
        if let Some(call) = body.call() {
            self.claimed.remove(&call);
        }
        match body {
            Body::GrantClaimed(claimed) => {
                if self.decided.contains(&claimed.call) {
                    return Err(format!("call {} is already decided", claimed.call.0));
                }
                self.claimed.insert(claimed.call, claimed.grant.clone());
            }
            Body::Decided(decided) => {
                if !self.decided.insert(decided.call) {
                    return Err(format!("call {} is already decided", decided.call.0));
                }
                if decided.decision == Verdict::Allow {
                    self.open.insert(decided.call);
                }
            }
            Body::Reused(reused) if !self.decided.insert(reused.call) => {
                return Err(format!("call {} is already decided", reused.call.0));
            }
            Body::Settled(settled) if !self.open.remove(&settled.call) => {
                return Err(format!(
                    "call {} was not allowed, or is already settled",
                    settled.call.0
                ));
            }
            Body::Inquired(inquired) => {
                let mut calls = inquired.or.iter().chain([&inquired.call]);
                if let Some(call) = calls.find(|call| !self.open.contains(call)) {
                    return Err(format!("call {} was not under way", call.0));
                }
            }
            Body::Ended(_) => {
                if let Some(call) = self.open.first() {
                    return Err(format!("call {} has no outcome", call.0));
                }
                self.ended = true;
            }
            Body::Suspended(_) => {
                if let Some(call) = self.open.first() {
                    return Err(format!("call {} has no outcome", call.0));
                }
                self.ended = true;
            }
            _ => {}
        }
        Ok(())
    }
}
