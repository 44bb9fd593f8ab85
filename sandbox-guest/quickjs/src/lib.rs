//! The second JavaScript guest: QuickJS-NG, which uses the sandbox protocol. It imports nothing;
//! time, randomness and all outcomes are arguments.
//!
//! It offers scripts the same as the Boa guest; `docs/design/0022-a-second-engine.md` lists the
//! differences. Engine-independent code is in `guest_common`. The native build is only for tests of
//! code that needs no engine.

#![cfg_attr(not(target_arch = "wasm32"), allow(dead_code, unused_imports))]

#[cfg(target_arch = "wasm32")]
pub mod abi;
mod call;
mod clock;
mod console;
mod failure;
mod forms;
mod globals;
mod guest;
mod heap;
mod inspect;
mod intrinsics;
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
