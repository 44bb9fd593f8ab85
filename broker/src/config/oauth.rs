//! The table `[oauth]`, and the key `oauth` of a server.

use airlock_core::login::{ConfiguredClient, Grant, ScopeSet};
use airlock_core::problem::Problem;
use serde::Deserialize;

use super::invalid_at;
use crate::login::{ClientKey, KeyChoice, LoginSettings, OauthConfig};
use crate::upstream::ServerUrl;

/// The key `oauth` of a server. Placeholders are not resolved yet.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OauthTable {
    pub(crate) client_id: Option<String>,
    pub(crate) client_secret: Option<String>,
    pub(crate) private_key: Option<String>,
    pub(crate) issuer: Option<String>,
    pub(crate) scopes: Option<Vec<String>>,
    pub(crate) callback: Option<String>,
    pub(crate) grant: Option<String>,
}

/// The client of a table, with resolved placeholders.
pub(super) struct ResolvedClient {
    pub(super) id: Option<String>,
    pub(super) secret: Option<String>,
    /// A key in PKCS#8 as PEM text.
    pub(super) private_key: Option<String>,
}

impl OauthTable {
    /// Returns the settings with the resolved client, or why they are invalid.
    pub(super) fn settings(self, client: ResolvedClient) -> Result<LoginSettings, String> {
        let grant = match self.grant.as_deref() {
            None | Some("authorization_code") => Grant::AuthorizationCode,
            Some("client_credentials") => Grant::ClientCredentials,
            Some(other) => {
                return Err(format!(
                    "invalid `grant` value `{other}`; expected authorization_code or client_credentials"
                ));
            }
        };
        let proof = match (&client.secret, &client.private_key) {
            (Some(_), Some(_)) => {
                return Err("`client_secret` and `private_key` exclude each other".to_owned());
            }
            (Some(_), None) => Some("client_secret"),
            (None, Some(_)) => Some("private_key"),
            (None, None) => None,
        };
        if let Some(proof) = proof {
            if client.id.is_none() {
                return Err(format!("`{proof}` needs `client_id`"));
            }
            if self.issuer.is_none() {
                // The server names the authorization server, and could name another one to get the
                // secret.
                return Err(format!(
                    "`{proof}` needs `issuer`, the only authorization server at which it is used"
                ));
            }
        } else if grant == Grant::ClientCredentials {
            return Err(
                "`grant = \"client_credentials\"` needs `client_id`, and `client_secret` or `private_key`"
                    .to_owned(),
            );
        }
        let key = client.private_key.as_deref().map(ClientKey::parse);
        let key = key
            .transpose()
            .map_err(|why| format!("invalid `private_key`: {why}"))?;
        let signs_with = key.as_ref().map(ClientKey::algorithm);
        let secret = client.secret;
        let client = client.id.map(|id| ConfiguredClient {
            id,
            secret,
            signs_with,
        });
        if let Some(callback) = &self.callback {
            ServerUrl::parse(callback).map_err(|bad| format!("invalid `callback`: {bad}"))?;
        }
        let scopes = self.scopes.map(|scopes| {
            let scopes = scopes.iter().map(String::as_str);
            scopes.collect::<ScopeSet>()
        });
        Ok(LoginSettings {
            client,
            key,
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
