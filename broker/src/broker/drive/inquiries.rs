//! The inquiries of servers during a run. Each inquiry gets a number and is passed on to the host
//! when the run machine allows it. Its server gets the answer once the answer is recorded.

use std::collections::HashMap;
use std::future::ready;
use std::task::{Context, Poll};
use std::time::Duration;

use airlock_core::effect::Event;
use airlock_core::id::{CallId, ServerName};
use airlock_core::inquiry::{
    Inquiry as CoreInquiry, InquiryEnd, InquiryId, InquiryKind, InquiryLogin,
};
use codegen::canonical;
use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable, LocalBoxFuture};
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::client_bridge::{AnswerDeadline, ClientBridge, ClientReply, ServerRequest};
use crate::deadline::Deadline;
use crate::secrets::Secrets;
use crate::upstream::server_request::{
    self, CallOrigin, Completion, RaisedRequest, RequestResult, RequestRouter,
};
use crate::upstream::url_elicitation::DONE_WALL;

type CarryFuture<'a> = LocalBoxFuture<'a, (InquiryId, Carried)>;

/// Maximum time for a person to log in after having agreed to.
const LOGIN_WALL: Duration = Duration::from_secs(10 * 60);

/// What became of an inquiry that was passed on to the host.
#[derive(Default)]
struct Carried {
    said: Option<ClientReply>,
    login: Option<InquiryLogin>,
}

pub(super) struct Inquiries<'a> {
    router: RequestRouter,
    raised: mpsc::UnboundedReceiver<RaisedRequest>,
    client_bridge: Option<&'a dyn ClientBridge>,
    open: HashMap<InquiryId, OpenInquiry>,
    carried: FuturesUnordered<Abortable<CarryFuture<'a>>>,
    latest: u32,
}

/// An inquiry whose server has not got an answer yet.
struct OpenInquiry {
    wants: InquiryKind,
    /// Whether the inquiry is a form in which no field is required.
    may_be_empty: bool,
    /// Whether a name or a choice in the inquiry contains a credential, which cannot be masked
    /// without changing the question.
    is_unfit: bool,
    /// The inquiry, until it is passed on to the host.
    inquiry: Option<ServerRequest>,
    abort: Option<AbortHandle>,
    answer: Option<RequestResult>,
    /// Resolves when the person has done what the address asks for. The call is then sent again.
    first: Option<Completion>,
    tell: oneshot::Sender<RequestResult>,
    is_given_up: bool,
}

impl<'a> Inquiries<'a> {
    pub(super) fn new(client_bridge: Option<&'a dyn ClientBridge>) -> Self {
        let abilities = client_bridge
            .map(ClientBridge::abilities)
            .unwrap_or_default();
        let host = client_bridge.and_then(ClientBridge::host);
        let log_sink = client_bridge.and_then(ClientBridge::log_sink);
        let (router, raised) = RequestRouter::new(abilities, host, log_sink);
        let router = router.with_progress(client_bridge.and_then(ClientBridge::progress_sink));
        let router = router.with_logins(client_bridge.is_some_and(ClientBridge::can_log_in));
        Self {
            router,
            raised,
            client_bridge,
            open: HashMap::new(),
            carried: FuturesUnordered::new(),
            latest: 0,
        }
    }

    /// Returns the origin of a call, with which inquiries of its server reach this run.
    pub(super) fn origin(
        &self,
        server: ServerName,
        call: CallId,
        deadline: Deadline,
    ) -> CallOrigin {
        CallOrigin::new(server, call, self.router.clone(), deadline)
    }

    /// Tells the calls in flight that the run is ending.
    pub(super) fn begin_ending(&self) {
        self.router.begin_ending();
    }

    /// Returns whether an inquiry is open.
    pub(super) fn is_any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns new inquiries, and the outcomes of inquiries that were passed on to the host.
    pub(super) fn listen(&mut self, cx: &mut Context<'_>, secrets: &Secrets) -> Vec<Event> {
        let mut heard = Vec::new();
        while let Poll::Ready(Some(raised)) = self.raised.poll_recv(cx) {
            heard.push(self.enter(raised, secrets));
        }
        while let Poll::Ready(Some(carried)) = self.carried.poll_next_unpin(cx) {
            let Ok((inquiry, Carried { mut said, login })) = carried else {
                continue;
            };
            if let Some(ClientReply::Error { message, .. }) = &mut said {
                secrets.redact_text(message);
            }
            if let Some(open) = self.open.get_mut(&inquiry) {
                let (end, told) = server_request::judge(open.wants, open.may_be_empty, said);
                open.answer = Some(told);
                heard.push(Event::InquiryEnded {
                    inquiry,
                    end,
                    login,
                });
            }
        }
        for (inquiry, open) in &mut self.open {
            if !open.is_given_up && open.tell.poll_closed(cx).is_ready() {
                open.is_given_up = true;
                heard.push(Event::InquiryEnded {
                    inquiry: *inquiry,
                    end: InquiryEnd::Withdrawn,
                    login: None,
                });
            }
        }
        heard
    }

