//! A page on this machine for whoever approves: served on the loopback address
//! alone, to the one browser that opened a signed link, which is good once.
//! Without it the server says nothing to anybody: a tool or script that finds
//! the port finds nothing behind it.

mod desk;
mod door;
mod gate;
mod shown;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use airlock_core::decide::{Answer, Question};
use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{DefaultBodyLimit, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::wire::ANSWER_BYTES_MAX;
use super::{Approver, Asking};
use desk::{Desk, Refused};
use door::Door;
use gate::{Entered, Gate, NoEntry};

/// How long a page's request for news stays open when there is none.
const NEWS_WALL: Duration = Duration::from_secs(20);
/// How often it is looked whether somebody still has the page open.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
const PAGE: &str = include_str!("web/page.html");
const CARD_SCRIPT: &str = include_str!("web/card.js");
const PAGE_SCRIPT: &str = include_str!("web/page.js");
const STYLE: &str = include_str!("web/page.css");

/// What the person is to be told: a link to the page. It lets in whoever has it, so it goes
/// where only they can read it.
pub type Told = Box<dyn Fn(&str) + Send + Sync>;

/// Serves until it is dropped.
pub struct Web {
    room: Arc<Room>,
    told: Told,
    server: JoinHandle<()>,
}

struct Room {
    gate: Gate,
    desk: Desk,
}

impl std::fmt::Debug for Web {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Web")
    }
}

impl Web {
    /// Call it inside a tokio runtime. `told` hears of each new link.
    pub fn start(told: Told) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let gate = Gate::new(port).map_err(|error| io::Error::other(error.to_string()))?;
        let room = Arc::new(Room {
            gate,
            desk: Desk::default(),
        });
        let routes = routes(Arc::clone(&room));
        let listener = TcpListener::from_std(listener)?;
        let door = Door::new(listener, door::VISITORS_MAX, door::UNANSWERED_WALL);
        let server = tokio::spawn(async move {
            // It only ends when the task is aborted.
            let _ = axum::serve(door, routes).await;
        });
        Ok(Self { room, told, server })
    }

    /// A link that is good once and not for long; those before it are good no more.
    pub fn link(&self) -> io::Result<String> {
        let link = self.room.gate.link();
        link.map_err(|error| io::Error::other(error.to_string()))
    }

    async fn converse(&self, question: Question) -> io::Result<Answer> {
        let chance = |error: getrandom::Error| io::Error::other(error.to_string());
        let mut answer = pin!(self.room.desk.put(question).map_err(chance)?.answer());
        // A page may be closed, and a link grow old, while the question stands on it.
        loop {
            if self.room.gate.wants_link() {
                (self.told)(&self.link()?);
            }
            if let Ok(answer) = tokio::time::timeout(LOOK_AGAIN, &mut answer).await {
                return Ok(answer);
            }
        }
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Approver for Web {
    fn ask(&self, question: Question) -> Asking<'_> {
        Box::pin(async move {
            let answer = self.converse(question).await;
            answer.unwrap_or_else(|error| Answer::Invalid {
                why: format!("the approver's page: {error}"),
            })
        })
    }

    fn who(&self) -> String {
        "web page".into()
    }
}

fn routes(room: Arc<Room>) -> Router {
    let text = |kind: &'static str, text: &'static str| {
        get(move || async move { ([(header::CONTENT_TYPE, kind)], text) })
    };
    let guarded = |guard: Guard| {
        middleware::from_fn_with_state(
            Arc::clone(&room),
            move |State(room): State<Arc<Room>>, request: Request, next: Next| async move {
                if guard(&room.gate, &request) {
                    next.run(request).await
                } else {
                    nothing().await.into_response()
                }
            },
        )
    };
    let by_page = Router::new()
        .route("/questions", get(questions))
        .route("/answer", post(answer))
        .layer(guarded(is_our_page));
    let inside = Router::new()
        .route("/", text("text/html; charset=utf-8", PAGE))
        .route(
            "/card.js",
            text("text/javascript; charset=utf-8", CARD_SCRIPT),
        )
        .route(
            "/page.js",
            text("text/javascript; charset=utf-8", PAGE_SCRIPT),
        )
        .route("/page.css", text("text/css; charset=utf-8", STYLE))
        .layer(guarded(is_inside))
        .merge(by_page);
    Router::new()
        .route("/enter", get(enter))
        .fallback(nothing)
        .merge(inside)
        .layer(DefaultBodyLimit::max(ANSWER_BYTES_MAX as usize))
        .layer(middleware::map_response(seal))
        .with_state(room)
}

/// To whoever is not let in, there is nothing here.
async fn nothing() -> StatusCode {
    StatusCode::NOT_FOUND
}

#[derive(Deserialize)]
struct Entry {
    until: u64,
    once: String,
    sig: String,
}

async fn enter(
    State(room): State<Arc<Room>>,
    headers: HeaderMap,
    entry: Result<Query<Entry>, QueryRejection>,
) -> Response {
    let Some(Query(entry)) = entry.ok().filter(|_| room.gate.is_host(&headers)) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match room.gate.enter(entry.until, &entry.once, &entry.sig) {
        Ok(Entered { cookie, key }) => {
            let page = format!("/#{key}");
            let headers = [(header::SET_COOKIE, cookie), (header::LOCATION, page)];
            (StatusCode::SEE_OTHER, headers).into_response()
        }
        Err(NoEntry::Forged) => StatusCode::NOT_FOUND.into_response(),
        Err(NoEntry::Over) => {
            let why = "This link was used, or is too old. When there is a question and no page \
                       is open, the terminal has a new one within a minute.";
            (StatusCode::GONE, why).into_response()
        }
    }
}

type Guard = fn(&Gate, &Request) -> bool;

/// The browser that used the link, at our own address.
fn is_inside(gate: &Gate, request: &Request) -> bool {
    gate.is_host(request.headers()) && gate.has_cookie(request.headers())
}

/// Our page in that browser, and for changes on its own behalf.
fn is_our_page(gate: &Gate, request: &Request) -> bool {
    let headers = request.headers();
    let is_change = request.method() != axum::http::Method::GET;
    is_inside(gate, request) && gate.has_key(headers) && (!is_change || gate.is_own_origin(headers))
}

/// Nothing from outside, nothing framed, nothing kept.
async fn seal(mut response: Response) -> Response {
    const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                          connect-src 'self'; img-src data:; base-uri 'none'; \
                          form-action 'none'; frame-ancestors 'none'";
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    for (name, value) in [
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[derive(Deserialize)]
struct Seen {
    seen: Option<u64>,
}

/// All questions, as soon as there is something that the page has not seen.
async fn questions(State(room): State<Arc<Room>>, Query(seen): Query<Seen>) -> Response {
    let news = room.desk.news(seen.seen);
    let _ = tokio::time::timeout(NEWS_WALL, news).await;
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, room.desk.shown().to_string()).into_response()
}

async fn answer(State(room): State<Arc<Room>>, body: Bytes) -> Response {
    let (status, why) = match room.desk.answer(&body) {
        Ok(()) => (StatusCode::OK, String::new()),
        Err(refused) => {
            let status = match refused {
                Refused::Unknown | Refused::Nonce => StatusCode::FORBIDDEN,
                Refused::Over => StatusCode::CONFLICT,
                Refused::Unclear(_) => StatusCode::BAD_REQUEST,
            };
            (status, refused.to_string())
        }
    };
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, json!({ "why": why }).to_string()).into_response()
}

#[cfg(test)]
mod tests;
