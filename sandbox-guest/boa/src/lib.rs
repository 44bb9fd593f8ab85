//! The JavaScript guest: Boa behind the sandbox protocol. It imports nothing;
//! time, chance and every outcome come in as arguments.
//!
//! As Wasm it exports the few functions of [`border`]; natively, for debugging,
//! [`Guest`] is used directly.

#[cfg(test)]
mod alike;
mod builtin;
mod call;
mod changed;
mod clock;
mod collections;
mod console;
#[cfg(test)]
mod corrected;
mod counted;
mod failure;
mod forms;
mod from_json;
mod globals;
mod growing;
mod guest;
#[cfg(any(target_arch = "wasm32", test))]
mod heap;
mod hooks;
mod inspect;
mod jobs;
mod kept;
mod large;
mod module_value;
mod moving;
mod numbers;
mod parts;
mod place;
mod quiet;
mod regex;
mod room;
mod run;
mod search;
mod sort;
mod stringify;
mod strings;
mod stubs;
mod template;
mod timers;
mod to_json;
mod tool_error;
mod web;

#[cfg(target_arch = "wasm32")]
pub mod border;

pub use guest::Guest;
