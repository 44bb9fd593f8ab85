//! Why stored logins and their keys cannot be used.

use super::keyring::KeyringError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("{path} cannot be {verb}: {cause}")]
    Io {
        path: String,
        verb: &'static str,
        cause: std::io::Error,
    },
    #[error("{path} cannot be used: {why}")]
    Bad { path: String, why: String },
    #[error("the key of the stored logins cannot be used: {0}")]
    Key(String),
    #[error(transparent)]
    Keyring(#[from] KeyringError),
}

impl StoreError {
    /// Returns advice for the person.
    pub(crate) fn next(&self) -> &'static str {
        match self {
            Self::Io { .. } => "check the state directory",
            Self::Bad { .. } | Self::Key(_) => {
                "restore the key, or log in again with `airlock login` after `airlock logout`"
            }
            Self::Keyring(_) => {
                "unlock the keyring; or write `keys = \"file\"` into the table [oauth] of airlock.toml and log in again"
            }
        }
    }
}
