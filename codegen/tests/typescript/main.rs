//! What only a TypeScript compiler can tell about declarations: that they are
//! TypeScript, and that a value type-checks when its schema accepts it.
#![expect(clippy::disallowed_methods, reason = "a compiler reads files")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot prepare its input has failed"
)]

mod assignable;
mod compiler;
mod exceptions;
mod samples;
#[path = "../schemas/mod.rs"]
mod schemas;
mod scripts;
#[path = "../tools/mod.rs"]
mod tools;
mod valid;
