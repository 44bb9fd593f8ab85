//! Where data may go: labels say what a run has read, the labelling says which
//! tools read and write what, and the watch follows one run.
//!
//! Nothing here allows or denies: it computes facts, and rules judge by them.

mod destination;
pub mod field;
mod known;
pub mod label;
mod labelling;
mod literals;
mod lookalike;
mod paths;
mod sayings;
mod shares;
mod texts;
mod watch;

pub use field::{BadField, Field};
pub use known::{BadDestination, Known};
pub use label::{BadLabel, Label, Labels};
pub use labelling::Labelling;
pub(crate) use paths::named;
pub use paths::{NamedPath, ResolvedPath, Roots};
pub use sayings::{Saying, Sayings, Unfitting};
pub use watch::{Carried, FlowSpec, large_texts};
pub(crate) use watch::{Watch, imagined};
