//! The result of a login: the tokens, and everything that is needed to renew them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::client::Client;
use super::client::Grant;
use super::metadata::object;
use super::scopes::ScopeSet;

/// Belongs to one issuer, one resource and one client. It is sent to no other server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credential {
    pub resource: String,
    pub issuer: String,
    pub client: Client,
    pub grant: Grant,
    pub token_endpoint: String,
    pub revocation_endpoint: Option<String>,
    pub access_token: String,
    pub refresh_token: Option<String>,
    pub scopes: ScopeSet,
    pub issued_at_ms: u64,
    pub expires_at_ms: Option<u64>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("resource", &self.resource)
            .field("issuer", &self.issuer)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

impl Credential {
    pub fn to_text(&self) -> Result<String, String> {
        serde_json::to_string(self).map_err(|error| error.to_string())
    }

    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let object = object(text)?;
        serde_json::from_value(object.into()).map_err(|error| error.to_string())
    }

    /// Returns everything in it that must never be shown.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let optional = [&self.refresh_token, &self.client.secret];
        let optional = optional.into_iter().filter_map(Option::as_deref);
        std::iter::once(&*self.access_token).chain(optional)
    }

    /// Whether the access token should be renewed before it is used: a minute before its end, or
    /// after four fifths of a shorter life.
    #[must_use]
    pub fn needs_renewal(&self, now_ms: u64) -> bool {
        const MINUTE_MS: u64 = 60_000;
        let Some(expires_at_ms) = self.expires_at_ms else {
            return false;
        };
        let life_ms = expires_at_ms.saturating_sub(self.issued_at_ms);
        let left_ms = expires_at_ms.saturating_sub(now_ms);
        left_ms <= MINUTE_MS.min(life_ms / 5)
    }

    /// Whether airlock can renew the access token without a person.
    #[must_use]
    pub fn renews(&self) -> bool {
        self.refresh_token.is_some() || self.grant == Grant::ClientCredentials
    }

    /// Whether the access token is certainly no longer accepted.
    #[must_use]
    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_at_ms.is_some_and(|it| it <= now_ms)
    }
}
