//! The messages between host and guest: the start, the step that a guest sends when it stops, and
//! the outcomes with which it continues.
//!
//! The protocol does not depend on an engine. All data use the encoding of [`codec`]; payloads
//! inside (arguments, results, values) are JSON text. This crate does no I/O and knows nothing
//! about tools or policy.

pub mod codec;
mod message;

pub use message::{
    CallOutcome, CallTicket, ConsoleLevel, ConsoleLine, Failure, GuestLimits, OpenCall, Outcome,
    Resume, ScriptError, ServerStubs, Start, Step, StepState, ToolStub,
};

/// Version of the protocol. Host and guest refuse messages of any other version.
pub const VERSION: u32 = 3;
