//! What the black-box tests share: the command line from outside, the headers
//! of hostile scripts, what the operating system says of this process, and the
//! servers and hosts that nobody here wrote.

mod apt;
pub mod binary;
pub mod browser;
pub mod case_file;
pub mod changing;
pub mod command;
pub mod engine;
pub mod engines;
mod install;
pub mod patience;
pub mod real_hosts;
pub mod real_servers;
pub mod sarif;
pub mod serving;
pub mod solver;
pub mod stage;
pub mod stdio_host;
pub mod typescript;
pub mod typing;
pub mod vitals;
