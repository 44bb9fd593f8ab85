//! A set of scopes. Words that RFC 6749 does not allow are dropped, so a set can be shown and sent.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Maximum number of scopes. Real servers name some tens.
const SCOPES_MAX: usize = 256;
const SCOPE_BYTES_MAX: usize = 512;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ScopeSet(BTreeSet<String>);

impl ScopeSet {
    pub const OFFLINE_ACCESS: &'static str = "offline_access";

    /// Parses scopes with spaces between them.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        text.split(' ').collect()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn contains(&self, scope: &str) -> bool {
        self.0.contains(scope)
    }

    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.iter().chain(other.iter()).collect()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl<'a> FromIterator<&'a str> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = &'a str>>(scopes: I) -> Self {
        let is_valid = |scope: &&str| {
            let is_char = |b: u8| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
            !scope.is_empty() && scope.len() <= SCOPE_BYTES_MAX && scope.bytes().all(is_char)
        };
        let valid = scopes.into_iter().filter(is_valid);
        Self(valid.take(SCOPES_MAX).map(str::to_owned).collect())
    }
}

impl fmt::Display for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, scope) in self.iter().enumerate() {
            if at > 0 {
                f.write_str(" ")?;
            }
            f.write_str(scope)?;
        }
        Ok(())
    }
}
