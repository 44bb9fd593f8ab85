//! The error of a run that was refused because no room was free in time.

use std::fmt;
use std::time::Duration;

use crate::units::{show_bytes, show_ms};

/// The error of a run that got no room in time, because too many runs were in progress or too much
/// memory was in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Busy {
    pub(super) scarce: BusyReason,
    pub(super) waited: Duration,
    /// The estimated time after which another attempt can succeed.
    pub retry_after: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BusyReason {
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
            BusyReason::Runs { runs } => {
                write!(f, "{runs} runs are in progress, which is the limit `runs`")?;
            }
            BusyReason::Memory { bytes } => {
                let bytes = show_bytes(bytes);
                write!(f, "all runs together use the {bytes} of `runs-memory`")?;
            }
        }
        match self.waited {
            Duration::ZERO => Ok(()),
            waited => {
                let ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
                write!(f, ", and no room became free within {}", show_ms(ms))
            }
        }
    }
}

impl std::error::Error for Busy {}
