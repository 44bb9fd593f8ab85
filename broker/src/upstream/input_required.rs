//! Handles calls that a server answers with inquiries: passes the inquiries to the origin of the
//! call, and repeats the call with the answers.

use std::time::Duration;

use airlock_core::json::{self, Bounds};
use airlock_core::outcome::LostCause;
use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::connection::{CallRequest, Connection, InputResponses};
use super::jsonrpc::Answer;
use super::login_request::{self, LOGINS_MAX};
use super::outgoing::LinkError;
use super::raw::read_object;
use super::server_request::{CallOrigin, RequestError};
use super::url_elicitation::RequiredUrls;
use crate::client_bridge::ServerRequest;
use crate::deadline::Deadline;
use crate::login::ServerLogin;

/// Maximum number of times that a server may ask for more input before it answers.
const MAX: usize = 10;
/// Maximum number of inquiries in one answer.
const REQUESTS_MAX: usize = 16;
/// Pause before a call is repeated for a server that made no inquiry.
const PAUSE: Duration = Duration::from_millis(200);
const STATE: Bounds = Bounds {
    bytes_max: 1024 * 1024,
    depth_max: 64,
    nodes_max: 100_000,
};

/// The inquiries of a server, and the state that it wants returned with the answers.
#[derive(Debug)]
struct InputRequest {
    requests: Vec<(String, String, Option<Box<RawValue>>)>,
    state: Option<Value>,
}

#[derive(Deserialize)]
struct InputRequiredResult<'a> {
    #[serde(borrow, rename = "resultType")]
    result_type: Option<&'a RawValue>,
    #[serde(default, rename = "inputRequests")]
    requests: Option<Map<String, Value>>,
    #[serde(borrow, rename = "requestState")]
    state: Option<&'a RawValue>,
}

/// Makes a call. Whenever the server asks for input, repeats the call over the same connection with
/// the answers. The call is also repeated once after the person has opened required URLs, and after
/// a login, without which the server has done nothing. A call
/// that has arrived once may have had an effect, whatever happens to its repetitions.
pub(super) async fn converse(
    connection: &Connection,
    called: &CallRequest<'_>,
    headers: Vec<(String, String)>,
    deadline: &Deadline,
) -> Result<Answer, LinkError> {
    let mut given: Option<InputResponses> = None;
    let mut has_opened = false;
    let mut logins = 0;
    for _ in 0..MAX {
        let used = called.login.and_then(ServerLogin::version);
        let answer = connection
            .call(called, given.as_ref(), headers.clone(), deadline)
            .await;
        let answer = match answer {
            Err(lost @ LinkError::Lost { .. }) => return Err(lost),
            Err(refused) if given.is_some() => return Err(LinkError::disconnected(refused.why())),
            Err(refused @ LinkError::LoginRequired { .. }) if logins < LOGINS_MAX => {
                logins += 1;
                login_request::after_refusal(refused, used, called.login, called.origin).await?;
                continue;
            }
            answer => answer?,
        };
        if let Some(wanted) = RequiredUrls::from_answer(&answer) {
            // Only once, so that the person is not asked endlessly.
            if has_opened {
                return Ok(wanted.still());
            }
            if let Some(end) = wanted.open(connection, called).await {
                return end;
            }
            has_opened = true;
            continue;
        }
        let Some(wanted) = asked(&answer) else {
            return Ok(answer);
        };
        match answered(wanted, called.origin).await {
            Some(answers) => given = Some(answers),
            // The server's last answer is the result.
            None => return Ok(answer),
        }
    }
    Err(LinkError::Lost {
        why: format!("the server asked for input more than {} times", MAX),
        cause: LostCause::InputRequired,
    })
}

/// Returns the inquiries in an answer, if there are any and they are valid.
fn asked(answer: &Answer) -> Option<InputRequest> {
    let Answer::Result(result) = answer else {
        return None;
    };
    // Most answers contain no inquiries and may be long, so they are not parsed.
    if !result.get().contains("\"input_required\"") {
        return None;
    }
    json::measure(result.get().as_bytes(), Bounds::WIDEST).ok()?;
    let read: InputRequiredResult<'_> = read_object(result.get()).ok()?;
    if read.result_type.map(RawValue::get) != Some("\"input_required\"") {
        return None;
    }
    let requests = read.requests.unwrap_or_default();
    if requests.len() > REQUESTS_MAX || (requests.is_empty() && read.state.is_none()) {
        return None;
    }
    let request = |(key, request): (String, Value)| {
        let method = request.get("method")?.as_str()?.to_owned();
        let params = request.get("params").unwrap_or(&json!({})).to_string();
        Some((key, method, RawValue::from_string(params).ok()))
    };
    let state = match read.state {
        None => None,
        Some(state) => Some(json::read(state.get().as_bytes(), STATE).ok()?),
    };
    Some(InputRequest {
        requests: requests.into_iter().map(request).collect::<Option<_>>()?,
        state,
    })
}

/// Returns the answers for the server, or `None` if an inquiry is invalid or gets no answer. No
/// inquiry is passed on unless all of them are valid. If one gets no answer, the others are
/// withdrawn.
async fn answered(asked: InputRequest, origin: Option<&CallOrigin>) -> Option<InputResponses> {
    if asked.requests.is_empty() {
        tokio::time::sleep(PAUSE).await;
    }
    let read = |(key, method, params): (String, String, Option<Box<RawValue>>)| {
        let inquiry = origin?.read(&method, params.as_deref()).ok()?;
        let named = ServerRequest {
            key: Some(key.clone()),
            ..inquiry
        };
        Some((key, named))
    };
    let inquiries: Vec<_> = asked
        .requests
        .into_iter()
        .map(read)
        .collect::<Option<_>>()?;
    let asking = inquiries.into_iter().map(|(key, inquiry)| async move {
        let told = origin
            .ok_or_else(RequestError::nobody)?
            .ask(inquiry)
            .await?;
        Ok::<_, RequestError>((key, told))
    });
    // All inquiries are passed on at once, so that a host receives them together.
    let responses = try_join_all(asking).await.ok()?.into_iter().collect();
    Some(InputResponses {
        responses,
        state: asked.state,
    })
}
