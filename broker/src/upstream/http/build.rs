//! What an HTTP link is made of: the client, the configured headers, and the
//! headers that repeat what a message says.

use std::sync::Once;
use std::time::Duration;

use reqwest::Client;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::plain;
use crate::upstream::error::ConnectError;
use crate::upstream::headers::encoded;
use crate::upstream::secret::Secret;
use crate::upstream::spec::ServerUrl;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Follows nobody, repeats nothing, and takes no proxy from the environment.
pub(crate) fn client(url: &ServerUrl, connect_timeout: Duration) -> Result<Client, ConnectError> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // An embedding application may have chosen a provider already; its choice stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let mut builder = Client::builder()
        .connect_timeout(connect_timeout)
        .redirect(reqwest::redirect::Policy::none())
        // By default a stream that the server refuses is sent again; a call is made once.
        .retry(reqwest::retry::never())
        .no_proxy()
        .user_agent(concat!("airlock/", env!("CARGO_PKG_VERSION")));
    if url.url().scheme() == "http" {
        // No certificate is ever looked at: do without the machine's store of them.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| ConnectError::Unreachable {
        url: url.to_string(),
        why: plain(&error),
    })
}

pub(super) fn header_map(headers: &[(String, Secret)]) -> Result<HeaderMap, ConnectError> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let wrong = |why: &str| ConnectError::Setting {
            setting: format!("header {name}"),
            why: why.to_owned(),
        };
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| wrong("it is not a header name"))?;
        if key.as_str().starts_with("mcp-") {
            return Err(wrong("headers of the protocol are set by the protocol"));
        }
        let mut value = HeaderValue::from_str(value.expose())
            .map_err(|_| wrong("its value has a character that no header can carry"))?;
        value.set_sensitive(true);
        map.append(key, value);
    }
    Ok(map)
}

pub(super) fn method_headers(method: &str, name: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (header, value) in [(METHOD, Some(method)), (NAME, name)] {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&encoded(value)).ok()) {
            headers.insert(header, value);
        }
    }
    headers
}
