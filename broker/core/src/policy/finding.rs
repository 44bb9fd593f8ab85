//! What is wrong with a policy file: what, where, why, what to write instead.

use std::fmt;

use serde::Serialize;

use super::source::Place;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    pub place: Place,
    pub what: String,
    /// Empty where `what` says it all.
    pub why: String,
    pub next: String,
}

impl Finding {
    pub(super) fn new(
        place: Place,
        what: impl Into<String>,
        why: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            place,
            what: what.into(),
            why: why.into(),
            next: next.into(),
        }
    }
}

/// `policies/flow.cedar:3:7: WHAT: WHY; NEXT`
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

pub(super) fn did_you_mean(word: Option<&str>) -> String {
    word.map_or_else(String::new, |word| format!("did you mean `{word}`?"))
}
