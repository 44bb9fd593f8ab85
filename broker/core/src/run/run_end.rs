//! The reason why a run ends: the script's result, or what stopped it.

use sandbox_protocol::ScriptError;
use serde_json::value::RawValue;

use crate::json::{self, Bounds};
use crate::limits::{Limit, Limits};
use crate::report::ReportedError;

#[derive(Debug)]
pub(super) enum RunEnd {
    /// The script's value; `None` for `undefined`.
    Returned(Option<Box<RawValue>>),
    Threw(Box<ScriptError>),
    /// The check before the run found a definite error in the script.
    Rejected(Box<ReportedError>),
    Deadlock,
    Limit(Limit),
    TooManyDenials,
    /// The run's input or limits are invalid.
    Unfit {
        why: String,
    },
    EngineFault {
        why: String,
    },
    Cancelled {
        why: String,
        /// Whether outcomes of calls in flight can still arrive.
        may_wait: bool,
    },
    /// The run waits for people, without a process.
    Suspended,
    /// The script does something else than in the recording that is replayed.
    Diverged {
        why: String,
    },
    Busy {
        why: String,
        retry_after_ms: u64,
    },
    JournalUnwritable {
        why: String,
    },
}

impl RunEnd {
    /// Returns the ending for the value that the guest returned, which must be JSON within bounds.
    pub(super) fn of_value(value: Vec<u8>, limits: &Limits) -> Self {
        if value.is_empty() {
            return Self::Returned(None);
        }
        let bounds = Bounds {
            bytes_max: limits.value_bytes_max,
            depth_max: limits.json_depth_max,
            nodes_max: limits.json_nodes_max,
        };
        if json::measure(&value, bounds).is_err() {
            return Self::Limit(Limit::Payload);
        }
        match String::from_utf8(value)
            .ok()
            .and_then(|text| RawValue::from_string(text).ok())
        {
            Some(value) => Self::Returned(Some(value)),
            None => Self::EngineFault {
                why: "the value that the guest returned is not JSON".into(),
            },
        }
    }
}
