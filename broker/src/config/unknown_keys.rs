//! The setting for calls whose arguments have keys that the tool's schema neither names nor
//! forbids.

use airlock_core::problem::Problem;

use super::{LocatedText, choice, invalid_at};

/// What happens to a call with unknown keys. Most schemas do not set `additionalProperties`, so a
/// misspelt optional key fits the schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnknownKeys {
    /// The call continues, and the report contains a warning.
    #[default]
    Warn,
    /// The call is refused as `invalid-arguments`.
    Refuse,
}

pub(super) fn parse(at: &LocatedText) -> Result<UnknownKeys, Problem> {
    match at.text.as_str() {
        "warn" => Ok(UnknownKeys::Warn),
        "refuse" => Ok(UnknownKeys::Refuse),
        other => Err(invalid_at(
            &at.origin,
            format!("invalid value for `unknown_keys` ({})", at.origin),
            format!("invalid value `{other}`; expected warn or refuse"),
            choice::one_of(other, &["warn", "refuse"]),
        )),
    }
}
