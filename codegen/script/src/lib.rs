//! Reads scripts: the check before a run, the uses of globals, and the instrumentation of a failed
//! script. Only this crate has a JavaScript parser. The broker does not link it: it runs as a guest
//! in the sandbox, where a stack overflow is a trap and memory and time are limited. [`Checker`] is
//! that guest's state machine: frames in, frames out, no I/O.

mod check;
mod checker;
mod instrument;
mod uses;

pub use checker::Checker;

pub(crate) use codegen_shared::{closest, identifiers as names, shape, text};
