//! Makes every decision of the broker. This crate uses no clock, file, socket, environment, thread
//! or async runtime. Time, randomness and outcomes come in as [`effect::Event`]s; actions go out as
//! [`effect::Effect`]s.

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
pub mod labels;
pub mod level;
pub mod limits;
pub mod login;
pub mod masked_names;
pub mod outcome;
pub mod policy;
pub mod problem;
pub mod report;
pub mod resume;
pub mod rules;
pub mod run;
pub mod search;
pub mod session;
pub mod shared_state;
pub mod statement;
#[cfg(test)]
mod testing;
pub mod tool_pattern;
