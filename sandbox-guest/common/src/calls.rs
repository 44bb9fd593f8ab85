//! The calls of a script: those not yet sent to the host, and those that wait for their outcome.

use std::collections::BTreeMap;

use sandbox_protocol::{CallTicket, Failure, OpenCall};

/// The calls of a run; `W` is the data that an engine stores for a waiting call.
#[derive(Debug)]
pub struct Calls<W> {
    /// Calls made since the last step.
    pub made: Vec<OpenCall>,
    pub waiting: BTreeMap<CallTicket, W>,
    next: u32,
}

impl<W> Default for Calls<W> {
    fn default() -> Self {
        Self {
            made: Vec::new(),
            waiting: BTreeMap::new(),
            next: 0,
        }
    }
}

impl<W> Calls<W> {
    pub fn ticket(&mut self) -> CallTicket {
        let ticket = CallTicket(self.next);
        self.next += 1;
        ticket
    }
}

/// Returns the failure for arguments that exceed the size limit.
pub fn args_too_large(tool: String, bytes_max: u32) -> Failure {
    let message = format!("the arguments are larger than {bytes_max} bytes");
    failure("limit-payload", tool, message)
}

/// Returns the failure for arguments that exceed the depth limit. `why` names the value.
pub fn args_too_deep(tool: String, why: String) -> Failure {
    failure("limit-payload", tool, why)
}

/// Returns the failure for an invalid result from the host.
pub fn result_invalid(why: &str) -> Failure {
    let message = format!("the result is invalid JSON: {why}");
    failure("result-invalid", String::new(), message)
}

fn failure(code: &str, tool: String, message: String) -> Failure {
    Failure {
        code: code.to_owned(),
        tool,
        message,
        retryable: false,
        content: Vec::new(),
        structured_content: Vec::new(),
    }
}
