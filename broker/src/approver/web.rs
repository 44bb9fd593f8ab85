//! Asks for approval on a local web page. The page is served only on the loopback address, and only
//! to the browser that opened a signed link, which is valid once. All other requests get no
//! information, so a tool or script that finds the port learns nothing.

mod card;
mod listener;
mod open_questions;
mod page_auth;
mod suspended_questions;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
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
use tokio::time::Instant;

use super::wire::ANSWER_BYTES_MAX;
use super::{AnswerFuture, Approver, SettledCall};
use crate::private_file::StateDir;
use crate::secrets::Secrets;
use listener::LimitedListener;
use open_questions::{AnswerError, OpenQuestions};
use page_auth::{PageAuth, PageAuthError, PageCookie};
use suspended_questions::SuspendedQuestions;

/// Maximum time that a page's request for updates stays open while there are no updates.
const NEWS_WALL: Duration = Duration::from_secs(20);
/// Interval at which an open page looks for questions of suspended runs.
const LOOK_FOR_KEPT: Duration = Duration::from_secs(1);
/// Interval of the check whether the page is still open in a browser.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// The name of this approver.
const PLACE: &str = "web page";
const PAGE: &str = include_str!("web/page.html");
const CARD_SCRIPT: &str = include_str!("web/card.js");
const PAGE_SCRIPT: &str = include_str!("web/page.js");
const STYLE: &str = include_str!("web/page.css");

/// Called with each new link to the page. The link gives access to anyone who has it, so it must be
/// shown only to the person.
pub type LinkNotifier = Box<dyn Fn(&str) + Send + Sync>;

/// The server of the page. It stops on drop.
pub struct Web {
    room: Arc<PageState>,
    told: LinkNotifier,
    /// Where the person finds the page.
    place: String,
    server: JoinHandle<()>,
}

struct PageState {
    gate: PageAuth,
    questions: OpenQuestions,
    /// Where questions of suspended runs come from, if the page shows them.
    suspended: OnceLock<SuspendedQuestions>,
}

impl std::fmt::Debug for Web {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Web")
    }
}

impl Web {
    /// Starts the server. Must be called inside a tokio runtime. `told` is called with each new
    /// link.
    pub fn start(told: LinkNotifier) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let gate = PageAuth::new(port).map_err(|error| io::Error::other(error.to_string()))?;
        let room = Arc::new(PageState {
            gate,
            questions: OpenQuestions::default(),
            suspended: OnceLock::new(),
        });
        let routes = routes(Arc::clone(&room));
        let listener = TcpListener::from_std(listener)?;
        let door =
            LimitedListener::new(listener, listener::VISITORS_MAX, listener::UNANSWERED_WALL);
        let server = tokio::spawn(async move {
            // The server ends only when the task is aborted.
            let _ = axum::serve(door, routes).await;
        });
        Ok(Self {
            room,
            told,
            place: "on a web page of airlock on this machine".to_owned(),
            server,
        })
    }

    /// Sets the text that says where the person finds the page. A host's model reads it.
    #[must_use]
    pub fn with_place(mut self, place: impl Into<String>) -> Self {
        self.place = place.into();
        self
    }

    /// Also shows the questions of suspended runs of this state directory. A stated result that
    /// contains a credential is refused.
    #[must_use]
    pub fn with_suspended_runs(self, state: StateDir, secrets: Secrets) -> Self {
        self.room
            .suspended
            .get_or_init(|| SuspendedQuestions::new(state, secrets));
        self
    }

    /// Returns a new link, which is valid once and for a limited time. Earlier links become
    /// invalid.
    pub fn link(&self) -> io::Result<String> {
        let link = self.room.gate.link();
        link.map_err(|error| io::Error::other(error.to_string()))
    }

    async fn converse(&self, question: Question) -> io::Result<Answer> {
        let chance = |error: getrandom::Error| io::Error::other(error.to_string());
        let mut answer = pin!(self.room.questions.put(question).map_err(chance)?.answer());
        // The page may be closed or the link may expire while the question is open.
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
    fn ask(&self, question: Question) -> AnswerFuture<'_> {
        Box::pin(async move {
            let answer = self.converse(question).await;
            answer.unwrap_or_else(|error| Answer::Invalid {
                why: format!("the approver's page: {error}"),
            })
        })
    }

    fn who(&self) -> String {
        PLACE.into()
    }

    fn place(&self) -> Option<String> {
        Some(self.place.clone())
    }

    fn remind(&self) -> bool {
        if self.room.suspended.get().is_none() {
            return false;
        }
        if self.room.gate.wants_link()
            && let Ok(link) = self.link()
        {
            (self.told)(&link);
        }
        true
    }

    fn settled(&self, call: &SettledCall<'_>) {
        self.room.questions.settled(call);
    }
}

