//! Tool descriptions in; declarations, stubs, validators and requests to the checker guest out.
//! Pure: the same input gives the same bytes, nothing is fetched, nothing panics. There is no
//! parser of scripts here: scripts are read in the sandbox, by `codegen-script`.

pub mod canonical;
pub mod check;
pub mod declare;
pub mod description;
pub mod later;
pub mod lock;
pub mod names;
pub mod observe;
pub mod rust;
mod schema;
pub mod shape;
pub mod stub;
pub mod tool_file;
pub mod unwrap;
pub mod validate;

pub use codegen_shared::{closest, message, text, uses};
