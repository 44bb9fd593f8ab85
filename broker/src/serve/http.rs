//! Streamable HTTP for many hosts, in both eras. `access` decides which requests are accepted.

mod access;
mod caller;
mod caller_states;
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
use caller::Caller;
use caller_states::{CallerStates, NoState};

pub use access::{AccessGuard, InvalidToken};
pub(crate) use caller_states::MakeServer;
pub use oauth::{BadOauth, OauthSettings, ResourceServer};

const PATH: &str = "/mcp";
const CLEAN_UP_EVERY: Duration = Duration::from_secs(60);
/// Number of clean-ups of sessions in memory for each clean-up of their records on disk.
const RECORDS_EVERY: u64 = 10;

/// State of one broker and the sessions of its callers.
#[derive(Debug)]
struct HttpState {
    context: ServeContext,
    sessions: Sessions,
}

impl HttpState {
    fn new(context: ServeContext) -> Self {
        Self {
            sessions: Sessions::new(context.settings()),
            context,
        }
    }
}

/// State that all connections share.
#[derive(Debug)]
struct HttpServer {
    /// The settings and the clock, which are the same for all callers.
    front: ServeContext,
    gate: AccessGuard,
    states: CallerStates,
}

impl HttpServer {
    /// Returns the caller of a request and its state, or the response that refuses the request.
    async fn admit(&self, headers: &HeaderMap) -> Result<(Caller, Arc<HttpState>), Box<Response>> {
        let admitted = self.gate.admit(headers, self.front.now_ms()).await;
        let caller = admitted.map_err(|denied| Box::new(denied.into_response()))?;
        let state = self.states.of(&caller).map_err(|none| {
            let why = match none {
                NoState::Ending => "the server shuts down",
                NoState::TooMany => "too many callers are served at the same time",
                NoState::Failed => "the server for this caller could not be set up",
            };
            let body = response::error_body(why);
            Box::new(response::json_response(
                StatusCode::SERVICE_UNAVAILABLE,
                body,
            ))
        })?;
        Ok((caller, state))
    }
}

/// Serves until the future is dropped or shutdown begins. After shutdown begins, serves until the
/// last answer is sent.
///
/// With `make`, each caller gets a server of its own.
pub(super) async fn serve(
    front: ServeContext,
    listener: TcpListener,
    gate: AccessGuard,
    make: Option<Arc<MakeServer>>,
) -> io::Result<()> {
    let states = match make {
        Some(make) => CallerStates::own(front.clone(), make),
        None => CallerStates::shared(front.clone()),
    };
    let http = Arc::new(HttpServer {
        front,
        gate,
        states,
    });
    let mut routes = Router::new().route(PATH, post(posted).get(listened).delete(ended));
    for path in http.gate.oauth().iter().flat_map(|it| it.metadata_paths()) {
        routes = routes.route(&path, get(metadata));
    }
    let routes = routes
        .layer(DefaultBodyLimit::max(
            http.front.settings().message_bytes_max,
        ))
        .with_state(Arc::clone(&http));
    let cleaning = async {
        let mut every = tokio::time::interval(CLEAN_UP_EVERY);
        for round in 0_u64.. {
            every.tick().await;
            http.states.clean_up().await;
            if round.is_multiple_of(RECORDS_EVERY) {
                sessions::clean_up_records(&http.front).await;
            }
        }
    };
    let ending = Arc::clone(&http);
    let ended = async move { ending.states.runs_ended().await };
    let patience = http.front.settings().patience;
    tokio::select! {
        served = connections::serve(listener, routes, patience, ended) => served,
        () = cleaning => Ok(()),
        () = http.states.tell_changes() => Ok(()),
    }
}

/// Returns the URL to which hosts connect.
#[must_use]
pub fn url(address: SocketAddr) -> String {
    format!("http://{address}{PATH}")
}

/// Handles a POST. The body is not read if the caller is refused or if the declared length is too
/// large.
async fn posted(State(server): State<Arc<HttpServer>>, request: Request) -> Response {
    let headers = request.headers().clone();
    let (caller, http) = match server.admit(&headers).await {
        Ok(admitted) => admitted,
        Err(response) => return *response,
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
async fn metadata(State(http): State<Arc<HttpServer>>, headers: HeaderMap) -> Response {
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
async fn listened(State(server): State<Arc<HttpServer>>, headers: HeaderMap) -> Response {
    match server.admit(&headers).await {
        Ok((caller, http)) => stream::open(http, &caller, &headers).await,
        Err(response) => *response,
    }
}

/// Handles DELETE: a host of the older era ends its session.
async fn ended(State(server): State<Arc<HttpServer>>, headers: HeaderMap) -> Response {
    let (caller, http) = match server.admit(&headers).await {
        Ok(admitted) => admitted,
        Err(response) => return *response,
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
