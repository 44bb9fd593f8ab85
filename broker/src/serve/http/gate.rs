//! Who may speak to us at all: pages of other origins may not, names that only
//! look like this machine may not, and beyond it nobody without the token.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ring::digest;

const TOKEN_BYTES_MIN: usize = 16;
const TOKEN_BYTES_MAX: usize = 4_096;

#[derive(Clone)]
pub struct Gate {
    /// The digest of the token, which every request has to carry.
    token: Option<digest::Digest>,
    is_loopback: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadToken {
    #[error("{0} can be reached from other machines, and there is no token")]
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
    Token,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (token, is_loopback) = (self.token.is_some(), self.is_loopback);
        write!(f, "Gate(token: {token}, loopback: {is_loopback})")
    }
}

impl Gate {
    /// For a listener at this address. Beyond the loopback a token is a must.
    pub fn new(address: SocketAddr, token: Option<&str>) -> Result<Self, BadToken> {
        let is_loopback = address.ip().is_loopback();
        let token = match token {
            None if !is_loopback => return Err(BadToken::Missing(address)),
            None => None,
            Some(token) if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&token.len()) => {
                return Err(BadToken::Length);
            }
            Some(token) if !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                return Err(BadToken::Characters);
            }
            Some(token) => Some(digest::digest(&digest::SHA256, token.as_bytes())),
        };
        Ok(Self { token, is_loopback })
    }

    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let text = |name| headers.get(name).map(|it| it.to_str().unwrap_or_default());
        if let Some(origin) = text(header::ORIGIN)
            && !is_own_origin(origin)
        {
            return Err(Refused::Origin);
        }
        // A name that somebody else's DNS points here would be another machine's page.
        let host = text(header::HOST).unwrap_or_default();
        if self.is_loopback && !names_loopback(host) {
            return Err(Refused::Host);
        }
        match &self.token {
            None => Ok(()),
            Some(token) => {
                let said = text(header::AUTHORIZATION).and_then(bearer);
                let said = said.map(|it| digest::digest(&digest::SHA256, it.as_bytes()));
                // Digests of equal length that nobody can choose: how they differ tells nothing.
                let is_same = said.is_some_and(|it| it.as_ref() == token.as_ref());
                if is_same { Ok(()) } else { Err(Refused::Token) }
            }
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (status, why) = match self {
            Self::Origin => (StatusCode::FORBIDDEN, "the origin is not allowed"),
            Self::Host => (StatusCode::FORBIDDEN, "the host is not this machine"),
            Self::Token => (StatusCode::UNAUTHORIZED, "a bearer token is needed"),
        };
        let body = super::post::error_body(why);
        let kind = (header::CONTENT_TYPE, "application/json");
        match self {
            Self::Token => {
                (status, [kind, (header::WWW_AUTHENTICATE, "Bearer")], body).into_response()
            }
            _ => (status, [kind], body).into_response(),
        }
    }
}

fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
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
fn names_loopback(host: &str) -> bool {
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

    #[test]
    fn beyond_the_loopback_nobody_speaks_without_the_token() {
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
        let host = ("host", "any.example");
        for (said, expected) in [
            (format!("Bearer {TOKEN}"), Ok(())),
            (format!("bearer  {TOKEN}"), Ok(())),
            (format!("Basic {TOKEN}"), Err(Refused::Token)),
            (TOKEN.to_owned(), Err(Refused::Token)),
            (format!("Bearer {TOKEN}x"), Err(Refused::Token)),
            ("Bearer ".to_owned(), Err(Refused::Token)),
        ] {
            check(&gate, &[host, ("authorization", &said)], expected);
        }
        check(&gate, &[host], Err(Refused::Token));
    }
}
