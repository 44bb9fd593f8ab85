//! Everything that goes to stderr: console lines, problems, and one line of
//! progress that never stays behind.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use airlock_core::problem::Problem;

use crate::config::Environment;
use crate::render::{self, Style};

/// Cheap to clone; all clones share the progress line.
#[derive(Debug, Clone)]
pub(super) struct Screen {
    pub(super) style: Style,
    /// Whether somebody looks: progress is for them only.
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

    /// A whole text with its line ends; shown whatever happens.
    pub(super) fn show(&self, text: &str) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let clear = if progress.take().is_some() {
            "\r\u{1b}[K"
        } else {
            ""
        };
        // Nobody is left to be told that stderr is gone.
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

    /// A remark that `--quiet` takes away.
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
