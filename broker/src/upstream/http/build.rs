//! Construction of an HTTP link: the client, the configured headers, and the headers that repeat
//! parts of the message.

use std::time::Duration;

use reqwest::Client;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::http_client::{builder, innermost_cause};
use crate::secret::Secret;
use crate::server_url::ServerUrl;
use crate::upstream::error::ConnectError;
use crate::upstream::headers::encoded;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Builds a client that follows no redirects, retries nothing, and takes no proxy from the
/// environment.
pub(crate) fn client(url: &ServerUrl, connect_timeout: Duration) -> Result<Client, ConnectError> {
    let client = builder(url.url(), connect_timeout).build();
    client.map_err(|error| ConnectError::Unreachable {
        url: url.to_string(),
        why: innermost_cause(&error),
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
            .map_err(|_| wrong("this is not a valid header name"))?;
        if key.as_str().starts_with("mcp-") {
            return Err(wrong("airlock sets the `Mcp-*` headers itself"));
        }
        let mut value = HeaderValue::from_str(value.expose())
            .map_err(|_| wrong("the value has a character that is not allowed in headers"))?;
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
