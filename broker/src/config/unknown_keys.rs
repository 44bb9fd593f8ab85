//! What becomes of a call with keys that its tool neither names nor forbids.

use airlock_core::problem::Problem;

use super::{Located, invalid_at};

/// Most tools leave `additionalProperties` unsaid, so that a misspelt optional key passes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnknownKeys {
    /// The call goes on, and the report warns of them.
    #[default]
    Warn,
    /// The call is not made: `invalid-arguments`.
    Refuse,
}

pub(super) fn parse(at: &Located) -> Result<UnknownKeys, Problem> {
    match at.text.as_str() {
        "warn" => Ok(UnknownKeys::Warn),
        "refuse" => Ok(UnknownKeys::Refuse),
        other => Err(invalid_at(
            &at.origin,
            format!("`unknown_keys` ({}) cannot be used", at.origin),
            format!("`{other}` is neither warn nor refuse"),
            "write one of the two",
        )),
    }
}
