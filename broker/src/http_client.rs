//! The settings of all HTTP clients: for servers and for authorization servers.

use std::sync::Once;
use std::time::Duration;

use reqwest::{Client, ClientBuilder};

/// Returns settings with which a client follows no redirects, retries nothing, and takes no proxy
/// from the environment.
pub(crate) fn builder(url: &reqwest::Url, connect_timeout: Duration) -> ClientBuilder {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // If an embedding application has already installed a provider, that one is kept.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let mut builder = Client::builder()
        .connect_timeout(connect_timeout)
        .redirect(reqwest::redirect::Policy::none())
        // By default reqwest resends a request on a refused HTTP/2 stream. A call must be sent only
        // once.
        .retry(reqwest::retry::never())
        .no_proxy()
        .user_agent(concat!("airlock/", env!("CARGO_PKG_VERSION")));
    if url.scheme() == "http" {
        // Over plain HTTP no certificate is checked, so the system's certificate store is not
        // loaded.
        builder = builder.tls_certs_only([]);
    }
    builder
}

/// Returns the innermost cause. The texts of outer errors contain the address with its query.
pub(crate) fn innermost_cause(error: &reqwest::Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    if inner.is::<reqwest::Error>() {
        "the request failed".to_owned()
    } else {
        inner.to_string()
    }
}
