//! What a host wants run.

use airlock_core::flow::Carried;
use airlock_core::limits::Limits;
use serde_json::Value;

use super::Check;

/// One script with everything that it is started with.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) input: Vec<u8>,
    pub(crate) seed: Option<u64>,
    pub(crate) limits: Option<Limits>,
    pub(crate) carried: Option<Carried>,
    pub(crate) trace_parent: Option<String>,
    pub(crate) check: Check,
}

impl Script {
    /// A script from its text, in any of the forms that scripts may have.
    pub fn body(text: impl Into<String>) -> Self {
        Self {
            name: "script.js".into(),
            text: text.into(),
            input: Vec::new(),
            seed: None,
            limits: None,
            carried: None,
            trace_parent: None,
            check: Check::default(),
        }
    }

    /// The name that positions in errors carry, such as `triage.js`. One that ends in `.ts` is
    /// always TypeScript.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..self
        }
    }

    /// The `traceparent` of whoever wants the run: its trace goes on in ours.
    #[must_use]
    pub fn traced_by(self, parent: impl Into<String>) -> Self {
        Self {
            trace_parent: Some(parent.into()),
            ..self
        }
    }

    /// The script's global `input`.
    #[must_use]
    pub fn with_input(self, input: &Value) -> Self {
        Self {
            input: input.to_string().into_bytes(),
            ..self
        }
    }

    /// Everything random that the script sees follows from this; chosen by chance when absent.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self {
            seed: Some(seed),
            ..self
        }
    }

    /// What the runs before this one, in the same session, have read and sent. The report's
    /// `flow` says what this one adds.
    #[must_use]
    pub fn carrying(self, carried: Carried) -> Self {
        Self {
            carried: Some(carried),
            ..self
        }
    }

    /// What the check before the run may do; it stops what is certainly wrong when nothing is said.
    #[must_use]
    pub fn with_check(self, check: Check) -> Self {
        Self { check, ..self }
    }

    /// Other limits than the broker's, for this run alone.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self {
            limits: Some(limits),
            ..self
        }
    }
}
