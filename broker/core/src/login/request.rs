//! What the shell sends during a login, and what it got.

use std::fmt;

use url::Url;

/// A request to a server of the login. The shell follows no redirect, and adds no configured
/// header.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    pub url: Url,
    pub body: Body,
    pub proof: ClientProof,
}

/// What the shell adds to a request to prove who the client is.
#[derive(Clone, PartialEq, Eq)]
pub enum ClientProof {
    /// Nothing, or the body contains it.
    None,
    /// Client id and secret for HTTP Basic, encoded as RFC 6749 section 2.3.1 demands.
    Basic(String, String),
    /// An assertion of this client for this authorization server, which the client's key signs
    /// (RFC 7523). The shell adds it to the form.
    Assertion { client_id: String, audience: String },
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

impl fmt::Debug for ClientProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientProof")
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
            proof: ClientProof::None,
        }
    }

    pub(super) fn form(url: Url, fields: &[(&str, &str)]) -> Self {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(fields);
        Self {
            url,
            body: Body::Form(form.finish()),
            proof: ClientProof::None,
        }
    }
}

/// An answer, with a body of at most [`ANSWER_BYTES_MAX`](super::ANSWER_BYTES_MAX) bytes.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    pub status: u16,
    pub body: &'a [u8],
}
