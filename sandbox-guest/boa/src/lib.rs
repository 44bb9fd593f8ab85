//! The JavaScript guest: Boa, which uses the sandbox protocol. It imports nothing; time, randomness
//! and all outcomes are arguments.
//!
//! As Wasm, it exports the few functions of [`abi`]. Natively, for debugging, [`Guest`] is used
//! directly.

mod array_from;
mod builtin;
mod call;
mod clock;
mod collections;
mod console;
#[cfg(test)]
mod corrected;
mod depth;
#[cfg(test)]
mod differential;
mod failure;
mod forms;
mod from_json;
mod gc_budget;
mod globals;
mod guest;
#[cfg(any(target_arch = "wasm32", test))]
mod heap;
mod hooks;
mod inspect;
mod intrinsics;
mod jobs;
mod module_value;
mod numbers;
mod place;
mod pure_reads;
mod regex;
mod rope;
mod run;
mod search;
mod sort;
mod splice;
mod string_builder;
mod stringify;
mod strings;
mod stubs;
mod substring;
mod template;
mod timers;
mod to_json;
mod tool_error;
mod web;

#[cfg(target_arch = "wasm32")]
pub mod abi;

pub use guest::Guest;
