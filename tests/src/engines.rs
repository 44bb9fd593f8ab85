//! Made-up scripts in the cages of both engines, and whether they show the same: value,
//! error, console, and calls with their arguments and order.
//!
//! `cargo xtask engines --minutes N` goes through as many as there is time for; the test
//! `engines` through some, and through those that once differed.

mod cage;
#[path = "../../sandbox-guest/alike/src/chance.rs"]
mod chance;
mod compare;
mod known;
mod making;
#[path = "../../sandbox-guest/alike/src/programs.rs"]
pub mod programs;
mod shorten;
mod tools;

pub use cage::{Cage, Shown};
pub use compare::{Compared, Difference, Pair};
pub use making::Made;
