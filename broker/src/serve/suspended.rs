//! A run as the host follows it: its events on their way to the host, its
//! questions, and its waiting for whoever answers them.

use std::collections::HashMap;
use std::future::{Future, pending};
use std::pin::Pin;
use std::time::Duration;

use airlock_core::decide::{Answer, Question};
use airlock_core::id::CallId;
use airlock_core::report::Report;
use tokio::sync::{mpsc, oneshot};

use super::asking;
use super::progress::Progress;
use super::request::Request;
use crate::approver::{Approver, Asking};
use crate::broker::{Cancel, RunEvent, Running};

/// How long a request waits for somebody whom the host does not carry the question
/// to; hosts give up on requests that take much longer.
const PATIENCE: Duration = Duration::from_secs(40);

/// A question with the way back for its answer.
#[derive(Debug)]
pub(super) struct Put {
    pub(super) question: Question,
    pub(super) answer: oneshot::Sender<Answer>,
}

/// Carries questions from the thread of a run to whoever follows it.
#[derive(Debug)]
pub(super) struct ByHost(pub(super) mpsc::UnboundedSender<Put>);

impl Approver for ByHost {
    fn ask(&self, question: Question) -> Asking<'_> {
        let (answer, answered) = oneshot::channel();
        let put = self.0.send(Put { question, answer });
        Box::pin(async move {
            match put {
                Ok(()) => answered.await.unwrap_or(Answer::Unanswered),
                Err(_) => Answer::Unanswered,
            }
        })
    }
}

/// How the questions of a run reach a human.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// A request of ours to the host, in the older era.
    Elicit,
    /// The result says that input is required, in the newer era.
    Return,
    /// The host cannot carry them; the broker's own approver is asked.
    Elsewhere,
}

/// A run that is going on, whether or not a request of the host waits for it.
#[derive(Debug)]
pub(super) struct Suspended {
    running: Running,
    questions: mpsc::UnboundedReceiver<Put>,
    pub(super) script: FollowedScript,
    way: Way,
    run: String,
    asked_elsewhere: HashMap<CallId, ()>,
    /// Questions that the host has in hand.
    pub(super) put: Vec<(String, Put)>,
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
    /// The questions in [`Suspended::put`] are the host's to answer.
    Asks,
    /// Somebody else is being asked, and it takes long.
    Waits,
}

type Open<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

impl Suspended {
    pub(super) fn new(
        running: Running,
        questions: mpsc::UnboundedReceiver<Put>,
        script: FollowedScript,
        way: Way,
    ) -> Self {
        Self {
            running,
            questions,
            script,
            way,
            run: String::new(),
            asked_elsewhere: HashMap::new(),
            put: Vec::new(),
        }
    }

    pub(super) fn run(&self) -> &str {
        &self.run
    }

    /// Nothing more will happen in it.
    pub(super) fn is_over(&self) -> bool {
        self.questions.is_closed()
    }

    /// Waits for the end, or for what the host has to do before that.
    pub(super) async fn follow(mut self, request: &Request) -> (Option<Self>, Followed) {
        let mut progress = Progress::of(request);
        let cancel = self.running.cancel_handle();
        let mut is_cancelled = false;
        let mut eliciting: Option<Open<'_>> = None;
        loop {
            let patience = async {
                if self.asked_elsewhere.is_empty() {
                    pending::<()>().await;
                }
                tokio::time::sleep(PATIENCE).await;
            };
            tokio::select! {
                event = self.running.next_event() => match event {
                    Some(event) => {
                        self.note(&event);
                        progress.tell(&event).await;
                    }
                    None => break,
                },
                Some(put) = self.questions.recv(), if eliciting.is_none() => match self.way {
                    Way::Return => {
                        self.take(put);
                        return (Some(self), Followed::Asks);
                    }
                    Way::Elicit | Way::Elsewhere => {
                        eliciting = Some(Box::pin(asking::elicit(request, put)));
                    }
                },
                () = settled(&mut eliciting) => eliciting = None,
                why = request.cancel.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    cancel.cancel(&why);
                }
                () = patience => return (Some(self), Followed::Waits),
            }
        }
        drop(eliciting);
        let report = self.running.report().await;
        (None, Followed::Over(Box::new(report)))
    }

    /// Ends the run, as when its host is gone.
    pub(super) fn cancel_handle(&self) -> Cancel {
        self.running.cancel_handle()
    }

    fn take(&mut self, first: Put) {
        let mut put = vec![first];
        while let Ok(more) = self.questions.try_recv() {
            put.push(more);
        }
        let keyed = |put: Put| (format!("call-{}", put.question.call.0), put);
        self.put.extend(put.into_iter().map(keyed));
    }

    fn note(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Started { run } => self.run = run.0.to_string(),
            RunEvent::Asked { call, .. } if self.way == Way::Elsewhere => {
                self.asked_elsewhere.insert(*call, ());
            }
            RunEvent::Answered { call, .. } => {
                self.asked_elsewhere.remove(call);
            }
            _ => {}
        }
    }
}

async fn settled(open: &mut Option<Open<'_>>) {
    match open {
        Some(open) => open.await,
        None => pending().await,
    }
}
