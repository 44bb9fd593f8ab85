//! Tool descriptions in; declarations, stubs, validators and the check of scripts out. Pure: the
//! same input gives the same bytes, nothing is fetched, nothing panics.

pub mod canonical;
pub mod check;
pub mod closest;
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
pub mod text;
pub mod tool_file;
pub mod unwrap;
pub mod uses;
pub mod validate;
pub mod watch;
