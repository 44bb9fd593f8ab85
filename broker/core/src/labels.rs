//! The labels of data, and the labelling of tools: which labels their results have, whether they
//! write, and which arguments name a destination or a path.

mod field;
mod label;
mod labelling;

pub use field::{BadField, Field};
pub(crate) use field::{Leaf, leaves};
pub use label::{BadLabel, Label, Labels};
pub use labelling::{Labelling, Writes};
