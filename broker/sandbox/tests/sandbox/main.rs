//! Tests the sandbox with the real guests.

#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test's scaffolding fails by panicking"
)]

mod abuse;
mod forms;
mod harness;
mod images;
mod language;
mod limits;
mod locales;
mod starved;
mod stubs;
mod values;
