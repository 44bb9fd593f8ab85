//! A sandbox broker for the Model Context Protocol. A script runs in a sandbox that imports
//! nothing. The broker decides, records and performs every tool call of the script, and returns the
//! outcome.
//!
//! Start at [`Broker::builder`].

pub mod approver;
mod broker;
pub mod cli;
pub mod client_bridge;
pub mod config;
mod deadline;
pub mod demo;
mod embeddings_file;
mod era_file;
mod extract;
mod host_record;
pub mod journal_file;
mod listing_file;
pub mod lock_file;
pub mod private_file;
mod process_group;
mod program;
mod prover;
pub mod render;
mod resident;
mod resolve;
mod run_event;
pub mod run_index;
pub mod secrets;
pub mod serve;
pub mod shared_file;
pub mod telemetry;
#[cfg(test)]
mod tempdir;
pub mod tool_files;
mod tsc;
pub mod upstream;

pub use airlock_core as core;
pub use airlock_sandbox as sandbox;
pub use airlock_sandbox::budget;
pub use approver::Approver;
pub use broker::{
    Broker, BuildError, Builder, Cancel, CheckPolicy, CheckReport, DescribedTools, EntropyError,
    IdleFlag, InProcessTool, ReachedLabels, RunContext, RunHandle, Script, ServerState,
    ServerStatus, ToolDiscovery, ToolFailure,
};
pub use extract::{ExtractionFuture, ExtractionRequest, Extractor};
pub use run_event::RunEvent;
