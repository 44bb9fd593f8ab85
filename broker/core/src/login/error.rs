//! Why a login ends without a credential. The texts contain no code, no token and no secret.

use super::address::AddressError;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    #[error(
        "the server names no authorization server: its protected resource metadata was not found"
    )]
    NoResourceMetadata,
    #[error("the protected resource metadata is invalid: {0}")]
    ResourceMetadata(String),
    #[error("the protected resource metadata is for `{named}`, which is not this server")]
    ResourceMismatch { named: String },
    #[error("the address of the {what} cannot be used: {why}")]
    Address {
        what: &'static str,
        why: AddressError,
    },
    #[error("the authorization server `{issuer}` publishes no metadata")]
    NoServerMetadata { issuer: String },
    #[error("the metadata of the authorization server is invalid: {0}")]
    ServerMetadata(String),
    #[error("the metadata names the issuer `{named}`; expected `{expected}`")]
    IssuerMismatch { named: String, expected: String },
    #[error(
        "the server names the authorization server `{named}`; the configuration expects `{expected}`"
    )]
    OtherIssuer { named: String, expected: String },
    #[error("the authorization server does not support PKCE with S256")]
    NoPkce,
    #[error("the authorization server does not offer the {0}")]
    NoGrant(&'static str),
    #[error(
        "the authorization server `{issuer}` knows no client of airlock, and offers no way to register one"
    )]
    NoClient { issuer: String },
    #[error("the authorization server does not accept a client with a private key ({algorithm})")]
    NoPrivateKeyJwt { algorithm: &'static str },
    #[error("the client could not be registered: {0}")]
    Registration(String),
    #[error(
        "the answer of the browser is not an address of this login; expected one that begins with `{expected}`"
    )]
    NotRedirect { expected: String },
    #[error("the answer of the browser belongs to another login (its `state` differs)")]
    State,
    #[error(
        "the answer of the browser does not name its issuer, although the authorization server promises to"
    )]
    IssuerMissing,
    #[error("the answer of the browser comes from another authorization server")]
    IssuerWrong,
    #[error("the answer of the browser has no code")]
    NoCode,
    #[error("the authorization server refused the login: {0}")]
    Refused(String),
    #[error("the authorization server refused the {what}: {why}")]
    TokenRefused { what: &'static str, why: String },
    /// The grant itself is no longer valid: only a new login helps.
    #[error("the authorization server no longer accepts the login: {0}")]
    GrantInvalid(String),
    #[error("the answer with the token is invalid: {0}")]
    Token(String),
    #[error("the authorization server could not answer (HTTP status {status})")]
    Unavailable { status: u16 },
    #[error("the {what} answered with a redirect, which airlock does not follow")]
    Redirected { what: &'static str },
    #[error("the login needs more than {0} requests")]
    TooLong(u32),
    /// The shell gave an event that does not fit the step.
    #[error("internal error: the event does not fit the step of the login")]
    OutOfOrder,
}

impl LoginError {
    /// Whether the same request may succeed later, so that nothing may be deleted.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. } | Self::Token(_) | Self::Redirected { .. }
        )
    }

    /// Returns advice for the person.
    #[must_use]
    pub fn next(&self) -> &'static str {
        match self {
            Self::NoClient { .. } => {
                "register a client at the authorization server, and configure `oauth = { client_id = \"…\" }` for the server"
            }
            Self::NoPrivateKeyJwt { .. } => {
                "configure `client_secret`, or a private key of a kind that the authorization server accepts"
            }
            Self::NoResourceMetadata | Self::NoServerMetadata { .. } => {
                "if the server takes a token, configure it in `headers`; otherwise ask its operator for OAuth metadata"
            }
            Self::NotRedirect { .. } | Self::State | Self::NoCode => {
                "log in again, and use the address that this login printed"
            }
            Self::OtherIssuer { .. } => {
                "ask the operator of the server; if the new authorization server is right, change `issuer` in the table `oauth` of the server"
            }
            Self::IssuerMissing | Self::IssuerWrong | Self::IssuerMismatch { .. } => {
                "do not log in; this can be an attempt to steal the login. Ask the operator of the server"
            }
            Self::Refused(_) | Self::TokenRefused { .. } | Self::GrantInvalid(_) => {
                "log in again; `--scope` and the `oauth` table of the server change what is asked for"
            }
            Self::Unavailable { .. } => "try again later; nothing was deleted",
            Self::OutOfOrder => "report this",
            _ => "ask the operator of the server",
        }
    }
}

/// Prepares a text of a server for a message: one line, printable, and short.
pub(super) fn shown(text: &str) -> String {
    const CHARS_MAX: usize = 200;
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(printable).take(CHARS_MAX).collect()
}
