//! Decides which HTTP requests are accepted. Requests from pages of other origins are refused. A
//! listener on the loopback interface also refuses requests whose `Host` header does not name this
//! machine. A listener on another interface refuses requests without a valid token.

use std::net::SocketAddr;

use axum::http::{HeaderMap, header};
use ring::digest;

use super::caller::{AccessDenied, AccessError, Caller};
use super::header_value::names_loopback;
use super::oauth::ResourceServer;

const TOKEN_BYTES_MIN: usize = 16;
const TOKEN_BYTES_MAX: usize = 4_096;

#[derive(Clone)]
pub struct AccessGuard {
    policy: AccessPolicy,
    is_loopback: bool,
}

#[derive(Clone)]
enum AccessPolicy {
    Anybody,
    /// Accepts the token with this digest.
    Token(digest::Digest),
    /// Accepts tokens that an authorization server confirms.
    Oauth(ResourceServer),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidToken {
    #[error("{0} can be reached from other machines, but no token is set")]
    Missing(SocketAddr),
    #[error("invalid token length; expected {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} bytes")]
    Length,
    #[error("invalid token; expected only visible ASCII characters")]
    Characters,
}

impl std::fmt::Debug for AccessGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let policy = match &self.policy {
            AccessPolicy::Anybody => "anybody",
            AccessPolicy::Token(_) => "a token",
            AccessPolicy::Oauth(_) => "an authorization server",
        };
        write!(f, "AccessGuard({policy}, loopback: {})", self.is_loopback)
    }
}

