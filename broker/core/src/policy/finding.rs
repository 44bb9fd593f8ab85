//! A finding about a policy file: what is wrong, where, why, and what to write instead.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::fix::Fix;
use super::kind::Kind;
use super::source::Place;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    pub place: Place,
    #[serde(rename = "code")]
    pub kind: Kind,
    /// The id of the rule, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<Arc<str>>,
    pub what: String,
    /// The reason; empty if `what` is enough.
    pub why: String,
    pub next: String,
    /// A proposed change, if one can be derived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
}

impl Finding {
    #[must_use]
    pub fn new(
        kind: Kind,
        place: Place,
        what: impl Into<String>,
        why: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            place,
            kind,
            rule: None,
            what: what.into(),
            why: why.into(),
            next: next.into(),
            fix: None,
        }
    }

    pub fn of_rule(self, id: &Arc<str>) -> Self {
        let rule = Some(Arc::clone(id));
        Self { rule, ..self }
    }

    #[must_use]
    pub fn fixed(self, fix: Option<Fix>) -> Self {
        Self { fix, ..self }
    }
}

/// Writes `policies/flow.cedar:3:7: WHAT: WHY; NEXT`.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.place, self.place.column, self.what)?;
        if !self.why.is_empty() {
            write!(f, ": {}", self.why)?;
        }
        if !self.next.is_empty() {
            write!(f, "; {}", self.next)?;
        }
        Ok(())
    }
}

pub fn did_you_mean(word: Option<&str>) -> String {
    word.map_or_else(String::new, |word| format!("did you mean `{word}`?"))
}
