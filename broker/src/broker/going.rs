//! The runs that go on, each on its thread, so that all of them can be ended
//! together and waited for: their journals are whole before the process ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use super::Cancel;

/// Cheap to clone; all clones know the same runs.
#[derive(Debug, Clone)]
pub(super) struct Going(Arc<watch::Sender<Open>>);

#[derive(Debug, Default)]
struct Open {
    latest: u64,
    runs: BTreeMap<u64, Cancel>,
    /// Why no run goes on any more.
    ended: Option<String>,
}

/// One run goes on until this is dropped.
#[derive(Debug)]
pub(super) struct Goes {
    going: Going,
    number: u64,
}

impl Default for Going {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Open::default())))
    }
}

impl Going {
    /// A run that begins after all were ended is cancelled before it does anything.
    pub(super) fn begin(&self, cancel: &Cancel) -> Goes {
        let mut number = 0;
        self.0.send_modify(|open| {
            open.latest += 1;
            number = open.latest;
            open.runs.insert(number, cancel.clone());
            if let Some(why) = &open.ended {
                cancel.cancel(why);
            }
        });
        Goes {
            going: self.clone(),
            number,
        }
    }

    /// Cancels all runs, and returns when the last one has written its end.
    pub(super) async fn end(&self, why: &str) {
        self.0.send_modify(|open| {
            open.ended.get_or_insert_with(|| why.to_owned());
            open.runs.values().for_each(|run| run.cancel(why));
        });
        let mut open = self.0.subscribe();
        // The sender lives in `self`.
        let _ = open.wait_for(|open| open.runs.is_empty()).await;
    }
}

impl Drop for Goes {
    fn drop(&mut self) {
        self.going.0.send_modify(|open| {
            open.runs.remove(&self.number);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[tokio::test]
    async fn all_runs_are_cancelled_and_waited_for_and_later_ones_end_at_once() {
        let going = Going::default();
        let (first, second) = (Cancel::new(), Cancel::new());
        let goes = going.begin(&first);
        let mut cx = Context::from_waker(Waker::noop());
        let mut ending = Box::pin(going.end("enough"));
        assert!(ending.as_mut().poll(&mut cx).is_pending(), "one goes on");
        assert_eq!(first.poll(&mut cx), Poll::Ready("enough".into()));
        drop(goes);
        ending.await;
        let _goes = going.begin(&second);
        assert_eq!(second.poll(&mut cx), Poll::Ready("enough".into()));
    }
}
