//! The table `[oauth]`, and the key `oauth` of a server.

use airlock_core::login::{ConfiguredClient, Grant, ScopeSet};
use airlock_core::problem::Problem;
use serde::Deserialize;

use super::invalid_at;
use crate::login::{KeyChoice, LoginSettings, OauthConfig};
use crate::upstream::ServerUrl;

/// The key `oauth` of a server. Placeholders are not resolved yet.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OauthTable {
    pub(crate) client_id: Option<String>,
    pub(crate) client_secret: Option<String>,
    pub(crate) issuer: Option<String>,
    pub(crate) scopes: Option<Vec<String>>,
    pub(crate) callback: Option<String>,
    pub(crate) grant: Option<String>,
}

impl OauthTable {
    /// Returns the settings with the resolved client, or why they are invalid.
    pub(super) fn settings(
        self,
        id: Option<String>,
        secret: Option<String>,
    ) -> Result<LoginSettings, String> {
        let grant = match self.grant.as_deref() {
            None | Some("authorization_code") => Grant::AuthorizationCode,
            Some("client_credentials") => Grant::ClientCredentials,
            Some(other) => {
                return Err(format!(
                    "invalid `grant` value `{other}`; expected authorization_code or client_credentials"
                ));
            }
        };
        let client = match (id, secret) {
            (Some(id), secret) => Some(ConfiguredClient { id, secret }),
            (None, Some(_)) => return Err("`client_secret` needs `client_id`".to_owned()),
            (None, None) => None,
        };
        let has_secret = client.as_ref().is_some_and(|it| it.secret.is_some());
        if grant == Grant::ClientCredentials && !has_secret {
            return Err(
                "`grant = \"client_credentials\"` needs `client_id` and `client_secret`".to_owned(),
            );
        }
        if has_secret && self.issuer.is_none() {
            // The server names the authorization server, and could name another one to get the secret.
            return Err(
                "`client_secret` needs `issuer`, the only authorization server that gets the secret"
                    .to_owned(),
            );
        }
        if let Some(callback) = &self.callback {
            ServerUrl::parse(callback).map_err(|bad| format!("invalid `callback`: {bad}"))?;
        }
        let scopes = self.scopes.map(|scopes| {
            let scopes = scopes.iter().map(String::as_str);
            scopes.collect::<ScopeSet>()
        });
        Ok(LoginSettings {
            client,
            issuer: self.issuer,
            scopes,
            callback: self.callback,
            grant,
        })
    }
}

/// The table `[oauth]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileOauth {
    client_metadata: Option<String>,
    keys: Option<String>,
}

pub(super) fn parse((table, origin): (FileOauth, String)) -> Result<OauthConfig, Problem> {
    let invalid = |why: String, next: &str| {
        invalid_at(
            &origin,
            format!("invalid table [oauth] ({origin})"),
            why,
            next,
        )
    };
    if let Some(address) = &table.client_metadata {
        let is_https = address.starts_with("https://") && ServerUrl::parse(address).is_ok();
        if !is_https {
            let why = "`client_metadata` is not an https address".to_owned();
            return Err(invalid(
                why,
                "write the address at which the document is hosted",
            ));
        }
    }
    let keys = match table.keys.as_deref() {
        None | Some("auto") => KeyChoice::Auto,
        Some("keyring") => KeyChoice::Keyring,
        Some("file") => KeyChoice::File,
        Some(other) => match other.strip_prefix("command:") {
            Some(command) => KeyChoice::Command(command.to_owned()),
            None => {
                let why = format!("invalid `keys` value `{other}`");
                return Err(invalid(why, "write auto, keyring, file or command:CMD"));
            }
        },
    };
    Ok(OauthConfig {
        client_metadata: table.client_metadata,
        keys,
    })
}
