//! What servers ask of the host while a run goes on: each gets its number, is
//! carried when the machine says so, and is told to its server when that is recorded.

use std::collections::HashMap;
use std::future::ready;
use std::task::{Context, Poll};
use std::time::Duration;

use airlock_core::effect::Event;
use airlock_core::id::{CallId, ServerName};
use airlock_core::inquiry::{Inquiry as Heard, InquiryEnd, InquiryId, Wants};
use codegen::canonical;
use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable, LocalBoxFuture};
use futures_util::stream::FuturesUnordered;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use crate::carrier::{Carrier, Inquiry, Said, Time};
use crate::config::Secrets;
use crate::upstream::inquiry::{self, Behind, InquiryDesk, Raised, Told};
use crate::upstream::opening::DONE_WALL;
use crate::upstream::wall::Wall;

type Carried<'a> = LocalBoxFuture<'a, (InquiryId, Option<Said>)>;

pub(super) struct Inquiries<'a> {
    desk: InquiryDesk,
    raised: mpsc::UnboundedReceiver<Raised>,
    carrier: Option<&'a dyn Carrier>,
    open: HashMap<InquiryId, Open>,
    carried: FuturesUnordered<Abortable<Carried<'a>>>,
    latest: u32,
}

/// One that its server was not told the end of.
struct Open {
    wants: Wants,
    /// A form that nothing has to be filled in in.
    may_be_empty: bool,
    /// A credential stands where it cannot be struck without changing what is asked.
    is_unfit: bool,
    /// Until it is carried.
    inquiry: Option<Inquiry>,
    abort: Option<AbortHandle>,
    answer: Option<Told>,
    /// After a yes it is waited for this: the call is made again then.
    first: Option<oneshot::Receiver<()>>,
    tell: oneshot::Sender<Told>,
    is_given_up: bool,
}

impl<'a> Inquiries<'a> {
    pub(super) fn new(carrier: Option<&'a dyn Carrier>) -> Self {
        let abilities = carrier.map(Carrier::abilities).unwrap_or_default();
        let host = carrier.and_then(Carrier::host);
        let remarks = carrier.and_then(Carrier::remarks);
        let (desk, raised) = InquiryDesk::new(abilities, host, remarks);
        Self {
            desk,
            raised,
            carrier,
            open: HashMap::new(),
            carried: FuturesUnordered::new(),
            latest: 0,
        }
    }

    /// What goes with a call, so that its server finds back here.
    pub(super) fn behind(&self, server: ServerName, call: CallId, wall: Wall) -> Behind {
        Behind::new(server, call, self.desk.clone(), wall)
    }

    /// Somebody is asked right now.
    pub(super) fn is_any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// What has come, and what came of what is carried.
    pub(super) fn listen(&mut self, cx: &mut Context<'_>, secrets: &Secrets) -> Vec<Event> {
        let mut heard = Vec::new();
        while let Poll::Ready(Some(raised)) = self.raised.poll_recv(cx) {
            heard.push(self.enter(raised, secrets));
        }
        while let Poll::Ready(Some(carried)) = self.carried.poll_next_unpin(cx) {
            let Ok((inquiry, mut said)) = carried else {
                continue;
            };
            if let Some(Said::Error { message, .. }) = &mut said {
                secrets.strike_text(message);
            }
            if let Some(open) = self.open.get_mut(&inquiry) {
                let (end, told) = inquiry::judge(open.wants, open.may_be_empty, said);
                open.answer = Some(told);
                heard.push(Event::InquiryEnded { inquiry, end });
            }
        }
        for (inquiry, open) in &mut self.open {
            if !open.is_given_up && open.tell.poll_closed(cx).is_ready() {
                open.is_given_up = true;
                let (inquiry, end) = (*inquiry, InquiryEnd::Withdrawn);
                heard.push(Event::InquiryEnded { inquiry, end });
            }
        }
        heard
    }

    fn enter(&mut self, raised: Raised, secrets: &Secrets) -> Event {
        let Raised {
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
        let is_unfit = secrets.strike_whole(&mut inquiry.params);
        inquiry.key = inquiry.key.filter(|key| secrets.strike(key).is_none());
        let open = Open {
            wants,
            may_be_empty: inquiry::may_be_empty(&inquiry.params),
            is_unfit,
            inquiry: Some(inquiry),
            abort: None,
            answer: None,
            first,
            tell,
            is_given_up: false,
        };
        self.open.insert(id, open);
        Event::Inquired(Heard {
            id,
            call,
            or,
            wants,
            digest,
            again,
        })
    }

    pub(super) fn carry(&mut self, id: InquiryId, within: Duration) {
        let (Some(open), Some(carrier)) = (self.open.get_mut(&id), self.carrier) else {
            return;
        };
        let Some(inquiry) = open.inquiry.take() else {
            return;
        };
        let time = Time::new(within);
        let said = if open.is_unfit {
            Box::pin(ready(inquiry::unfit("a name in it is a known credential")))
        } else {
            carrier.carry(inquiry, time.clone())
        };
        let first = open.first.take();
        let bounded = async move {
            let said = time.limit(said).await.ok();
            if let (Some(done), true) = (first, is_yes(said.as_ref())) {
                let _ = tokio::time::timeout(DONE_WALL, done).await;
            }
            (id, said)
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
        let told = told.unwrap_or_else(|| Err(inquiry::refused(end)));
        // The server may have gone.
        let _ = open.tell.send(told);
    }
}

fn is_yes(said: Option<&Said>) -> bool {
    matches!(said, Some(Said::Result(result)) if result["action"] == "accept")
}
