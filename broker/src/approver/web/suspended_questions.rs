//! The questions of suspended runs on the page. Their answers are recorded in the files of the run
//! chains.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use airlock_sandbox::clock::Clock;

use super::open_questions::{AnswerError, OpenQuestions, SuspendedAnswer};
use crate::private_file::StateDir;
use crate::suspended_runs::{SuspendedRuns, store_answers};

/// Who answered, as the file of the chain names them.
const BY: &str = "web page";

pub(super) struct SuspendedQuestions {
    state: StateDir,
    runs: Arc<Mutex<SuspendedRuns>>,
    is_looking: Arc<AtomicBool>,
    clock: Clock,
}

impl SuspendedQuestions {
    pub(super) fn new(state: StateDir) -> Self {
        Self {
            runs: Arc::new(Mutex::new(SuspendedRuns::new(state.clone()))),
            state,
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
        let (state, now_ms) = (self.state.clone(), self.clock.now_ms());
        let questions = questions.clone();
        let write = move || {
            let answers = [(answer.about.clone(), answer.answer)];
            let stored = store_answers(&state, &answer.about.run, &answers, BY, now_ms);
            let recorded = match stored {
                Ok(0) => Err(AnswerError::Over),
                Ok(_) => Ok(()),
                Err(error) => Err(AnswerError::NotRecorded(error.to_string())),
            };
            questions.recorded(answer.id, recorded.is_ok());
            recorded
        };
        let written = tokio::task::spawn_blocking(write).await;
        written.unwrap_or_else(|error| Err(AnswerError::NotRecorded(error.to_string())))
    }
}
