//! The second JavaScript guest: QuickJS-NG behind the sandbox protocol. It
//! imports nothing; time, chance and every outcome come in as arguments.
//!
//! What it offers a script is what Boa's guest offers; what differs stands in
//! `docs/design/0022-a-second-engine.md`. What knows no engine is in `guest_common`.
//! Natively it is built for the tests of what needs no engine, and nothing else.

#![cfg_attr(not(target_arch = "wasm32"), allow(dead_code, unused_imports))]

#[cfg(target_arch = "wasm32")]
pub mod border;
mod call;
mod clock;
mod console;
mod failure;
mod forms;
mod globals;
mod guest;
mod heap;
mod inspect;
mod kept;
mod naming;
mod native;
mod place;
mod quiet;
mod raw;
mod run;
mod shape;
mod stubs;
mod timers;
mod to_json;
mod tokens;
mod tool_error;
mod web;

use guest::Guest;
