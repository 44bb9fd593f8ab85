//! Code that all guests share, whatever their engine: limits, counters, collation, positions, and
//! the texts of messages. Nothing here uses an engine's values; each guest first converts its own
//! to texts and numbers.

pub mod args;
pub mod base64;
pub mod calls;
pub mod closest_name;
pub mod collation;
pub mod console;
pub mod failure;
pub mod forms;
pub mod frames;
pub mod inspect;
pub mod json;
pub mod limits;
pub mod nesting;
pub mod not_json;
pub mod panic_message;
pub mod place;
pub mod plan;
pub mod prelude;
pub mod rng;
pub mod stubs;
pub mod text;
pub mod timers;
pub mod urls;
