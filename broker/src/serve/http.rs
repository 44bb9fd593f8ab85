//! Many hosts over streamable HTTP, in both eras. What may come in at all is
//! looked at in `gate`; which session it belongs to, in `sessions`.

mod coded;
mod connections;
mod gate;
mod mirrored;
mod oauth;
mod post;
mod sessions;
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
use tokio::net::TcpListener;

use super::desk::Desk;
use sessions::Sessions;

pub use connections::Patience;
pub use gate::{BadToken, Gate};
pub use oauth::{BadOauth, OauthSettings, ResourceServer};

const PATH: &str = "/mcp";
const CLEAN_UP_EVERY: Duration = Duration::from_secs(60);

/// What all connections share.
#[derive(Debug)]
struct Hall {
    desk: Desk,
    gate: Gate,
    sessions: Sessions,
}

/// Serves until it is dropped, or ended: then until the last answer is on its way.
pub(super) async fn serve(desk: Desk, listener: TcpListener, gate: Gate) -> io::Result<()> {
    let sessions = Sessions::new(desk.settings());
    let hall = Arc::new(Hall {
        desk,
        gate,
        sessions,
    });
    let mut routes = Router::new().route(PATH, post(posted).get(listened).delete(ended));
    for path in hall.gate.oauth().iter().flat_map(|it| it.metadata_paths()) {
        routes = routes.route(&path, get(metadata));
    }
    let routes = routes
        .layer(DefaultBodyLimit::max(
            hall.desk.settings().message_bytes_max,
        ))
        .with_state(Arc::clone(&hall));
    let cleaning = async {
        let mut every = tokio::time::interval(CLEAN_UP_EVERY);
        loop {
            every.tick().await;
            hall.sessions.clean_up(hall.desk.now_ms());
        }
    };
    let ending = hall.desk.clone();
    let ended = async move { ending.runs_ended().await };
    let patience = hall.desk.settings().patience;
    tokio::select! {
        served = connections::serve(listener, routes, patience, ended) => served,
        () = cleaning => Ok(()),
        () = stream::tell_changes(&hall) => Ok(()),
    }
}

/// Where hosts connect to.
#[must_use]
pub fn url(address: SocketAddr) -> String {
    format!("http://{address}{PATH}")
}

/// Nothing of a message is read of somebody who is not let in, or when it says that it is too long.
async fn posted(State(hall): State<Arc<Hall>>, request: Request) -> Response {
    let headers = request.headers().clone();
    let caller = match hall.gate.admit(&headers, hall.desk.now_ms()).await {
        Ok(caller) => caller,
        Err(turned) => return turned.into_response(),
    };
    let bytes_max = hall.desk.settings().message_bytes_max;
    if request.body().size_hint().lower() > bytes_max as u64 {
        return post::too_long(bytes_max);
    }
    let patience = hall.desk.settings().patience.body;
    let read = tokio::time::timeout(patience, Bytes::from_request(request, &())).await;
    let Ok(read) = read else {
        return post::too_slow();
    };
    match read {
        Ok(message) => post::answer(hall, caller, &headers, &message).await,
        Err(rejected) if rejected.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            post::too_long(bytes_max)
        }
        // Whoever sent it is gone.
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}

/// Where a host gets a token from is told to everybody.
async fn metadata(State(hall): State<Arc<Hall>>, headers: HeaderMap) -> Response {
    match (hall.gate.check(&headers), hall.gate.oauth()) {
        (Err(refused), _) => refused.into_response(),
        (Ok(()), Some(server)) => {
            let kind = [(header::CONTENT_TYPE, "application/json")];
            (kind, server.metadata().to_string()).into_response()
        }
        (Ok(()), None) => StatusCode::NOT_FOUND.into_response(),
    }
}

/// A host of the older era wants to be told what happens outside of its requests.
async fn listened(State(hall): State<Arc<Hall>>, headers: HeaderMap) -> Response {
    match hall.gate.admit(&headers, hall.desk.now_ms()).await {
        Ok(caller) => stream::open(hall, &caller, &headers).await,
        Err(turned) => turned.into_response(),
    }
}

/// A host of the older era ends its session.
async fn ended(State(hall): State<Arc<Hall>>, headers: HeaderMap) -> Response {
    let caller = match hall.gate.admit(&headers, hall.desk.now_ms()).await {
        Ok(caller) => caller,
        Err(turned) => return turned.into_response(),
    };
    let id = headers.get(post::SESSION_HEADER);
    match id.and_then(|id| id.to_str().ok()) {
        None => StatusCode::BAD_REQUEST.into_response(),
        Some(id) if hall.sessions.end(&caller, id) => StatusCode::NO_CONTENT.into_response(),
        Some(_) => StatusCode::NOT_FOUND.into_response(),
    }
}
