//! All output to stderr: console lines, problems, and one temporary line of progress.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use airlock_core::problem::Problem;

use crate::config::Environment;
use crate::render::{self, Style};

/// The output to stderr. Cheap to clone; all clones share the progress line.
#[derive(Debug, Clone)]
pub(super) struct Screen {
    pub(super) style: Style,
    /// Whether stderr is a terminal. Progress is shown only there.
    is_terminal: bool,
    quiet: bool,
    progress: Arc<Mutex<Option<String>>>,
}

impl Screen {
    pub(super) fn of_process(environment: &Environment, quiet: bool) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let plain =
            environment.text("NO_COLOR").is_some() || environment.text("TERM") == Some("dumb");
        let style = Style {
            colour: is_terminal && !plain,
        };
        Self {
            style,
            is_terminal,
            quiet,
            progress: Arc::default(),
        }
    }

    /// Shows a complete text with its line endings, even with `--quiet`.
    pub(super) fn show(&self, text: &str) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let clear = if progress.take().is_some() {
            "\r\u{1b}[K"
        } else {
            ""
        };
        // If stderr is closed, there is nowhere to report the error.
        let _ = std::io::stderr()
            .lock()
            .write_all(format!("{clear}{text}").as_bytes());
    }

    pub(super) fn problem(&self, problem: &Problem) {
        self.show(&render::problem(problem, self.style));
    }

    pub(super) fn warning(&self, problem: &Problem) {
        self.remark(&render::warning(problem, self.style));
    }

    /// Shows a note that `--quiet` suppresses.
    pub(super) fn remark(&self, text: &str) {
        if !self.quiet {
            self.show(text);
        }
    }

    /// Replaces the progress line.
    pub(super) fn progress(&self, text: &str) {
        if !self.is_terminal || self.quiet {
            return;
        }
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if progress.as_deref() != Some(text) {
            let _ = std::io::stderr()
                .lock()
                .write_all(format!("\r\u{1b}[K{text}").as_bytes());
            *progress = Some(text.to_owned());
        }
    }

    pub(super) fn clear_progress(&self) {
        self.show("");
    }
}
