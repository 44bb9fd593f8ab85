//! The questions of suspended runs on the page. Their answers are recorded in the files of the run
//! chains.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use airlock_sandbox::clock::Clock;

use super::PLACE;
use super::open_questions::{AnswerError, OpenQuestions, SuspendedAnswer};
use crate::approver::by_user;
use crate::private_file::StateDir;
use crate::run_chain::ResumeError;
use crate::secrets::Secrets;
use crate::suspended_runs::{AnswerRecorder, SuspendedRuns};

pub(super) struct SuspendedQuestions {
    state: StateDir,
    secrets: Secrets,
    runs: Arc<Mutex<SuspendedRuns>>,
    is_looking: Arc<AtomicBool>,
    clock: Clock,
}

impl SuspendedQuestions {
    pub(super) fn new(state: StateDir, secrets: Secrets) -> Self {
        Self {
            runs: Arc::new(Mutex::new(SuspendedRuns::new(state.clone()))),
            state,
            secrets,
            is_looking: Arc::default(),
            clock: Clock::start(),
        }
    }

    /// Looks for questions in the background. The page gets them as news.
    pub(super) fn look(&self, questions: &OpenQuestions) {
        if self.is_looking.swap(true, Ordering::AcqRel) {
            return;
        }
        let (runs, is_looking) = (Arc::clone(&self.runs), Arc::clone(&self.is_looking));
        let questions = questions.clone();
        tokio::task::spawn_blocking(move || {
            let suspended = runs
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .questions();
            questions.set_suspended(suspended);
            is_looking.store(false, Ordering::Release);
        });
    }

    /// Records an answer of the page, also if the request of the page is dropped meanwhile.
    pub(super) async fn record(
        &self,
        questions: &OpenQuestions,
        answer: SuspendedAnswer,
    ) -> Result<(), AnswerError> {
        let (state, secrets) = (self.state.clone(), self.secrets.clone());
        let now_ms = self.clock.now_ms();
        let questions = questions.clone();
        let write = move || {
            let recorder = AnswerRecorder {
                state: &state,
                secrets: &secrets,
                by: by_user(PLACE),
                now_ms,
            };
            let answers = [(answer.about.clone(), answer.answer)];
            let recorded = match recorder.record(&answer.about.run, &answers) {
                Ok(0) => Err(AnswerError::Over),
                Ok(_) => Ok(()),
                // The person can correct the result.
                Err(ResumeError::UnusableResult(bad)) => Err(AnswerError::Unclear(bad.to_string())),
                Err(error) => Err(AnswerError::NotRecorded(error.to_string())),
            };
            questions.recorded(answer.id, recorded.is_ok());
            recorded
        };
        let written = tokio::task::spawn_blocking(write).await;
        written.unwrap_or_else(|error| Err(AnswerError::NotRecorded(error.to_string())))
    }
}
