//! What the shell sends during a login, and what it got.

use std::fmt;

use url::Url;

/// A request to a server of the login. The shell follows no redirect, and adds no configured
/// header.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    pub url: Url,
    pub body: Body,
    /// Client id and secret for HTTP Basic, encoded as RFC 6749 section 2.3.1 demands.
    pub basic: Option<(String, String)>,
}

#[derive(Clone, PartialEq, Eq)]
pub enum Body {
    /// A GET request.
    None,
    Form(String),
    Json(String),
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Body")
    }
}

/// Omits the query and the body, which contain codes and tokens.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = match self.body {
            Body::None => "GET",
            Body::Form(_) | Body::Json(_) => "POST",
        };
        let origin = self.url.origin().ascii_serialization();
        write!(f, "Request({method} {origin}{})", self.url.path())
    }
}

impl Request {
    pub(super) fn get(url: Url) -> Self {
        Self {
            url,
            body: Body::None,
            basic: None,
        }
    }

    pub(super) fn form(url: Url, fields: &[(&str, &str)]) -> Self {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(fields);
        Self {
            url,
            body: Body::Form(form.finish()),
            basic: None,
        }
    }
}

/// An answer, with a body of at most [`ANSWER_BYTES_MAX`](super::ANSWER_BYTES_MAX) bytes.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    pub status: u16,
    pub body: &'a [u8],
}
