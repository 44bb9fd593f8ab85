//! The calls that a script has made: those that the host has not heard of yet, and those that
//! wait for their outcome.

use std::collections::BTreeMap;

use sandbox_protocol::{CallTicket, Failure, OpenCall};

/// `W` is what an engine keeps of a call that waits.
#[derive(Debug)]
pub struct Calls<W> {
    /// Made since the last step.
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

/// The arguments of a call are larger than they may be.
pub fn args_too_large(tool: String, bytes_max: u32) -> Failure {
    let message = format!("the arguments are larger than {bytes_max} bytes");
    failure("limit-payload", tool, message)
}

/// What the host handed over as a result is not usable.
pub fn result_invalid(why: &str) -> Failure {
    let message = format!("the result is not usable JSON: {why}");
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