    fn enter(&mut self, raised: RaisedRequest, secrets: &Secrets) -> Event {
        let RaisedRequest {
            call,
            or,
            mut inquiry,
            first,
            told: tell,
        } = raised;
        self.latest += 1;
        let (id, wants) = (InquiryId(self.latest), inquiry.wants);
        let digest = canonical::digest(&json!({"wants": wants, "params": inquiry.params}));
        let again = first.is_some();
        let is_unfit = redact(secrets, &mut inquiry.params);
        inquiry.key = inquiry.key.filter(|key| secrets.redact(key).is_none());
        let open = OpenInquiry {
            wants,
            may_be_empty: server_request::may_be_empty(&inquiry.params),
            is_unfit,
            inquiry: Some(inquiry),
            abort: None,
            answer: None,
            first,
            tell,
            is_given_up: false,
        };
        self.open.insert(id, open);
        Event::Inquired(CoreInquiry {
            id,
            call,
            or,
            wants,
            digest,
            again,
        })
    }

    pub(super) fn carry(&mut self, id: InquiryId, within: Duration) {
        let (Some(open), Some(client_bridge)) = (self.open.get_mut(&id), self.client_bridge) else {
            return;
        };
        let Some(inquiry) = open.inquiry.take() else {
            return;
        };
        let time = AnswerDeadline::new(within);
        let said = if open.is_unfit {
            Box::pin(ready(server_request::unfit(
                "a name or a choice in the inquiry contains a credential",
            )))
        } else {
            client_bridge.carry(inquiry, time.clone())
        };
        let first = open.first.take();
        let bounded = async move {
            let said = async { time.limit(said).await.ok() };
            let carried = match first {
                None => Carried {
                    said: said.await,
                    login: None,
                },
                Some(Completion::Reported(done)) => {
                    let said = said.await;
                    if is_yes(said.as_ref()) {
                        let _ = tokio::time::timeout(DONE_WALL, done).await;
                    }
                    Carried { said, login: None }
                }
                Some(Completion::Login(done)) => logged_in(said, done).await,
            };
            (id, carried)
        };
        let (abort, registration) = AbortHandle::new_pair();
        open.abort = Some(abort);
        self.carried
            .push(Abortable::new(Box::pin(bounded), registration));
    }

    pub(super) fn end(&mut self, id: InquiryId, end: InquiryEnd) {
        let Some(open) = self.open.remove(&id) else {
            return;
        };
        if let Some(abort) = open.abort {
            abort.abort();
        }
        let told = match end {
            InquiryEnd::Withdrawn | InquiryEnd::TooMany => None,
            _ => open.answer,
        };
        let told = told.unwrap_or_else(|| Err(server_request::refused(end)));
        // A send error means that the server is gone.
        let _ = open.tell.send(told);
    }
}

/// Masks credentials in a question. Returns whether the question contains a credential at a place
/// where a mask would change its meaning. In an address to open, only configured credentials are
/// masked: such addresses contain signatures and tokens of their own, and lead nowhere without
/// them.
fn redact(secrets: &Secrets, params: &mut Value) -> bool {
    let schema = params.get("requestedSchema");
    let is_in_schema = schema.is_some_and(|it| secrets.is_in_schema(it));
    let address = params.get_mut("url").map(Value::take);
    let is_in_name = secrets.redact_whole(params);
    if let (Some(mut address), Some(place)) = (address, params.get_mut("url")) {
        secrets.known_only().redact_value(&mut address);
        *place = address;
    }
    is_in_schema || is_in_name
}

/// Waits for the login, which may be complete before the host answers. An answer alone is not
/// enough. Without a login, the inquiry ends without an answer.
async fn logged_in(
    said: impl Future<Output = Option<ClientReply>>,
    done: oneshot::Receiver<InquiryLogin>,
) -> Carried {
    tokio::pin!(said, done);
    let login = tokio::select! {
        biased;
        login = &mut done => login.ok(),
        said = &mut said => match is_yes(said.as_ref()) {
            true => match tokio::time::timeout(LOGIN_WALL, done).await {
                Ok(login) => login.ok(),
                Err(_) => None,
            },
            false => return Carried { said, login: None },
        },
    };
    let accepted = || ClientReply::Result(json!({"action": "accept"}));
    Carried {
        said: login.is_some().then(accepted),
        login,
    }
}

fn is_yes(said: Option<&ClientReply>) -> bool {
    matches!(said, Some(ClientReply::Result(result)) if result["action"] == "accept")
}
