//! The shell around the core: everything that touches the world.

pub mod approver;
pub mod clock;
pub mod config;
pub mod demo;
pub mod journal_file;
pub mod render;
pub mod sandbox;
#[cfg(test)]
mod scratch;
pub mod upstream;
