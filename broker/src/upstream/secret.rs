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

/// The text with every one of the secrets replaced by `***`. A short
/// value (`true`, `info`) is no secret and would only make the text unreadable.
pub(super) fn masked(text: &str, secrets: &[Secret]) -> String {
    const SECRET_BYTES_MIN: usize = 8;
    let mut masked = text.to_owned();
    for secret in secrets.iter().map(Secret::expose) {
        // `Bearer abc` is configured whole; a server may repeat only the token.
        let token = secret.rsplit(' ').next().unwrap_or(secret);
        for value in [secret, token] {
            if value.len() >= SECRET_BYTES_MIN && masked.contains(value) {
                masked = masked.replace(value, "***");
            }
        }
    }
    masked
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

    #[test]
    fn a_text_that_repeats_a_secret_or_the_token_in_it_is_masked() {
        let secrets = [Secret::new("Bearer tok-12345"), Secret::new("x")];
        assert_eq!(
            masked(
                "got 'Bearer tok-12345', tok-12345 is bad; x stays",
                &secrets
            ),
            "got '***', *** is bad; x stays"
        );
    }
}
