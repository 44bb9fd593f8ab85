//! Serves the stream that a host of the older era opens with GET, for messages unrelated to its
//! requests. Each session has one stream; a newer stream replaces it. A host may send the id of the
//! last event that it received. It then gets the later events that are still buffered.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::Stream;
use futures_util::stream::unfold;
use serde_json::Value;

use super::HttpState;
use super::caller::Caller;
use super::header_value::{self, SESSION_HEADER, VERSION_HEADER};
use super::response::error_body;
use crate::serve::context::ServeContext;
use crate::serve::listen::ListChanges;
use crate::serve::replay_buffer::ReplayReader;
use crate::serve::session::HostSession;
use crate::serve::{sessions, stdio, subscriptions};
use crate::upstream::era::LEGACY_VERSIONS;
use crate::upstream::jsonrpc;

const LAST_EVENT: &str = "last-event-id";
/// Interval between keep-alive comments, by which both sides notice a lost connection.
const NOTHING_EVERY: Duration = Duration::from_secs(15);
const NOTHING: &[u8] = b": nothing\n\n";

pub(super) async fn open(http: Arc<HttpState>, caller: &Caller, headers: &HeaderMap) -> Response {
    let version = header_value::text(headers, VERSION_HEADER);
    if version.is_some_and(|it| !LEGACY_VERSIONS.contains(&it)) {
        // The newer era has no such stream.
        let allowed = [("allow", "POST, DELETE")];
        return (StatusCode::METHOD_NOT_ALLOWED, allowed).into_response();
    }
    if !accepts_events(headers) {
        return StatusCode::NOT_ACCEPTABLE.into_response();
    }
    let Some(id) = header_value::text(headers, SESSION_HEADER) else {
        // A client without a session tries whether there is a stream. Some take any answer other
        // than this one as a failure.
        let allowed = [("allow", "POST, DELETE")];
        return (StatusCode::METHOD_NOT_ALLOWED, allowed).into_response();
    };
    let owner = caller.owner(&Value::Null);
    let session = match http.sessions.find(&http.context, &owner, id).await {
        Ok(Some(session)) => session,
        Ok(None) => {
            let body = error_body("the session is over");
            return (StatusCode::NOT_FOUND, body).into_response();
        }
        Err(refusal) => {
            let body = error_body(&refusal.message);
            return (StatusCode::INTERNAL_SERVER_ERROR, body).into_response();
        }
    };
    let seen = match header_value::text(headers, LAST_EVENT).map(str::parse) {
        None => None,
        Some(Ok(seen)) => Some(seen),
        Some(Err(_)) => {
            let body = error_body("`Last-Event-ID` does not belong to this stream");
            return (StatusCode::BAD_REQUEST, body).into_response();
        }
    };
    let listening = StreamGuard::begin(session, seen, http.context.clone());
    let events = events(listening);
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, Body::from_stream(events)).into_response()
}

fn accepts_events(headers: &HeaderMap) -> bool {
    let accepted = header_value::text(headers, header::ACCEPT.as_str()).unwrap_or_default();
    let kinds = accepted.split(',').map(|it| it.split(';').next());
    kinds
        .flatten()
        .any(|kind| matches!(kind.trim(), "text/event-stream" | "text/*" | "*/*"))
}

/// Keeps the session in use while a host listens. A listening host sends no requests, so its idle
/// time starts when the stream ends.
struct StreamGuard {
    reader: ReplayReader,
    session: Arc<HostSession>,
    context: ServeContext,
}

impl StreamGuard {
    fn begin(session: Arc<HostSession>, seen: Option<u64>, context: ServeContext) -> Self {
        Self {
            reader: session.replay.read(seen),
            session,
            context,
        }
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.session.touch(self.context.now_ms());
    }
}

type Event = Result<Vec<u8>, Infallible>;

fn events(listening: StreamGuard) -> impl Stream<Item = Event> {
    // The first line shows the host at once that the stream is open.
    unfold((listening, true), async |(mut listening, is_first)| {
        if is_first {
            return Some((Ok(NOTHING.to_vec()), (listening, false)));
        }
        let StreamGuard {
            reader, context, ..
        } = &mut listening;
        let event = tokio::select! {
            told = reader.next() => match told {
                Some((id, message)) => {
                    let head = format!("id: {id}\nevent: message\ndata: ");
                    [head.as_bytes(), &message, b"\n\n"].concat()
                }
                None => return None,
            },
            _ = context.ending().wanted() => return None,
            () = tokio::time::sleep(NOTHING_EVERY) => NOTHING.to_vec(),
        };
        Some((Ok(event), (listening, false)))
    })
}

/// Sends changes to the sessions of the older era. Never returns.
pub(super) async fn tell_changes(http: &HttpState) {
    let (mut lists, mut news) = (
        ListChanges::new(&http.context),
        http.context.notifications().read(),
    );
    loop {
        tokio::select! {
            changed = lists.changed() => {
                let told = stdio::of_lists(changed);
                http.sessions.all().iter().for_each(|session| tell(session, &told));
            }
            batch = news.next() => for session in http.sessions.all() {
                let told = subscriptions::told_in(&session, &http.context, &batch);
                if sessions::save(&http.context, &session).await.is_ok() {
                    tell(&session, &told);
                }
            },
        }
    }
}

fn tell(session: &HostSession, told: &[(&'static str, Value)]) {
    for (method, params) in told {
        if session.wants(method) {
            let message = jsonrpc::notification(method, &params.to_string());
            session.replay.push(message);
        }
    }
}
