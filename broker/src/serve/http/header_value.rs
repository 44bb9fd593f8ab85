//! Names of headers, and decoding of their values. A value with characters that a header cannot
//! contain is base64 between `=?base64?` and `?=`.

use std::net::IpAddr;

use axum::http::HeaderMap;
use base64::prelude::{BASE64_STANDARD, Engine as _};

pub(super) const SESSION_HEADER: &str = "mcp-session-id";
pub(super) const VERSION_HEADER: &str = "mcp-protocol-version";

pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Returns the decoded value of a header, or `None` if the header is missing or invalid.
pub(super) fn decoded(headers: &HeaderMap, name: &str) -> Option<String> {
    let said = text(headers, name)?;
    let coded = said
        .strip_prefix("=?base64?")
        .and_then(|it| it.strip_suffix("?="));
    match coded {
        None => Some(said.to_owned()),
        Some(coded) => String::from_utf8(BASE64_STANDARD.decode(coded).ok()?).ok(),
    }
}

/// Whether a host names this machine, such as `localhost:8080`, `127.0.0.1` or `[::1]:80`.
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
