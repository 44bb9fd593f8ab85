//! How airlock is known at an authorization server, and how it proves that at the token endpoint.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use super::DEVICE_GRANT;
use super::error::{LoginError, shown};
use super::metadata::{ServerMetadata, object, text};
use super::request::{Answer, Body, ClientProof, Request};

const NAME: &str = "airlock";
/// Tokens and secrets that a server chooses are masked in all texts, so a short word would mask
/// parts of other texts.
pub(super) const SECRET_BYTES_MIN: usize = 16;

/// How the token is obtained.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// A person logs in with a browser.
    #[default]
    AuthorizationCode,
    /// The configured client logs in with its own secret, without a person.
    ClientCredentials,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthMethod {
    None,
    ClientSecretBasic,
    ClientSecretPost,
    /// A signed assertion (RFC 7523).
    PrivateKeyJwt,
}

/// Where the client id comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientOrigin {
    Configured,
    MetadataDocument,
    Registered,
}

/// A client as the configuration names it.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfiguredClient {
    pub id: String,
    pub secret: Option<String>,
    /// The algorithm of the client's private key, as JWS names it. The shell has the key.
    pub signs_with: Option<&'static str>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    pub id: String,
    pub secret: Option<String>,
    /// How the secret is sent. A configured secret can be added or removed after the login, so this
    /// is known also for a client without one.
    pub method: AuthMethod,
    pub origin: ClientOrigin,
}

impl fmt::Debug for ConfiguredClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConfiguredClient({})", self.id)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Client({}, {:?}, {:?})",
            self.id, self.method, self.origin
        )
    }
}

/// How airlock becomes known to an authorization server.
pub(super) enum ClientChoice {
    Known(Client),
    /// The client must be registered with this request first.
    Register(Request),
}

impl ClientChoice {
    /// Chooses in the order of the specification: the configured client, the metadata document,
    /// dynamic registration.
    pub(super) fn new(
        metadata: &ServerMetadata,
        configured: Option<&ConfiguredClient>,
        client_metadata: Option<&str>,
        wanted: &Registration<'_>,
    ) -> Result<Self, LoginError> {
        if let Some(configured) = configured {
            let method = match configured.signs_with {
                Some(algorithm) => metadata
                    .check_private_key_jwt(algorithm)
                    .map(|()| AuthMethod::PrivateKeyJwt)?,
                None => secret_method(metadata),
            };
            return Ok(Self::Known(Client {
                id: configured.id.clone(),
                secret: configured.secret.clone(),
                method,
                origin: ClientOrigin::Configured,
            }));
        }
        match (client_metadata, &metadata.registration_endpoint) {
            (Some(document), _) if metadata.has_client_metadata_documents => {
                Ok(Self::Known(Client {
                    id: document.to_owned(),
                    secret: None,
                    method: AuthMethod::None,
                    origin: ClientOrigin::MetadataDocument,
                }))
            }
            (_, Some(endpoint)) => {
                let method = wanted_method(metadata);
                let body = described(method, wanted).to_string();
                Ok(Self::Register(Request {
                    url: endpoint.clone(),
                    body: Body::Json(body),
                    proof: ClientProof::None,
                }))
            }
            _ => Err(LoginError::NoClient {
                issuer: metadata.issuer.clone(),
            }),
        }
    }
}

/// Returns how a secret is sent to the token endpoint, by what the server supports.
fn secret_method(metadata: &ServerMetadata) -> AuthMethod {
    let supports = |name: &str| match &metadata.auth_methods {
        Some(methods) => methods.iter().any(|it| it == name),
        // RFC 8414: if omitted, the default is client_secret_basic.
        None => name == "client_secret_basic",
    };
    match !supports("client_secret_basic") && supports("client_secret_post") {
        true => AuthMethod::ClientSecretPost,
        false => AuthMethod::ClientSecretBasic,
    }
}

/// Returns the method that a registration asks for. A program on a person's machine is a public
/// client, unless the server wants a secret.
fn wanted_method(metadata: &ServerMetadata) -> AuthMethod {
    match &metadata.auth_methods {
        Some(methods) if !methods.iter().any(|it| it == "none") => secret_method(metadata),
        _ => AuthMethod::None,
    }
}

/// What a client is registered for.
pub(super) enum Registration<'a> {
    Redirects(&'a [&'a str]),
    Device,
}

