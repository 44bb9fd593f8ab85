//! Where data may go: labels say what a run has read, the labelling says which
//! tools read and write what, and the watch follows one run.

pub mod label;

pub use label::{BadLabel, Label, Labels};
