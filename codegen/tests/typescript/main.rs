//! Tests that need a TypeScript compiler: declarations are valid TypeScript, and a value
//! type-checks if its schema accepts it.
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
#[path = "../shared/schemas.rs"]
mod schemas;
mod scripts;
#[path = "../shared/tools.rs"]
mod tools;
mod valid;