impl AccessGuard {
    /// Creates a guard for a listener at this address. Addresses beyond the loopback interface
    /// require a token.
    pub fn new(address: SocketAddr, token: Option<&str>) -> Result<Self, InvalidToken> {
        let is_loopback = address.ip().is_loopback();
        let policy = match token {
            None if !is_loopback => return Err(InvalidToken::Missing(address)),
            None => AccessPolicy::Anybody,
            Some(token) if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&token.len()) => {
                return Err(InvalidToken::Length);
            }
            Some(token) if !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                return Err(InvalidToken::Characters);
            }
            Some(token) => AccessPolicy::Token(digest::digest(&digest::SHA256, token.as_bytes())),
        };
        Ok(Self {
            policy,
            is_loopback,
        })
    }

    /// Creates a guard that accepts OAuth tokens from an authorization server. `address` is the
    /// listener's.
    #[must_use]
    pub fn with_oauth(address: SocketAddr, server: ResourceServer) -> Self {
        Self {
            policy: AccessPolicy::Oauth(server),
            is_loopback: address.ip().is_loopback(),
        }
    }

    pub(super) fn oauth(&self) -> Option<&ResourceServer> {
        match &self.policy {
            AccessPolicy::Oauth(server) => Some(server),
            AccessPolicy::Anybody | AccessPolicy::Token(_) => None,
        }
    }

    /// Returns the caller of a request, or the reason for refusing it.
    pub(super) async fn admit(
        &self,
        headers: &HeaderMap,
        now_ms: u64,
    ) -> Result<Caller, AccessDenied> {
        let admitted = match self.check(headers) {
            Err(refused) => Err(refused),
            Ok(()) => match (&self.policy, bearer(headers)) {
                (AccessPolicy::Anybody, _) => Ok(Caller::default()),
                (_, None) => Err(AccessError::NoToken),
                (AccessPolicy::Token(token), Some(said)) => {
                    let said = digest::digest(&digest::SHA256, said.as_bytes());
                    // Digests have equal length, and an attacker cannot choose them. The time of
                    // this comparison reveals nothing about the token.
                    let is_same = said.as_ref() == token.as_ref();
                    is_same.then_some(Caller::Token).ok_or(AccessError::Token)
                }
                (AccessPolicy::Oauth(server), Some(said)) if said.len() <= TOKEN_BYTES_MAX => {
                    server.admit(said, now_ms).await
                }
                (AccessPolicy::Oauth(_), Some(_)) => Err(AccessError::Token),
            },
        };
        admitted.map_err(|refused| AccessDenied {
            refused,
            challenge: self
                .oauth()
                .map(ResourceServer::challenge)
                .unwrap_or_default(),
        })
    }

    /// Checks that a request comes from an allowed origin and names an allowed host.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), AccessError> {
        if let Some(origin) = text(headers, header::ORIGIN)
            && !is_own_origin(origin)
        {
            return Err(AccessError::Origin);
        }
        // DNS rebinding: a foreign name that resolves to this address would give a foreign page
        // access.
        let host = text(headers, header::HOST).unwrap_or_default();
        if self.is_loopback && !names_loopback(host) {
            return Err(AccessError::Host);
        }
        Ok(())
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    let said = headers.get(name);
    said.map(|it| it.to_str().unwrap_or_default())
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = text(headers, header::AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whether the origin is a page served by this machine. Such pages may send requests.
fn is_own_origin(origin: &str) -> bool {
    let rest = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    rest.is_some_and(names_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn check(gate: &AccessGuard, headers: &[(&str, &str)], expected: Result<(), AccessError>) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = header::HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.insert(name, value.parse().unwrap());
        }
        assert_eq!(gate.check(&map), expected, "{headers:?}");
    }

    #[test]
    fn loopback_listener_accepts_only_this_machine() {
        let gate = AccessGuard::new("127.0.0.1:8080".parse().unwrap(), None).unwrap();
        for host in [
            "localhost:8080",
            "127.0.0.1",
            "[::1]:1",
            "LOCALHOST",
            "127.1.2.3:9",
        ] {
            check(&gate, &[("host", host)], Ok(()));
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "10.0.0.1:8080",
            "",
            "[::1",
            "localhost:x",
            "::1",
        ] {
            check(&gate, &[("host", host)], Err(AccessError::Host));
        }
        check(&gate, &[], Err(AccessError::Host));
        let here = ("host", "localhost");
        for origin in [
            "http://localhost:3000",
            "https://127.0.0.1",
            "http://[::1]:5",
        ] {
            check(&gate, &[here, ("origin", origin)], Ok(()));
        }
        for origin in [
            "http://evil.example",
            "null",
            "localhost",
            "http://localhost.evil",
            "file://",
        ] {
            check(&gate, &[here, ("origin", origin)], Err(AccessError::Origin));
        }
    }

    #[tokio::test]
    async fn non_loopback_listener_requires_token() {
        let address: SocketAddr = "0.0.0.0:80".parse().unwrap();
        assert_eq!(
            AccessGuard::new(address, None).unwrap_err(),
            InvalidToken::Missing(address)
        );
        assert_eq!(
            AccessGuard::new(address, Some("short")).unwrap_err(),
            InvalidToken::Length
        );
        assert_eq!(
            AccessGuard::new(address, Some("0123456789 abcdef")).unwrap_err(),
            InvalidToken::Characters
        );
        let gate = AccessGuard::new(address, Some(TOKEN)).unwrap();
        for (said, expected) in [
            (format!("Bearer {TOKEN}"), Ok(Caller::Token)),
            (format!("bearer  {TOKEN}"), Ok(Caller::Token)),
            (format!("Basic {TOKEN}"), Err(AccessError::NoToken)),
            (TOKEN.to_owned(), Err(AccessError::NoToken)),
            (format!("Bearer {TOKEN}x"), Err(AccessError::Token)),
            ("Bearer ".to_owned(), Err(AccessError::Token)),
            (String::new(), Err(AccessError::NoToken)),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "any.example".parse().unwrap());
            headers.insert(header::AUTHORIZATION, said.parse().unwrap());
            let admitted = gate.admit(&headers, 0).await.map_err(|it| it.refused);
            assert_eq!(admitted, expected, "{said}");
        }
        let bare = gate.admit(&HeaderMap::new(), 0).await;
        assert_eq!(bare.unwrap_err().refused, AccessError::NoToken);
    }
}
