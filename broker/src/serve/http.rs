//! Streamable HTTP for many hosts, in both eras. `access` decides which requests are accepted.

mod access;
mod caller;
mod connections;
mod header_value;
mod mirrored;
mod oauth;
mod post;
mod response;
mod stream;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Bytes, HttpBody as _};
use axum::extract::{DefaultBodyLimit, FromRequest as _, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde_json::Value;
use tokio::net::TcpListener;

use super::context::ServeContext;
use super::sessions::{self, Sessions};

pub use access::{AccessGuard, InvalidToken};
pub use oauth::{BadOauth, OauthSettings, ResourceServer};

const PATH: &str = "/mcp";
const CLEAN_UP_EVERY: Duration = Duration::from_secs(60);
/// Number of clean-ups of sessions in memory for each clean-up of their records on disk.
const RECORDS_EVERY: u64 = 10;

/// State that all connections share.
#[derive(Debug)]
struct HttpState {
    context: ServeContext,
    gate: AccessGuard,
    sessions: Sessions,
}

/// Serves until the future is dropped or shutdown begins. After shutdown begins, serves until the
/// last answer is sent.
pub(super) async fn serve(
    context: ServeContext,
    listener: TcpListener,
    gate: AccessGuard,
) -> io::Result<()> {
    let sessions = Sessions::new(context.settings());
    let http = Arc::new(HttpState {
        context,
        gate,
        sessions,
    });
    let mut routes = Router::new().route(PATH, post(posted).get(listened).delete(ended));
    for path in http.gate.oauth().iter().flat_map(|it| it.metadata_paths()) {
        routes = routes.route(&path, get(metadata));
    }
    let routes = routes
        .layer(DefaultBodyLimit::max(
            http.context.settings().message_bytes_max,
        ))
        .with_state(Arc::clone(&http));
    let cleaning = async {
        let mut every = tokio::time::interval(CLEAN_UP_EVERY);
        for round in 0_u64.. {
            every.tick().await;
            http.sessions.clean_up(&http.context).await;
            if round.is_multiple_of(RECORDS_EVERY) {
                sessions::clean_up_records(&http.context).await;
            }
        }
    };
    let ending = http.context.clone();
    let ended = async move { ending.runs_ended().await };
    let patience = http.context.settings().patience;
    tokio::select! {
        served = connections::serve(listener, routes, patience, ended) => served,
        () = cleaning => Ok(()),
        () = stream::tell_changes(&http) => Ok(()),
    }
}

/// Returns the URL to which hosts connect.
#[must_use]
pub fn url(address: SocketAddr) -> String {
    format!("http://{address}{PATH}")
}

/// Handles a POST. The body is not read if the caller is refused or if the declared length is too
/// large.
async fn posted(State(http): State<Arc<HttpState>>, request: Request) -> Response {
    let headers = request.headers().clone();
    let caller = match http.gate.admit(&headers, http.context.now_ms()).await {
        Ok(caller) => caller,
        Err(turned) => return turned.into_response(),
    };
    let bytes_max = http.context.settings().message_bytes_max;
    if request.body().size_hint().lower() > bytes_max as u64 {
        return response::too_long(bytes_max);
    }
    let patience = http.context.settings().patience.body;
    let read = tokio::time::timeout(patience, Bytes::from_request(request, &())).await;
    let Ok(read) = read else {
        return response::too_slow();
    };
    match read {
        Ok(message) => post::answer(http, caller, &headers, &message).await,
        Err(rejected) if rejected.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            response::too_long(bytes_max)
        }
        // The client has disconnected.
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}

/// Returns the metadata that names the authorization server. It needs no token.
async fn metadata(State(http): State<Arc<HttpState>>, headers: HeaderMap) -> Response {
    match (http.gate.check(&headers), http.gate.oauth()) {
        (Err(refused), _) => refused.into_response(),
        (Ok(()), Some(server)) => {
            let kind = [(header::CONTENT_TYPE, "application/json")];
            (kind, server.metadata().to_string()).into_response()
        }
        (Ok(()), None) => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Handles GET: a host of the older era opens the stream for messages unrelated to its requests.
async fn listened(State(http): State<Arc<HttpState>>, headers: HeaderMap) -> Response {
    match http.gate.admit(&headers, http.context.now_ms()).await {
        Ok(caller) => stream::open(http, &caller, &headers).await,
        Err(turned) => turned.into_response(),
    }
}

/// Handles DELETE: a host of the older era ends its session.
async fn ended(State(http): State<Arc<HttpState>>, headers: HeaderMap) -> Response {
    let caller = match http.gate.admit(&headers, http.context.now_ms()).await {
        Ok(caller) => caller,
        Err(turned) => return turned.into_response(),
    };
    let Some(id) = header_value::text(&headers, header_value::SESSION_HEADER) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let (sessions, context) = (&http.sessions, &http.context);
    let owner = caller.owner(&Value::Null);
    let ended = match sessions.find(context, &owner, id).await {
        Ok(Some(session)) => sessions.end(context, &session).await,
        Ok(None) => return StatusCode::NOT_FOUND.into_response(),
        Err(refusal) => Err(refusal),
    };
    match ended {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
