//! A sandbox broker for the Model Context Protocol. A script runs in a sandbox that imports
//! nothing. The broker decides, records and performs every tool call of the script, and returns the
//! outcome.
//!
//! Start at [`Broker::builder`].

pub mod approver;
mod bounded_command;
mod broker;
pub mod chain_file;
pub mod cli;
pub mod client_bridge;
mod command_source;
pub mod config;
mod deadline;
pub mod demo;
mod embeddings_file;
mod environment;
mod era_file;
mod extract;
mod host_record;
mod host_setup;
mod http_client;
pub mod journal_file;
mod listing_file;
pub mod lock_file;
mod login;
mod parallel;
pub mod private_file;
mod process_group;
mod program;
mod prover;
mod prune;
mod pruned_runs;
pub mod render;
mod resident;
mod resolve;
pub mod run_chain;
mod run_event;
pub mod run_index;
mod secret;
pub mod secrets;
pub mod serve;
mod server_url;
pub mod shared_file;
mod shell_words;
mod stated_result;
mod suspended_runs;
mod target_key;
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
    IdleFlag, InProcessTool, ReachedLabels, ResumeOptions, RunContext, RunHandle, Script,
    ServerState, ServerStatus, SuspendedFlag, ToolDiscovery, ToolFailure,
};
pub use extract::{ExtractionFuture, ExtractionRequest, Extractor};
pub use run_event::RunEvent;
