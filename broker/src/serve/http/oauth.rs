//! Checks tokens at an authorization server. airlock looks up each token there (RFC 7662); the
//! token must be issued for this resource. The token's owner is the caller, who owns the sessions.
//! The metadata of the resource (RFC 9728) names the authorization server to hosts.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use airlock_core::id::Digest;
use axum::http::header;
use ring::digest;
use serde_json::{Value, json};

use super::caller::{AccessError, Caller};
use super::header_value::names_loopback;
use crate::upstream::{BadUrl, Secret, ServerUrl, http_client};

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
/// Maximum time for the authorization server to answer a lookup.
const LOOK_UP_WALL: Duration = Duration::from_secs(5);
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Time for which a valid token is cached, in milliseconds; at most the token's remaining lifetime.
const KNOWN_MS: u64 = 30_000;
const KNOWN_MAX: usize = 1_000;
/// Time for which a refused token is cached, in milliseconds, so that repeated attempts cause no
/// repeated lookups.
const REFUSED_MS: u64 = 5_000;

/// The settings that the authorization server and this resource agree on.
#[derive(Debug, Clone)]
pub struct OauthSettings {
    /// The URL under which hosts know this resource. Tokens must be issued for it.
    pub resource: String,
    pub issuer: String,
    /// The introspection endpoint, where tokens are looked up.
    pub introspection: String,
    pub client_id: String,
    pub client_secret: Secret,
    /// Required scopes; a token needs all of them.
    pub scopes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadOauth {
    #[error("invalid {what}: {why}")]
    Url { what: &'static str, why: BadUrl },
    #[error("invalid {0}: expected an https URL, or a URL on this machine")]
    Plain(&'static str),
    #[error("a scope is empty or contains invalid characters")]
    Scope,
}

/// Checks tokens for this resource. Cheap to clone; all clones share one cache of tokens.
#[derive(Clone)]
pub struct ResourceServer(Arc<Inner>);

struct Inner {
    settings: OauthSettings,
    resource: ServerUrl,
    introspection: ServerUrl,
    /// Valid tokens by their digest.
    known: Mutex<HashMap<Vec<u8>, CachedToken>>,
    /// Refused tokens by their digest. They are in a separate cache, so that they cannot displace
    /// valid tokens.
    refused: Mutex<HashMap<Vec<u8>, (AccessError, u64)>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct CachedToken {
    caller: Caller,
    until_ms: u64,
}

impl fmt::Debug for ResourceServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResourceServer({})", self.0.resource)
    }
}

impl ResourceServer {
    pub fn new(settings: OauthSettings) -> Result<Self, BadOauth> {
        let resource = url("resource", &settings.resource)?;
        url("issuer", &settings.issuer)?;
        let introspection = url("introspection endpoint", &settings.introspection)?;
        // The characters of RFC 6749 §3.3. None of them can end a quoted value in a header.
        let fits = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
        let is_scope = |scope: &String| !scope.is_empty() && scope.bytes().all(fits);
        if !settings.scopes.iter().all(is_scope) {
            return Err(BadOauth::Scope);
        }
        Ok(Self(Arc::new(Inner {
            settings,
            resource,
            introspection,
            known: Mutex::default(),
            refused: Mutex::default(),
        })))
    }

    /// Returns the metadata that hosts read before they have a token.
    pub(super) fn metadata(&self) -> Value {
        let settings = &self.0.settings;
        let mut metadata = json!({
            "resource": settings.resource,
            "resource_name": "airlock",
            "authorization_servers": [settings.issuer],
            "bearer_methods_supported": ["header"],
        });
        if !settings.scopes.is_empty() {
            crate::serve::rpc::set_member(
                &mut metadata,
                "scopes_supported",
                settings.scopes.clone(),
            );
        }
        metadata
    }

    /// Returns the paths at which clients look for the metadata.
    pub(super) fn metadata_paths(&self) -> [String; 2] {
        let path = self.0.resource.url().path().trim_end_matches('/');
        let own = if path.is_empty() { "/mcp" } else { path };
        [WELL_KNOWN.to_owned(), format!("{WELL_KNOWN}{own}")]
    }

    /// Returns the parameters of a `WWW-Authenticate: Bearer` header.
    pub(super) fn challenge(&self) -> String {
        let [_, path] = self.metadata_paths();
        let origin = self.0.resource.url().origin().ascii_serialization();
        let mut challenge = format!(" resource_metadata=\"{origin}{path}\"");
        let scopes = &self.0.settings.scopes;
        if !scopes.is_empty() {
            challenge.push_str(&format!(", scope=\"{}\"", scopes.join(" ")));
        }
        challenge
    }

    /// Returns the owner of a token, if the token is valid here.
    pub(super) async fn admit(&self, token: &str, now_ms: u64) -> Result<Caller, AccessError> {
        let key = digest::digest(&digest::SHA256, token.as_bytes());
        let key = key.as_ref().to_vec();
        let known = self.known().get(&key).cloned();
        if let Some(known) = known.filter(|it| it.until_ms > now_ms) {
            return Ok(known.caller);
        }
        let refused = self.refused().get(&key).copied();
        if let Some((refused, _)) = refused.filter(|(_, until_ms)| *until_ms > now_ms) {
            return Err(refused);
        }
        let looked_up = tokio::time::timeout(LOOK_UP_WALL, self.look_up(token)).await;
        let said = looked_up.ok().flatten().ok_or(AccessError::Unknown)?;
        match judged(&said, token, &self.0.settings, now_ms) {
            Ok(found) => {
                let caller = found.caller.clone();
                keep(&mut self.known(), key, found, |it| it.until_ms > now_ms);
                Ok(caller)
            }
            Err(refused) => {
                let until_ms = now_ms.saturating_add(REFUSED_MS);
                let holds = |it: &(AccessError, u64)| it.1 > now_ms;
                keep(&mut self.refused(), key, (refused, until_ms), holds);
                Err(refused)
            }
        }
    }

    /// Asks the authorization server about a token. Returns `None` if there is no readable answer.
    async fn look_up(&self, token: &str) -> Option<Value> {
        let Inner {
            settings,
            introspection,
            ..
        } = &*self.0;
        let client = http_client(introspection, LOOK_UP_WALL).ok()?;
        let secret = encoded(settings.client_secret.expose());
        let request = client
            .post(introspection.url().clone())
            .basic_auth(encoded(&settings.client_id), Some(secret))
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::ACCEPT, "application/json")
            .body(format!(
                "token={}&token_type_hint=access_token",
                encoded(token)
            ));
        let mut response = request.send().await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.ok()? {
            body.extend_from_slice(&piece);
            if body.len() > ANSWER_BYTES_MAX {
                return None;
            }
        }
        let said: Value = serde_json::from_slice(&body).ok()?;
        said.get("active")?.is_boolean().then_some(said)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Vec<u8>, CachedToken>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refused(&self) -> MutexGuard<'_, HashMap<Vec<u8>, (AccessError, u64)>> {
        self.0
            .refused
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Caches an entry. If the cache is full, expired entries are removed first; if it is still full,
/// the entry is not kept.
fn keep<T>(known: &mut HashMap<Vec<u8>, T>, key: Vec<u8>, found: T, holds: impl Fn(&T) -> bool) {
    if known.len() >= KNOWN_MAX {
        known.retain(|_, it| holds(it));
    }
    if known.len() < KNOWN_MAX {
        known.insert(key, found);
    }
}

fn url(what: &'static str, text: &str) -> Result<ServerUrl, BadOauth> {
    let url = ServerUrl::parse(text).map_err(|why| BadOauth::Url { what, why })?;
    let host = url.url().host_str().unwrap_or_default();
    if url.url().scheme() == "https" || names_loopback(host) {
        Ok(url)
    } else {
        Err(BadOauth::Plain(what))
    }
}

/// Decides from the authorization server's answer whether a token is valid here, and until when
/// this decision may be cached.
fn judged(
    said: &Value,
    token: &str,
    settings: &OauthSettings,
    now_ms: u64,
) -> Result<CachedToken, AccessError> {
    let text = |key| said.get(key).and_then(Value::as_str);
    let is_ours = |it: &Value| it.as_str() == Some(&settings.resource);
    let for_us = match said.get("aud") {
        Some(Value::Array(several)) => several.iter().any(is_ours),
        Some(one) => is_ours(one),
        // A token without an audience could have been issued for any resource.
        None => false,
    };
    let until_ms = moment_ms(said, "exp")?.unwrap_or(u64::MAX);
    let is_early = moment_ms(said, "nbf")?.is_some_and(|it| it > now_ms);
    let named = |key| said.get(key).filter(|it| !it.is_null());
    let is_foreign = named("iss").is_some_and(|it| it.as_str() != Some(&settings.issuer));
    let is_bearer = |it: &Value| {
        it.as_str()
            .is_some_and(|it| it.eq_ignore_ascii_case("bearer"))
    };
    let is_of_another_kind = named("token_type").is_some_and(|it| !is_bearer(it));
    // A bound token is valid only with a proof of possession, and airlock does not check such
    // proofs.
    let is_bound = named("cnf").is_some();
    let is_active = said.get("active") == Some(&Value::Bool(true));
    let is_ours = for_us && !is_foreign && !is_of_another_kind && !is_bound;
    if !is_active || !is_ours || until_ms <= now_ms || is_early {
        return Err(AccessError::Token);
    }
    let granted: Vec<_> = text("scope").unwrap_or_default().split(' ').collect();
    let mut wanted = settings.scopes.iter();
    if !wanted.all(|scope| granted.contains(&scope.as_str())) {
        return Err(AccessError::Scope);
    }
    let who = ["sub", "client_id"].map(|key| text(key).unwrap_or_default());
    let caller = match who {
        // The answer names no owner, so each token counts as a separate caller.
        ["", ""] => json!([Digest::sha256(token.as_bytes())]),
        who => json!(who),
    };
    Ok(CachedToken {
        caller: Caller::Subject(caller.to_string()),
        until_ms: until_ms.min(now_ms.saturating_add(KNOWN_MS)),
    })
}

/// Parses a time in seconds, possibly with a fraction, as tokens contain it. An invalid time is an
/// error and does not count as "no expiry".
fn moment_ms(said: &Value, key: &str) -> Result<Option<u64>, AccessError> {
    match said.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(moment) => {
            let seconds = moment.as_f64().filter(|it| *it >= 0.0);
            // The cast saturates, so a value that is too large becomes the maximum.
            let ms = seconds.map(|it| (it * 1_000.0) as u64);
            ms.map(Some).ok_or(AccessError::Token)
        }
    }
}

/// Encodes a form value: percent-encodes all bytes except letters, digits and `-._~`.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    fn settings() -> OauthSettings {
        OauthSettings {
            resource: "https://airlock.example/mcp".into(),
            issuer: "https://login.example".into(),
            introspection: "https://login.example/introspect".into(),
            client_id: "airlock".into(),
            client_secret: Secret::new("s3cret"),
            scopes: vec!["tools".into()],
        }
    }

