//! A credential that cannot be printed by accident.

use std::fmt;
use std::sync::Arc;

/// A value that is only ever put on the wire. `Debug` and `Display` print `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    pub fn new(value: impl Into<Arc<str>>) -> Self {
        Self(value.into())
    }

    /// The value itself. Call it where the bytes leave, and where texts are masked.
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
    fn a_secret_is_printed_as_stars_in_every_way_of_printing() {
        let secret = Secret::new("hunter2!");
        assert_eq!(
            format!("{secret} {secret:?} {:?}", vec![&secret]),
            "*** *** [***]"
        );
    }
}
