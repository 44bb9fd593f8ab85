//! The stream that a host of the older era opens with GET: what it is told outside
//! of its requests. One stream a session; a newer one takes the place of the older.
//! A host that comes back with the id of the last event it has seen gets what
//! followed it, as far as that is kept.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::Stream;
use futures_util::stream::unfold;
use serde_json::Value;

use super::oauth::Caller;
use super::{Hall, coded, post};
use crate::serve::desk::Desk;
use crate::serve::feed::Reader;
use crate::serve::session::HostSession;
use crate::serve::{news, stdio};
use crate::upstream::Era;
use crate::upstream::era::LEGACY_VERSIONS;
use crate::upstream::jsonrpc;

const LAST_EVENT: &str = "last-event-id";
/// A line that says nothing, by which either side notices that the other is gone.
const NOTHING_EVERY: Duration = Duration::from_secs(15);
const NOTHING: &[u8] = b": nothing\n\n";

pub(super) async fn open(hall: Arc<Hall>, caller: &Caller, headers: &HeaderMap) -> Response {
    let version = coded::text(headers, post::VERSION_HEADER);
    if version.is_some_and(|it| !LEGACY_VERSIONS.contains(&it)) {
        // The newer era has no such stream.
        let allowed = [("allow", "POST, DELETE")];
        return (StatusCode::METHOD_NOT_ALLOWED, allowed).into_response();
    }
    if !accepts_events(headers) {
        return StatusCode::NOT_ACCEPTABLE.into_response();
    }
    let Some(id) = coded::text(headers, post::SESSION_HEADER) else {
        let body = post::error_body("the session id is missing");
        return (StatusCode::BAD_REQUEST, body).into_response();
    };
    let Some(session) = hall
        .sessions
        .find(caller, (Era::Legacy, id), hall.desk.now_ms())
    else {
        let body = post::error_body("the session is over");
        return (StatusCode::NOT_FOUND, body).into_response();
    };
    let seen = match coded::text(headers, LAST_EVENT).map(str::parse) {
        None => None,
        Some(Ok(seen)) => Some(seen),
        Some(Err(_)) => {
            let body = post::error_body("`Last-Event-ID` does not belong to this stream");
            return (StatusCode::BAD_REQUEST, body).into_response();
        }
    };
    let listening = Listening::begin(session, seen, hall.desk.clone());
    let events = events(listening);
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, Body::from_stream(events)).into_response()
}

fn accepts_events(headers: &HeaderMap) -> bool {
    let accepted = coded::text(headers, header::ACCEPT.as_str()).unwrap_or_default();
    let kinds = accepted.split(',').map(|it| it.split(';').next());
    kinds
        .flatten()
        .any(|kind| matches!(kind.trim(), "text/event-stream" | "text/*" | "*/*"))
}

/// A host that listens says nothing, and is there all the same: when its stream breaks, its
/// session has been idle from then on.
struct Listening {
    reader: Reader,
    session: Arc<HostSession>,
    desk: Desk,
}

impl Listening {
    fn begin(session: Arc<HostSession>, seen: Option<u64>, desk: Desk) -> Self {
        Self {
            reader: session.feed.read(seen),
            session,
            desk,
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.session.touch(self.desk.now_ms());
    }
}

type Event = Result<Vec<u8>, Infallible>;

fn events(listening: Listening) -> impl Stream<Item = Event> {
    // The first line lets the host see at once that the stream is there.
    unfold((listening, true), async |(mut listening, is_first)| {
        if is_first {
            return Some((Ok(NOTHING.to_vec()), (listening, false)));
        }
        let Listening { reader, desk, .. } = &mut listening;
        let event = tokio::select! {
            told = reader.next() => match told {
                Some((id, message)) => {
                    let head = format!("id: {id}\nevent: message\ndata: ");
                    [head.as_bytes(), &message, b"\n\n"].concat()
                }
                None => return None,
            },
            _ = desk.ending().wanted() => return None,
            () = tokio::time::sleep(NOTHING_EVERY) => NOTHING.to_vec(),
        };
        Some((Ok(event), (listening, false)))
    })
}

/// Tells the sessions of the older era what changes; never ends.
pub(super) async fn tell_changes(hall: &Hall) {
    let (mut lists, mut news) = (hall.desk.lists(), hall.desk.bulletin().read());
    loop {
        tokio::select! {
            changed = lists.changed() => {
                let told = stdio::of_lists(changed);
                hall.sessions.all().iter().for_each(|session| tell(session, &told));
            }
            batch = news.next() => for session in hall.sessions.all() {
                tell(&session, &news::told_in(&session, &hall.desk, &batch));
            },
        }
    }
}

fn tell(session: &HostSession, told: &[(&'static str, Value)]) {
    for (method, params) in told {
        if session.is_listening() {
            let message = jsonrpc::notification(method, &params.to_string());
            session.feed.push(message);
        }
    }
}
