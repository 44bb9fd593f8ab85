//! What the host and the checker guest have in common: the shapes of tools, the findings about
//! scripts, names and texts, and the messages that the two exchange.
//!
//! Everything here is compiled twice, into the host program and into the guest. There is no parser
//! of scripts and no schema here, and no I/O.

pub mod closest;
pub mod facts;
pub mod finding;
pub mod identifiers;
pub mod lines;
pub mod message;
pub mod shape;
pub mod text;
pub mod uses;
