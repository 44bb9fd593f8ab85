//! Turns tool descriptions into declarations, stubs, validators and requests to the checker guest.
//! The crate is pure: the same input gives the same bytes, it does no I/O, and it never panics. It
//! has no parser of scripts: `codegen-script` parses scripts in the sandbox.

pub mod canonical;
pub mod check;
pub mod declare;
pub mod description;
pub mod example;
pub mod lazy_json;
pub mod lock;
pub mod names;
pub mod observe;
pub mod rust;
mod schema;
pub mod shape;
pub mod stub;
pub mod tool_file;
#[rustfmt::skip]
pub mod tool_file_format;
pub mod unwrap;
pub mod validate;

pub use codegen_shared::{closest, message, text, uses};
