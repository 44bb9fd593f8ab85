//! Tracks where data may flow. The label configuration defines what each tool reads and writes, and
//! the tracker follows the labels of one run.
//!
//! Nothing here allows or denies a call: this module computes facts, and rules decide with them.

mod destination;
mod known_destinations;
mod label_config;
mod literals;
mod lookalike;
mod paths;
mod shares;
mod texts;
mod tracker;

pub use destination::{can_be_address, can_be_domain, domain_of, web_address_of};
pub use known_destinations::{BadDestination, KnownDestinations};
pub use label_config::{LabelConfig, LabelMisfit, LabelRule, UnmatchedLabelRule};
pub(crate) use paths::named;
pub use paths::{NamedPath, ResolvedPath, Roots};
pub(crate) use tracker::FlowTracker;
pub use tracker::{
    Declassification, FlowSpec, SessionFlow, StartLabels, facts_without_run, large_texts,
};