fn described(method: AuthMethod, wanted: &Registration<'_>) -> Value {
    let mut client = json!({
        "client_name": NAME,
        "token_endpoint_auth_method": method,
        "application_type": "native",
    });
    let more = match wanted {
        Registration::Redirects(redirect_uris) => json!({
            "redirect_uris": redirect_uris,
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
        }),
        Registration::Device => json!({
            "redirect_uris": [],
            "grant_types": [DEVICE_GRANT, "refresh_token"],
            "response_types": [],
        }),
    };
    if let (Some(client), Value::Object(more)) = (client.as_object_mut(), more) {
        client.extend(more);
    }
    client
}

/// Returns the client metadata document for an organisation to host at `address`.
#[must_use]
pub fn metadata_document(address: &str) -> Value {
    // RFC 8252: the authorization server ignores the port of a loopback address.
    let redirects = ["http://127.0.0.1/callback", "http://localhost/callback"];
    let wanted = Registration::Redirects(&redirects);
    let mut document = described(AuthMethod::None, &wanted);
    if let Some(members) = document.as_object_mut() {
        members.insert("client_id".to_owned(), address.into());
    }
    document
}

impl Client {
    pub(super) fn registered(
        answer: &Answer<'_>,
        metadata: &ServerMetadata,
    ) -> Result<Self, LoginError> {
        if matches!(answer.status, 429 | 500..=599) {
            return Err(LoginError::Unavailable {
                status: answer.status,
            });
        }
        let refused = |why: String| LoginError::Registration(why);
        let object = object(answer.body);
        if !matches!(answer.status, 200 | 201) {
            let object = object.unwrap_or_default();
            let said = text(&object, "error_description").or_else(|| text(&object, "error"));
            let said = said.map_or_else(String::new, |it| format!(": {}", shown(it)));
            return Err(refused(format!("HTTP status {}{said}", answer.status)));
        }
        let object = object.map_err(refused)?;
        let id = text(&object, "client_id").filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| refused("the answer has no `client_id`".to_owned()))?;
        let named = text(&object, "token_endpoint_auth_method");
        let secret = text(&object, "client_secret");
        let secret = secret.filter(|it| !it.is_empty() && named != Some("none"));
        if secret.is_some_and(|it| it.len() < SECRET_BYTES_MIN) {
            return Err(refused(format!(
                "its `client_secret` is shorter than {SECRET_BYTES_MIN} bytes"
            )));
        }
        let method = match (named, secret) {
            (_, None) => AuthMethod::None,
            (Some("client_secret_post"), _) => AuthMethod::ClientSecretPost,
            (Some("client_secret_basic"), _) => AuthMethod::ClientSecretBasic,
            _ => secret_method(metadata),
        };
        Ok(Self {
            id: id.to_owned(),
            secret: secret.map(str::to_owned),
            method,
            origin: ClientOrigin::Registered,
        })
    }

    /// Takes the secret or the key of the configuration, which may be newer than that of the last
    /// login.
    pub fn configure(&mut self, configured: &ConfiguredClient) {
        if configured.id != self.id {
            return;
        }
        self.secret.clone_from(&configured.secret);
        self.method = match (configured.signs_with, self.method) {
            (Some(_), _) => AuthMethod::PrivateKeyJwt,
            (None, AuthMethod::PrivateKeyJwt) => AuthMethod::ClientSecretBasic,
            (None, method) => method,
        };
    }

    /// Returns a request to the token or revocation endpoint of an issuer, with what proves who the
    /// client is.
    pub(super) fn request(&self, url: Url, issuer: &str, fields: &[(&str, &str)]) -> Request {
        let id = self.id.as_str();
        let (own, proof): (&[(&str, &str)], _) = match (self.secret.as_deref(), self.method) {
            (_, AuthMethod::PrivateKeyJwt) => (
                &[],
                ClientProof::Assertion {
                    client_id: id.to_owned(),
                    audience: issuer.to_owned(),
                },
            ),
            (None, _) | (_, AuthMethod::None) => (&[("client_id", id)], ClientProof::None),
            (Some(secret), AuthMethod::ClientSecretPost) => (
                &[("client_id", id), ("client_secret", secret)],
                ClientProof::None,
            ),
            (Some(secret), AuthMethod::ClientSecretBasic) => {
                let encoded =
                    |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
                (&[], ClientProof::Basic(encoded(id), encoded(secret)))
            }
        };
        Request {
            proof,
            ..Request::form(url, &[fields, own].concat())
        }
    }
}
