//! The shell around the core: everything that touches the world.

pub mod demo;
pub mod upstream;
