//! The guest's realm, whose built-ins are partly our own, beside the engine's as it
//! comes. What a script can see must be the same in both.
//!
//! `tests/test262.rs` asks that of the conformance suite's tests, `tests/programs.rs` of
//! programs that are made up here, and the command line of as many of those as there is
//! time for.

mod chance;
pub mod compare;
mod engine;
pub mod programs;
pub mod realm;
pub mod told;