    fn check(change: &Value, expected: Result<u64, AccessError>) {
        let mut said = json!({
            "active": true,
            "aud": ["https://other.example", "https://airlock.example/mcp"],
            "iss": "https://login.example",
            "exp": 2_000,
            "scope": "profile tools",
            "sub": "alice",
        });
        for (key, value) in change.as_object().unwrap() {
            crate::serve::rpc::set_member(&mut said, key, value.clone());
        }
        let judged = judged(&said, "token", &settings(), 1_000_000).map(|it| it.until_ms);
        assert_eq!(judged, expected, "{change}");
    }

    #[test]
    fn expiry_may_have_fraction_and_invalid_expiry_denies() {
        check(&json!({"exp": 1_010.5}), Ok(1_010_500));
        check(&json!({"exp": 1e300}), Ok(1_030_000));
        for moment in [
            json!(999.5),
            json!("2000"),
            json!(-1),
            json!({}),
            json!(true),
        ] {
            check(&json!({"exp": moment}), Err(AccessError::Token));
        }
        check(&json!({"nbf": 1_000.5}), Err(AccessError::Token));
        check(&json!({"nbf": "0"}), Err(AccessError::Token));
    }

    #[test]
    fn token_must_be_active_and_meant_for_this_resource() {
        check(&json!({}), Ok(1_030_000));
        check(&json!({"exp": 1_010}), Ok(1_010_000));
        check(&json!({"exp": null, "iss": null}), Ok(1_030_000));
        check(&json!({"token_type": "bEARER", "cnf": null}), Ok(1_030_000));
        check(
            &json!({"aud": "https://airlock.example/mcp"}),
            Ok(1_030_000),
        );
        for change in [
            json!({"active": false}),
            json!({"active": "true"}),
            json!({"aud": "https://other.example"}),
            json!({"aud": "https://airlock.example/mcp/"}),
            json!({"aud": []}),
            json!({"aud": null}),
            json!({"exp": 1_000}),
            json!({"nbf": 1_001}),
            json!({"iss": "https://evil.example"}),
            json!({"iss": 5}),
            json!({"token_type": "DPoP"}),
            json!({"token_type": "refresh_token"}),
            json!({"token_type": ["Bearer"]}),
            json!({"cnf": {"jkt": "x"}}),
            json!({"cnf": false}),
        ] {
            check(&change, Err(AccessError::Token));
        }
        check(&json!({"scope": "toolsmith"}), Err(AccessError::Scope));
        check(&json!({"scope": null}), Err(AccessError::Scope));
    }

