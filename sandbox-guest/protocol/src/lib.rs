//! The words host and guest exchange: what a guest is started with, what it
//! says when it stops to wait, and what it hears when it goes on.
//!
//! The protocol names no engine. Everything that crosses is bytes in the
//! encoding of [`codec`]; payloads inside it (arguments, results, values) are
//! JSON text. This crate does no I/O and knows nothing about tools or policy.

pub mod codec;
mod message;

pub use message::{
    CallOutcome, CallTicket, ConsoleLevel, ConsoleLine, Failure, GuestLimits, OpenCall, Outcome,
    Resume, ScriptError, ServerStubs, Start, Step, StepState, ToolStub,
};

/// Version of the protocol. Host and guest refuse each other when it differs.
pub const VERSION: u32 = 2;
