//! Who may speak to us at all: pages of other origins may not, names that only
//! look like this machine may not, and beyond it nobody without the token.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ring::digest;

use super::oauth::{Caller, ResourceServer};

const TOKEN_BYTES_MIN: usize = 16;
const TOKEN_BYTES_MAX: usize = 4_096;

#[derive(Clone)]
pub struct Gate {
    entry: Entry,
    is_loopback: bool,
}

#[derive(Clone)]
enum Entry {
    Anybody,
    /// Whoever carries the token with this digest.
    Token(digest::Digest),
    /// Whoever carries a token that an authorization server vouches for.
    Oauth(ResourceServer),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadToken {
    #[error("{0} can be reached from other machines, but no token is set")]
    Missing(SocketAddr),
    #[error("the token has less than {TOKEN_BYTES_MIN} or more than {TOKEN_BYTES_MAX} bytes")]
    Length,
    #[error("the token holds characters that no header can carry")]
    Characters,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    Origin,
    Host,
    NoToken,
    Token,
    /// The token is good, and not for this.
    Scope,
    /// Nobody can say what the token is worth.
    Unknown,
}

/// A refusal, with what a host needs to know to come again.
#[derive(Debug)]
pub(super) struct Turned {
    refused: Refused,
    challenge: String,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let entry = match &self.entry {
            Entry::Anybody => "anybody",
            Entry::Token(_) => "a token",
            Entry::Oauth(_) => "an authorization server",
        };
        write!(f, "Gate({entry}, loopback: {})", self.is_loopback)
    }
}

impl Gate {
    /// For a listener at this address. Beyond the loopback a token is a must.
    pub fn new(address: SocketAddr, token: Option<&str>) -> Result<Self, BadToken> {
        let is_loopback = address.ip().is_loopback();
        let entry = match token {
            None if !is_loopback => return Err(BadToken::Missing(address)),
            None => Entry::Anybody,
            Some(token) if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&token.len()) => {
                return Err(BadToken::Length);
            }
            Some(token) if !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                return Err(BadToken::Characters);
            }
            Some(token) => Entry::Token(digest::digest(&digest::SHA256, token.as_bytes())),
        };
        Ok(Self { entry, is_loopback })
    }

    /// For a listener at this address, whose hosts get their tokens from an authorization
    /// server.
    #[must_use]
    pub fn with_oauth(address: SocketAddr, server: ResourceServer) -> Self {
        Self {
            entry: Entry::Oauth(server),
            is_loopback: address.ip().is_loopback(),
        }
    }

    pub(super) fn oauth(&self) -> Option<&ResourceServer> {
        match &self.entry {
            Entry::Oauth(server) => Some(server),
            Entry::Anybody | Entry::Token(_) => None,
        }
    }

    /// Who it is that speaks to us, when they may.
    pub(super) async fn admit(&self, headers: &HeaderMap, now_ms: u64) -> Result<Caller, Turned> {
        let admitted = match self.check(headers) {
            Err(refused) => Err(refused),
            Ok(()) => match (&self.entry, bearer(headers)) {
                (Entry::Anybody, _) => Ok(Caller::default()),
                (_, None) => Err(Refused::NoToken),
                (Entry::Token(token), Some(said)) => {
                    let said = digest::digest(&digest::SHA256, said.as_bytes());
                    // Digests of equal length that nobody can choose: how they differ tells nothing.
                    let is_same = said.as_ref() == token.as_ref();
                    is_same.then(Caller::default).ok_or(Refused::Token)
                }
                (Entry::Oauth(server), Some(said)) if said.len() <= TOKEN_BYTES_MAX => {
                    server.admit(said, now_ms).await
                }
                (Entry::Oauth(_), Some(_)) => Err(Refused::Token),
            },
        };
        admitted.map_err(|refused| Turned {
            refused,
            challenge: self
                .oauth()
                .map(ResourceServer::challenge)
                .unwrap_or_default(),
        })
    }

    /// Whether a request is from where requests may come.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), Refused> {
        if let Some(origin) = text(headers, header::ORIGIN)
            && !is_own_origin(origin)
        {
            return Err(Refused::Origin);
        }
        // A name that somebody else's DNS points here would be another machine's page.
        let host = text(headers, header::HOST).unwrap_or_default();
        if self.is_loopback && !names_loopback(host) {
            return Err(Refused::Host);
        }
        Ok(())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        Turned {
            refused: self,
            challenge: String::new(),
        }
        .into_response()
    }
}

