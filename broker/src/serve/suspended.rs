//! A run as the host follows it: its events on their way to the host, what it
//! wants of the host, and its waiting for whoever answers.

use std::collections::HashSet;
use std::future::pending;
use std::time::Duration;

use airlock_core::id::CallId;
use airlock_core::report::Report;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::logging::Remarked;
use super::progress::Progress;
use super::request::Request;
use super::wish::{Carrying, Way, Wish};
use crate::broker::{Cancel, Reached, Rest, RunEvent, Running};

/// How long a request waits for somebody whom the host does not carry the question
/// to; hosts give up on requests that take much longer.
const PATIENCE: Duration = Duration::from_secs(40);

/// What a run wants at once comes from its own thread, one after the other, until it is at rest.
/// One that goes on for longer is not waited for.
const LONG_MOMENT: Duration = Duration::from_millis(250);

/// What servers want comes as they do, and what came so soon after it is told with it.
const MOMENT: Duration = Duration::from_millis(20);

/// A run that is going on, whether or not a request of the host waits for it.
#[derive(Debug)]
pub(super) struct Suspended {
    running: Running,
    wanted: mpsc::UnboundedReceiver<Wish>,
    remarked: Remarked,
    reached: Reached,
    rest: Rest,
    pub(super) script: FollowedScript,
    way: Way,
    /// The host cannot carry questions; the broker's own approver is asked.
    asks_elsewhere: bool,
    run: String,
    asked_elsewhere: HashSet<CallId>,
    /// What the host has in hand.
    pub(super) handed: Vec<Wish>,
}

/// What the host needs to know of a script when its run is over.
#[derive(Debug, Clone)]
pub(super) struct FollowedScript {
    pub(super) name: String,
    /// Empty when none of it may be quoted.
    pub(super) text: String,
    /// A call that the host made directly, without a script of its own.
    pub(super) is_direct: bool,
}

/// What became of following a run.
#[derive(Debug)]
pub(super) enum Followed {
    Over(Box<Report>),
    /// What is in [`Suspended::handed`] is the host's to answer.
    Wants,
    /// Somebody else is being asked, and it takes long.
    Waits,
}

/// Ends so long after the waiting began, whatever else happens meanwhile.
#[derive(Debug, Default)]
struct Patience(Option<Instant>);

impl Patience {
    fn waits(&mut self, waits: bool) {
        self.0 = waits.then(|| self.0.unwrap_or_else(|| Instant::now() + PATIENCE));
    }

    async fn ends(&self) {
        match self.0 {
            Some(at) => sleep_until(at).await,
            None => pending().await,
        }
    }
}

impl Suspended {
    pub(super) fn new(
        running: Running,
        (wanted, remarked, (reached, rest)): (
            mpsc::UnboundedReceiver<Wish>,
            Remarked,
            (Reached, Rest),
        ),
        script: FollowedScript,
        request: &Request,
    ) -> Self {
        Self {
            running,
            wanted,
            remarked,
            reached,
            rest,
            script,
            way: request.way(),
            asks_elsewhere: !request.can_ask(),
            run: String::new(),
            asked_elsewhere: HashSet::new(),
            handed: Vec::new(),
        }
    }

    pub(super) fn run(&self) -> &str {
        &self.run
    }

    /// Nothing more will happen in it.
    pub(super) fn is_over(&self) -> bool {
        self.wanted.is_closed()
    }

    /// Waits for the end, or for what the host has to do before that.
    pub(super) async fn follow(mut self, request: &Request) -> (Option<Self>, Followed) {
        let mut progress = Progress::of(request);
        let cancel = self.running.cancel_handle();
        let mut is_cancelled = false;
        let mut carrying = Carrying::new(request);
        let mut patience = Patience::default();
        loop {
            patience.waits(!self.asked_elsewhere.is_empty() && carrying.is_idle());
            tokio::select! {
                event = self.running.next_event() => match event {
                    Some(event) => {
                        self.note(&event);
                        if progress.tells(&event) {
                            self.note_heard(request);
                        }
                        progress.tell(&event).await;
                    }
                    None => break,
                },
                Some(wish) = self.wanted.recv() => {
                    self.note_heard(request);
                    match self.way {
                        Way::Return => {
                            self.hand(wish).await;
                            if !self.handed.is_empty() {
                                return (Some(self), Followed::Wants);
                            }
                        }
                        Way::Request => carrying.carry(wish),
                    }
                }
                () = carrying.settled() => {}
                remark = self.remarked.next() => self.remarked.tell(request, remark),
                why = request.cancel.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    cancel.cancel(&why);
                }
                () = patience.ends() => return (Some(self), Followed::Waits),
            }
        }
        drop(carrying);
        self.remarked.tell_rest(request).await;
        let report = self.running.report().await;
        (None, Followed::Over(Box::new(report)))
    }

    /// Ends the run, as when its host is gone.
    pub(super) fn cancel_handle(&self) -> Cancel {
        self.running.cancel_handle()
    }

    /// The host hears something of the run before its end: whatever has reached the run may be
    /// in it.
    fn note_heard(&self, request: &Request) {
        request.session.hear(&self.reached.labels());
    }

    /// With the first come those that were wanted in the same moment.
    async fn hand(&mut self, first: Wish) {
        self.handed.push(first);
        let _ = timeout(LONG_MOMENT, self.gather()).await;
        while let Ok(Some(more)) = timeout(MOMENT, self.wanted.recv()).await {
            self.handed.push(more);
        }
        self.handed.iter_mut().for_each(Wish::leave);
        self.handed.retain(|wish| !wish.is_withdrawn());
    }

    /// All that is wanted until the run is at rest.
    async fn gather(&mut self) {
        loop {
            tokio::select! {
                biased;
                more = self.wanted.recv() => match more {
                    Some(more) => self.handed.push(more),
                    None => return,
                },
                () = self.rest.comes() => return,
            }
        }
    }

    fn note(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Started { run } => self.run = run.0.to_string(),
            RunEvent::Asked { call, .. } if self.asks_elsewhere => {
                self.asked_elsewhere.insert(*call);
            }
            RunEvent::Answered { call, .. } => {
                self.asked_elsewhere.remove(call);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn patience_ends_whatever_happens_while_somebody_else_is_asked() {
        let begun = Instant::now();
        let mut patience = Patience::default();
        patience.waits(true);
        // Each line that a server logs, for one.
        for _ in 0..3 {
            let ended = timeout(PATIENCE / 4, patience.ends()).await;
            assert!(ended.is_err());
            patience.waits(true);
        }
        patience.ends().await;
        assert_eq!(begun.elapsed().as_secs(), PATIENCE.as_secs());
        patience.waits(false);
        assert!(timeout(2 * PATIENCE, patience.ends()).await.is_err());
    }
}
