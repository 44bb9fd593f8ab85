//! A sandbox broker for the Model Context Protocol: a script runs in a cage
//! that imports nothing, and every tool call it makes is decided, recorded,
//! performed and handed back by the broker.
//!
//! Start at [`Broker::builder`].

pub mod approver;
mod broker;
pub mod budget;
pub mod carrier;
pub mod cli;
mod clock;
pub mod config;
pub mod demo;
mod drive;
mod embeddings_file;
mod era_file;
mod extract;
pub mod journal_file;
mod listing_file;
pub mod lock_file;
mod process_group;
mod program;
mod prover;
pub mod render;
mod resident;
mod resolve;
pub mod sandbox;
#[cfg(test)]
mod scratch;
pub mod serve;
pub mod shared_file;
pub mod telemetry;
pub mod tool_files;
mod tsc;
pub mod upstream;

pub use airlock_core as core;
pub use approver::Approver;
pub use broker::{
    Broker, BuildError, Builder, Cancel, Check, CheckReport, Described, InProcessTool, Librarian,
    NoChance, Reached, Rest, RunEvent, Running, Script, Seat, ServerState, ServerStatus,
    ToolFailure,
};
pub use extract::{Extracting, Extraction, Extractor};