impl IntoResponse for Turned {
    fn into_response(self) -> Response {
        let (status, why, error) = match self.refused {
            Refused::Origin => (StatusCode::FORBIDDEN, "the origin is not allowed", None),
            Refused::Host => (StatusCode::FORBIDDEN, "the host is not this machine", None),
            Refused::NoToken => (
                StatusCode::UNAUTHORIZED,
                "a bearer token is needed",
                Some(""),
            ),
            Refused::Token => {
                let error = "error=\"invalid_token\"";
                (
                    StatusCode::UNAUTHORIZED,
                    "the token is not a good one",
                    Some(error),
                )
            }
            Refused::Scope => {
                let error = "error=\"insufficient_scope\"";
                (
                    StatusCode::FORBIDDEN,
                    "the token is not meant for this",
                    Some(error),
                )
            }
            Refused::Unknown => {
                let why = "the authorization server does not say what the token is worth";
                (StatusCode::SERVICE_UNAVAILABLE, why, None)
            }
        };
        let kind = (header::CONTENT_TYPE, "application/json");
        let mut response = (status, [kind], super::post::error_body(why)).into_response();
        let challenge = error.map(|error| match (error, self.challenge.as_str()) {
            ("", challenge) => format!("Bearer{challenge}"),
            (error, "") => format!("Bearer {error}"),
            (error, challenge) => format!("Bearer {error},{challenge}"),
        });
        if let Some(Ok(challenge)) = challenge.map(|it| it.parse()) {
            let headers = response.headers_mut();
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
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

/// Pages served by this machine may speak to it.
fn is_own_origin(origin: &str) -> bool {
    let rest = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    rest.is_some_and(names_loopback)
}

/// `localhost:8080`, `127.0.0.1`, `[::1]:80`: names and addresses that nobody else can have.
pub(super) fn names_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, port)) if is_port(port) => name,
            _ => return false,
        },
        None => match host.split_once(':') {
            Some((name, port)) if is_port(&format!(":{port}")) => name,
            Some(_) => return false,
            None => host,
        },
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
}

fn is_port(text: &str) -> bool {
    text.is_empty()
        || text
            .strip_prefix(':')
            .is_some_and(|port| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn check(gate: &Gate, headers: &[(&str, &str)], expected: Result<(), Refused>) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = header::HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.insert(name, value.parse().unwrap());
        }
        assert_eq!(gate.check(&map), expected, "{headers:?}");
    }

    #[test]
    fn only_this_machine_speaks_to_a_listener_on_the_loopback() {
        let gate = Gate::new("127.0.0.1:8080".parse().unwrap(), None).unwrap();
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
            check(&gate, &[("host", host)], Err(Refused::Host));
        }
        check(&gate, &[], Err(Refused::Host));
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
            check(&gate, &[here, ("origin", origin)], Err(Refused::Origin));
        }
    }

    #[tokio::test]
    async fn beyond_the_loopback_nobody_speaks_without_the_token() {
        let address: SocketAddr = "0.0.0.0:80".parse().unwrap();
        assert_eq!(
            Gate::new(address, None).unwrap_err(),
            BadToken::Missing(address)
        );
        assert_eq!(
            Gate::new(address, Some("short")).unwrap_err(),
            BadToken::Length
        );
        assert_eq!(
            Gate::new(address, Some("0123456789 abcdef")).unwrap_err(),
            BadToken::Characters
        );
        let gate = Gate::new(address, Some(TOKEN)).unwrap();
        for (said, expected) in [
            (format!("Bearer {TOKEN}"), Ok(Caller::default())),
            (format!("bearer  {TOKEN}"), Ok(Caller::default())),
            (format!("Basic {TOKEN}"), Err(Refused::NoToken)),
            (TOKEN.to_owned(), Err(Refused::NoToken)),
            (format!("Bearer {TOKEN}x"), Err(Refused::Token)),
            ("Bearer ".to_owned(), Err(Refused::Token)),
            (String::new(), Err(Refused::NoToken)),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "any.example".parse().unwrap());
            headers.insert(header::AUTHORIZATION, said.parse().unwrap());
            let admitted = gate.admit(&headers, 0).await.map_err(|it| it.refused);
            assert_eq!(admitted, expected, "{said}");
        }
        let bare = gate.admit(&HeaderMap::new(), 0).await;
        assert_eq!(bare.unwrap_err().refused, Refused::NoToken);
    }
}