fn routes(room: Arc<PageState>) -> Router {
    let text = |kind: &'static str, text: &'static str| {
        get(move || async move { ([(header::CONTENT_TYPE, kind)], text) })
    };
    let guarded = |guard: Guard| {
        middleware::from_fn_with_state(
            Arc::clone(&room),
            move |State(room): State<Arc<PageState>>, request: Request, next: Next| async move {
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

/// Answers every request without access with 404, so that the requester learns nothing.
async fn nothing() -> StatusCode {
    StatusCode::NOT_FOUND
}

#[derive(Deserialize)]
struct LinkQuery {
    until: u64,
    once: String,
    sig: String,
}

async fn enter(
    State(room): State<Arc<PageState>>,
    headers: HeaderMap,
    entry: Result<Query<LinkQuery>, QueryRejection>,
) -> Response {
    let Some(Query(entry)) = entry.ok().filter(|_| room.gate.is_host(&headers)) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match room.gate.enter(entry.until, &entry.once, &entry.sig) {
        Ok(PageCookie { cookie, key }) => {
            let page = format!("/#{key}");
            // A browser sends a strict cookie only if the page itself leads on. After a link in a
            // file, a redirection would count as a part of that other site.
            if headers
                .get("sec-fetch-site")
                .is_some_and(|it| it == "cross-site")
            {
                let onward = format!("0; url={page}");
                return [(header::SET_COOKIE, cookie), (header::REFRESH, onward)].into_response();
            }
            let headers = [(header::SET_COOKIE, cookie), (header::LOCATION, page)];
            (StatusCode::SEE_OTHER, headers).into_response()
        }
        Err(PageAuthError::Forged) => StatusCode::NOT_FOUND.into_response(),
        Err(PageAuthError::Over) => {
            let why = "This link was used already or has expired. If a call needs approval and no \
                       page is open, the terminal shows a new link within a minute.";
            (StatusCode::GONE, why).into_response()
        }
    }
}

type Guard = fn(&PageAuth, &Request) -> bool;

/// Whether the request is from the browser that used the link, and names this address as its host.
fn is_inside(gate: &PageAuth, request: &Request) -> bool {
    gate.is_host(request.headers()) && gate.has_cookie(request.headers())
}

/// Whether the request is from airlock's own page in that browser. Changes must also come from the
/// page's own origin.
fn is_our_page(gate: &PageAuth, request: &Request) -> bool {
    let headers = request.headers();
    let is_change = request.method() != axum::http::Method::GET;
    is_inside(gate, request) && gate.has_key(headers) && (!is_change || gate.is_own_origin(headers))
}

/// Adds headers that forbid external resources, framing and caching.
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
struct SeenQuery {
    seen: Option<u64>,
}

/// Returns all questions as soon as they differ from the version that the page has seen.
async fn questions(State(room): State<Arc<PageState>>, Query(seen): Query<SeenQuery>) -> Response {
    let until = Instant::now() + NEWS_WALL;
    loop {
        let next_look = match room.suspended.get() {
            Some(suspended) => {
                suspended.look(&room.questions);
                until.min(Instant::now() + LOOK_FOR_KEPT)
            }
            None => until,
        };
        let news = room.questions.news(seen.seen);
        let is_new = tokio::time::timeout_at(next_look, news).await.is_ok();
        if is_new || next_look == until {
            break;
        }
    }
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, room.questions.shown().to_string()).into_response()
}

async fn answer(State(room): State<Arc<PageState>>, body: Bytes) -> Response {
    let answered = match (room.questions.answer(&body), room.suspended.get()) {
        (Ok(Some(answer)), Some(suspended)) => suspended.record(&room.questions, answer).await,
        (answered, _) => answered.map(drop),
    };
    let (status, why) = match answered {
        Ok(()) => (StatusCode::OK, String::new()),
        Err(refused) => {
            let status = match refused {
                AnswerError::Unknown | AnswerError::Nonce => StatusCode::FORBIDDEN,
                AnswerError::Over | AnswerError::NotRecorded(_) => StatusCode::CONFLICT,
                AnswerError::Unclear(_) => StatusCode::BAD_REQUEST,
            };
            (status, refused.to_string())
        }
    };
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, json!({ "why": why }).to_string()).into_response()
}

/// Returns an open question as the page gets it.
#[cfg(test)]
pub(super) fn card(question: &Question) -> serde_json::Value {
    card::open(1, question, "n0", None, false)
}

#[cfg(test)]
mod tests;
