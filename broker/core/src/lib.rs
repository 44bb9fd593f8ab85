//! Every decision of the broker, and nothing else: no clock, file, socket,
//! environment, thread or async runtime. Time, chance and outcomes come in as
//! [`effect::Event`]s; what should happen goes out as [`effect::Effect`]s.

pub mod call;
pub mod catalog;
pub mod code;
pub mod decide;
pub mod effect;
pub mod facts;
pub mod flow;
pub mod grant;
pub mod id;
pub mod inquiry;
pub mod journal;
pub mod json;
pub mod limits;
pub mod outcome;
pub mod policy;
pub mod problem;
pub mod report;
pub mod rules;
pub mod run;
pub mod search;
pub mod session;
pub mod shared;
#[cfg(test)]
mod testing;
