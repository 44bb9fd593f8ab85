//! Shows progress of slow work: one line that is replaced and finally removed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use airlock_core::journal::Verdict;
use tokio::task::JoinHandle;

use super::screen::Screen;
use crate::render::escape;
use crate::run_event::RunEvent;

/// Time before progress is shown.
const PATIENCE: Duration = Duration::from_millis(1000);
const TOOL_CHARS_SHOWN: usize = 60;

/// Shows progress from a task until this value is dropped.
#[derive(Debug)]
pub(super) struct ProgressLine {
    state: Arc<Mutex<State>>,
    screen: Screen,
    ticker: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct State {
    doing: String,
    calls_open: usize,
    latest: String,
    /// Number of open questions to a person. While there are any, the line is hidden.
    asking: usize,
}

impl ProgressLine {
    /// Starts the line. Must be called inside the runtime.
    pub(super) fn start(screen: &Screen, doing: impl Into<String>) -> Self {
        let state = Arc::new(Mutex::new(State {
            doing: doing.into(),
            ..State::default()
        }));
        let (shown, ticking) = (screen.clone(), Arc::clone(&state));
        let ticker = tokio::spawn(async move {
            for seconds in 1_u64.. {
                tokio::time::sleep(PATIENCE).await;
                if let Some(line) = lock(&ticking).line(seconds) {
                    shown.progress(&line);
                }
            }
        });
        Self {
            state,
            screen: screen.clone(),
            ticker,
        }
    }

    pub(super) fn hear(&self, event: &RunEvent) {
        let mut state = lock(&self.state);
        match event {
            RunEvent::CallDecided {
                tool,
                decision: Verdict::Allow,
                ..
            } => {
                state.calls_open += 1;
                state.latest = tool.to_string();
            }
            RunEvent::CallSettled { .. } => state.calls_open = state.calls_open.saturating_sub(1),
            RunEvent::Asked { .. } | RunEvent::Inquired { .. } => {
                state.asking += 1;
                self.screen.clear_progress();
            }
            RunEvent::Answered { .. } | RunEvent::InquiryEnded { .. } => {
                state.asking = state.asking.saturating_sub(1)
            }
            _ => {}
        }
    }
}

impl State {
    fn line(&self, seconds: u64) -> Option<String> {
        if self.asking > 0 {
            return None;
        }
        let latest = escape::brief(&self.latest, TOOL_CHARS_SHOWN);
        Some(match self.calls_open {
            0 => format!("{} … {seconds} s", self.doing),
            1 => format!("{} … {seconds} s, 1 call open: {latest}", self.doing),
            open => format!(
                "{} … {seconds} s, {open} calls open, the latest: {latest}",
                self.doing
            ),
        })
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.ticker.abort();
        self.screen.clear_progress();
    }
}

fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_line_shows_open_calls_and_hides_during_question() {
        let mut state = State {
            doing: "running".into(),
            ..State::default()
        };
        assert_eq!(state.line(2).as_deref(), Some("running … 2 s"));
        (state.calls_open, state.latest) = (1, "fs.read".into());
        assert_eq!(
            state.line(3).as_deref(),
            Some("running … 3 s, 1 call open: fs.read")
        );
        state.asking = 1;
        assert_eq!(state.line(4), None);
    }
}
