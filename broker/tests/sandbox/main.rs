//! The sandbox through the real guest.

mod forms;
mod harness;
mod limits;
mod protocol;
mod stubs;
mod values;
