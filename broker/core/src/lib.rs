//! Every decision of the broker, and nothing else: no clock, file, socket,
//! environment, thread or async runtime. Time, chance and outcomes come in as
//! [`effect::Event`]s; what should happen goes out as [`effect::Effect`]s.

pub mod effect;
pub mod id;
pub mod limits;
pub mod outcome;
pub mod report;
