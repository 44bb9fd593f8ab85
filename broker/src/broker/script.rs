//! A script and the options with which it runs.

use std::time::Duration;

use airlock_core::flow::SessionFlow;
use airlock_core::journal::StartedCommand;
use airlock_core::limits::Limits;
use airlock_core::resume::ResumeSpec;
use clap::ValueEnum;
use serde_json::Value;

/// A script with its input and the options of its run.
#[derive(Debug, Clone)]
pub struct Script {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) input: Vec<u8>,
    pub(crate) seed: Option<u64>,
    pub(crate) limits: Option<Limits>,
    pub(crate) carried: Option<SessionFlow>,
    pub(crate) trace_parent: Option<String>,
    pub(crate) check: CheckPolicy,
    pub(crate) resume: Option<Box<ResumeSpec>>,
    pub(crate) suspend_after_ms: Option<u64>,
    pub(crate) command: Option<StartedCommand>,
}

/// How a definite error that the check finds affects a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum CheckPolicy {
    /// Do not start a script that has definite errors
    #[default]
    Stop,
    /// Report the errors, and run the script
    Warn,
}

impl Script {
    /// Creates a script from its text, in any form that scripts can have.
    pub fn body(text: impl Into<String>) -> Self {
        Self {
            name: "script.js".into(),
            text: text.into(),
            input: Vec::new(),
            seed: None,
            limits: None,
            carried: None,
            trace_parent: None,
            check: CheckPolicy::default(),
            resume: None,
            suspend_after_ms: None,
            command: None,
        }
    }

    /// Sets the name that positions in errors contain, for example `triage.js`. A script whose name
    /// ends in `.ts` is always TypeScript.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..self
        }
    }

    /// Sets the `traceparent` of the requester. The run's trace continues that trace.
    #[must_use]
    pub fn traced_by(self, parent: impl Into<String>) -> Self {
        Self {
            trace_parent: Some(parent.into()),
            ..self
        }
    }

    /// Sets the script's global `input`.
    #[must_use]
    pub fn with_input(self, input: &Value) -> Self {
        Self {
            input: input.to_string().into_bytes(),
            ..self
        }
    }

    /// Sets the seed of everything random that the script sees. Without it the seed is random.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self {
            seed: Some(seed),
            ..self
        }
    }

    /// Sets the labels and counts from earlier runs of the same session. The `flow` of the report
    /// also contains those of this run.
    #[must_use]
    pub fn carrying(self, carried: SessionFlow) -> Self {
        Self {
            carried: Some(carried),
            ..self
        }
    }

    /// Sets how a definite error that the check finds affects the run. By default, the error stops
    /// the run.
    #[must_use]
    pub fn with_check(self, check: CheckPolicy) -> Self {
        Self { check, ..self }
    }

    /// Lets the run resume an earlier one. The seed is that of the earlier run.
    #[must_use]
    pub fn resuming(self, resume: ResumeSpec) -> Self {
        Self {
            resume: Some(Box::new(resume)),
            ..self
        }
    }

    /// Sets how long the run waits for people only, before it is suspended. By default, it keeps
    /// waiting.
    #[must_use]
    pub fn suspended_after(self, wait: Duration) -> Self {
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        Self {
            suspend_after_ms: Some(wait_ms),
            ..self
        }
    }

    /// Sets the command that starts the run, which the journal records.
    #[must_use]
    pub(crate) fn started_by(self, command: StartedCommand) -> Self {
        Self {
            command: Some(command),
            ..self
        }
    }

    /// Sets limits for this run that replace the broker's.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self {
            limits: Some(limits),
            ..self
        }
    }
}
