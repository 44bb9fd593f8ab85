//! Requests to the token and revocation endpoints, and their answers.

use serde_json::{Map, Value};
use url::Url;

use super::client::{Grant, SECRET_BYTES_MIN};
use super::credential::Credential;
use super::error::{LoginError, shown};
use super::metadata::{object, text};
use super::request::{Answer, Request};
use super::scopes::ScopeSet;

/// Longest token that fits into a header of usual servers.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// Longest life of a token that is believed. A wrong clock must not make a token eternal.
const LIFE_MAX_S: u64 = 366 * 24 * 60 * 60;

pub(super) struct TokenAnswer {
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    pub(super) scopes: Option<ScopeSet>,
    pub(super) expires_at_ms: Option<u64>,
}

impl TokenAnswer {
    /// `what` names the request in messages.
    pub(super) fn read(
        answer: &Answer<'_>,
        what: &'static str,
        now_ms: u64,
    ) -> Result<Self, LoginError> {
        if answer.status != 200 {
            return Err(refused_answer(answer, what));
        }
        let object = object(answer.body).map_err(LoginError::Token)?;
        // Some servers report errors with status 200.
        if object.contains_key("error") {
            return Err(refused(answer, what));
        }
        let invalid = |why: &str| LoginError::Token(why.to_owned());
        let kind = text(&object, "token_type").ok_or_else(|| invalid("it has no `token_type`"))?;
        if !kind.eq_ignore_ascii_case("bearer") {
            let why = format!("its `token_type` is `{}`; expected Bearer", shown(kind));
            return Err(LoginError::Token(why));
        }
        let token = |name: &str| match text(&object, name) {
            None | Some("") => Ok(None),
            Some(token) if is_token(token) => Ok(Some(token.to_owned())),
            Some(_) => Err(LoginError::Token(format!(
                "`{name}` has characters that no token has, is shorter than {SECRET_BYTES_MIN} bytes, or is too long"
            ))),
        };
        Ok(Self {
            access_token: token("access_token")?
                .ok_or_else(|| invalid("it has no `access_token`"))?,
            refresh_token: token("refresh_token")?,
            scopes: text(&object, "scope").map(ScopeSet::parse),
            expires_at_ms: life_s(&object)
                .map(|life| now_ms.saturating_add(life.min(LIFE_MAX_S).saturating_mul(1_000))),
        })
    }
}

/// Whether a text can be the value of a header: a token must not add a line or a second value.
fn is_token(text: &str) -> bool {
    (SECRET_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_graphic())
}

/// Returns the life of the token. Some servers write the number as a text.
fn life_s(object: &Map<String, Value>) -> Option<u64> {
    match object.get("expires_in")? {
        Value::Number(number) => number
            .as_u64()
            .or_else(|| number.as_f64().map(|life| life.max(0.0) as u64)),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// Returns the error of an answer that is not a success.
pub(super) fn refused_answer(answer: &Answer<'_>, what: &'static str) -> LoginError {
    match answer.status {
        300..=399 => LoginError::Redirected {
            what: "token endpoint",
        },
        status @ (408 | 425 | 429 | 500..=599) => LoginError::Unavailable { status },
        _ => refused(answer, what),
    }
}

fn refused(answer: &Answer<'_>, what: &'static str) -> LoginError {
    let object = object(answer.body).unwrap_or_default();
    let error = text(&object, "error").unwrap_or_default();
    let description = text(&object, "error_description").unwrap_or_default();
    let why = match (error, description) {
        (error, "") => shown(error),
        (error, description) => shown(&format!("{error}: {description}")),
    };
    match error {
        "invalid_grant" => LoginError::GrantInvalid(why),
        // The answer is not that of a token endpoint, for example of a proxy.
        "" => LoginError::Unavailable {
            status: answer.status,
        },
        "temporarily_unavailable" | "server_error" | "slow_down" => LoginError::Unavailable {
            status: answer.status,
        },
        _ => LoginError::TokenRefused { what, why },
    }
}

/// Returns the request that renews the access token, or `None` if only a new login helps.
#[must_use]
pub fn refresh_request(credential: &Credential) -> Option<Request> {
    let url = Url::parse(&credential.token_endpoint).ok()?;
    let scopes = credential.scopes.to_string();
    let resource = ("resource", credential.resource.as_str());
    let mut fields = match (credential.grant, &credential.refresh_token) {
        (Grant::ClientCredentials, _) => {
            let mut fields = vec![("grant_type", "client_credentials"), resource];
            if !scopes.is_empty() {
                fields.push(("scope", scopes.as_str()));
            }
            fields
        }
        (Grant::AuthorizationCode, Some(token)) => vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", token.as_str()),
        ],
        (Grant::AuthorizationCode, None) => return None,
    };
    if !fields.contains(&resource) {
        fields.push(resource);
    }
    Some(credential.client.request(url, &credential.issuer, &fields))
}

/// Returns the renewed credential. A server that does not rotate its refresh token keeps the old
/// one.
pub fn refreshed(
    credential: &Credential,
    answer: &Answer<'_>,
    now_ms: u64,
) -> Result<Credential, LoginError> {
    let answer = TokenAnswer::read(answer, "renewal", now_ms)?;
    Ok(Credential {
        access_token: answer.access_token,
        refresh_token: answer
            .refresh_token
            .or_else(|| credential.refresh_token.clone()),
        scopes: answer.scopes.unwrap_or_else(|| credential.scopes.clone()),
        issued_at_ms: now_ms,
        expires_at_ms: answer.expires_at_ms,
        ..credential.clone()
    })
}

/// Returns the requests that revoke the tokens, the refresh token first.
#[must_use]
pub fn revocation_requests(credential: &Credential) -> Vec<Request> {
    let endpoint = credential.revocation_endpoint.as_deref();
    let Some(url) = endpoint.and_then(|it| Url::parse(it).ok()) else {
        return Vec::new();
    };
    let refresh = credential.refresh_token.as_deref();
    let tokens = refresh.map(|token| (token, "refresh_token"));
    let tokens = tokens
        .into_iter()
        .chain([(&*credential.access_token, "access_token")]);
    let request = |(token, hint)| {
        let fields = [("token", token), ("token_type_hint", hint)];
        let client = &credential.client;
        client.request(url.clone(), &credential.issuer, &fields)
    };
    tokens.map(request).collect()
}
