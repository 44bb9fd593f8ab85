//! Calls that a server answers with what it wants first: read, taken to whoever
//! stands behind the call, and handed back.

use std::time::Duration;

use airlock_core::json::{self, Bounds};
use airlock_core::outcome::LostCause;
use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::connection::{Called, Connection, Given};
use super::inquiry::{Behind, Refused};
use super::jsonrpc::Answer;
use super::link::LinkError;
use super::opening::Wanted;
use super::raw::read_object;
use super::wall::Wall;
use crate::carrier::Inquiry;

/// Times that a server may want more before it answers.
const MAX: usize = 10;
/// What it may want at one time.
const REQUESTS_MAX: usize = 16;
/// Before a server that wants nothing but a repetition is asked again.
const PAUSE: Duration = Duration::from_millis(200);
const STATE: Bounds = Bounds {
    bytes_max: 1024 * 1024,
    depth_max: 64,
    nodes_max: 100_000,
};

/// What a server wants, and what it wants to be given back with it.
#[derive(Debug)]
struct Asked {
    requests: Vec<(String, String, Option<Box<RawValue>>)>,
    state: Option<Value>,
}

#[derive(Deserialize)]
struct InputRequired<'a> {
    #[serde(borrow, rename = "resultType")]
    result_type: Option<&'a RawValue>,
    #[serde(default, rename = "inputRequests")]
    requests: Option<Map<String, Value>>,
    #[serde(borrow, rename = "requestState")]
    state: Option<&'a RawValue>,
}

/// A call is made again with what its server asked for, as often as it asks, and over the same
/// connection; and once when addresses were opened that it wanted opened first. What has arrived
/// once may have done something, whatever becomes of the rest.
pub(super) async fn converse(
    connection: &Connection,
    called: &Called<'_>,
    headers: Vec<(String, String)>,
    wall: &Wall,
) -> Result<Answer, LinkError> {
    let mut given: Option<Given> = None;
    let mut has_opened = false;
    for _ in 0..MAX {
        let answer = connection
            .call(called, given.as_ref(), headers.clone(), wall)
            .await;
        let answer = match answer {
            Err(lost @ LinkError::Lost { .. }) => return Err(lost),
            Err(refused) if given.is_some() => return Err(LinkError::disconnected(refused.why())),
            answer => answer?,
        };
        if let Some(wanted) = Wanted::of(&answer) {
            // Once: whoever has opened it is not asked for ever.
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
        match answered(wanted, called.behind).await {
            Some(answers) => given = Some(answers),
            // What the server said last is all that there is.
            None => return Ok(answer),
        }
    }
    Err(LinkError::Lost {
        why: format!("it asked for input more than {} times", MAX),
        cause: LostCause::InputRequired,
    })
}

/// What an answer asks for, when it asks for something that can be read.
fn asked(answer: &Answer) -> Option<Asked> {
    let Answer::Result(result) = answer else {
        return None;
    };
    // Most answers are none, and may be long.
    if !result.get().contains("\"input_required\"") {
        return None;
    }
    json::measure(result.get().as_bytes(), Bounds::WIDEST).ok()?;
    let read: InputRequired<'_> = read_object(result.get()).ok()?;
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
    Some(Asked {
        requests: requests.into_iter().map(request).collect::<Option<_>>()?,
        state,
    })
}

/// What the server gets; none when somebody cannot be asked or does not answer. Nobody is asked
/// anything unless all of it can be asked, and the rest is withdrawn when one is not answered.
async fn answered(asked: Asked, behind: Option<&Behind>) -> Option<Given> {
    if asked.requests.is_empty() {
        tokio::time::sleep(PAUSE).await;
    }
    let read = |(key, method, params): (String, String, Option<Box<RawValue>>)| {
        let inquiry = behind?.read(&method, params.as_deref()).ok()?;
        let named = Inquiry {
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
        let told = behind.ok_or_else(Refused::nobody)?.ask(inquiry).await?;
        Ok::<_, Refused>((key, told))
    });
    // All at once, so that a host can be given them together.
    let responses = try_join_all(asking).await.ok()?.into_iter().collect();
    Some(Given {
        responses,
        state: asked.state,
    })
}
