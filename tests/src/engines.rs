//! Runs generated scripts in the sandboxes of both engines and compares their output: value, error,
//! console, and calls with their arguments and order.
//!
//! `cargo xtask engines --minutes N` compares as many scripts as fit into the time. The test
//! `engines` compares some generated scripts, and scripts for which the engines once differed.

mod compare;
mod generate;
mod known;
#[path = "../../sandbox-guest/differential/src/programs.rs"]
pub mod programs;
#[path = "../../sandbox-guest/differential/src/rng.rs"]
mod rng;
mod runner;
mod shorten;
mod tools;

pub use compare::{Comparison, Difference, Pair};
pub use generate::GeneratedScript;
pub use runner::{EngineRunner, ScriptOutput};
