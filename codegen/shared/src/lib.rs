//! Code that the host and the checker guest share: the shapes of tools, the findings about scripts,
//! names and texts, and the messages that the two exchange.
//!
//! This crate is compiled twice, into the host program and into the guest. It has no parser of
//! scripts, no schemas, and no I/O.

pub mod closest;
pub mod facts;
pub mod finding;
pub mod identifiers;
pub mod lines;
pub mod message;
pub mod shape;
pub mod text;
pub mod uses;
