//! Collects the events of a run. Everything that has happened is passed on at once, so that
//! outcomes which arrive together reach the script together.

use std::future::poll_fn;
use std::task::{Context, Poll};

use airlock_core::effect::Event;
use futures_util::{FutureExt as _, StreamExt as _};

use super::EffectRunner;

impl EffectRunner<'_> {
    /// Waits for at least one event.
    pub(super) async fn wait(&mut self) -> Vec<Event> {
        poll_fn(|cx| {
            self.rest.note(false);
            self.listen(cx);
            if self.heard.is_empty() {
                self.rest.note(true);
                Poll::Pending
            } else {
                Poll::Ready(std::mem::take(&mut self.heard))
            }
        })
        .await
    }

    /// Sends the calls that were started, before the guest occupies the thread.
    pub(super) async fn let_calls_leave(&mut self) {
        poll_fn(|cx| {
            self.listen(cx);
            Poll::Ready(())
        })
        .await;
    }

    fn listen(&mut self, cx: &mut Context<'_>) {
        let _listening = self.cancel.listening();
        // Cancellation comes first, so that an interrupted guest does not hide the reason.
        if let Poll::Ready(why) = self.cancel.poll(cx) {
            // Nothing is polled after the end of the runtime on which timers and servers live.
            let may_wait = !self.cancel.poll_runtime_end(cx);
            let is_new = !self.is_cancelled || (!may_wait && !self.is_runtime_ended);
            self.is_cancelled = true;
            self.is_runtime_ended |= !may_wait;
            if is_new {
                let event = match self.cancel.is_abandoned() {
                    true => Event::Abandoned { why, may_wait },
                    false => Event::Cancelled { why, may_wait },
                };
                self.heard.insert(0, event);
            }
            if is_new || !may_wait {
                return;
            }
        }
        // Inquiries come before calls: a server's inquiry is older than its answer.
        let heard = self.inquiries.listen(cx, &self.broker.secrets);
        self.heard.extend(heard);
        self.hold_extractions();
        while let Poll::Ready(Some(settled)) = self.calls.poll_next_unpin(cx) {
            if let Ok((call, reply)) = settled {
                self.aborts.remove(&call);
                self.extractions.remove(&call);
                self.heard.push(Event::Replied { call, reply });
            }
        }
        while let Poll::Ready(Some(answered)) = self.asks.poll_next_unpin(cx) {
            if let Ok((call, answer)) = answered {
                self.aborts.remove(&call);
                self.heard.push(Event::Answered { call, answer });
            }
        }
        while let Poll::Ready(Some(claimed)) = self.claims.poll_next_unpin(cx) {
            if let Ok((call, used)) = claimed {
                self.heard.push(Event::Claimed { call, used });
            }
        }
        if self
            .alarm
            .as_mut()
            .is_some_and(|alarm| alarm.poll_unpin(cx).is_ready())
        {
            self.alarm = None;
            self.heard.push(Event::Woke);
        }
    }
}
