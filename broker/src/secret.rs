//! A credential that cannot be printed by accident.

use std::fmt;
use std::sync::Arc;

/// A value that is used only in messages to its server. `Debug` and `Display` print `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    pub fn new(value: impl Into<Arc<str>>) -> Self {
        Self(value.into())
    }

    /// Returns the value itself. Only for sending it and for masking texts.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_prints_as_stars() {
        let secret = Secret::new("hunter2!");
        assert_eq!(
            format!("{secret} {secret:?} {:?}", vec![&secret]),
            "*** *** [***]"
        );
    }
}
