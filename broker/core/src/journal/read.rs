//! Lines back into entries, the chain checked link by link. What a crash leaves
//! behind (a last line without its end) is a cut; anything else that does not
//! fit is a broken link, and the first one is named.

use std::collections::{BTreeMap, BTreeSet};

use codegen::canonical;
use serde::Deserialize;
use serde_json::Value;

use super::{Body, Decided, Ended, Settled, VERSION, Verdict};
use crate::id::{CallId, Digest, GrantId};
use crate::json::{self, Bounds};

/// A line of our own: arguments within the deepest limit that can be set, and a few levels around.
const LINE: Bounds = Bounds {
    bytes_max: u32::MAX,
    depth_max: 600,
    nodes_max: u32::MAX,
};

/// One line as it was read.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Line {
    pub v: u32,
    pub seq: u64,
    pub prev: Option<Digest>,
    pub at_ms: u64,
    #[serde(flatten)]
    pub body: Body,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    pub lines: Vec<Line>,
    /// The end is missing: the process or the machine died while it wrote.
    pub cut: Option<Cut>,
    /// Allowed to leave, and nobody recorded what became of them.
    pub in_doubt: Vec<CallId>,
    /// Uses of shared grants that were about to be counted, and nothing says whether they were.
    pub uses_in_doubt: Vec<(CallId, GrantId)>,
    /// Digest of the last whole line.
    pub head: Option<Digest>,
    /// The lines about each call, by their index.
    by_call: BTreeMap<CallId, Vec<usize>>,
}

/// Where the whole lines end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    pub after_line: usize,
    pub bytes: usize,
}

/// The first line, counted from 1, that does not belong where it stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Broken {
    pub line: usize,
    pub why: String,
}

impl Verified {
    /// What was decided of a call: its tool, its arguments, the reasons.
    #[must_use]
    pub fn decided(&self, call: CallId) -> Option<&Decided> {
        self.of_call(call).find_map(|body| match body {
            Body::Decided(decided) => Some(&**decided),
            _ => None,
        })
    }

    /// What became of a call that left.
    #[must_use]
    pub fn settled(&self, call: CallId) -> Option<&Settled> {
        self.of_call(call).find_map(|body| match body {
            Body::Settled(settled) => Some(&**settled),
            _ => None,
        })
    }

    /// Everything that the journal says of a call, in order.
    pub fn of_call(&self, call: CallId) -> impl Iterator<Item = &Body> {
        let places = self.by_call.get(&call).into_iter().flatten();
        places.filter_map(|at| Some(&self.lines.get(*at)?.body))
    }

    #[must_use]
    pub fn ended(&self) -> Option<&Ended> {
        match self.lines.last().map(|line| &line.body) {
            Some(Body::Ended(ended)) => Some(ended),
            _ => None,
        }
    }
}

/// Reads and verifies a whole journal.
pub fn read(bytes: &[u8]) -> Result<Verified, Broken> {
    let mut reader = Reader::default();
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|b| *b == b'\n') {
        let (line, after) = rest.split_at(end);
        reader.take(line).map_err(|why| Broken {
            line: reader.lines.len() + 1,
            why,
        })?;
        rest = after.get(1..).unwrap_or_default();
    }
    let after_line = reader.lines.len();
    let cut = (!rest.is_empty()).then_some(Cut {
        after_line,
        bytes: rest.len(),
    });
    let in_doubt = reader.open.into_iter().collect();
    let uses_in_doubt = reader.claimed.into_iter().collect();
    Ok(Verified {
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
    lines: Vec<Line>,
    head: Option<Digest>,
    by_call: BTreeMap<CallId, Vec<usize>>,
    decided: BTreeSet<CallId>,
    /// Allowed, not settled yet.
    open: BTreeSet<CallId>,
    /// Claimed a use, and nothing was heard of it.
    claimed: BTreeMap<CallId, GrantId>,
    ended: bool,
}

impl Reader {
    fn take(&mut self, text: &[u8]) -> Result<(), String> {
        json::measure(text, LINE).map_err(|bad| bad.to_string())?;
        let value = json::parse(text).map_err(|bad| bad.to_string())?;
        if canonical::canonical(&value) != text {
            return Err("not in canonical form".into());
        }
        match value.get("v").and_then(Value::as_u64) {
            Some(v) if v == u64::from(VERSION) => {}
            Some(v) => return Err(format!("version {v}; this reader knows {VERSION}")),
            None => return Err("no version".into()),
        }
        let line: Line = serde_json::from_value(value).map_err(|error| error.to_string())?;
        if line.seq != self.lines.len() as u64 {
            return Err(format!(
                "number {} where {} belongs",
                line.seq,
                self.lines.len()
            ));
        }
        if line.prev != self.head {
            return Err("the digest of the line before it does not fit".into());
        }
        self.follow(&line.body)?;
        self.head = Some(Digest::of(text));
        if let Some(call) = line.body.call() {
            self.by_call.entry(call).or_default().push(self.lines.len());
        }
        self.lines.push(line);
        Ok(())
    }

    /// What may follow what.
    fn follow(&mut self, body: &Body) -> Result<(), String> {
        let first = self.lines.is_empty();
        if first != matches!(body, Body::RunStarted(_)) {
            return Err("a journal starts with one `run-started`".into());
        }
        if self.ended {
            return Err("nothing follows `ended`".into());
        }
        if let Some(call) = body.call() {
            self.claimed.remove(&call);
        }
        match body {
            Body::GrantClaimed(claimed) => {
                if self.decided.contains(&claimed.call) {
                    return Err(format!("call {} was decided before", claimed.call.0));
                }
                self.claimed.insert(claimed.call, claimed.grant.clone());
            }
            Body::Decided(decided) => {
                if !self.decided.insert(decided.call) {
                    return Err(format!("call {} was decided before", decided.call.0));
                }
                if decided.decision == Verdict::Allow {
                    self.open.insert(decided.call);
                }
            }
            Body::Settled(settled) if !self.open.remove(&settled.call) => {
                return Err(format!(
                    "call {} was not allowed, or settled before",
                    settled.call.0
                ));
            }
            Body::Inquired(inquired) => {
                let mut calls = inquired.or.iter().chain([&inquired.call]);
                if let Some(call) = calls.find(|call| !self.open.contains(call)) {
                    return Err(format!("call {} was not under way", call.0));
                }
            }
            Body::Ended(_) => self.ended = true,
            _ => {}
        }
        Ok(())
    }
}
