//! What the configuration says about logins.

use airlock_core::login::{ConfiguredClient, Grant, ScopeSet};

use super::client_key::ClientKey;

pub(crate) const DEFAULT_CALLBACK_PATH: &str = "/callback";

/// The login of one server. Without any setting, discovery finds everything.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoginSettings {
    pub(crate) client: Option<ConfiguredClient>,
    /// The private key of the client, if it has one.
    pub(crate) key: Option<ClientKey>,
    /// The only authorization server that may be used.
    pub(crate) issuer: Option<String>,
    pub(crate) scopes: Option<ScopeSet>,
    /// The redirect URI that is registered for the client. Without it, any free port is used.
    pub(crate) callback: Option<String>,
    pub(crate) grant: Grant,
}

/// Where the key is that seals the files of new logins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum KeyChoice {
    /// The keyring if one answers, otherwise a file.
    #[default]
    Auto,
    Keyring,
    File,
    /// A program that prints the key.
    Command(String),
}

/// The table `[oauth]`.
#[derive(Debug, Clone, Default)]
pub(crate) struct OauthConfig {
    /// The address of the client metadata document of the organisation.
    pub(crate) client_metadata: Option<String>,
    pub(crate) keys: KeyChoice,
}
