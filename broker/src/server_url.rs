//! The address of an HTTP server.

use std::fmt;

/// An `http` or `https` address. Printing it omits the query, which may contain credentials. The
/// path is printed only in texts that are masked.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl(reqwest::Url);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    #[error("not a URL: {0}")]
    NotUrl(String),
    #[error("unsupported scheme `{0}`; expected http or https")]
    Scheme(String),
    #[error("the URL has a user name or password; put credentials into a header")]
    Credentials,
}

impl ServerUrl {
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        let url = reqwest::Url::parse(text).map_err(|error| BadUrl::NotUrl(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(BadUrl::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BadUrl::Credentials);
        }
        Ok(Self(url))
    }

    pub(crate) fn url(&self) -> &reqwest::Url {
        &self.0
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{}",
            self.0.origin().ascii_serialization(),
            self.0.path()
        )
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.origin().ascii_serialization())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_displays_without_query_and_password_is_refused() {
        let url = ServerUrl::parse("https://mcp.example/v1/mcp?key=s3cret").unwrap();
        assert_eq!(
            format!("{url} {url:?}"),
            "https://mcp.example/v1/mcp https://mcp.example"
        );
        assert_eq!(
            ServerUrl::parse("https://a:b@mcp.example"),
            Err(BadUrl::Credentials)
        );
        assert_eq!(
            ServerUrl::parse("ftp://x"),
            Err(BadUrl::Scheme("ftp".into()))
        );
        assert!(matches!(ServerUrl::parse("nope"), Err(BadUrl::NotUrl(_))));
    }
}
