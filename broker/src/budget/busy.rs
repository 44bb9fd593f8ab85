//! The refusal of a run for which there was no room in time.

use std::fmt;
use std::time::Duration;

use crate::config::units::{show_bytes, show_ms};

/// No room came in time: too many runs, or too much memory in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Busy {
    pub(super) scarce: Scarce,
    pub(super) waited: Duration,
    /// When the run has a chance again, as far as can be guessed.
    pub retry_after: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scarce {
    Runs { runs: usize },
    Memory { bytes: u64 },
}

impl Busy {
    #[must_use]
    pub fn retry_after_ms(&self) -> u64 {
        u64::try_from(self.retry_after.as_millis()).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scarce {
            Scarce::Runs { runs } => {
                write!(f, "{runs} runs are going on, which is the limit `runs`")?;
            }
            Scarce::Memory { bytes } => {
                let bytes = show_bytes(bytes);
                write!(f, "all runs together use the {bytes} of `runs-memory`")?;
            }
        }
        match self.waited {
            Duration::ZERO => Ok(()),
            waited => {
                let ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
                write!(f, ", and there was no room within {}", show_ms(ms))
            }
        }
    }
}

impl std::error::Error for Busy {}
