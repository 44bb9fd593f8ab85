//! What the guests have in common, whatever their engine: bounds, counting, order, places, and
//! the words of what they say. Nothing here knows a value of an engine; each guest turns its
//! own into texts and numbers first.

pub mod args;
pub mod base64;
pub mod calls;
pub mod chance;
pub mod collation;
pub mod console;
pub mod failure;
pub mod forms;
pub mod frames;
pub mod inspect;
pub mod json;
pub mod landmark;
pub mod likeness;
pub mod limits;
pub mod nesting;
pub mod not_json;
pub mod place;
pub mod plan;
pub mod prelude;
pub mod stubs;
pub mod text;
pub mod timers;
pub mod urls;
