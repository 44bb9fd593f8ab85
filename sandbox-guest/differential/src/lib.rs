//! Compares the guest's realm, whose built-ins are partly replaced, with the unmodified engine's
//! realm. A script must observe the same in both.
//!
//! `tests/test262.rs` does this with the conformance suite, and `tests/programs.rs` with generated
//! programs. The command line runs as many generated programs as there is time for.

pub mod compare;
pub mod describe;
mod engine;
pub mod programs;
pub mod realm;
mod rng;
