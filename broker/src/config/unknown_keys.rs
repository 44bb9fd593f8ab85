//! The setting for calls whose arguments have keys that the tool's schema neither names nor
//! forbids.

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
