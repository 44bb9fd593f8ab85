//! The sender of an HTTP request, or the reason why the request is refused.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::response::error_body;
use crate::host_record::CallerKey;
use crate::serve::sessions::SessionOwner;

/// The result of authenticating a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) enum Caller {
    /// No token is required. The request itself names its client.
    #[default]
    Anybody,
    /// The caller has the token that all hosts share.
    Token,
    /// The owner of a token, from an authorization server.
    Subject(String),
}

impl Caller {
    /// Returns the caller's name, if an authorization server supplied one.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Subject(name) => Some(name),
            Self::Anybody | Self::Token => None,
        }
    }

    /// Returns whose sessions a request with these params may use.
    pub(super) fn owner(&self, params: &Value) -> SessionOwner {
        let key = match self {
            Self::Anybody => return SessionOwner::of_client(params),
            Self::Token => CallerKey::of_token(),
            Self::Subject(name) => CallerKey::of_subject(name),
        };
        SessionOwner {
            key,
            is_authenticated: true,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessError {
    Origin,
    Host,
    NoToken,
    Token,
    /// The token is valid but lacks a required scope.
    Scope,
    /// The authorization server did not give a usable answer.
    Unknown,
}

/// A refusal, with the information that a host needs to obtain access.
#[derive(Debug)]
pub(super) struct AccessDenied {
    pub(super) refused: AccessError,
    pub(super) challenge: String,
}

impl IntoResponse for AccessError {
    fn into_response(self) -> Response {
        AccessDenied {
            refused: self,
            challenge: String::new(),
        }
        .into_response()
    }
}

impl IntoResponse for AccessDenied {
    fn into_response(self) -> Response {
        let (status, why, error) = match self.refused {
            AccessError::Origin => (StatusCode::FORBIDDEN, "the origin is not allowed", None),
            AccessError::Host => {
                let why = "the `Host` header does not name this machine";
                (StatusCode::FORBIDDEN, why, None)
            }
            AccessError::NoToken => (StatusCode::UNAUTHORIZED, "missing bearer token", Some("")),
            AccessError::Token => {
                let error = "error=\"invalid_token\"";
                (StatusCode::UNAUTHORIZED, "invalid token", Some(error))
            }
            AccessError::Scope => {
                let error = "error=\"insufficient_scope\"";
                (
                    StatusCode::FORBIDDEN,
                    "the token lacks a required scope",
                    Some(error),
                )
            }
            AccessError::Unknown => {
                let why = "the token could not be checked at the authorization server";
                (StatusCode::SERVICE_UNAVAILABLE, why, None)
            }
        };
        let kind = (header::CONTENT_TYPE, "application/json");
        let mut response = (status, [kind], error_body(why)).into_response();
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