    #[tokio::test]
    async fn inactive_token_is_cached_for_a_while() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let introspection = format!("http://{}/", listener.local_addr().unwrap());
        let server = ResourceServer::new(OauthSettings {
            introspection,
            ..settings()
        });
        let server = server.unwrap();
        // The server answers one request and closes the connection.
        let answering = async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            drop(listener);
            let mut heard = Vec::new();
            while !String::from_utf8_lossy(&heard).contains("token_type_hint") {
                assert_ne!(stream.read_buf(&mut heard).await.unwrap(), 0);
            }
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 16\r\n\r\n";
            let answer = format!("{head}{{\"active\":false}}");
            stream.write_all(answer.as_bytes()).await.unwrap();
        };
        let (found, ()) = tokio::join!(server.admit("bad", 0), answering);
        assert_eq!(found, Err(AccessError::Token));
        assert_eq!(server.admit("bad", 4_999).await, Err(AccessError::Token));
        assert_eq!(server.admit("bad", 5_000).await, Err(AccessError::Unknown));
    }

    #[test]
    fn callers_are_distinguished_by_subject_or_token() {
        let caller = |who: Value, token| {
            let mut said = json!({"active": true, "aud": settings().resource, "scope": "tools"});
            crate::serve::rpc::set_member(&mut said, "sub", who);
            judged(&said, token, &settings(), 0).unwrap().caller
        };
        let (alice, bob) = (json!("alice"), json!("bob"));
        assert_ne!(caller(alice.clone(), "one"), caller(bob, "one"));
        assert_eq!(caller(alice.clone(), "one"), caller(alice, "another"));
        assert_ne!(caller(json!(null), "one"), caller(json!(null), "another"));
        assert_eq!(caller(json!(null), "one"), caller(json!(null), "one"));
    }

    #[test]
    fn metadata_is_at_well_known_path_with_safe_urls() {
        let server = ResourceServer::new(settings()).unwrap();
        assert_eq!(
            server.challenge(),
            " resource_metadata=\"https://airlock.example/.well-known/oauth-protected-resource/mcp\", scope=\"tools\""
        );
        let plain = OauthSettings {
            introspection: "http://login.example/introspect".into(),
            ..settings()
        };
        let bad = ResourceServer::new(plain).unwrap_err();
        assert_eq!(bad, BadOauth::Plain("introspection endpoint"));
        let quoted = OauthSettings {
            scopes: vec!["a\"b".into()],
            ..settings()
        };
        assert_eq!(ResourceServer::new(quoted).unwrap_err(), BadOauth::Scope);
    }
}
